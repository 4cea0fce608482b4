/* SPDX-License-Identifier: Apache-2.0 */
/* Launches with the stub of a driver (stub_driver.c): which calls of the driver are made and when,
 * contexts, threads, workspace. What kernels compute is checked on a device (bench/capi_check.c).
 *
 *     launch EXAMPLES        with the stub's folder in LD_LIBRARY_PATH; 77: no NVRTC, no kernel in
 * the cache */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <nautilus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void* driver;
static int* counter(const char* name) { return (int*)dlsym(driver, name); }

static void expect(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "launch: %s; last error: %s\n", what, nautilus_last_error());
  exit(1);
}
static void good(nautilus_status status, const char* what) { expect(status == NAUTILUS_OK, what); }

#define MOST 8
typedef struct Call {
  int64_t shapes[MOST][NAUTILUS_MAX_RANK];
  nautilus_tensor tensors[MOST];
  nautilus_arguments arguments;
} Call;

/* At the sizes of the hints; all tensors at one address, which no kernel touches. */
static void make_call(Call* c, nautilus_program* program, char* memory) {
  nautilus_arguments none = NAUTILUS_ARGUMENTS_INIT;
  int i;
  memset(c, 0, sizeof *c);
  for (i = 0; i < nautilus_tensor_count(program); ++i) {
    nautilus_tensor_info info = NAUTILUS_TENSOR_INFO_INIT;
    good(nautilus_tensor_at(program, i, &info), "tensor");
    good(nautilus_shape(program, &none, i, c->shapes[i]), "shape");
    c->tensors[i].data = memory;
    c->tensors[i].shape = c->shapes[i];
    c->tensors[i].rank = info.rank;
    c->tensors[i].dtype = info.dtype;
  }
  c->arguments.struct_size = sizeof c->arguments;
  c->arguments.tensors = c->tensors;
  c->arguments.tensor_count = i;
}

static nautilus_program* open_program(const char* folder, const char* file, const char* sizes) {
  char path[512];
  nautilus_program* program = NULL;
  nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  options.sizes = sizes;
  good(nautilus_open_file(path, &options, &program), file);
  return program;
}

typedef struct Work {
  nautilus_plan* plan;
  nautilus_program* program;
  char* memory;
} Work;

enum { kThreads = 4, kLaunches = 200 };

static void* launch_many(void* argument) {
  Work* w = argument;
  Call call;
  int i;
  make_call(&call, w->program, w->memory);
  for (i = 0; i < kLaunches; ++i) {
    call.shapes[1][2] = call.shapes[2][2] = 80 + i % 3; /* other sizes each time */
    good(nautilus_launch(w->plan, &call.arguments, NULL), "a launch of a thread");
  }
  return NULL;
}

static int allocated, released;
static void* allocate(void* user, size_t bytes, void* stream) {
  (void)user, (void)stream;
  ++allocated;
  return aligned_alloc(256, (bytes + 255) / 256 * 256);
}
static void release(void* user, void* pointer, size_t bytes, void* stream) {
  (void)user, (void)bytes, (void)stream;
  ++released;
  free(pointer);
}

static void check_attention(const char* folder, char* memory, void* context) {
  nautilus_program* program = open_program(folder, "attention.naut", "D=64,M=64,N=80");
  nautilus_plan* plan = NULL;
  nautilus_plan_info info = NAUTILUS_PLAN_INFO_INIT;
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  int allocations, loads, waits, launches, foreign = *counter("stub_foreign"), i;
  struct timespec begin, end;
  pthread_t threads[kThreads];
  Work work;
  Call call;
  if (nautilus_prepare(program, NULL, &plan) &&
      strstr(nautilus_last_error(), "NVRTC was not found"))
    exit(77);
  expect(plan != NULL, "prepare");
  good(nautilus_plan_describe(plan, &info), "describe");
  expect(strcmp(info.device_name, "stub") == 0 && info.multiprocessors == 132, "the device");
  make_call(&call, program, memory);
  options.stream = &call;
  allocations = *counter("stub_allocations");
  loads = *counter("stub_loads");
  waits = *counter("stub_waits");
  launches = *counter("stub_launches");
  good(nautilus_launch(plan, &call.arguments, &options), "the first launch");
  expect(*counter("stub_launches") > launches, "nothing was launched");
  expect(*(void**)dlsym(driver, "stub_last_stream") == &call, "the stream is another one");

  /* One plan, several threads, without a context of their own. */
  launches = *counter("stub_launches");
  work.plan = plan;
  work.program = program;
  work.memory = memory;
  for (i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, launch_many, &work);
  for (i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  expect(*counter("stub_launches") - launches >= kThreads * kLaunches, "launches are missing");
  expect(*counter("stub_foreign") == foreign, "a launch was made in another context");

  /* The same call again costs the driver's part alone; the stub has none. */
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (i = 0; i < 10000; ++i) good(nautilus_launch(plan, &call.arguments, &options), "a launch");
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  printf("a launch without the driver: %.2f us of the processor\n",
         ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / 1e7);
  expect(*counter("stub_allocations") == allocations, "a launch allocated device memory");
  expect(*counter("stub_loads") == loads, "a launch loaded a kernel");
  expect(*counter("stub_waits") == waits, "a launch waited");

  call.tensors[1].dtype = NAUTILUS_F16;
  expect(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_ARGUMENT &&
             strstr(nautilus_last_error(), "tensor `K`: bf16[B, H, N, 64] was expected"),
         "another dtype");
  call.tensors[1].dtype = NAUTILUS_BF16;
  call.shapes[2][2] += 1;
  expect(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_ARGUMENT &&
             strstr(nautilus_last_error(), "`V`"),
         "shapes that do not fit");
  call.shapes[2][2] -= 1;

  /* Kernels for misaligned tensors are made when asked for, not in a launch. */
  call.tensors[0].data = memory + 2;
  expect(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_NOT_PREPARED &&
             strstr(nautilus_last_error(), "`Q`"),
         "a misaligned tensor");
  expect(*counter("stub_loads") == loads, "a launch loaded a kernel for misaligned tensors");
  good(nautilus_prepare_for(plan, &call.arguments), "prepare for misaligned tensors");
  expect(*counter("stub_loads") > loads, "no kernel was loaded for misaligned tensors");
  expect(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_WORKSPACE,
         "copies without a workspace");
  {
    uint64_t bytes = 0;
    good(nautilus_plan_workspace(plan, &call.arguments, &bytes), "workspace of copies");
    options.workspace = aligned_alloc(256, (bytes + 255) / 256 * 256);
    options.workspace_bytes = bytes;
    launches = *counter("stub_launches");
    good(nautilus_launch(plan, &call.arguments, &options), "a launch with copies");
    expect(*counter("stub_launches") - launches >= 2, "the copy was not launched");
    free(options.workspace);
  }
  nautilus_close(program); /* the plan stays */
  options.workspace = NULL;
  call.tensors[0].data = memory;
  good(nautilus_launch(plan, &call.arguments, &options), "a launch after the program was closed");
  nautilus_plan_close(plan);
  (void)context;
}

static void check_workspace(const char* folder, char* memory) {
  nautilus_program* program =
      open_program(folder, "attention_decode.naut", "B=1,Hk=2,N=16384,G=8,D=128");
  nautilus_plan* plan = NULL;
  nautilus_prepare_options with = NAUTILUS_PREPARE_OPTIONS_INIT;
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  nautilus_allocator allocator = {allocate, release, NULL};
  uint64_t bytes = 0, without_device = 0;
  int fills;
  Call call;
  make_call(&call, program, memory);
  good(nautilus_prepare(program, NULL, &plan), "prepare decode");
  good(nautilus_plan_workspace(plan, &call.arguments, &bytes), "workspace");
  good(nautilus_workspace(program, &call.arguments, 132, &without_device), "workspace");
  expect(bytes > 0 && bytes == without_device, "decoding has a workspace");
  expect(nautilus_launch(plan, &call.arguments, NULL) == NAUTILUS_ERROR_WORKSPACE, "no workspace");
  options.workspace = aligned_alloc(256, bytes);
  options.workspace_bytes = bytes - 1;
  expect(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_WORKSPACE,
         "a workspace that is too small");
  options.workspace_bytes = bytes;
  good(nautilus_launch(plan, &call.arguments, &options), "a launch with a workspace");
  fills = *counter("stub_fills");
  options.flags = NAUTILUS_LAUNCH_WORKSPACE_KEPT;
  good(nautilus_launch(plan, &call.arguments, &options), "a launch with a kept workspace");
  expect(*counter("stub_fills") == fills, "a kept workspace was cleared");
  free(options.workspace);
  nautilus_plan_close(plan);
  with.allocator = &allocator;
  good(nautilus_prepare(program, &with, &plan), "prepare with an allocator");
  good(nautilus_launch(plan, &call.arguments, NULL), "a launch with an allocator");
  expect(allocated == 1 && released == 1, "the allocator was not asked once");
  nautilus_plan_close(plan);
  nautilus_close(program);
}

int main(int count, char** arguments) {
  const char* folder = count > 1 ? arguments[1] : "examples";
  int (*create)(void**, unsigned, int);
  int (*set)(void*);
  char* memory = aligned_alloc(256, 4096);
  void* own = NULL;
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver || !dlsym(driver, "stub_launches")) {
    fprintf(stderr, "launch: libcuda.so.1 is not the stub\n");
    return 1;
  }
  *(void**)&create = dlsym(driver, "cuCtxCreate_v2");
  *(void**)&set = dlsym(driver, "cuCtxSetCurrent");
  check_attention(folder, memory, NULL); /* no current context: the primary one */
  create(&own, 0, 0);
  set(own);
  check_attention(folder, memory, own);
  check_workspace(folder, memory);
  free(memory);
  printf("ok\n");
  return 0;
}
