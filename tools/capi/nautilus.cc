// SPDX-License-Identifier: Apache-2.0
#include "nautilus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "diag/render.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/hints.h"
#include "driver/load/load.h"
#include "driver/run/run.h"
#include "plan/variants.h"
#include "target/target.h"

namespace {

using namespace nautilus;

struct Object {
  driver::Unit unit;
  std::optional<ir::Program> program;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<plan::Executable> executable;  // of the three above
};

void copy_error(const std::string& text, char* error, int error_bytes) {
  if (!error || error_bytes <= 0) return;
  const size_t n = std::min(text.size(), static_cast<size_t>(error_bytes) - 1);
  std::memcpy(error, text.data(), n);
  error[n] = '\0';
}

// "D=128,G=4".
bool parse_sizes(std::string_view text, std::map<std::string, int64_t>& sizes, std::string* error) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string_view number = equals < item.size() ? item.substr(equals + 1) : "";
    int64_t value = 0;
    const auto r = std::from_chars(number.data(), number.data() + number.size(), value);
    if (number.empty() || r.ec != std::errc() || r.ptr != number.data() + number.size() ||
        value < 0) {
      *error = "the size `" + std::string(item) + "` is not a name, `=` and a number from 0";
      return false;
    }
    sizes[std::string(item.substr(0, equals))] = value;
  }
  return true;
}

struct Request {
  const char* text_or_path;
  const char* sizes = nullptr;
  const char* schedule = nullptr;  // a text or a path
  const char* cuda_path = nullptr;
};

// The text itself if it has a line end, else what the file holds. `path` is what messages call it.
std::optional<std::string> text_of(const std::string& what, std::string* path, std::string* error) {
  const bool is_text = what.find('\n') != std::string::npos;
  *path = is_text ? "text" : what;
  return is_text ? what : base::read_file(what, error);
}

std::unique_ptr<Object> open(const Request& request, const char* name, std::string* error) {
  auto object = std::make_unique<Object>();
  if (name) {
    object->unit.target = target::find_target(name);
    if (!object->unit.target) {
      *error = fmt::format("there is no target `{}`", name);
      return nullptr;
    }
  }
  std::map<std::string, int64_t> sizes;
  if (request.sizes && !parse_sizes(request.sizes, sizes, error)) return nullptr;
  std::string path;
  const auto text = text_of(request.text_or_path, &path, error);
  if (!text) return nullptr;
  auto loaded = driver::load_text(path, *text, sizes, object->unit);
  if (loaded) loaded = driver::with_hints(std::move(*loaded), sizes);
  if (loaded && request.schedule) {
    const auto decisions = text_of(request.schedule, &path, error);
    if (!decisions) return nullptr;
    object->program = driver::lower_with_schedule(*loaded, *decisions, object->unit, error);
    if (!object->program && !error->empty()) {
      *error = path + ": " + *error;
      return nullptr;
    }
  } else if (loaded) {
    object->program = driver::lower_to_kernels(*loaded, object->unit);
  }
  if (!object->program) {
    *error = diag::render_all(object->unit.sink);
    return nullptr;
  }
  const auto architecture = driver::architecture_of(*object->program, error);
  if (!architecture) return nullptr;
  std::optional<std::string> source;
  if (request.cuda_path) {
    source = base::read_file(request.cuda_path, error);
    if (!source) return nullptr;
  }
  auto kernels =
      source
          ? plan::compile_edited(*object->program, object->unit.pool,
                                 {{"", request.cuda_path, *source}}, *architecture, true, error)
          : plan::compile_device(*object->program, object->unit.pool, *architecture, true, error);
  if (!kernels) return nullptr;
  object->device = runtime::Device::open(0, *architecture, error);
  if (!object->device) return nullptr;
  object->executable =
      plan::Executable::load(*object->program, std::move(*kernels), *object->device, error);
  if (!object->executable) return nullptr;
  if (!source)
    object->executable->set_variants(plan::repacked_variants(*object->program, object->unit.pool,
                                                             *object->device, *architecture));
  return object;
}

void* open_object(const Request& request, const char* target, char* error, int error_bytes) {
  std::string why;
  auto object = open(request, target, &why);
  if (!object) copy_error(why, error, error_bytes);
  return object.release();
}

}  // namespace

void* nautilus_open(const char* what, const char* target, char* error, int error_bytes) {
  return open_object({.text_or_path = what}, target, error, error_bytes);
}

void* nautilus_open_sized(const char* what, const char* sizes, const char* target, char* error,
                          int error_bytes) {
  return open_object({.text_or_path = what, .sizes = sizes}, target, error, error_bytes);
}

void* nautilus_open_scheduled(const char* what, const char* sizes, const char* schedule,
                              const char* target, char* error, int error_bytes) {
  return open_object({.text_or_path = what, .sizes = sizes, .schedule = schedule}, target, error,
                     error_bytes);
}

void* nautilus_open_source(const char* what, const char* cuda_path, const char* target, char* error,
                           int error_bytes) {
  return open_object({.text_or_path = what, .cuda_path = cuda_path}, target, error, error_bytes);
}

int nautilus_bind(void* kernel, const char* tensor, void* device_pointer, int rank,
                  const long long* shape, const long long* strides_in_elements) {
  constexpr int kMaxRank = 16;
  if (rank < 0 || rank > kMaxRank) return 1;
  // int64_t is `long` on Linux, which is another type than `long long`.
  int64_t extents[kMaxRank];
  int64_t steps[kMaxRank];
  std::copy(shape, shape + rank, extents);
  std::copy(strides_in_elements, strides_in_elements + rank, steps);
  const auto n = static_cast<size_t>(rank);
  const plan::TensorView view{reinterpret_cast<uint64_t>(device_pointer), {extents, n}, {steps, n}};
  return static_cast<Object*>(kernel)->executable->bind(tensor, view) ? 0 : 1;
}

int nautilus_bind_typed(void* kernel, const char* tensor, const char* dtype, void* device_pointer,
                        int rank, const long long* shape, const long long* strides_in_elements) {
  const auto declared = static_cast<Object*>(kernel)->executable->dtype(tensor);
  if (!declared) return 1;
  if (expr::name(*declared) != dtype) return 2;
  return nautilus_bind(kernel, tensor, device_pointer, rank, shape, strides_in_elements) ? 3 : 0;
}

const char* nautilus_dtype(void* kernel, const char* tensor) {
  const auto declared = static_cast<Object*>(kernel)->executable->dtype(tensor);
  return declared ? expr::name(*declared).data() : nullptr;
}

int nautilus_set(void* kernel, const char* scalar_or_size, double value) {
  return static_cast<Object*>(kernel)->executable->set(scalar_or_size, value) ? 0 : 1;
}

int nautilus_launch(void* kernel, void* cuda_stream, char* error, int error_bytes) {
  std::string why;
  const auto stream = runtime::Stream::adopt(cuda_stream);
  if (static_cast<Object*>(kernel)->executable->launch(stream, &why)) return 0;
  copy_error(why, error, error_bytes);
  return 1;
}

void nautilus_close(void* kernel) { delete static_cast<Object*>(kernel); }

const char* nautilus_source(void* kernel) {
  return static_cast<Object*>(kernel)->executable->kernels()[0].source.c_str();
}
