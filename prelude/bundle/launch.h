
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

/* ---- Kernels in the calling process's context. */
typedef struct Image {
  const unsigned char* bytes;
  size_t size;
} Image;
typedef struct KernelInfo {
  const char* name;
  int image;
  int threads;
  int shared_bytes;
  int may_begin_early;
} KernelInfo;

struct BUNDLE {
  Driver driver;
  void* context;
  int device;
  int is_retained;
  int multiprocessors;
  unsigned long long empty; /* zeros for tensors without elements, and what may be written instead */
  int image_count;
  void** modules;
  void** kernels;
};
typedef struct BUNDLE Bundle;

/* Makes the bundle's context current where it is not; returns whether leave has to undo that. */
static inline int enter(const Bundle* bundle) {
  void* current = NULL;
  if (bundle->driver.context_get(&current) == 0 && current == bundle->context) return 0;
  return bundle->driver.context_push(bundle->context) == 0;
}
static inline void leave(const Bundle* bundle, int is_pushed) {
  void* ours = NULL;
  if (is_pushed) bundle->driver.context_pop(&ours);
}

static inline void close_bundle(Bundle* bundle) {
  if (!bundle) return;
  if (bundle->context) {
    const int is_pushed = enter(bundle);
    for (int i = 0; i < bundle->image_count; ++i)
      if (bundle->modules && bundle->modules[i]) bundle->driver.module_unload(bundle->modules[i]);
    if (bundle->empty) bundle->driver.memory_free(bundle->empty);
    leave(bundle, is_pushed);
    if (bundle->is_retained) bundle->driver.context_release(bundle->device);
  }
  if (bundle->driver.library) dlclose(bundle->driver.library);
  free(bundle->modules);
  free(bundle->kernels);
  free(bundle);
}

/* The calling thread's context, or the primary context of a device. */
static inline int open_context(Bundle* bundle, int device, Error* error) {
  const Driver* driver = &bundle->driver;
  if (failed(driver, driver->init(0), "the CUDA driver does not start", error)) return 1;
  if (device < 0) {
    if (failed(driver, driver->context_get(&bundle->context), "no context", error)) return 1;
    if (!bundle->context)
      return fail(error, 0, "the thread has no current context; set one or name a device");
    return failed(driver, driver->context_device(&bundle->device), "no device", error);
  }
  int count = 0;
  driver->device_count(&count);
  if (device >= count)
    return fail(error, 0, "there is no CUDA device %d; the driver has %d", device, count);
  if (failed(driver, driver->device_get(&bundle->device, device), "no device", error) ||
      failed(driver, driver->context_retain(&bundle->context, bundle->device),
             "no context on the device", error))
    return 1;
  bundle->is_retained = 1;
  return 0;
}

/* `number` and `is_exact` are those of the architecture: 90 and 1 for sm_90a. */
static inline int check_device(Bundle* bundle, int number, int is_exact, Error* error) {
  const Driver* driver = &bundle->driver;
  int major = 0;
  int minor = 0;
  driver->device_attribute(&major, kAttributeMajor, bundle->device);
  driver->device_attribute(&minor, kAttributeMinor, bundle->device);
  driver->device_attribute(&bundle->multiprocessors, kAttributeMultiprocessors, bundle->device);
  const int is_same = is_exact ? number == major * 10 + minor
                               : number / 10 == major && number % 10 <= minor;
  if (is_same) return 0;
  return fail(error, 0,
              "the device has compute capability %d.%d, the bundle was built for sm_%d%s; build it "
              "for this device's target",
              major, minor, number, is_exact ? "a" : "");
}

static inline int load_kernels(Bundle* bundle, const Image* images, int image_count,
                               const KernelInfo* kernels, int kernel_count, Error* error) {
  const Driver* driver = &bundle->driver;
  bundle->image_count = image_count;
  bundle->modules = (void**)calloc((size_t)image_count + 1, sizeof(void*));
  bundle->kernels = (void**)calloc((size_t)kernel_count + 1, sizeof(void*));
  if (!bundle->modules || !bundle->kernels) return fail(error, 0, "no memory for the bundle");
  for (int i = 0; i < image_count; ++i) {
    const int status = driver->module_load(&bundle->modules[i], images[i].bytes);
    if (status == kStatusInvalidImage || status == kStatusNoBinary) {
      int version = 0;
      driver->driver_version(&version);
      return fail(error, status,
                  "machine code %d of the bundle does not load; the driver supports CUDA %d.%d: "
                  "update the NVIDIA driver if the bundle was built by a newer one",
                  i, version / 1000, version % 1000 / 10);
    }
    if (failed(driver, status, "machine code of the bundle does not load", error)) return 1;
  }
  for (int k = 0; k < kernel_count; ++k) {
    const KernelInfo* info = &kernels[k];
    void* module = bundle->modules[info->image];
    if (failed(driver, driver->module_function(&bundle->kernels[k], module, info->name), info->name,
               error))
      return 1;
    if (info->shared_bytes > 0 &&
        failed(driver,
               driver->function_set(bundle->kernels[k], kFunctionMaxDynamicShared,
                                    info->shared_bytes),
               "a kernel wants more shared memory than the device offers", error))
      return 1;
    /* Clusters of more than 8 blocks need permission; a device without them refuses it. */
    driver->function_set(bundle->kernels[k], kFunctionLargeClusters, 1);
  }
  if (failed(driver, driver->memory_alloc(&bundle->empty, kEmptyBytes), "no GPU memory", error))
    return 1;
  return failed(driver, driver->fill(bundle->empty, 0, kEmptyBytes), "GPU memory", error);
}

static inline Bundle* open_bundle(int device, int architecture, int is_exact, const Image* images,
                                  int image_count, const KernelInfo* kernels, int kernel_count,
                                  Error* error) {
  clear(error);
  Bundle* bundle = (Bundle*)calloc(1, sizeof(Bundle));
  if (!bundle) {
    fail(error, 0, "no memory for the bundle");
    return NULL;
  }
  int is_bad = load_driver(&bundle->driver, error) || open_context(bundle, device, error) ||
               check_device(bundle, architecture, is_exact, error);
  if (!is_bad) {
    const int is_pushed = enter(bundle);
    is_bad = load_kernels(bundle, images, image_count, kernels, kernel_count, error);
    leave(bundle, is_pushed);
  }
  if (!is_bad) return bundle;
  close_bundle(bundle);
  return NULL;
}

/* ---- A plan run for given tensors. */
enum { kInput, kOutput, kScratch, kTemp };
typedef struct TensorInfo {
  const char* name;
  int role;
  int argument; /* number among the caller's tensors, or -1 */
  int rank;
  int first; /* of its extents and strides among those of all tensors */
  int bytes; /* of an element */
} TensorInfo;
typedef struct MapInfo {
  const char* name;
  int tensor;
  int bytes;
  int is_stored;
  int rank;
  int element;
  int swizzle;
  int promotion;
  int step; /* of the second dimension: the box has every so many of its elements */
  int box[kMaxMapRank];
} MapInfo;
typedef struct Launch {
  int kernel;
  int grid;
  unsigned char* params;
} Launch;
typedef struct Frame {
  const Bundle* bundle;
  const TensorInfo* tensors;
  int tensor_count;
  const MapInfo* maps;
  uint64_t* addresses;
  int64_t* shapes;
  int64_t* strides;
  unsigned char* misaligned; /* of tensors: no kernel can use them as they are */
  int misaligned_count;
  Launch* launches;
  int launch_count;
  unsigned char* params; /* for the next launch */
  int is_measured;       /* only the workspace is asked for: nothing is encoded or launched */
  uint64_t workspace;
  uint64_t workspace_bytes; /* placed so far */
  uint64_t zero_bytes;      /* of them, those that are zero before the launches */
  Error* error;
} Frame;

typedef struct MapView {
  uint64_t address;
  int64_t dims[kMaxMapRank];
  int64_t strides[kMaxMapRank]; /* bytes */
} MapView;

static inline int bind(Frame* f, const Tensor* given) {
  for (int i = 0; i < f->tensor_count; ++i) {
    const TensorInfo* t = &f->tensors[i];
    if (t->argument < 0) continue;
    const Tensor* from = &given[t->argument];
    if (from->rank != t->rank)
      return fail(f->error, 0, "tensor `%s` has %d dimensions, %d were given", t->name, t->rank,
                  (int)from->rank);
    if (t->rank > 0 && !from->shape) return fail(f->error, 0, "tensor `%s` has no shape", t->name);
    int64_t step = 1;
    int is_empty = 0;
    for (int k = t->rank; k-- > 0;) {
      const int64_t extent = from->shape[k];
      if (extent < 0)
        return fail(f->error, 0, "dimension %d of tensor `%s` is %lld", k + 1, t->name,
                    (long long)extent);
      f->shapes[t->first + k] = extent;
      f->strides[t->first + k] = from->strides ? from->strides[k] : step;
      step = i_mul(step, extent);
      is_empty |= extent == 0;
    }
    f->addresses[i] = (uint64_t)(uintptr_t)from->data;
    if (from->data || is_empty) continue;
    if (!f->is_measured) return fail(f->error, 0, "tensor `%s` has no address", t->name);
    f->addresses[i] = kWorkspaceAlignment;
  }
  return 0;
}

/* Values that the caller may give: null if it did not. */
static inline int given_size(const Frame* f, const void* given, const char* name, int64_t* value,
                             int* is_known) {
  if (!given) return 0;
  memcpy(value, given, sizeof *value);
  *is_known = 1;
  if (*value >= 0) return 0;
  return fail(f->error, 0, "size `%s` is %lld", name, (long long)*value);
}
static inline int64_t given_int(const void* given) {
  int64_t value = 0;
  memcpy(&value, given, sizeof value);
  return value;
}
static inline double given_float(const void* given) {
  double value = 0;
  memcpy(&value, given, sizeof value);
  return value;
}

/* coefficient * size + rest is the extent; returns whether the size was found. */
static inline int solve(int64_t extent, int64_t coefficient, int64_t rest, int64_t* size,
                        int* is_known) {
  const int64_t difference = i_sub(extent, rest);
  if (coefficient == 0 || i_mod(difference, coefficient) != 0) return 0;
  const int64_t value = i_floor_div(difference, coefficient);
  if (value < 0) return 0;
  *size = value;
  *is_known = 1;
  return 1;
}

static inline int check_extent(const Frame* f, int tensor, int k, const char* text, int64_t wanted) {
  const TensorInfo* t = &f->tensors[tensor];
  if (wanted < 0) wanted = 0;
  const int64_t extent = f->shapes[t->first + k];
  if (extent == wanted) return 0;
  return fail(f->error, 0, "dimension %d of tensor `%s` is %s = %lld, the one given is %lld", k + 1,
              t->name, text, (long long)wanted, (long long)extent);
}

/* Gives a tensor of the plan its place in the workspace; its extents are there already. */
static inline int place(Frame* f, int tensor) {
  const TensorInfo* t = &f->tensors[tensor];
  int64_t step = 1;
  int64_t bytes = t->bytes;
  for (int k = t->rank; k-- > 0;) {
    int64_t* extent = &f->shapes[t->first + k];
    if (*extent < 0) *extent = 0;
    f->strides[t->first + k] = step;
    step = i_mul(step, *extent);
    if (*extent > 0 && bytes > ((int64_t)1 << 60) / *extent)
      return fail(f->error, 0, "`%s` of the workspace is too large", t->name);
    bytes = bytes * *extent;
  }
  f->addresses[tensor] = f->workspace + f->workspace_bytes;
  const uint64_t unit = kWorkspaceAlignment;
  f->workspace_bytes += ((uint64_t)bytes + unit - 1) / unit * unit;
  if (t->role == kScratch) f->zero_bytes = f->workspace_bytes;
  return 0;
}

/* A tensor that this launch cannot use; other launches and tensors are still looked at. */
static inline void mark_misaligned(Frame* f, int tensor) {
  if (!f->misaligned[tensor]) ++f->misaligned_count;
  f->misaligned[tensor] = 1;
}

/* Whether a kernel may move the tensor 16 bytes at a time. */
static inline int is_aligned(const Frame* f, int tensor) {
  const TensorInfo* t = &f->tensors[tensor];
  int ok = f->addresses[tensor] % 16 == 0;
  for (int k = 0; k < t->rank; ++k) {
    if (f->shapes[t->first + k] <= 1) continue;
    const int64_t stride = f->strides[t->first + k];
    ok &= k + 1 == t->rank ? stride == 1 : stride * t->bytes % 16 == 0;
  }
  return ok;
}
static inline void want_aligned(Frame* f, int tensor) {
  if (is_aligned(f, tensor)) return;
  fail(f->error, 0,
       "tensor `%s`: the kernel moves 16 bytes at a time, so the last axis must be contiguous, the "
       "address and all other strides multiples of 16 bytes",
       f->tensors[tensor].name);
  mark_misaligned(f, tensor);
}

/* The blocks of a launch: whole clusters; 0 if there is nothing to do, -1 if there are too many. */
static inline int grid_of(Frame* f, int64_t tiles, int cluster) {
  if (tiles <= 0) return 0;
  if (tiles <= INT32_MAX) tiles = (tiles + cluster - 1) / cluster * cluster;
  if (tiles <= INT32_MAX) return (int)tiles;
  fail(f->error, 0, "the grid is too large");
  return -1;
}

static inline unsigned char* add_launch(Frame* f, int kernel, int grid, int param_bytes) {
  Launch* launch = &f->launches[f->launch_count++];
  launch->kernel = kernel;
  launch->grid = grid;
  launch->params = f->params;
  f->params += (param_bytes + kMapBytes - 1) / kMapBytes * kMapBytes;
  return launch->params;
}

static inline void put_address(const Frame* f, unsigned char* to, int tensor) {
  memcpy(to, &f->addresses[tensor], sizeof(uint64_t));
}
static inline void put_stride(const Frame* f, unsigned char* to, int tensor, int k) {
  memcpy(to, &f->strides[f->tensors[tensor].first + k], sizeof(int64_t));
}
static inline int put_int(const Frame* f, unsigned char* to, const char* name, int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN)
    return fail(f->error, 0, "`%s` is %lld, kernels count in 32 bits", name, (long long)value);
  const int32_t narrow = (int32_t)value;
  memcpy(to, &narrow, sizeof narrow);
  return 0;
}
static inline void put_float(unsigned char* to, double value) {
  const float narrow = (float)value;
  memcpy(to, &narrow, sizeof narrow);
}
static inline void put_long(unsigned char* to, int64_t value) { memcpy(to, &value, sizeof value); }
static inline void put_double(unsigned char* to, double value) { memcpy(to, &value, sizeof value); }

static inline MapView map_view(const Frame* f, int map) {
  MapView view;
  memset(&view, 0, sizeof view);
  view.address = f->addresses[f->maps[map].tensor];
  return view;
}
/* Bytes that `count` steps along dimension k of the map's tensor are. */
static inline int64_t map_step(const Frame* f, int map, int k, int64_t count) {
  const MapInfo* m = &f->maps[map];
  return i_mul(i_mul(count, f->strides[f->tensors[m->tensor].first + k]), m->bytes);
}

/* The rules of cuTensorMapEncodeTiled, said in the caller's terms. */
static inline int map_flaw(const Frame* f, const MapInfo* m, const MapView* v) {
  const char* tensor = f->tensors[m->tensor].name;
  if (v->address == 0) return fail(f->error, 0, "tensor `%s`: the address is null", tensor);
  if (v->address % 16 != 0)
    return fail(f->error, 0, "tensor `%s`: the address, 0x%llx, is not a multiple of 16", tensor,
                (unsigned long long)v->address);
  if (v->strides[0] != m->bytes)
    return fail(f->error, 0,
                "map `%s` of tensor `%s`: the innermost dimension is not contiguous: its stride is "
                "%lld bytes, an element has %d",
                m->name, tensor, (long long)v->strides[0], m->bytes);
  for (int i = 0; i < m->rank; ++i) {
    if (v->dims[i] < 1 || v->dims[i] > (int64_t)1 << 32)
      return fail(f->error, 0,
                  "map `%s` of tensor `%s`: the extent of dimension %d, %lld, is not in 1 to 2^32",
                  m->name, tensor, i, (long long)v->dims[i]);
    if (i == 0 || v->dims[i] == 1) continue;
    if (v->strides[i] < 0 || v->strides[i] >= (int64_t)1 << 40 || v->strides[i] % 16 != 0)
      return fail(f->error, 0,
                  "map `%s` of tensor `%s`: the stride of dimension %d, %lld bytes, is not a "
                  "multiple of 16 in 0 to 2^40 - 1",
                  m->name, tensor, i, (long long)v->strides[i]);
  }
  return 0;
}

static inline int encode_map(const Frame* f, const MapInfo* m, const MapView* v,
                             unsigned char* to) {
  uint64_t dims[kMaxMapRank];
  uint64_t strides[kMaxMapRank];
  uint32_t box[kMaxMapRank];
  const uint32_t steps[kMaxMapRank] = {1, (uint32_t)m->step, 1, 1, 1};
  for (int i = 0; i < m->rank; ++i) {
    dims[i] = (uint64_t)v->dims[i];
    box[i] = ((uint32_t)m->box[i] - 1) * steps[i] + 1; /* that it reaches over */
    strides[i] = (uint64_t)v->strides[i];
    /* Never used by a copy, but the driver looks at it: what a packed tensor would have. */
    if (i > 0 && v->dims[i] == 1) {
      strides[i] = (strides[i - 1] * dims[i - 1] + 15) / 16 * 16;
      if (strides[i] >= (uint64_t)1 << 40) strides[i] = 16;
    }
  }
  const Driver* driver = &f->bundle->driver;
  const int status = driver->map_encode(to, m->element, (uint32_t)m->rank,
                                        (void*)(uintptr_t)v->address, dims, strides + 1, box, steps,
                                        0, m->swizzle, m->promotion, 0);
  return failed(driver, status, "the driver refuses a tensor map", f->error);
}

/* A map that cannot be made is a tensor that is not aligned: a plan with copies may serve it. */
static inline void put_map(Frame* f, int map, MapView* v, unsigned char* to) {
  const MapInfo* m = &f->maps[map];
  int is_empty = 0;
  for (int a = 0; a < m->rank; ++a) is_empty |= v->dims[a] == 0;
  /* A map has no empty dimensions. One element that is zero reads as the empty tensor does. */
  if (is_empty) {
    v->address = f->bundle->empty + (m->is_stored ? kEmptyBytes / 2 : 0);
    for (int a = 0; a < m->rank; ++a) {
      v->dims[a] = m->is_stored && a == 0 ? 16 / m->bytes : 1;
      v->strides[a] = a == 0 ? m->bytes : 16;
    }
  }
  int is_bad = 0;
  /* The copy engine stores whole 16 bytes, also behind the last element of a row. */
  if (m->is_stored && v->dims[0] * m->bytes % 16 != 0)
    is_bad = fail(f->error, 0,
                  "map `%s` of tensor `%s`: rows of %lld elements do not end at a multiple of 16 "
                  "bytes, and a store would write the rest of the last 16",
                  m->name, f->tensors[m->tensor].name, (long long)v->dims[0]);
  if (is_bad || map_flaw(f, m, v) || (!f->is_measured && encode_map(f, m, v, to)))
    mark_misaligned(f, m->tensor);
}

enum { kDone = 0, kFailed = 1, kMisaligned = 2 };

static inline int launch_all(Frame* f, const Call* call, const KernelInfo* kernels) {
  for (int i = 0; i < f->launch_count; ++i) {
    const Launch* l = &f->launches[i];
    const KernelInfo* info = &kernels[l->kernel];
    /* May begin while the kernel before it still runs: it waits by itself. */
    LaunchAttribute early;
    memset(&early, 0, sizeof early);
    early.id = kLaunchProgrammaticSerialization;
    early.value.number = 1;
    LaunchConfig config;
    memset(&config, 0, sizeof config);
    config.grid[0] = (unsigned)l->grid;
    config.grid[1] = config.grid[2] = 1;
    config.block[0] = (unsigned)info->threads;
    config.block[1] = config.block[2] = 1;
    config.shared_bytes = (unsigned)info->shared_bytes;
    config.stream = call ? call->stream : NULL;
    config.attributes = &early;
    config.attribute_count = i > 0 && info->may_begin_early ? 1 : 0;
    void* parameters[] = {l->params};
    const int status =
        f->bundle->driver.launch(&config, f->bundle->kernels[l->kernel], parameters, NULL);
    if (status == kStatusInvalidValue)
      return fail(f->error, status, "the launch of %s with %d blocks was refused", info->name,
                  l->grid);
    if (failed(&f->bundle->driver, status, "a launch failed", f->error)) return kFailed;
  }
  return kDone;
}

/* Where the workspace begins; an aligned address where only its size is asked for. */
static inline uint64_t workspace_of(const Call* call, const size_t* workspace_bytes) {
  if (workspace_bytes) return kWorkspaceAlignment;
  return call ? (uint64_t)(uintptr_t)call->workspace : 0;
}

/* The last step: says how large the workspace is, or launches. */
static inline int finish(Frame* f, const Call* call, size_t* workspace_bytes,
                         const KernelInfo* kernels) {
  if (f->misaligned_count > 0) return kMisaligned;
  if (f->is_measured) {
    *workspace_bytes = (size_t)f->workspace_bytes;
    return kDone;
  }
  if (f->workspace_bytes > (call ? call->workspace_bytes : 0))
    return fail(f->error, 0, "the workspace has %llu bytes, %llu are needed",
                (unsigned long long)(call ? call->workspace_bytes : 0),
                (unsigned long long)f->workspace_bytes);
  if (f->workspace_bytes > 0 && (f->workspace == 0 || f->workspace % kWorkspaceAlignment != 0))
    return fail(f->error, 0, "the address of the workspace is %s",
                f->workspace == 0 ? "null" : "not a multiple of 256");
  const Driver* driver = &f->bundle->driver;
  void* stream = call ? call->stream : NULL;
  if (f->zero_bytes > 0 && !call->is_workspace_kept &&
      failed(driver, driver->fill_async(f->workspace, 0, (size_t)f->zero_bytes, stream),
             "the workspace could not be cleared", f->error))
    return kFailed;
  return launch_all(f, call, kernels);
}

/* ---- A program: its plan, and plans with aligned copies of some tensors. */
typedef int (*PlanFunction)(const Bundle*, const Tensor*, const void* const*, const Call*, size_t*,
                            unsigned char*, Error*);
typedef struct Variant {
  const unsigned char* copied; /* of the first plan's tensors */
  PlanFunction run;
} Variant;

/* Runs the first plan, or a later one for tensors that the first cannot use. `misaligned` has room
 * for the tensors of every plan; plans with few copies come first. */
static inline int run_plans(const Variant* plans, int plan_count, const TensorInfo* tensors,
                            int tensor_count, unsigned char* misaligned, const Bundle* bundle,
                            const Tensor* given, const void* const* values, const Call* call,
                            size_t* workspace_bytes, Error* error) {
  int status = plans[0].run(bundle, given, values, call, workspace_bytes, misaligned, error);
  if (status != kMisaligned) return status;
  for (int i = 1; i < plan_count; ++i) {
    int serves = 1;
    for (int t = 0; t < tensor_count; ++t) serves &= !misaligned[t] || plans[i].copied[t];
    if (!serves) continue;
    clear(error);
    memset(misaligned, 0, (size_t)tensor_count);
    status = plans[i].run(bundle, given, values, call, workspace_bytes, misaligned, error);
    return status ? kFailed : kDone;
  }
  if (!error) return kFailed;
  size_t length = strlen(error->text);
  const char* join = "; build the bundle with --copies ";
  for (int t = 0; t < tensor_count && length < sizeof error->text; ++t) {
    if (!misaligned[t]) continue;
    const int n =
        snprintf(error->text + length, sizeof error->text - length, "%s%s", join, tensors[t].name);
    length += n > 0 ? (size_t)n : 0;
    join = "+";
  }
  return kFailed;
}

/* A call of a program from outside: in the bundle's context. */
static inline int run_in_context(const Variant* plans, int plan_count, const TensorInfo* tensors,
                                 int tensor_count, unsigned char* misaligned, const Bundle* bundle,
                                 const Tensor* given, const void* const* values, const Call* call,
                                 size_t* workspace_bytes, Error* error) {
  clear(error);
  if (!bundle || !given) return fail(error, 0, "no %s given", bundle ? "arguments" : "bundle");
  const int is_pushed = workspace_bytes ? 0 : enter(bundle);
  const int status = run_plans(plans, plan_count, tensors, tensor_count, misaligned, bundle, given,
                               values, call, workspace_bytes, error);
  leave(bundle, is_pushed);
  return status;
}
