
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
