/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface on a GPU: results against the oracle, a capture as the first launch, a context of
 * the caller's, threads, workspace, misaligned tensors, and what a launch costs.
 *
 *     cc -O2 -Iinclude bench/capi_check.c -o capi_check -Lbuild -lnautilus -ldl -lpthread -lm
 *     LD_LIBRARY_PATH=build ./capi_check examples        (scripts/device_capi.sh does both)
 *
 * Prints one line for each check and returns how many failed. The driver is found at run time, so
 * that this compiles anywhere. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <nautilus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long Pointer;

static struct {
  int (*init)(unsigned);
  int (*device_count)(int*);
  int (*device_get)(int*, int);
  int (*context_create)(void**, unsigned, int);
  int (*context_destroy)(void*);
  int (*context_set)(void*);
  int (*context_get)(void**);
  int (*primary)(void**, int);
  int (*alloc)(Pointer*, size_t);
  int (*release)(Pointer);
  int (*upload)(Pointer, const void*, size_t);
  int (*download)(void*, Pointer, size_t);
  int (*fill)(Pointer, unsigned char, size_t);
  int (*stream_create)(void**, unsigned);
  int (*stream_synchronize)(void*);
  int (*synchronize)(void);
  int (*capture_begin)(void*, int);
  int (*capture_end)(void*, void**);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, void*);
  int (*graph_exec_destroy)(void*);
} cu;

static int load_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 0;
#define FIND(member, name) *(void**)&cu.member = dlsym(library, name)
  FIND(init, "cuInit");
  FIND(device_count, "cuDeviceGetCount");
  FIND(device_get, "cuDeviceGet");
  FIND(context_create, "cuCtxCreate_v2");
  FIND(context_destroy, "cuCtxDestroy_v2");
  FIND(context_set, "cuCtxSetCurrent");
  FIND(context_get, "cuCtxGetCurrent");
  FIND(primary, "cuDevicePrimaryCtxRetain");
  FIND(alloc, "cuMemAlloc_v2");
  FIND(release, "cuMemFree_v2");
  FIND(upload, "cuMemcpyHtoD_v2");
  FIND(download, "cuMemcpyDtoH_v2");
  FIND(fill, "cuMemsetD8_v2");
  FIND(stream_create, "cuStreamCreate");
  FIND(stream_synchronize, "cuStreamSynchronize");
  FIND(synchronize, "cuCtxSynchronize");
  FIND(capture_begin, "cuStreamBeginCapture_v2");
  FIND(capture_end, "cuStreamEndCapture");
  FIND(graph_instantiate, "cuGraphInstantiateWithFlags");
  FIND(graph_launch, "cuGraphLaunch");
  FIND(graph_exec_destroy, "cuGraphExecDestroy");
#undef FIND
  return cu.init(0) == 0;
}

static int failures = 0;
static int check(int ok, const char* what) {
  printf("%s  %s%s%s\n", ok ? "ok   " : "WRONG", what, ok ? "" : ": ",
         ok ? "" : nautilus_last_error());
  failures += !ok;
  return ok;
}
static void fatal(const char* what) {
  printf("WRONG  %s: %s\n", what, nautilus_last_error());
  exit(1);
}
static void cuda(int status, const char* what) {
  if (status == 0) return;
  printf("WRONG  CUDA %s: status %d\n", what, status);
  exit(1);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}
static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* A call with its tensors on the device and on the host. */
#define MOST 8
typedef struct Call {
  nautilus_program* program;
  int count;
  int64_t shapes[MOST][NAUTILUS_MAX_RANK];
  size_t elements[MOST];
  size_t bytes[MOST];
  int is_output[MOST];
  void* host[MOST];
  Pointer device[MOST];
  nautilus_tensor tensors[MOST];
  nautilus_arguments arguments;
} Call;

static unsigned seed = 12345;
static float random_float(void) {
  float sum = 0;
  int i;
  for (i = 0; i < 4; ++i) {
    seed = seed * 1664525u + 1013904223u;
    sum += (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
  }
  return sum;
}
static uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
static float of_bf16(uint16_t x) {
  const uint32_t bits = (uint32_t)x << 16;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

/* Tensors of bf16 or f32, at the sizes of the program's hints; `extra` bytes shift the addresses. */
static void make_call(Call* c, nautilus_program* program, size_t extra) {
  int i, k;
  size_t e;
  nautilus_arguments none = NAUTILUS_ARGUMENTS_INIT;
  memset(c, 0, sizeof *c);
  c->program = program;
  c->count = nautilus_tensor_count(program);
  if (c->count > MOST) fatal("too many tensors");
  for (i = 0; i < c->count; ++i) {
    nautilus_tensor_info info = NAUTILUS_TENSOR_INFO_INIT;
    if (nautilus_tensor_at(program, i, &info)) fatal("tensor");
    if (nautilus_shape(program, &none, i, c->shapes[i])) fatal("shape");
    c->elements[i] = 1;
    for (k = 0; k < info.rank; ++k) c->elements[i] *= (size_t)c->shapes[i][k];
    c->bytes[i] = c->elements[i] * (size_t)nautilus_dtype_bytes(info.dtype);
    c->is_output[i] = info.is_output;
    c->host[i] = malloc(c->bytes[i] + 1);
    for (e = 0; e < c->elements[i]; ++e) {
      const float x = random_float();
      if (info.dtype == NAUTILUS_BF16)
        ((uint16_t*)c->host[i])[e] = bf16_of(x);
      else if (info.dtype == NAUTILUS_F32)
        ((float*)c->host[i])[e] = x;
      else
        fatal("this check has programs of bf16 and f32");
    }
    cuda(cu.alloc(&c->device[i], c->bytes[i] + 256), "alloc");
    if (info.is_output)
      cuda(cu.fill(c->device[i], 0xFF, c->bytes[i] + 256), "fill");
    else
      cuda(cu.upload(c->device[i] + extra, c->host[i], c->bytes[i]), "upload");
    c->tensors[i].data = (void*)(uintptr_t)(c->device[i] + (info.is_output ? 0 : extra));
    c->tensors[i].shape = c->shapes[i];
    c->tensors[i].rank = info.rank;
    c->tensors[i].dtype = info.dtype;
  }
  c->arguments.struct_size = sizeof c->arguments;
  c->arguments.tensors = c->tensors;
  c->arguments.tensor_count = c->count;
}

/* The largest error of the device's outputs, as a share of what the oracle allows. */
static double compare(Call* c) {
  nautilus_tensor tensors[MOST];
  double* bounds[MOST] = {0};
  double* values[MOST] = {0};
  nautilus_arguments arguments = c->arguments;
  nautilus_evaluate_options options = NAUTILUS_EVALUATE_OPTIONS_INIT;
  double worst = 0;
  int i;
  size_t e;
  for (i = 0; i < c->count; ++i) {
    tensors[i] = c->tensors[i];
    tensors[i].data = c->host[i];
    if (!c->is_output[i]) continue;
    values[i] = malloc(c->elements[i] * sizeof(double));
    bounds[i] = malloc(c->elements[i] * sizeof(double));
    tensors[i].data = values[i];
    tensors[i].dtype = NAUTILUS_F64;
  }
  arguments.tensors = tensors;
  options.bounds = bounds;
  if (nautilus_evaluate(c->program, &arguments, &options)) fatal("evaluate");
  for (i = 0; i < c->count; ++i) {
    if (!c->is_output[i]) continue;
    cuda(cu.download(c->host[i], c->device[i], c->bytes[i]), "download");
    for (e = 0; e < c->elements[i]; ++e) {
      const double got = c->tensors[i].dtype == NAUTILUS_BF16 ? of_bf16(((uint16_t*)c->host[i])[e])
                                                              : ((float*)c->host[i])[e];
      const double share = fabs(got - values[i][e]) / (bounds[i][e] + 1e-30);
      if (!(share <= worst)) worst = share; /* NaN counts */
    }
    free(values[i]);
    free(bounds[i]);
  }
  return worst;
}

static int is_right(Call* c) {
  const double worst = compare(c);
  if (!(worst <= 1)) printf("       worst element %g of what is allowed\n", worst);
  return worst <= 1;
}

static nautilus_program* open_program(const char* folder, const char* file, const char* sizes) {
  char path[512];
  nautilus_program* program = NULL;
  nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  options.sizes = sizes;
  if (nautilus_open_file(path, &options, &program)) fatal(file);
  return program;
}

/* ---- threads ---- */

typedef struct Work {
  nautilus_plan* plan;
  Call* call;
  void* context;
  Pointer output;
  int index;
  int ok;
} Work;

static void* launch_many(void* argument) {
  Work* w = argument;
  nautilus_tensor tensors[MOST];
  nautilus_arguments arguments = w->call->arguments;
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  int i;
  /* Half of the threads have no context: the plan brings its own. */
  if (w->index % 2 == 0) cu.context_set(w->context);
  memcpy(tensors, w->call->tensors, sizeof tensors);
  arguments.tensors = tensors;
  for (i = 0; i < w->call->count; ++i)
    if (w->call->is_output[i]) tensors[i].data = (void*)(uintptr_t)w->output;
  w->ok = 1;
  for (i = 0; i < 500; ++i)
    w->ok &= nautilus_launch(w->plan, &arguments, &options) == NAUTILUS_OK;
  return NULL;
}

static int threads_agree(nautilus_plan* plan, Call* call, void* context, int output) {
  pthread_t threads[4];
  Work work[4];
  char* first = malloc(call->bytes[output]);
  char* other = malloc(call->bytes[output]);
  int i, ok = 1;
  cuda(cu.download(first, call->device[output], call->bytes[output]), "download");
  for (i = 0; i < 4; ++i) {
    work[i].plan = plan;
    work[i].call = call;
    work[i].context = context;
    work[i].index = i;
    cuda(cu.alloc(&work[i].output, call->bytes[output]), "alloc");
    cuda(cu.fill(work[i].output, 0xFF, call->bytes[output]), "fill");
    pthread_create(&threads[i], NULL, launch_many, &work[i]);
  }
  for (i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  cuda(cu.synchronize(), "synchronize");
  for (i = 0; i < 4; ++i) {
    cuda(cu.download(other, work[i].output, call->bytes[output]), "download");
    ok &= work[i].ok && memcmp(first, other, call->bytes[output]) == 0;
    cu.release(work[i].output);
  }
  free(first);
  free(other);
  return ok;
}

/* ---- launch cost ---- */

static double median_cost(nautilus_plan* plan, Call* call, void* stream, int changes) {
  enum { kCalls = 10000 };
  static double times[kCalls];
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  nautilus_tensor kept = call->tensors[0];
  int i;
  options.stream = stream;
  for (i = 0; i < kCalls; ++i) {
    double begin;
    /* Another address each time: sizes are solved and maps made anew. */
    if (changes) call->tensors[0].data = (char*)kept.data + (i % 2 ? 256 : 0);
    begin = now_us();
    if (nautilus_launch(plan, &call->arguments, &options)) fatal("launch");
    times[i] = now_us() - begin;
    /* The queue of the stream is finite: a full one would be what is measured. */
    if (i % 256 == 255) cu.stream_synchronize(stream);
  }
  call->tensors[0] = kept;
  cuda(cu.stream_synchronize(stream), "synchronize");
  qsort(times, kCalls, sizeof times[0], by_value);
  return times[kCalls / 2];
}

/* ---- workspace ---- */

static int allocations, releases;
static void* allocate(void* user, size_t bytes, void* stream) {
  Pointer p = 0;
  (void)user;
  (void)stream;
  ++allocations;
  if (cu.alloc(&p, bytes)) return NULL;
  cu.fill(p, 0xFF, bytes); /* what an allocator hands out is not zero */
  return (void*)(uintptr_t)p;
}
static void release(void* user, void* pointer, size_t bytes, void* stream) {
  (void)user;
  (void)pointer; /* the stream still uses it; this program ends soon */
  (void)bytes;
  (void)stream;
  ++releases;
}

static void check_workspace(const char* folder, void* stream) {
  nautilus_program* program =
      open_program(folder, "attention_decode.naut", "B=1,Hk=2,N=16384,G=8,D=128");
  nautilus_plan* plan = NULL;
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  nautilus_prepare_options with = NAUTILUS_PREPARE_OPTIONS_INIT;
  nautilus_allocator allocator = {allocate, release, NULL};
  uint64_t bytes = 0;
  Pointer memory = 0;
  Call call;
  if (nautilus_prepare(program, NULL, &plan)) fatal("prepare decode");
  make_call(&call, program, 0);
  if (nautilus_plan_workspace(plan, &call.arguments, &bytes)) fatal("workspace");
  printf("       decoding needs %llu bytes of workspace\n", (unsigned long long)bytes);
  options.stream = stream;
  if (bytes > 0) {
    check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_WORKSPACE,
          "a launch without its workspace is refused");
    cuda(cu.alloc(&memory, bytes), "alloc");
    cuda(cu.fill(memory, 0xFF, bytes), "fill");
    options.workspace = (void*)(uintptr_t)memory;
    options.workspace_bytes = bytes - 1;
    check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_WORKSPACE,
          "a workspace that is too small is refused");
    options.workspace_bytes = bytes;
  }
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK,
        "a launch with a workspace of the caller's, not cleared");
  cuda(cu.stream_synchronize(stream), "synchronize");
  check(is_right(&call), "its result");
  options.flags = NAUTILUS_LAUNCH_WORKSPACE_KEPT;
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK &&
            nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK,
        "launches with a workspace that was kept");
  cuda(cu.stream_synchronize(stream), "synchronize");
  check(is_right(&call), "their result");
  nautilus_plan_close(plan);
  with.allocator = &allocator;
  if (nautilus_prepare(program, &with, &plan)) fatal("prepare with an allocator");
  options.flags = 0;
  options.workspace = NULL;
  options.workspace_bytes = 0;
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK &&
            allocations == (bytes > 0) && releases == allocations,
        "a launch with the caller's allocator");
  cuda(cu.stream_synchronize(stream), "synchronize");
  check(is_right(&call), "its result");
  nautilus_plan_close(plan);
  nautilus_close(program);
}

static void check_attention(const char* folder, void* context, const char* where) {
  nautilus_program* program = open_program(folder, "attention.naut", "D=128,B=1,H=4,M=256,N=384");
  nautilus_plan* plan = NULL;
  nautilus_plan_info info = NAUTILUS_PLAN_INFO_INIT;
  nautilus_launch_options options = NAUTILUS_LAUNCH_OPTIONS_INIT;
  void *stream = NULL, *graph = NULL, *executable = NULL, *current = NULL;
  const char* note = "";
  Call call;
  double before = now_us();
  printf("== %s\n", where);
  cuda(cu.context_set(context), "context");
  cuda(cu.stream_create(&stream, 1), "stream");
  if (nautilus_prepare(program, NULL, &plan)) fatal("prepare");
  if (nautilus_plan_describe(plan, &info)) fatal("describe");
  if (nautilus_text(program, NAUTILUS_TEXT_NOTE, &note)) fatal("note");
  printf("       %d kernels (%d cached) on %s, prepared in %.0f ms; %s\n", info.kernels,
         info.cached_kernels, info.device_name, (now_us() - before) / 1000, note);
  make_call(&call, program, 0);
  options.stream = stream;

  /* Nothing was launched yet. */
  cuda(cu.capture_begin(stream, 1), "capture");
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK,
        "the first launch is captured");
  cuda(cu.capture_end(stream, &graph), "end of the capture");
  cuda(cu.graph_instantiate(&executable, graph, 0), "instantiate");
  cuda(cu.graph_launch(executable, stream), "graph");
  cuda(cu.stream_synchronize(stream), "synchronize");
  check(is_right(&call), "the graph's result");
  cuda(cu.graph_exec_destroy(executable), "destroy");
  cu.context_get(&current);
  check(current == context, "the caller's context is still current");
  check(threads_agree(plan, &call, context, 3), "4 threads with 500 launches each");
  call.tensors[1].dtype = NAUTILUS_F16;
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_ARGUMENT &&
            strstr(nautilus_last_error(), "tensor `K`: bf16["),
        "another dtype is refused");
  call.tensors[1].dtype = NAUTILUS_BF16;
  printf("       a launch costs %.2f us (median of 10^4, the same call), %.2f us (another address)\n",
         median_cost(plan, &call, stream, 0), median_cost(plan, &call, stream, 1));

  make_call(&call, program, 2); /* addresses that are no multiples of 16 */
  check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_ERROR_NOT_PREPARED,
        "misaligned tensors are not compiled for in a launch");
  check(nautilus_prepare_for(plan, &call.arguments) == NAUTILUS_OK, "they can be prepared");
  {
    uint64_t bytes = 0;
    Pointer memory = 0;
    if (nautilus_plan_workspace(plan, &call.arguments, &bytes)) fatal("workspace");
    cuda(cu.alloc(&memory, bytes + 1), "alloc");
    options.workspace = (void*)(uintptr_t)memory;
    options.workspace_bytes = bytes;
    check(nautilus_launch(plan, &call.arguments, &options) == NAUTILUS_OK, "and launched");
    cuda(cu.stream_synchronize(stream), "synchronize");
    check(is_right(&call), "with the right result");
  }
  nautilus_close(program); /* plans stay valid */
  options.workspace = NULL;
  nautilus_plan_close(plan);
}

int main(int count, char** arguments) {
  const char* folder = count > 1 ? arguments[1] : "examples";
  int devices = 0, device = 0;
  void *own = NULL, *primary = NULL, *stream = NULL;
  if (!load_driver()) {
    printf("no CUDA driver: nothing is checked\n");
    return 77;
  }
  cuda(cu.device_count(&devices), "devices");
  cuda(cu.device_get(&device, devices - 1), "device");
  cuda(cu.context_create(&own, 0, device), "context");
  check_attention(folder, own, "a context of the caller's");
  cuda(cu.primary(&primary, device), "primary context");
  check_attention(folder, primary, "the primary context");
  printf("== workspace\n");
  cuda(cu.stream_create(&stream, 1), "stream");
  check_workspace(folder, stream);
  printf("%s: %d failed\n", failures ? "WRONG" : "ok", failures);
  return failures != 0;
}
