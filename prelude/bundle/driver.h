
/* ---- Errors. The first one of a call is kept. */
static inline int fail(Error* error, int status, const char* format, ...) {
  if (!error || error->text[0]) return 1;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  error->status = status;
  return 1;
}
static inline void clear(Error* error) {
  if (!error) return;
  error->status = 0;
  error->text[0] = 0;
}

/* ---- The driver, found at run time: types and numbers are those of cuda.h, CUDA 12.0 to 13.x. */
typedef struct LaunchAttribute {
  int id;
  int padding;
  union {
    int number;
    char bytes[64];
  } value;
} LaunchAttribute;
typedef struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
} LaunchConfig;

enum {
  kStatusInvalidValue = 1,
  kStatusNoDevice = 100,
  kStatusInvalidImage = 200,
  kStatusNoBinary = 209,
  kAttributeMultiprocessors = 16,
  kAttributeMajor = 75,
  kAttributeMinor = 76,
  kFunctionMaxDynamicShared = 8,
  kFunctionLargeClusters = 14,
  kLaunchProgrammaticSerialization = 6,
  kMaxMapRank = 5,
  kMapBytes = 128,
  kWorkspaceAlignment = 256,
  kEmptyBytes = 256
};

#define DRIVER_FUNCTIONS(F)                                                                       \
  F(init, cuInit, (unsigned))                                                                     \
  F(driver_version, cuDriverGetVersion, (int*))                                                   \
  F(error_name, cuGetErrorName, (int, const char**))                                              \
  F(error_string, cuGetErrorString, (int, const char**))                                          \
  F(device_count, cuDeviceGetCount, (int*))                                                       \
  F(device_get, cuDeviceGet, (int*, int))                                                         \
  F(device_attribute, cuDeviceGetAttribute, (int*, int, int))                                     \
  F(context_retain, cuDevicePrimaryCtxRetain, (void**, int))                                      \
  F(context_release, cuDevicePrimaryCtxRelease_v2, (int))                                         \
  F(context_get, cuCtxGetCurrent, (void**))                                                       \
  F(context_device, cuCtxGetDevice, (int*))                                                       \
  F(context_push, cuCtxPushCurrent_v2, (void*))                                                   \
  F(context_pop, cuCtxPopCurrent_v2, (void**))                                                    \
  F(memory_alloc, cuMemAlloc_v2, (unsigned long long*, size_t))                                   \
  F(memory_free, cuMemFree_v2, (unsigned long long))                                              \
  F(fill, cuMemsetD8_v2, (unsigned long long, unsigned char, size_t))                             \
  F(fill_async, cuMemsetD8Async, (unsigned long long, unsigned char, size_t, void*))              \
  F(module_load, cuModuleLoadData, (void**, const void*))                                         \
  F(module_unload, cuModuleUnload, (void*))                                                       \
  F(module_function, cuModuleGetFunction, (void**, void*, const char*))                           \
  F(function_set, cuFuncSetAttribute, (void*, int, int))                                          \
  F(launch, cuLaunchKernelEx, (const LaunchConfig*, void*, void**, void**))                       \
  F(map_encode, cuTensorMapEncodeTiled,                                                           \
    (void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,              \
     const uint32_t*, int, int, int, int))

typedef struct Driver {
  void* library;
#define DRIVER_MEMBER(member, symbol, parameters) int(*member) parameters;
  DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
} Driver;

static inline int load_driver(Driver* driver, Error* error) {
  driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver->library)
    return fail(error, 0, "no CUDA driver: libcuda.so.1 was not found; install the NVIDIA driver");
  void* address = NULL;
#define DRIVER_LOAD(member, symbol, parameters)                                            \
  address = dlsym(driver->library, #symbol);                                               \
  if (!address)                                                                            \
    return fail(error, 0, "the CUDA driver has no " #symbol                                \
                          ": it is too old; update the NVIDIA driver (CUDA 12.3 or newer)"); \
  memcpy(&driver->member, &address, sizeof address);
  DRIVER_FUNCTIONS(DRIVER_LOAD)
#undef DRIVER_LOAD
  return 0;
}

/* Returns whether the status is one of failure. */
static inline int failed(const Driver* driver, int status, const char* what, Error* error) {
  if (status == 0) return 0;
  const char* name = NULL;
  const char* text = NULL;
  driver->error_name(status, &name);
  driver->error_string(status, &text);
  return fail(error, status, "%s: %s (%s)", what, name ? name : "unknown status",
              text ? text : "no description");
}
