
/* ---- The end of a plan: its workspace and its launches. */
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
