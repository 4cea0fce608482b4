/* SPDX-License-Identifier: Apache-2.0 */
/* An NVRTC whose machine code is the text of the kernel, for machines that have none, and so that
 * driver_stub.c can name the parameters of a launch. Built as libnvrtc.so.13. */
#include <stdlib.h>
#include <string.h>

typedef struct Program {
  char* body;
} Program;

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int status) { return status == 0 ? "success" : "failure"; }
int nvrtcCreateProgram(Program** program, const char* source, const char* name, int headers,
                       const char* const* texts, const char* const* names) {
  (void)name, (void)headers, (void)texts, (void)names;
  const char* marker = "// ---- kernel ----\n";
  const char* body = strstr(source, marker);
  if (!body) return 1;
  *program = malloc(sizeof **program);
  (*program)->body = malloc(strlen(body) + 1);
  strcpy((*program)->body, body);
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  free((*program)->body);
  free(*program);
  return 0;
}
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  (void)program, (void)count, (void)options;
  return 0;
}
int nvrtcGetProgramLogSize(Program* program, size_t* size) {
  (void)program;
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  (void)program;
  *log = 0;
  return 0;
}
/* With the zero at its end, as a C string. */
int nvrtcGetCUBINSize(Program* program, size_t* size) {
  *size = strlen(program->body) + 1;
  return 0;
}
int nvrtcGetCUBIN(Program* program, char* to) {
  strcpy(to, program->body);
  return 0;
}
int nvrtcGetPTXSize(Program* program, size_t* size) { return nvrtcGetCUBINSize(program, size); }
int nvrtcGetPTX(Program* program, char* to) { return nvrtcGetCUBIN(program, to); }
