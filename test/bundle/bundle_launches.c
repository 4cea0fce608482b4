/* SPDX-License-Identifier: Apache-2.0 */
/* Calls programs of the bundle `b` for tensors of given shapes, strides and addresses, as lines of
 * standard input say: `PROGRAM A=96x64:72,1@0x10000000000 ... scale=0.5`. With driver_stub.c as the
 * driver the record says what was launched; plan_launches.cc writes these lines, and a record of
 * what the compiler's own runtime does for them. */
#include "b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMax = 32, kMaxRank = 8 };

static int parse_list(char** text, char separator, int64_t* to) {
  int count = 0;
  char* end = NULL;
  while (count < kMaxRank) {
    to[count] = strtoll(*text, &end, 10);
    if (end == *text) break;
    ++count;
    *text = end;
    if (*end != separator) break;
    ++*text;
  }
  return count;
}

static int find_program(const char* name) {
  for (int i = 0; i < b_program_count(); ++i)
    if (strcmp(b_program(i)->name, name) == 0) return i;
  return -1;
}

static int run_line(const b_bundle* bundle, char* line, b_error* error) {
  char* word = strtok(line, " \n");
  const int program = word ? find_program(word) : -1;
  if (program < 0) {
    snprintf(error->text, sizeof error->text, "no program is called %s", word ? word : "");
    return 1;
  }
  const b_program_info* info = b_program(program);
  b_tensor tensors[kMax] = {{0}};
  int64_t shapes[kMax][kMaxRank];
  int64_t strides[kMax][kMaxRank];
  int64_t integers[kMax];
  double floats[kMax];
  const void* values[kMax] = {NULL};
  while ((word = strtok(NULL, " \n"))) {
    char* text = strchr(word, '=');
    if (!text) return 1;
    *text++ = 0;
    for (int t = 0; t < info->tensor_count; ++t) {
      if (strcmp(info->tensors[t].name, word) != 0) continue;
      tensors[t].rank = parse_list(&text, 'x', shapes[t]);
      tensors[t].shape = shapes[t];
      if (*text == ':') {
        ++text;
        parse_list(&text, ',', strides[t]);
        tensors[t].strides = strides[t];
      }
      if (*text == '@') tensors[t].data = (void*)(uintptr_t)strtoull(text + 1, NULL, 16);
    }
    for (int v = 0; v < info->value_count; ++v) {
      if (strcmp(info->values[v].name, word) != 0) continue;
      const char* dtype = info->values[v].dtype;
      const int is_float = dtype[0] == 'f' || strcmp(dtype, "bf16") == 0;
      integers[v] = atoll(text);
      floats[v] = atof(text);
      values[v] = is_float ? (const void*)&floats[v] : (const void*)&integers[v];
    }
  }
  size_t bytes = 0;
  b_call call = {0};
  call.workspace = (void*)(uintptr_t)0x700100000000;
  if (b_run_workspace(bundle, program, tensors, values, &bytes, error)) return 1;
  call.workspace_bytes = bytes;
  if (b_run(bundle, program, tensors, values, &call, error)) return 1;
  if (bytes == 0) return 0;
  b_error small;
  call.workspace_bytes = bytes - 1;
  if (b_run(bundle, program, tensors, values, &call, &small)) return 0;
  snprintf(error->text, sizeof error->text, "a workspace that is too small was taken");
  return 1;
}

int main(void) {
  b_error error;
  b_bundle* bundle = b_open(0, &error);
  if (!bundle) {
    printf("error: %s\n", error.text);
    return 1;
  }
  const char* path = getenv("STUB_RECORD");
  char line[4096];
  int is_bad = 0;
  while (fgets(line, sizeof line, stdin)) {
    FILE* record = path ? fopen(path, "a") : NULL;
    if (record) {
      fprintf(record, "case %s", line);
      fclose(record);
    }
    if (!run_line(bundle, line, &error)) continue;
    printf("error: %s\n", error.text);
    is_bad = 1;
  }
  b_close(bundle);
  return is_bad;
}
