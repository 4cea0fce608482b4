// SPDX-License-Identifier: Apache-2.0
#include "plan/executable.h"

#include <fmt/format.h>

#include "expr/tensor.h"
#include "plan/launch_frame.h"

namespace nautilus::plan {

Executable::Executable(runtime::Device& device)
    : device_(device),
      encode_([this](const runtime::TensorMapView& view, runtime::EncodedMap* map,
                     std::string* why) { return device_.encode(view, map, why); }) {}

std::unique_ptr<Executable> Executable::load(const ir::Program& program,
                                             std::vector<DeviceKernel> kernels,
                                             runtime::Device& device, std::string* error) {
  std::unique_ptr<Executable> e(new Executable(device));
  std::vector<emit::KernelText> texts;
  for (DeviceKernel& k : kernels) {
    const auto loaded = device.load_kernel(k.cubin, k.text.name, k.text.shared_bytes, error);
    if (!loaded) return nullptr;
    e->loaded_.push_back(*loaded);
    texts.push_back(k.text);
    e->kernels_.push_back(std::move(k));
  }
  e->plan_ = std::make_unique<Prepared>(program, texts);
  e->frame_ = std::make_unique<Frame>(*e->plan_);
  for (size_t t = 0; t < e->plan_->tensors.size(); ++t) {
    const Prepared::Tensor& tensor = e->plan_->tensors[t];
    if (tensor.role < matile::TensorRole::Scratch) continue;
    Scratch s;
    s.tensor = static_cast<int>(t);
    s.shape.resize(tensor.dims.size());
    s.strides.resize(tensor.dims.size());
    e->scratch_.push_back(std::move(s));
  }
  return e;
}

Executable::~Executable() {
  std::string ignored;  // whoever waits for the results hears of it
  if (!loaded_.empty()) device_.synchronize(&ignored);
  for (const Scratch& s : scratch_) {
    if (s.pointer) device_.free(s.pointer);
  }
  if (empty_backing_) device_.free(empty_backing_);
  for (void* kernel : loaded_) device_.unload_kernel(kernel);
}

bool Executable::bind(std::string_view tensor, const TensorView& view) {
  const int number = plan_->tensor(tensor);
  if (number < 0 || !frame_->bind(number, view)) return false;
  is_ready_ = false;
  return true;
}

std::optional<expr::DType> Executable::dtype(std::string_view tensor) const {
  const int number = plan_->tensor(tensor);
  if (number < 0) return std::nullopt;
  return plan_->tensors[static_cast<size_t>(number)].dtype;
}

bool Executable::set(std::string_view name, double value) {
  const int number = plan_->value(name);
  if (number < 0) return false;
  const expr::DType dtype = plan_->values[static_cast<size_t>(number)].dtype;
  frame_->set(number, expr::is_float(dtype) ? expr::float_value(expr::round_to(dtype, value))
                                            : expr::int_value(static_cast<int64_t>(value)));
  is_ready_ = false;
  return true;
}

// Scratch is zero before the first launch and kernels leave it so; a larger one starts anew.
bool Executable::provide_scratch(const runtime::Stream& stream, std::string* error) {
  for (Scratch& s : scratch_) {
    const Prepared::Tensor& tensor = plan_->tensors[static_cast<size_t>(s.tensor)];
    int64_t step = 1;
    for (size_t k = s.shape.size(); k-- > 0;) {
      s.shape[k] = frame_->extent(s.tensor, static_cast<int>(k));
      s.strides[k] = step;
      step = expr::wrapping_mul(step, s.shape[k]);
    }
    const auto count = expr::element_count(s.shape);
    if (!count) {
      *error = fmt::format("scratch `{}` is too large", tensor.name);
      return false;
    }
    const size_t bytes =
        static_cast<size_t>(*count) * static_cast<size_t>(expr::bytes(tensor.dtype));
    if (s.bytes < bytes) {
      if (s.pointer && !device_.synchronize(error)) return false;
      if (s.pointer) device_.free(s.pointer);
      s.pointer = 0;
      s.bytes = 0;
      const auto pointer = device_.allocate(bytes, error);
      if (!pointer) return false;
      s.pointer = *pointer;
      s.bytes = bytes;
      if (!device_.fill_async(*pointer, 0, bytes, stream, error)) return false;
    }
    frame_->bind(s.tensor, {s.pointer, s.shape, s.strides});
  }
  return true;
}

bool Executable::provide_empty_backing(const runtime::Stream& stream, std::string* error) {
  const auto pointer = device_.allocate(Frame::kEmptyBackingBytes, error);
  if (!pointer) return false;
  empty_backing_ = *pointer;
  frame_->set_empty_backing(empty_backing_);
  return device_.fill_async(empty_backing_, 0, Frame::kEmptyBackingBytes, stream, error);
}

bool Executable::prepare(const runtime::Stream& stream, std::string* error) {
  is_ready_ = frame_->evaluate(device_.info().multiprocessors, error) &&
              provide_scratch(stream, error) && frame_->pack(encode_, error);
  if (!is_ready_ && frame_->needs_empty_backing() && provide_empty_backing(stream, error))
    is_ready_ = frame_->pack(encode_, error);
  return is_ready_;
}

// The executable with copies of the misaligned tensors, with everything that this one was given;
// null if it cannot be made.
Executable* Executable::variant(std::string* error) {
  if (!make_variant_) return nullptr;
  std::set<std::string> tensors;
  for (int t : frame_->misaligned()) {
    const Prepared::Tensor& tensor = plan_->tensors[static_cast<size_t>(t)];
    if (tensor.role == matile::TensorRole::Scratch) return nullptr;
    tensors.insert(tensor.name);
  }
  if (tensors.empty()) return nullptr;
  const auto [it, is_new] = variants_.try_emplace(std::move(tensors));
  if (is_new) it->second = make_variant_(it->first, error);
  if (!it->second) {
    variants_.erase(it);
    return nullptr;
  }
  Executable& v = *it->second;
  for (size_t t = 0; t < plan_->tensors.size(); ++t) {
    const auto number = static_cast<int>(t);
    if (plan_->tensors[t].role < matile::TensorRole::Scratch && frame_->is_bound(number))
      v.bind(plan_->tensors[t].name, frame_->view(number));
  }
  for (size_t i = 0; i < plan_->values.size(); ++i) {
    if (const auto value = frame_->given(static_cast<int>(i)))
      v.frame_->set(v.plan_->value(plan_->values[i].name), *value);
  }
  return &v;
}

bool Executable::launch(const runtime::Stream& stream, std::string* error) {
  if (!is_ready_ && !prepare(stream, error)) {
    Executable* other = frame_->misaligned().empty() ? nullptr : variant(error);
    return other && other->launch(stream, error);
  }
  return launch_frame(*frame_, kernels_, loaded_, device_, stream, error);
}

}  // namespace nautilus::plan
