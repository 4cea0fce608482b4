// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda_device.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/shared_library.h"

namespace nautilus::runtime {
namespace {

struct Api {
#define CUDA_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "runtime/cuda_api.def"
#undef CUDA_FUNCTION
};

// Numbers of CUdevice_attribute, CUfunction_attribute and CUresult.
enum Attribute { kMultiprocessors = 16, kMajor = 75, kMinor = 76, kSharedOptIn = 97 };
enum FunctionAttribute { kMaxDynamicShared = 8 };
enum Status {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kNoBinaryForGpu = 209,
  kUnsupportedDriver = 35
};

struct Loaded {
  SharedLibrary library{{"libcuda.so.1"}};
  Api api;
  std::string error;

  Loaded() {
    if (!library.is_open()) {
      error =
          "no CUDA driver: libcuda.so.1 was not found; install the NVIDIA driver, or choose a "
          "target that needs no GPU";
      return;
    }
#define CUDA_FUNCTION(member, symbol, parameters) load(api.member, #symbol);
#include "runtime/cuda_api.def"
#undef CUDA_FUNCTION
    if (!error.empty()) return;
    const int status = api.init(0);
    if (status == kSuccess || status == kNoDevice) return;
    error = status == kUnsupportedDriver
                ? "the CUDA driver is too old for this library; update the NVIDIA driver"
                : "the CUDA driver does not start: " + text(status);
  }

  template <class F>
  void load(F*& function, const char* name) {
    function = reinterpret_cast<F*>(library.symbol(name));
    if (!function && error.empty()) {
      error = fmt::format(
          "the CUDA driver has no {}: it is too old; update the NVIDIA driver (CUDA 12.3 or newer)",
          name);
    }
  }

  std::string text(int status) const {
    const char* name = nullptr;
    const char* what = nullptr;
    if (api.error_name) api.error_name(status, &name);
    if (api.error_string) api.error_string(status, &what);
    return fmt::format("{} ({})", name ? name : "unknown error", what ? what : "no description");
  }
};

const Loaded& loaded() {
  static const Loaded state;
  return state;
}

bool failed(int status, std::string_view what, std::string* error) {
  if (status == kSuccess) return false;
  *error = fmt::format("{}: {}", what, loaded().text(status));
  return true;
}

int attribute(const Api& api, int number, int device) {
  int value = 0;
  api.device_attribute(&value, number, device);
  return value;
}

DeviceInfo describe(const Api& api, int index) {
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
  const Loaded& l = loaded();
  if (!l.error.empty()) {
    *error = l.error;
    return std::nullopt;
  }
  DriverInfo info;
  l.api.driver_version(&info.version);
  int count = 0;
  l.api.device_count(&count);
  for (int i = 0; i < count; ++i) info.devices.push_back(describe(l.api, i));
  return info;
}

std::unique_ptr<Device> Device::open(int index, std::string_view architecture, std::string* error) {
  const auto driver = driver_info(error);
  if (!driver) return nullptr;
  if (driver->devices.empty()) {
    *error =
        "the CUDA driver finds no device; is the GPU visible to this process "
        "(CUDA_VISIBLE_DEVICES)?";
    return nullptr;
  }
  if (index < 0 || index >= static_cast<int>(driver->devices.size())) {
    *error = fmt::format("there is no CUDA device {}; devices are 0 to {}", index,
                         driver->devices.size() - 1);
    return nullptr;
  }
  const DeviceInfo& info = driver->devices[static_cast<size_t>(index)];
  if (!architecture.empty() && !can_run(architecture, info.major, info.minor)) {
    *error = fmt::format("device {} ({}) has compute capability {}.{} and cannot run code for {}",
                         index, info.name, info.major, info.minor, architecture);
    return nullptr;
  }
  const Api& api = loaded().api;
  std::unique_ptr<Device> device(new Device);
  device->info_ = info;
  if (failed(api.device_get(&device->handle_, index), "the device does not answer", error) ||
      failed(api.context_retain(&device->context_, device->handle_), "no context on the device",
             error) ||
      failed(api.context_set(device->context_), "no context on the device", error)) {
    return nullptr;
  }
  return device;
}

Device::~Device() {
  if (!context_) return;
  const Api& api = loaded().api;
  for (void* module : modules_) api.module_unload(module);
  api.context_release(handle_);
}

std::optional<DevicePointer> Device::allocate(size_t bytes, std::string* error) {
  const Api& api = loaded().api;
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

void Device::free(DevicePointer pointer) { loaded().api.memory_free(pointer); }

bool Device::upload(DevicePointer to, const void* from, size_t bytes, std::string* error) {
  return bytes == 0 ||
         !failed(loaded().api.copy_to_device(to, from, bytes), "the copy to the GPU failed", error);
}

bool Device::download(void* to, DevicePointer from, size_t bytes, std::string* error) {
  return bytes == 0 ||
         !failed(loaded().api.copy_to_host(to, from, bytes), "the copy from the GPU failed", error);
}

bool Device::fill(DevicePointer to, unsigned char byte, size_t bytes, std::string* error) {
  return bytes == 0 ||
         !failed(loaded().api.fill_bytes(to, byte, bytes), "GPU memory could not be filled", error);
}

std::optional<void*> Device::load_kernel(const std::string& cubin, const std::string& name,
                                         std::string* error) {
  const Api& api = loaded().api;
  void* module = nullptr;
  const int status = api.module_load(&module, cubin.data());
  if (status == kNoBinaryForGpu) {
    *error = fmt::format("the kernel was compiled for another architecture than {} (sm_{}{})",
                         info_.name, info_.major, info_.minor);
    return std::nullopt;
  }
  if (failed(status, "the kernel does not load", error)) return std::nullopt;
  modules_.push_back(module);
  void* kernel = nullptr;
  if (failed(api.module_function(&kernel, module, name.c_str()),
             fmt::format("no kernel `{}`", name), error)) {
    return std::nullopt;
  }
  return kernel;
}

bool Device::launch(void* kernel, const LaunchShape& s, std::vector<void*> parameters,
                    std::string* error) {
  const Api& api = loaded().api;
  if (s.shared_bytes > 48 * 1024 &&
      failed(api.function_set(kernel, kMaxDynamicShared, static_cast<int>(s.shared_bytes)),
             fmt::format("{} bytes of shared memory", s.shared_bytes), error)) {
    return false;
  }
  const int status = api.launch(kernel, s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1],
                                s.block[2], s.shared_bytes, nullptr, parameters.data(), nullptr);
  return !failed(status, "the launch failed", error);
}

bool Device::synchronize(std::string* error) {
  return !failed(loaded().api.synchronize(), "the kernel failed", error);
}

}  // namespace nautilus::runtime
