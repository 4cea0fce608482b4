/* SPDX-License-Identifier: Apache-2.0 */
/* A C program with the installed library: opens a program, asks it about itself, runs it on host
 * memory, and provokes an error. No GPU is needed. */
#include <math.h>
#include <nautilus.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, nautilus_last_error());
  return 1;
}

int main(void) {
  const char* text =
      "dims M, N\n"
      "X: f32[M, N]\n"
      "Y[i,j] = softmax[j](X[i,j])  -> f32\n";
  nautilus_program* program = NULL;
  nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
  float x[2][3] = {{1, 2, 3}, {0, 0, 0}};
  float y[2][3];
  const int64_t shape[] = {2, 3};
  int64_t found[2] = {0, 0};
  nautilus_tensor tensors[2];
  nautilus_arguments arguments = NAUTILUS_ARGUMENTS_INIT;
  nautilus_tensor_info info = NAUTILUS_TENSOR_INFO_INIT;
  const char* note = NULL;
  int i;

  if (nautilus_version() != NAUTILUS_VERSION_NUMBER) return 1;
  options.sizes = "M=2,N=3";
  if (nautilus_open_text(text, &options, &program)) return fail("open");
  for (i = 0; i < nautilus_tensor_count(program); ++i) {
    if (nautilus_tensor_at(program, i, &info)) return fail("tensor");
    printf("%s %s: %s of rank %d\n", info.is_output ? "output" : "input", info.name,
           nautilus_dtype_name(info.dtype), info.rank);
  }
  for (i = 0; i < 2; ++i) {
    tensors[i].data = i == 0 ? (void*)x : (void*)y;
    tensors[i].shape = shape;
    tensors[i].strides = NULL;
    tensors[i].rank = 2;
    tensors[i].dtype = NAUTILUS_F32;
  }
  arguments.tensors = tensors;
  arguments.tensor_count = 1;
  if (nautilus_shape(program, &arguments, 1, found)) return fail("shape");
  if (found[0] != 2 || found[1] != 3) return 1;
  arguments.tensor_count = 2;
  if (nautilus_evaluate(program, &arguments, NULL)) return fail("evaluate");
  if (fabs(y[0][2] - 0.66524096) > 1e-6 || fabs(y[1][0] - 1.0 / 3) > 1e-6) return 1;
  if (nautilus_text(program, NAUTILUS_TEXT_NOTE, &note)) return fail("note");
  printf("%s\n", note);

  tensors[0].dtype = NAUTILUS_I32;
  if (nautilus_evaluate(program, &arguments, NULL) != NAUTILUS_ERROR_ARGUMENT) return 1;
  if (!strstr(nautilus_last_error(), "`X`")) return fail("the message does not name the tensor");
  nautilus_close(program);
  if (nautilus_open_text("X: f32[", NULL, &program) != NAUTILUS_ERROR_PROGRAM) return 1;
  printf("ok\n");
  return 0;
}
