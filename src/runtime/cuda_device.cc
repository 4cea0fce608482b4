// SPDX-License-Identifier: Apache-2.0
// Finding and opening devices, their memory, and loading kernels. Work on streams is in
// cuda_queue.cc.
#include "runtime/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/cuda_driver.h"

namespace nautilus::runtime {
namespace {

// Numbers of CUdevice_attribute and CUfunction_attribute.
enum Attribute { kMultiprocessors = 16, kMajor = 75, kMinor = 76, kSharedOptIn = 97 };
enum FunctionAttribute { kMaxDynamicShared = 8, kLargeClusters = 14 };

int attribute(const DriverApi& api, int number, int device) {
  int value = 0;
  api.device_attribute(&value, number, device);
  return value;
}

DeviceInfo describe(const DriverApi& api, int index) {
  DeviceInfo info;
  int device = 0;
  api.device_get(&device, index);
  char name[256] = "";
  api.device_name(name, sizeof name, device);
  info.index = index;
  info.name = name;
  info.major = attribute(api, kMajor, device);
  info.minor = attribute(api, kMinor, device);
  info.multiprocessors = attribute(api, kMultiprocessors, device);
  info.shared_bytes_per_block = attribute(api, kSharedOptIn, device);
  api.device_memory(&info.memory_bytes, device);
  return info;
}

// Why a module does not load, in the user's terms.
std::string load_failure(int status, const DeviceInfo& info) {
  if (status == kNoBinaryForGpu) {
    return fmt::format(
        "the kernel was compiled for another architecture than {} (sm_{}{}); compile it for this "
        "device's target",
        info.name, info.major, info.minor);
  }
  if (status == kInvalidImage || status == kInvalidPtx) {
    int version = 0;
    driver().api.driver_version(&version);
    return fmt::format(
        "the kernel does not load: {}; the driver supports CUDA {}.{}, so if a newer NVRTC made "
        "the kernel, update the NVIDIA driver, and else delete the kernel cache",
        status_text(status), version / 1000, version % 1000 / 10);
  }
  return fmt::format("the kernel does not load: {}", status_text(status));
}

}  // namespace

bool can_run(std::string_view architecture, int major, int minor) {
  if (!architecture.starts_with("sm_")) return false;
  int number = 0;
  const auto r =
      std::from_chars(architecture.data() + 3, architecture.data() + architecture.size(), number);
  if (r.ec != std::errc()) return false;
  const std::string_view rest(
      r.ptr, static_cast<size_t>(architecture.data() + architecture.size() - r.ptr));
  if (rest == "a") return number == major * 10 + minor;
  return rest.empty() && number / 10 == major && number % 10 <= minor;
}

std::optional<DriverInfo> driver_info(std::string* error) {
  const Driver& d = driver();
  if (!d.error.empty()) {
    *error = d.error;
    return std::nullopt;
  }
  DriverInfo info;
  d.api.driver_version(&info.version);
  int count = 0;
  d.api.device_count(&count);
  for (int i = 0; i < count; ++i) info.devices.push_back(describe(d.api, i));
  return info;
}

namespace {

// The device of this number; nothing, and why, if there is none or it cannot run such code.
std::optional<DeviceInfo> suitable(int index, std::string_view architecture, std::string* error) {
  const auto machine = driver_info(error);
  if (!machine) return std::nullopt;
  if (machine->devices.empty()) {
    *error =
        "the CUDA driver finds no device; is the GPU visible to this process "
        "(CUDA_VISIBLE_DEVICES)?";
    return std::nullopt;
  }
  if (index < 0 || index >= static_cast<int>(machine->devices.size())) {
    *error = fmt::format("there is no CUDA device {}; devices are 0 to {}", index,
                         machine->devices.size() - 1);
    return std::nullopt;
  }
  const DeviceInfo& info = machine->devices[static_cast<size_t>(index)];
  if (!architecture.empty() && !can_run(architecture, info.major, info.minor)) {
    *error = fmt::format(
        "device {} ({}) has compute capability {}.{} and cannot run code for {}; choose a target "
        "of this device",
        index, info.name, info.major, info.minor, architecture);
    return std::nullopt;
  }
  return info;
}

}  // namespace

std::unique_ptr<Device> Device::open(int index, std::string_view architecture, std::string* error) {
  const auto info = suitable(index, architecture, error);
  if (!info) return nullptr;
  const DriverApi& api = driver().api;
  std::unique_ptr<Device> device(new Device);
  device->info_ = *info;
  if (failed(api.device_get(&device->handle_, index), "the device does not answer", error) ||
      failed(api.context_retain(&device->context_, device->handle_), "no context on the device",
             error)) {
    return nullptr;
  }
  device->is_retained_ = true;
  return device;
}

void* Device::current_context() {
  void* context = nullptr;
  if (driver().error.empty()) driver().api.context_get(&context);
  return context;
}

std::unique_ptr<Device> Device::open_in(void* context, std::string_view architecture,
                                        std::string* error) {
  if (!driver().error.empty()) {
    *error = driver().error;
    return nullptr;
  }
  const DriverApi& api = driver().api;
  int handle = 0;
  {
    const ContextScope scope(context);
    if (failed(api.context_device(&handle), "the context has no device", error)) return nullptr;
  }
  int count = 0;
  api.device_count(&count);
  int index = 0;
  for (int other = 0; index < count; ++index) {
    if (api.device_get(&other, index) == kSuccess && other == handle) break;
  }
  const auto info = suitable(index, architecture, error);
  if (!info) return nullptr;
  std::unique_ptr<Device> device(new Device);
  device->info_ = *info;
  device->handle_ = handle;
  device->context_ = context;
  // A primary context is held, so that it does not go while kernels are loaded in it. It is not
  // made here only to be compared.
  unsigned flags = 0;
  int is_active = 0;
  void* primary = nullptr;
  if (api.context_state(handle, &flags, &is_active) == kSuccess && is_active &&
      api.context_retain(&primary, handle) == kSuccess) {
    device->is_retained_ = primary == context;
    if (!device->is_retained_) api.context_release(handle);
  }
  return device;
}

Device::~Device() {
  if (!context_) return;
  const DriverApi& api = driver().api;
  {
    const ContextScope scope(context_);
    for (const Loaded& l : loaded_) api.module_unload(l.module);
  }
  // Gives up this object's reference. The context is destroyed only if nothing else holds it.
  if (is_retained_) api.context_release(handle_);
}

std::optional<DevicePointer> Device::allocate(size_t bytes, std::string* error) {
  const DriverApi& api = driver().api;
  const ContextScope scope(context_);
  DevicePointer pointer = 0;
  // The driver refuses empty allocations; an empty tensor still needs an address.
  const int status = api.memory_alloc(&pointer, bytes ? bytes : 1);
  if (status == kOutOfMemory) {
    size_t available = 0;
    size_t total = 0;
    api.memory_info(&available, &total);
    *error = fmt::format(
        "out of GPU memory: {} bytes wanted, {} of {} free; use smaller sizes or end other "
        "processes",
        bytes, available, total);
    return std::nullopt;
  }
  if (failed(status, "no GPU memory", error)) return std::nullopt;
  return pointer;
}

void Device::free(DevicePointer pointer) {
  const ContextScope scope(context_);
  driver().api.memory_free(pointer);
}

bool Device::upload(DevicePointer to, const void* from, size_t bytes, std::string* error) {
  if (bytes == 0) return true;
  const ContextScope scope(context_);
  return !failed(driver().api.copy_to_device(to, from, bytes), "the copy to the GPU failed", error);
}

bool Device::repeat(DevicePointer to, size_t period, size_t bytes, std::string* error) {
  const ContextScope scope(context_);
  for (size_t done = period; done < bytes;) {
    const size_t n = std::min(done, bytes - done);
    if (failed(driver().api.copy_on_device(to + done, to, n), "the copy on the GPU failed", error))
      return false;
    done += n;
  }
  return true;
}

bool Device::download(void* to, DevicePointer from, size_t bytes, std::string* error) {
  if (bytes == 0) return true;
  const ContextScope scope(context_);
  return !failed(driver().api.copy_to_host(to, from, bytes), "the copy from the GPU failed", error);
}

bool Device::fill(DevicePointer to, unsigned char byte, size_t bytes, std::string* error) {
  if (bytes == 0) return true;
  const ContextScope scope(context_);
  return !failed(driver().api.fill_bytes(to, byte, bytes), "GPU memory could not be filled", error);
}

std::optional<void*> Device::load_kernel(const std::string& cubin, const std::string& name,
                                         int shared_bytes, std::string* error) {
  const DriverApi& api = driver().api;
  const ContextScope scope(context_);
  Loaded l;
  if (const int status = api.module_load(&l.module, cubin.data())) {
    *error = load_failure(status, info_);
    return std::nullopt;
  }
  bool bad = failed(api.module_function(&l.kernel, l.module, name.c_str()),
                    fmt::format("no kernel `{}` in the module", name), error);
  // Once here and not at every launch. Not only above the 48 KiB that need no permission: what
  // counts is the sum with the kernel's static shared memory, which is not known here.
  if (!bad && shared_bytes > 0) {
    bad = failed(api.function_set(l.kernel, kMaxDynamicShared, shared_bytes),
                 fmt::format("kernel `{}` wants {} bytes of shared memory, {} offers {} per block",
                             name, shared_bytes, info_.name, info_.shared_bytes_per_block),
                 error);
  }
  // Clusters of more than 8 CTAs need permission, too; a device without them refuses it.
  if (!bad) api.function_set(l.kernel, kLargeClusters, 1);
  if (bad) {
    api.module_unload(l.module);
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  loaded_.push_back(l);
  return l.kernel;
}

void Device::unload_kernel(void* kernel) {
  void* module = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto l = std::find_if(loaded_.begin(), loaded_.end(),
                                [kernel](const Loaded& x) { return x.kernel == kernel; });
    if (l == loaded_.end()) return;
    module = l->module;
    loaded_.erase(l);
  }
  const ContextScope scope(context_);
  driver().api.module_unload(module);
}

}  // namespace nautilus::runtime
