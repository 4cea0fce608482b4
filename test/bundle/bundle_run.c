/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of the bundle `b` on a GPU and compares what they compute with what is expected.
 * It knows nothing of the compiler: cc, the bundle, the CUDA driver.
 *
 * usage: bundle_run FOLDER
 * Lines of FOLDER/cases are `CASE PROGRAM SCALAR=0.5 ... !TENSOR ...`. FOLDER/CASE has TENSOR.npy for
 * every tensor: inputs, and the outputs that are expected. !TENSOR: it lies with padded rows behind
 * an odd address, so that the launcher has to use copies. What was computed is written to
 * FOLDER/CASE/TENSOR.got.npy. The status is 1 if a case failed. */
#define _POSIX_C_SOURCE 200809L
#include "b.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMax = 32, kMaxRank = 8, kCalls = 2000 };
typedef unsigned long long Address;

static int (*cu_init)(unsigned);
static int (*cu_context)(void**, int);
static int (*cu_current)(void*);
static int (*cu_alloc)(Address*, size_t);
static int (*cu_free)(Address);
static int (*cu_upload)(Address, const void*, size_t);
static int (*cu_download)(void*, Address, size_t);
static int (*cu_fill)(Address, unsigned char, size_t);
static int (*cu_stream)(void**, unsigned);
static int (*cu_wait)(void);

static void load(void* function, void* library, const char* name) {
  void* address = dlsym(library, name);
  if (!address) {
    printf("the driver has no %s\n", name);
    exit(2);
  }
  memcpy(function, &address, sizeof address);
}

static void must(int status, const char* what) {
  if (status == 0) return;
  printf("%s: status %d\n", what, status);
  exit(2);
}

typedef struct Array {
  char header[1024];
  size_t header_bytes;
  int rank;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank]; /* on the device */
  size_t elements;
  size_t span; /* elements on the device, padding among them */
  unsigned char* bytes;
} Array;

static size_t width_of(const char* dtype) {
  if (strstr(dtype, "64")) return 8;
  if (strstr(dtype, "32")) return 4;
  return strstr(dtype, "16") ? 2 : 1;
}

/* A float of so many bits of exponent and fraction. */
static double decode(uint64_t bits, int exponent_bits, int fraction_bits, int has_infinity) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1);
  const double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1 : 1;
  if (has_infinity && exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * HUGE_VAL;
  if (exponent == 0) return sign * ldexp((double)fraction, 1 - bias - fraction_bits);
  return sign * ldexp((double)(fraction | (uint64_t)1 << fraction_bits),
                      exponent - bias - fraction_bits);
}

static double number(const char* dtype, const unsigned char* from) {
  uint64_t bits = 0;
  memcpy(&bits, from, width_of(dtype));
  if (strcmp(dtype, "f64") == 0) {
    double value;
    memcpy(&value, from, 8);
    return value;
  }
  if (strcmp(dtype, "f32") == 0) return decode(bits, 8, 23, 1);
  if (strcmp(dtype, "bf16") == 0) return decode(bits, 8, 7, 1);
  if (strcmp(dtype, "f16") == 0) return decode(bits, 5, 10, 1);
  if (strcmp(dtype, "f8e5m2") == 0) return decode(bits, 5, 2, 1);
  if (strcmp(dtype, "f8e4m3") == 0)
    return (bits & 0x7F) == 0x7F ? NAN : decode(bits, 4, 3, 0);
  if (strcmp(dtype, "i32") == 0) return (double)(int32_t)bits;
  if (strcmp(dtype, "i8") == 0) return (double)(int8_t)bits;
  if (strcmp(dtype, "i64") == 0) return (double)(int64_t)bits;
  return (double)bits;
}

/* Files have bf16 and f8 as float32, which holds them exactly. */
static int is_widened(const char* dtype) {
  return strcmp(dtype, "bf16") == 0 || strncmp(dtype, "f8", 2) == 0;
}
static void narrow(const char* dtype, float value, unsigned char* to) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (strcmp(dtype, "bf16") == 0) {
    const uint16_t half = (uint16_t)(bits >> 16);
    memcpy(to, &half, 2);
    return;
  }
  for (int code = 0; code < 256; ++code) {
    *to = (unsigned char)code;
    const double own = number(dtype, to);
    if ((own == value && !signbit(own) == !signbit(value)) || (isnan(own) && isnan(value))) return;
  }
}

static int read_npy(const char* path, Array* a, const char* dtype) {
  const size_t width = width_of(dtype);
  FILE* file = fopen(path, "rb");
  unsigned char head[10];
  if (!file || fread(head, 1, 10, file) != 10 || memcmp(head, "\x93NUMPY", 6) != 0) {
    printf("%s cannot be read\n", path);
    if (file) fclose(file);
    return 1;
  }
  const size_t length = head[8] + 256u * head[9];
  a->header_bytes = 10 + length;
  if (a->header_bytes >= sizeof a->header) return 1;
  memcpy(a->header, head, 10);
  if (fread(a->header + 10, 1, length, file) != length) return 1;
  a->header[a->header_bytes] = 0;
  const char* at = strchr(a->header + 10, '(');
  a->rank = 0;
  a->elements = 1;
  while (at && *at != ')') {
    char* end = NULL;
    const int64_t extent = strtoll(at + 1, &end, 10);
    if (end == at + 1) break;
    a->shape[a->rank++] = extent;
    a->elements *= (size_t)extent;
    at = end;
  }
  a->bytes = malloc(a->elements * width + 1);
  int is_bad = 0;
  if (is_widened(dtype)) {
    for (size_t i = 0; i < a->elements && !is_bad; ++i) {
      float value = 0;
      is_bad = fread(&value, 4, 1, file) != 1;
      narrow(dtype, value, a->bytes + i * width);
    }
  } else {
    is_bad = fread(a->bytes, width, a->elements, file) != a->elements;
  }
  fclose(file);
  if (is_bad) printf("%s is too short\n", path);
  return is_bad;
}

/* Packed, or with rows that are three elements longer. */
static void lay_out(Array* a, int is_padded) {
  int64_t step = 1;
  for (int k = a->rank; k-- > 0;) {
    a->strides[k] = step;
    step *= a->shape[k] + (is_padded && k + 1 == a->rank ? 3 : 0);
  }
  a->span = (size_t)step;
}

/* Between packed rows and those on the device. */
static void move_rows(const Array* a, size_t width, unsigned char* device, int is_up) {
  if (a->elements == 0) return;
  const size_t row = a->rank ? (size_t)a->shape[a->rank - 1] : 1;
  for (size_t r = 0; r < a->elements / row; ++r) {
    size_t rest = r;
    int64_t offset = 0;
    for (int k = a->rank - 1; k-- > 0;) {
      offset += (int64_t)(rest % (size_t)a->shape[k]) * a->strides[k];
      rest /= (size_t)a->shape[k];
    }
    unsigned char* there = device + (size_t)offset * width;
    unsigned char* here = a->bytes + r * row * width;
    memcpy(is_up ? there : here, is_up ? here : there, row * width);
  }
}

/* ||got - want|| / ||want||, infinite if one is finite where the other is not. */
static double error_of(const char* dtype, const Array* want, const unsigned char* got) {
  double difference = 0;
  double norm = 0;
  const size_t width = width_of(dtype);
  for (size_t i = 0; i < want->elements; ++i) {
    const double w = number(dtype, want->bytes + i * width);
    const double g = number(dtype, got + i * width);
    if (w == g || (isnan(w) && isnan(g))) {
      norm += isfinite(w) ? w * w : 0;
      continue;
    }
    if (!isfinite(w) || !isfinite(g)) return HUGE_VAL;
    difference += (g - w) * (g - w);
    norm += w * w;
  }
  return difference == 0 ? 0 : sqrt(difference / (norm > 0 ? norm : 1));
}

/* What rounding of the output and of 16-bit intermediates may do to the whole tensor. */
static double tolerance(const char* dtype) {
  if (dtype[0] == 'i' || dtype[0] == 'u' || strcmp(dtype, "bool") == 0) return 0;
  return strstr(dtype, "f8") ? 0.03 : strstr(dtype, "16") ? 0.01 : 0.003;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare_us(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static int run_case(const b_bundle* bundle, const char* folder, char* line, void* stream) {
  const char* name = strtok(line, " \n");
  const char* wanted = strtok(NULL, " \n");
  int program = 0;
  while (b_program(program) && strcmp(b_program(program)->name, wanted ? wanted : "") != 0)
    ++program;
  const b_program_info* info = b_program(program);
  if (!info) {
    printf("%-28s there is no program %s\n", name, wanted ? wanted : "");
    return 1;
  }
  int is_padded[kMax] = {0};
  int64_t integers[kMax];
  double floats[kMax];
  const void* values[kMax] = {NULL};
  for (char* word = strtok(NULL, " \n"); word; word = strtok(NULL, " \n")) {
    for (int t = 0; t < info->tensor_count; ++t)
      is_padded[t] |= word[0] == '!' && strcmp(info->tensors[t].name, word + 1) == 0;
    char* text = strchr(word, '=');
    if (!text) continue;
    *text++ = 0;
    for (int v = 0; v < info->value_count; ++v) {
      if (strcmp(info->values[v].name, word) != 0) continue;
      integers[v] = atoll(text);
      floats[v] = atof(text);
      values[v] = strchr(info->values[v].dtype, 'f') ? (const void*)&floats[v]
                                                     : (const void*)&integers[v];
    }
  }
  static Array arrays[kMax];
  b_tensor tensors[kMax] = {{0}};
  Address memory[kMax] = {0};
  char path[2048];
  for (int t = 0; t < info->tensor_count; ++t) {
    const size_t width = width_of(info->tensors[t].dtype);
    Array* a = &arrays[t];
    snprintf(path, sizeof path, "%s/%s/%s.npy", folder, name, info->tensors[t].name);
    if (read_npy(path, a, info->tensors[t].dtype)) return 1;
    lay_out(a, is_padded[t]);
    const size_t offset = is_padded[t] ? width : 0;
    const size_t bytes = a->span * width + offset;
    must(cu_alloc(&memory[t], bytes + 256), "no GPU memory");
    must(cu_fill(memory[t], 0xFF, bytes + 256), "the GPU memory cannot be filled");
    if (!info->tensors[t].is_output && a->elements > 0) {
      unsigned char* staged = calloc(a->span + 1, width);
      move_rows(a, width, staged, 1);
      must(cu_upload(memory[t] + offset, staged, a->span * width), "upload");
      free(staged);
    }
    tensors[t].data = (void*)(uintptr_t)(memory[t] + offset);
    tensors[t].rank = a->rank;
    tensors[t].shape = a->shape;
    tensors[t].strides = a->strides;
  }
  b_error error;
  size_t bytes = 0;
  Address workspace = 0;
  b_call call = {0};
  call.stream = stream;
  int is_bad = b_run_workspace(bundle, program, tensors, values, &bytes, &error);
  if (!is_bad && bytes > 0) {
    must(cu_alloc(&workspace, bytes), "no GPU memory for the workspace");
    must(cu_fill(workspace, 0xFF, bytes), "the workspace cannot be filled");
  }
  call.workspace = (void*)(uintptr_t)workspace;
  call.workspace_bytes = bytes;
  if (!is_bad) is_bad = b_run(bundle, program, tensors, values, &call, &error);
  if (is_bad) {
    printf("%-28s FAILED: %s\n", name, error.text);
    return 1;
  }
  must(cu_wait(), "the kernels failed");
  /* The cost of a call, which also runs it again on a workspace that was kept. */
  static double us[kCalls];
  call.is_workspace_kept = 1;
  for (int i = 0; i < kCalls && !is_bad; ++i) {
    const double begin = now_us();
    is_bad = b_run(bundle, program, tensors, values, &call, &error);
    us[i] = now_us() - begin;
    if (i % 64 == 63) must(cu_wait(), "the kernels failed");
  }
  must(cu_wait(), "the kernels failed");
  qsort(us, kCalls, sizeof us[0], compare_us);
  for (int t = 0; t < info->tensor_count; ++t) {
    if (!info->tensors[t].is_output) continue;
    const char* dtype = info->tensors[t].dtype;
    const size_t width = width_of(dtype);
    Array* want = &arrays[t];
    Array got = *want;
    got.bytes = malloc(want->elements * width + 1);
    unsigned char* staged = calloc(want->span + 1, width);
    must(cu_download(staged, (Address)(uintptr_t)tensors[t].data, want->span * width), "download");
    move_rows(&got, width, staged, 0);
    free(staged);
    const double difference = error_of(dtype, want, got.bytes);
    const int is_wrong = !(difference <= tolerance(dtype));
    is_bad |= is_wrong;
    printf("%-28s %-16s %-8s %-7s error %.2e (at most %.0e)  workspace %9zu B  call %6.2f us\n",
           name, wanted, info->tensors[t].name, is_wrong ? "WRONG" : "ok", difference,
           tolerance(dtype), bytes, us[kCalls / 2]);
    snprintf(path, sizeof path, "%s/%s/%s.got.npy", folder, name, info->tensors[t].name);
    FILE* file = fopen(path, "wb");
    if (file) {
      fwrite(got.header, 1, got.header_bytes, file);
      for (size_t i = 0; i < got.elements; ++i) {
        const float value = (float)number(dtype, got.bytes + i * width);
        if (is_widened(dtype))
          fwrite(&value, 4, 1, file);
        else
          fwrite(got.bytes + i * width, width, 1, file);
      }
      fclose(file);
    }
    free(got.bytes);
  }
  for (int t = 0; t < info->tensor_count; ++t) {
    free(arrays[t].bytes);
    cu_free(memory[t]);
  }
  if (workspace) cu_free(workspace);
  return is_bad;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) {
    printf("no CUDA driver\n");
    return 2;
  }
  load(&cu_init, driver, "cuInit");
  load(&cu_context, driver, "cuDevicePrimaryCtxRetain");
  load(&cu_current, driver, "cuCtxPushCurrent_v2");
  load(&cu_alloc, driver, "cuMemAlloc_v2");
  load(&cu_free, driver, "cuMemFree_v2");
  load(&cu_upload, driver, "cuMemcpyHtoD_v2");
  load(&cu_download, driver, "cuMemcpyDtoH_v2");
  load(&cu_fill, driver, "cuMemsetD8_v2");
  load(&cu_stream, driver, "cuStreamCreate");
  load(&cu_wait, driver, "cuCtxSynchronize");
  void* context = NULL;
  void* stream = NULL;
  must(cu_init(0), "the driver does not start");
  must(cu_context(&context, 0), "no context");
  must(cu_current(context), "no context");
  must(cu_stream(&stream, 0), "no stream");
  b_error error;
  const double begin = now_us();
  b_bundle* bundle = b_open(-1, &error);
  if (!bundle) {
    printf("the bundle does not open: %s\n", error.text);
    return 1;
  }
  printf("opened in %.1f ms\n", (now_us() - begin) / 1000);
  char path[2048];
  snprintf(path, sizeof path, "%s/cases", argv[1]);
  FILE* cases = fopen(path, "r");
  if (!cases) {
    printf("%s cannot be read\n", path);
    return 2;
  }
  char line[2048];
  int count = 0;
  int bad = 0;
  while (fgets(line, sizeof line, cases)) {
    if (line[0] == '\n' || line[0] == '#') continue;
    ++count;
    bad += run_case(bundle, argv[1], line, stream) != 0;
  }
  fclose(cases);
  b_close(bundle);
  printf("bundle: %d of %d cases are right\n", count - bad, count);
  return bad != 0 || count == 0;
}
