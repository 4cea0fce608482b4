/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver that computes nothing and says what it was asked to launch: built as libcuda.so.1,
 * it stands in for the real one, for the compiler's own runtime and for the launcher of a bundle.
 * What it writes to $STUB_RECORD is what tests compare:
 *
 *     launch gemm grid 132 block 384 shared 197632 early 0
 *       A_map element 9 address 0x100000000 dims 64 96 strides 128 box 64 128 swizzle 3 promotion 2
 *       M 96
 *
 * Machine code is the text of the kernel (nvrtc_stub.c), from which it takes the parameters' names
 * and types. Memory that it gave out itself begins at 0x700000000000. Functions of the driver that the
 * runtime looks for and that are not here refuse every call (scripts/test_bundle.sh). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;
enum { kInvalidValue = 1, kInvalidImage = 200, kNotFound = 500, kMapBytes = 128 };

static Address next_address = 0x700000000000;

static FILE* record(void) {
  static FILE* file = NULL;
  if (!file) {
    const char* path = getenv("STUB_RECORD");
    file = path ? fopen(path, "a") : stdout;
    if (!file) abort();
    setvbuf(file, NULL, _IOLBF, 4096);
  }
  return file;
}

/* ---- Modules and functions. */
typedef struct Function {
  char name[256];
  const char* text; /* of its module */
  int max_shared;
} Function;

int cuModuleLoadData(void** module, const void* image) {
  if (!strstr((const char*)image, "struct Params")) return kInvalidImage;
  char* copy = malloc(strlen(image) + 1);
  strcpy(copy, image);
  *module = copy;
  return 0;
}
int cuModuleUnload(void* module) {
  free(module);
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  char definition[300];
  snprintf(definition, sizeof definition, "(%s, ", name); /* KERNEL(name, or that of a cluster */
  if (!strstr(module, definition)) return kNotFound;
  Function* f = calloc(1, sizeof *f);
  snprintf(f->name, sizeof f->name, "%s", name);
  f->text = module;
  *function = f;
  return 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute == 8) ((Function*)function)->max_shared = value;
  return 0;
}

/* ---- Tensor maps: the encoded form is its own description. */
typedef struct Map {
  uint64_t address;
  uint64_t dims[5];
  uint64_t strides[4];
  uint8_t box[5]; /* less one */
  uint8_t rank;
  uint8_t element;
  uint8_t swizzle;
  uint8_t promotion;
  uint8_t mark; /* that this is a map */
} Map;

int cuTensorMapEncodeTiled(void* to, int element, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  if (rank < 1 || rank > 5 || interleave != 0 || fill != 0 || (uintptr_t)to % 64 != 0 ||
      (uintptr_t)address % 16 != 0)
    return kInvalidValue;
  Map map;
  memset(&map, 0, sizeof map);
  map.address = (uint64_t)(uintptr_t)address;
  map.rank = (uint8_t)rank;
  map.element = (uint8_t)element;
  map.swizzle = (uint8_t)swizzle;
  map.promotion = (uint8_t)promotion;
  map.mark = 77;
  for (uint32_t i = 0; i < rank; ++i) {
    if (steps[i] != 1 || box[i] < 1 || box[i] > 256 || dims[i] < 1) return kInvalidValue;
    map.dims[i] = dims[i];
    map.box[i] = (uint8_t)(box[i] - 1);
    if (i + 1 == rank) continue;
    if (strides[i] % 16 != 0) return kInvalidValue;
    map.strides[i] = strides[i];
  }
  memset(to, 0, kMapBytes);
  memcpy(to, &map, sizeof map);
  return 0;
}

static void print_map(const unsigned char* from) {
  Map map;
  memcpy(&map, from, sizeof map);
  if (map.mark != 77) {
    fprintf(record(), " no map\n");
    return;
  }
  fprintf(record(), " element %d address %#llx dims", map.element, (Address)map.address);
  for (int i = 0; i < map.rank; ++i) fprintf(record(), " %llu", (Address)map.dims[i]);
  fprintf(record(), " strides");
  for (int i = 0; i + 1 < map.rank; ++i) fprintf(record(), " %llu", (Address)map.strides[i]);
  fprintf(record(), " box");
  for (int i = 0; i < map.rank; ++i) fprintf(record(), " %d", map.box[i] + 1);
  fprintf(record(), " swizzle %d promotion %d\n", map.swizzle, map.promotion);
}

/* ---- Launches. */
static void print_params(const char* text, const unsigned char* params) {
  const char* at = strstr(text, "struct Params {");
  at = at ? strchr(at, '\n') : NULL;
  size_t offset = 0;
  while (at && at[1] != '}') {
    /* `  long long* name;`: what stands before the last space is the type. */
    char type[64] = "";
    char name[256] = "";
    const char* end = strchr(at, ';');
    const char* space = end;
    while (space && *space != ' ') --space;
    if (!end || space - at - 3 >= (long)sizeof type || end - space > (long)sizeof name) {
      fprintf(record(), "  cannot read the parameters\n");
      return;
    }
    memcpy(type, at + 3, (size_t)(space - at - 3));
    memcpy(name, space + 1, (size_t)(end - space - 1));
    at = strchr(end, '\n');
    const int is_map = strcmp(type, "TensorMap") == 0;
    const int is_address = strchr(type, '*') != NULL;
    const int is_short = strcmp(type, "int") == 0 || strcmp(type, "float") == 0;
    const size_t align = is_map ? 64 : is_short ? 4 : 8;
    offset = (offset + align - 1) / align * align;
    fprintf(record(), "  %s", name);
    int32_t word = 0;
    int64_t wide = 0;
    memcpy(&word, params + offset, 4);
    if (!is_map && !is_short) memcpy(&wide, params + offset, 8);
    if (is_map) {
      print_map(params + offset);
    } else if (is_address) {
      fprintf(record(), " %#llx\n", (Address)wide);
    } else if (strcmp(type, "float") == 0) {
      fprintf(record(), " bits %08x\n", (unsigned)word);
    } else {
      fprintf(record(), " %lld\n", (long long)(is_short ? word : wide));
    }
    offset += is_map ? kMapBytes : is_short ? 4 : 8;
  }
}

static int launch(const Function* f, const unsigned* grid, const unsigned* block, unsigned shared,
                  int is_early, void** params) {
  if (grid[0] < 1 || grid[1] != 1 || grid[2] != 1 || block[0] < 1 || block[0] > 1024 ||
      (int)shared > (f->max_shared > 49152 ? f->max_shared : 49152))
    return kInvalidValue;
  fprintf(record(), "launch %s grid %u block %u shared %u early %d\n", f->name, grid[0], block[0],
          shared, is_early);
  print_params(f->text, params[0]);
  return 0;
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** params, void** extra) {
  (void)stream;
  const unsigned grid[] = {gx, gy, gz};
  const unsigned block[] = {bx, by, bz};
  return extra ? kInvalidValue : launch(function, grid, block, shared, 0, params);
}

typedef struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void* stream;
  const struct {
    int id;
    char padding[4];
    int value;
    char rest[60];
  } * attributes;
  unsigned count;
} LaunchConfig;
int cuLaunchKernelEx(const LaunchConfig* c, void* function, void** params, void** extra) {
  if (extra || c->count > 1 || (c->count == 1 && c->attributes[0].id != 6)) return kInvalidValue;
  return launch(function, c->grid, c->block, c->shared,
                c->count == 1 && c->attributes[0].value == 1, params);
}

/* ---- Memory. */
int cuMemAlloc_v2(Address* address, size_t bytes) {
  *address = next_address;
  next_address += (bytes + 4095) / 4096 * 4096;
  return 0;
}
int cuMemFree_v2(Address address) {
  (void)address;
  return 0;
}
int cuMemcpyHtoD_v2(Address to, const void* from, size_t bytes) {
  (void)to, (void)from, (void)bytes;
  return 0;
}
int cuMemcpyDtoH_v2(void* to, Address from, size_t bytes) {
  (void)from;
  memset(to, 0, bytes);
  return 0;
}
int cuMemsetD8_v2(Address to, unsigned char byte, size_t bytes) {
  (void)to, (void)byte, (void)bytes;
  return 0;
}
int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, void* stream) {
  (void)to, (void)stream;
  fprintf(record(), "fill %d bytes %zu\n", byte, bytes);
  return 0;
}
int cuMemGetInfo_v2(size_t* available, size_t* total) {
  *available = *total = (size_t)1 << 37;
  return 0;
}

/* ---- The device: one, with as many multiprocessors as $STUB_MULTIPROCESSORS says. */
int cuInit(unsigned flags) { return flags == 0 ? 0 : kInvalidValue; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuGetErrorName(int status, const char** name) {
  *name = status == kInvalidValue ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int status, const char** text) {
  (void)status;
  *text = "refused by the stub";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  (void)device;
  snprintf(name, (size_t)bytes, "stub");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  const char* given = getenv("STUB_MULTIPROCESSORS");
  const char* major = getenv("STUB_MAJOR");
  *value = attribute == 16   ? (given ? atoi(given) : 132)
           : attribute == 75 ? (major ? atoi(major) : 9)
           : attribute == 97 ? 232448
                             : 0;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 37;
  return 0;
}

/* ---- Contexts: the one of the device, and what the thread has. */
static char context;
static void* stack[16];
static int depth = 0;
int cuDevicePrimaryCtxRetain(void** to, int device) {
  (void)device;
  *to = &context;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return 0;
}
int cuCtxGetCurrent(void** to) {
  *to = depth > 0 ? stack[depth - 1] : NULL;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuCtxPushCurrent_v2(void* pushed) {
  if (depth == 16) return kInvalidValue;
  stack[depth++] = pushed;
  return 0;
}
int cuCtxPopCurrent_v2(void** to) {
  if (depth == 0) return kInvalidValue;
  *to = stack[--depth];
  return 0;
}
int cuCtxSynchronize(void) { return 0; }

int cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = &context;
  return 0;
}
