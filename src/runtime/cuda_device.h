// SPDX-License-Identifier: Apache-2.0
// A CUDA device, its memory and its kernels, through the driver library found at run time.
//
// The device's primary context is used, the one that frameworks in the same process share, or the
// one that the caller has made current. It is made current only for the time of a call, and only on
// threads that have another one or none; it is never reset. Every failure is a text that says what
// to do; nothing here prints or ends the process.
//
// A framework's process launches like this, without allocations on the way:
//
//     EncodedMap map;
//     if (!device.encode(view, &map, &error)) ...
//     void* parameters[] = {&map, &rows};
//     device.launch(kernel, shape, parameters, Stream::adopt(their_stream), &error);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tensor_map.h"

namespace nautilus::runtime {

using DevicePointer = unsigned long long;

struct DeviceInfo {
  int index = 0;
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // with opt-in
  size_t memory_bytes = 0;
};

struct DriverInfo {
  int version = 0;  // 13000 for CUDA 13.0
  std::vector<DeviceInfo> devices;
};
// What the machine offers. Empty (and why) without a driver; a driver without devices gives an
// empty list.
std::optional<DriverInfo> driver_info(std::string* error);

struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;  // at most what the kernel was loaded with
  // May begin while the kernel before it on the stream still runs: it waits by itself.
  bool is_early = false;
};

enum class HandleKind : uint8_t { Stream, Event, Graph };

// Something of the driver's, destroyed with its owner. It must not outlive its device.
template <HandleKind kKind>
class Handle {
 public:
  Handle() = default;  // of a stream: the default stream
  // A handle of someone else's (a CUstream for a stream), which is never destroyed here.
  static Handle adopt(void* handle) { return Handle(handle, nullptr); }
  ~Handle() {
    if (context_) destroy();
  }
  Handle(Handle&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        context_(std::exchange(other.context_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(context_, other.context_);
    return *this;
  }

  void* get() const { return handle_; }

 private:
  friend class Device;
  Handle(void* handle, void* context) : handle_(handle), context_(context) {}
  void destroy();

  void* handle_ = nullptr;
  void* context_ = nullptr;  // null: not owned
};
using Stream = Handle<HandleKind::Stream>;
using Event = Handle<HandleKind::Event>;
using Graph = Handle<HandleKind::Graph>;

// All functions may be called from several threads.
class Device {
 public:
  // Opens a device that can run code for `architecture` ("sm_90a"; empty: any).
  static std::unique_ptr<Device> open(int index, std::string_view architecture, std::string* error);
  // The same in a context of the caller's, which must outlive the result.
  static std::unique_ptr<Device> open_in(void* context, std::string_view architecture,
                                         std::string* error);
  // The calling thread's context; null if it has none, or if there is no driver.
  static void* current_context();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }

  std::optional<DevicePointer> allocate(size_t bytes, std::string* error);
  void free(DevicePointer pointer);
  bool upload(DevicePointer to, const void* from, size_t bytes, std::string* error);
  // The first `period` bytes again and again, up to `bytes`.
  bool repeat(DevicePointer to, size_t period, size_t bytes, std::string* error);
  bool download(void* to, DevicePointer from, size_t bytes, std::string* error);
  // Fills memory with a byte: 0xFF makes every float a NaN, which is how outputs are poisoned.
  bool fill(DevicePointer to, unsigned char byte, size_t bytes, std::string* error);
  bool fill_async(DevicePointer to, unsigned char byte, size_t bytes, const Stream& stream,
                  std::string* error);

  // A kernel of a compiled module, ready to be launched with up to `shared_bytes` of dynamic shared
  // memory. It lives as long as the device, or until unload_kernel, which may be called only when
  // no launch of it is under way and no graph holds it.
  std::optional<void*> load_kernel(const std::string& cubin, const std::string& name,
                                   int shared_bytes, std::string* error);
  void unload_kernel(void* kernel);

  // Parameters as the driver wants them: one pointer per kernel parameter. The values are copied
  // before the call returns.
  bool launch(void* kernel, const LaunchShape& shape, std::span<void*> parameters,
              const Stream& stream, std::string* error);
  // The map goes into kernel parameters by value.
  bool encode(const TensorMapView& view, EncodedMap* map, std::string* error);
  bool synchronize(std::string* error);  // all streams of the device
  bool synchronize(const Stream& stream, std::string* error);

  // A stream that takes turns with the default stream, so that upload and download are ordered with
  // its work.
  std::optional<Stream> create_stream(std::string* error);
  std::optional<Event> create_event(std::string* error);
  bool record(const Event& event, const Stream& stream, std::string* error);
  // Waits for `to`.
  std::optional<float> elapsed_ms(const Event& from, const Event& to, std::string* error);

  // What is done on the stream between the two calls (of one thread) is recorded, not run. The
  // default stream cannot be captured. Kernels have to be loaded before.
  bool begin_capture(const Stream& stream, std::string* error);
  std::optional<Graph> end_capture(const Stream& stream, std::string* error);
  bool launch(const Graph& graph, const Stream& stream, std::string* error);

 private:
  Device() = default;

  struct Loaded {
    void* kernel = nullptr;
    void* module = nullptr;
  };
  DeviceInfo info_;
  int handle_ = 0;
  void* context_ = nullptr;
  bool is_retained_ = false;  // the primary context, to be released
  std::mutex mutex_;          // of loaded_
  std::vector<Loaded> loaded_;
};

// True if a device of compute capability major.minor runs machine code for `architecture`: the same
// major version, a minor version not newer, and exactly that device for architecture-specific code
// (`sm_90a`).
bool can_run(std::string_view architecture, int major, int minor);

}  // namespace nautilus::runtime
