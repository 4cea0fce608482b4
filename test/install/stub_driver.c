/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver without a device, as libcuda.so.1: memory is the host's, nothing is computed, and
 * launches are counted. Calls that a launch must not make are counted as well. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STUB __attribute__((visibility("default")))
typedef unsigned long long Pointer;

/* What launch.c looks at. */
STUB int stub_launches, stub_allocations, stub_waits, stub_loads, stub_fills, stub_maps;
STUB void* stub_last_stream;
STUB int stub_foreign; /* calls with another context than the kernel's */

static __thread void* current;
static __thread void* outer; /* below what was pushed */
static char contexts[2];     /* the primary one, and one of the caller's */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void count(int* what) {
  pthread_mutex_lock(&mutex);
  ++*what;
  pthread_mutex_unlock(&mutex);
}

STUB int cuInit(unsigned flags) { return (int)flags; }
STUB int cuDriverGetVersion(int* v) { return *v = 13000, 0; }
STUB int cuGetErrorName(int s, const char** t) { return *t = s ? "STUB" : "OK", 0; }
STUB int cuGetErrorString(int s, const char** t) { return *t = s ? "a stub" : "ok", 0; }
STUB int cuDeviceGetCount(int* n) { return *n = 1, 0; }
STUB int cuDeviceGet(int* d, int i) { return *d = i, 0; }
STUB int cuDeviceGetName(char* name, int n, int d) {
  return (void)d, strncpy(name, "stub", (size_t)n), 0;
}
STUB int cuDeviceGetAttribute(int* v, int a, int d) {
  (void)d;
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 132 : a == 97 ? 232448 : 0;
  return 0;
}
STUB int cuDeviceTotalMem_v2(size_t* n, int d) { return (void)d, *n = (size_t)1 << 36, 0; }
STUB int cuDevicePrimaryCtxRetain(void** c, int d) { return (void)d, *c = &contexts[0], 0; }
STUB int cuDevicePrimaryCtxRelease_v2(int d) { return (void)d, 0; }
STUB int cuDevicePrimaryCtxGetState(int d, unsigned* f, int* a) {
  return (void)d, *f = 0, *a = 1, 0;
}
STUB int cuCtxGetDevice(int* d) { return *d = 0, current ? 0 : 201; }
STUB int cuCtxGetCurrent(void** c) { return *c = current, 0; }
STUB int cuCtxSetCurrent(void* c) { return current = c, 0; }
STUB int cuCtxPushCurrent_v2(void* c) { return outer = current, current = c, 0; }
STUB int cuCtxPopCurrent_v2(void** c) { return *c = current, current = outer, 0; }
STUB int cuCtxCreate_v2(void** c, unsigned f, int d) {
  return (void)f, (void)d, current = *c = &contexts[1], 0;
}
STUB int cuMemGetInfo_v2(size_t* f, size_t* t) { return *f = *t = (size_t)1 << 36, 0; }
STUB int cuMemAlloc_v2(Pointer* p, size_t n) {
  count(&stub_allocations);
  *p = (Pointer)(uintptr_t)aligned_alloc(256, (n + 255) / 256 * 256);
  return *p ? 0 : 2;
}
STUB int cuMemFree_v2(Pointer p) { return free((void*)(uintptr_t)p), 0; }
STUB int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t n) {
  return memcpy((void*)(uintptr_t)to, from, n), 0;
}
STUB int cuMemcpyDtoH_v2(void* to, Pointer from, size_t n) {
  return memcpy(to, (void*)(uintptr_t)from, n), 0;
}
STUB int cuMemcpyDtoD_v2(Pointer to, Pointer from, size_t n) {
  return memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from, n), 0;
}
STUB int cuMemsetD8_v2(Pointer to, unsigned char b, size_t n) {
  return memset((void*)(uintptr_t)to, b, n), 0;
}
STUB int cuMemsetD8Async(Pointer to, unsigned char b, size_t n, void* s) {
  (void)s;
  count(&stub_fills);
  return memset((void*)(uintptr_t)to, b, n), 0;
}
STUB int cuModuleLoadData(void** m, const void* image) {
  (void)image;
  count(&stub_loads);
  return *m = current, current ? 0 : 201;
}
STUB int cuModuleUnload(void* m) { return (void)m, 0; }
STUB int cuModuleGetFunction(void** f, void* m, const char* name) { return (void)name, *f = m, 0; }
STUB int cuFuncSetAttribute(void* f, int a, int v) { return (void)f, (void)a, (void)v, 0; }
static int launched(void* function, void* stream) {
  if (function != current) count(&stub_foreign);
  count(&stub_launches);
  stub_last_stream = stream;
  return 0;
}
STUB int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b,
                        unsigned c, unsigned shared, void* stream, void** p, void** e) {
  (void)y, (void)z, (void)a, (void)b, (void)c, (void)shared, (void)e;
  return x == 0 || !p[0] ? 1 : launched(f, stream);
}
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
};
STUB int cuLaunchKernelEx(const struct Config* c, void* f, void** p, void** e) {
  (void)e;
  return c->grid[0] == 0 || !p[0] ? 1 : launched(f, c->stream);
}
STUB int cuCtxSynchronize(void) { return count(&stub_waits), 0; }
STUB int cuStreamCreate(void** s, unsigned f) { return (void)f, *s = malloc(1), 0; }
STUB int cuStreamDestroy_v2(void* s) { return free(s), 0; }
STUB int cuStreamSynchronize(void* s) { return (void)s, count(&stub_waits), 0; }
STUB int cuEventCreate(void** e, unsigned f) { return (void)f, *e = malloc(1), 0; }
STUB int cuEventDestroy_v2(void* e) { return free(e), 0; }
STUB int cuEventRecord(void* e, void* s) { return (void)e, (void)s, 0; }
STUB int cuEventSynchronize(void* e) { return (void)e, count(&stub_waits), 0; }
STUB int cuEventElapsedTime(float* t, void* a, void* b) { return (void)a, (void)b, *t = 1, 0; }
STUB int cuStreamBeginCapture_v2(void* s, int m) { return (void)s, (void)m, 0; }
STUB int cuStreamEndCapture(void* s, void** g) { return (void)s, *g = malloc(1), 0; }
STUB int cuGraphInstantiateWithFlags(void** x, void* g, unsigned long long f) {
  return (void)g, (void)f, *x = malloc(1), 0;
}
STUB int cuGraphDestroy(void* g) { return free(g), 0; }
STUB int cuGraphLaunch(void* x, void* s) { return (void)x, (void)s, 0; }
STUB int cuGraphExecDestroy(void* x) { return free(x), 0; }
STUB int cuTensorMapEncodeTiled(void* map, int element, uint32_t rank, void* address,
                                const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                                const uint32_t* steps, int interleave, int swizzle, int promotion,
                                int fill) {
  (void)element, (void)rank, (void)dims, (void)strides, (void)box, (void)steps, (void)interleave,
      (void)swizzle;
  (void)promotion, (void)fill;
  if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0) return 1;
  count(&stub_maps);
  return memset(map, 1, 128), 0;
}
