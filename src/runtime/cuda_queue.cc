// SPDX-License-Identifier: Apache-2.0
// Work on streams: launches, tensor maps, events, graphs.
//
// `encode` and `launch` are the hot path of every call of a kernel, so they allocate nothing and
// format nothing unless they fail.
#include <fmt/format.h>

#include "runtime/cuda_device.h"
#include "runtime/cuda_driver.h"
#include "runtime/map_codes.h"

namespace nautilus::runtime {
namespace {

// A capture of this mode forbids unsafe calls to its own thread only: other threads, a framework's
// for example, may go on allocating.
enum CaptureMode { kThreadLocal = 1 };

// The stream need not be empty: the kernel waits by itself for the earlier ones.
int launch_early(void* kernel, const LaunchShape& s, std::span<void*> parameters,
                 const Stream& stream) {
  constexpr int kProgrammaticStreamSerialization = 6;
  LaunchAttribute attribute = {};
  attribute.id = kProgrammaticStreamSerialization;
  attribute.number = 1;
  const LaunchConfig config = {.grid = {s.grid[0], s.grid[1], s.grid[2]},
                               .block = {s.block[0], s.block[1], s.block[2]},
                               .shared_bytes = s.shared_bytes,
                               .stream = stream.get(),
                               .attributes = &attribute,
                               .attribute_count = 1};
  return driver().api.launch_with(&config, kernel, parameters.data(), nullptr);
}

std::string shape_text(const LaunchShape& s) {
  return fmt::format("grid {}x{}x{}, block {}x{}x{}, {} bytes of shared memory", s.grid[0],
                     s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2], s.shared_bytes);
}

}  // namespace

template <HandleKind kKind>
void Handle<kKind>::destroy() {
  const DriverApi& api = driver().api;
  const ContextScope scope(context_);
  switch (kKind) {
    case HandleKind::Stream:
      api.stream_destroy(handle_);
      break;
    case HandleKind::Event:
      api.event_destroy(handle_);
      break;
    case HandleKind::Graph:
      api.graph_exec_destroy(handle_);
      break;
  }
}
template class Handle<HandleKind::Stream>;
template class Handle<HandleKind::Event>;
template class Handle<HandleKind::Graph>;

bool Device::launch(void* kernel, const LaunchShape& s, std::span<void*> parameters,
                    const Stream& stream, std::string* error) {
  const ContextScope scope(context_);
  const int status = s.is_early
                         ? launch_early(kernel, s, parameters, stream)
                         : driver().api.launch(kernel, s.grid[0], s.grid[1], s.grid[2], s.block[0],
                                               s.block[1], s.block[2], s.shared_bytes, stream.get(),
                                               parameters.data(), nullptr);
  if (status == kSuccess) return true;
  if (status == kInvalidValue) {
    *error = fmt::format(
        "the launch was refused ({}): a grid has 1 to 2147483647 x 65535 x 65535 blocks, a block 1 "
        "to 1024 threads, and shared memory must not exceed what the kernel was loaded with",
        shape_text(s));
    return false;
  }
  *error = fmt::format("the launch failed ({}): {}", shape_text(s), status_text(status));
  return false;
}

bool Device::encode(const TensorMapView& view, EncodedMap* map, std::string* error) {
  if (std::string flaw = map_flaw(view); !flaw.empty()) {
    *error = std::move(flaw);
    return false;
  }
  uint64_t dims[kMaxMapRank];
  uint64_t strides[kMaxMapRank];
  uint32_t box[kMaxMapRank];
  const uint32_t steps[kMaxMapRank] = {1, static_cast<uint32_t>(view.step), 1, 1, 1};
  for (int i = 0; i < view.rank; ++i) {
    dims[i] = static_cast<uint64_t>(view.dims[i]);
    box[i] = (static_cast<uint32_t>(view.box[i]) - 1) * steps[i] + 1;  // that it reaches over
    strides[i] = static_cast<uint64_t>(view.strides[i]);
    // Never used by a copy, but the driver looks at it: what a packed tensor would have.
    if (i > 0 && view.dims[i] == 1) {
      strides[i] = (strides[i - 1] * dims[i - 1] + 15) / 16 * 16;
      if (strides[i] >= uint64_t{1} << 40) strides[i] = 16;
    }
  }
  const ContextScope scope(context_);
  const int status = driver().api.tensor_map_encode(
      map->bytes, element_code(view.element), view.rank, reinterpret_cast<void*>(view.address),
      dims, strides + 1, box, steps, /*interleave=*/0, swizzle_code(view.swizzle),
      promotion_code(view.l2_promotion), /*fill with zeros=*/0);
  return !failed(status, "the driver refuses the tensor map", error);
}

bool Device::fill_async(DevicePointer to, unsigned char byte, size_t bytes, const Stream& stream,
                        std::string* error) {
  if (bytes == 0) return true;
  const ContextScope scope(context_);
  return !failed(driver().api.fill_bytes_async(to, byte, bytes, stream.get()),
                 "GPU memory could not be filled", error);
}

bool Device::synchronize(std::string* error) {
  const ContextScope scope(context_);
  return !failed(driver().api.synchronize(), "the kernel failed", error);
}

bool Device::synchronize(const Stream& stream, std::string* error) {
  const ContextScope scope(context_);
  return !failed(driver().api.stream_synchronize(stream.get()), "the kernel failed", error);
}

std::optional<Stream> Device::create_stream(std::string* error) {
  const ContextScope scope(context_);
  void* handle = nullptr;
  // Not CU_STREAM_NON_BLOCKING: upload and download run on the default stream, and a copy from
  // ordinary memory may still be on its way when upload returns.
  if (failed(driver().api.stream_create(&handle, 0), "no stream", error)) return std::nullopt;
  return Stream(handle, context_);
}

std::optional<Event> Device::create_event(std::string* error) {
  const ContextScope scope(context_);
  void* handle = nullptr;
  if (failed(driver().api.event_create(&handle, 0), "no event", error)) return std::nullopt;
  return Event(handle, context_);
}

bool Device::record(const Event& event, const Stream& stream, std::string* error) {
  const ContextScope scope(context_);
  return !failed(driver().api.event_record(event.get(), stream.get()),
                 "the event could not be recorded", error);
}

std::optional<float> Device::elapsed_ms(const Event& from, const Event& to, std::string* error) {
  const DriverApi& api = driver().api;
  const ContextScope scope(context_);
  float ms = 0;
  if (failed(api.event_synchronize(to.get()), "the kernel failed", error) ||
      failed(api.event_elapsed(&ms, from.get(), to.get()), "the events give no time", error)) {
    return std::nullopt;
  }
  return ms;
}

bool Device::begin_capture(const Stream& stream, std::string* error) {
  const ContextScope scope(context_);
  return !failed(driver().api.capture_begin(stream.get(), kThreadLocal),
                 "the stream cannot be captured", error);
}

std::optional<Graph> Device::end_capture(const Stream& stream, std::string* error) {
  const DriverApi& api = driver().api;
  const ContextScope scope(context_);
  void* graph = nullptr;
  if (failed(api.capture_end(stream.get(), &graph), "the capture failed", error)) {
    return std::nullopt;
  }
  void* executable = nullptr;
  const bool bad = failed(api.graph_instantiate(&executable, graph, 0),
                          "the captured graph cannot be run", error);
  api.graph_destroy(graph);
  if (bad) return std::nullopt;
  return Graph(executable, context_);
}

bool Device::launch(const Graph& graph, const Stream& stream, std::string* error) {
  const ContextScope scope(context_);
  return !failed(driver().api.graph_launch(graph.get(), stream.get()), "the graph did not start",
                 error);
}

}  // namespace nautilus::runtime
