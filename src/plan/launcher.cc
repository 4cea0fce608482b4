// SPDX-License-Identifier: Apache-2.0
#include "plan/launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "matile/passes/memory/repack.h"
#include "plan/launch_frame.h"
#include "plan/variants.h"

namespace nautilus::plan {
namespace {

// Finds flaws of maps without the driver.
bool only_check(const runtime::TensorMapView& view, runtime::EncodedMap*, std::string* why) {
  *why = runtime::map_flaw(view);
  return why->empty();
}

}  // namespace

// A slot of the launcher's for the time of a call.
class Launcher::Borrowed {
 public:
  explicit Borrowed(Launcher& launcher) : launcher_(launcher) {
    const std::lock_guard lock(launcher_.mutex_);
    if (launcher_.idle_.empty()) {
      slot_ = launcher_.new_slot();
    } else {
      slot_ = std::move(launcher_.idle_.back());
      launcher_.idle_.pop_back();
    }
  }
  ~Borrowed() {
    const std::lock_guard lock(launcher_.mutex_);
    launcher_.idle_.push_back(std::move(slot_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Slot& operator*() { return *slot_; }

 private:
  Launcher& launcher_;
  std::unique_ptr<Slot> slot_;
};

Launcher::Launcher(const ir::Program& program, runtime::Device& device)
    : program_(program),
      device_(device),
      encode_([this](const runtime::TensorMapView& view, runtime::EncodedMap* map,
                     std::string* why) { return device_.encode(view, map, why); }) {}

std::unique_ptr<Launcher::Slot> Launcher::new_slot() const {
  auto slot = std::make_unique<Slot>(*plan_);
  slot->frame.set_empty_backing(empty_backing_);
  // A call is its tensors' addresses, shapes and strides, and its values.
  const size_t most =
      tensors_.size() + 2 * static_cast<size_t>(plan_->dimensions) + 2 * values_.size() + 1;
  slot->key.reserve(most);
  slot->next.reserve(most);
  return slot;
}

std::unique_ptr<Launcher> Launcher::load(const ir::Program& program,
                                         std::vector<DeviceKernel> kernels, Names names,
                                         runtime::Device& device, size_t frames,
                                         std::string* error) {
  std::unique_ptr<Launcher> l(new Launcher(program, device));
  std::vector<emit::KernelText> texts;
  for (DeviceKernel& k : kernels) {
    const auto loaded = device.load_kernel(k.cubin, k.text.name, k.text.shared_bytes, error);
    if (!loaded) return nullptr;
    l->loaded_.push_back(*loaded);
    texts.push_back(k.text);
    l->kernels_.push_back(std::move(k));
  }
  l->plan_ = std::make_unique<Prepared>(program, texts);
  for (const std::string& name : names.tensors) {
    l->tensors_.push_back(l->plan_->tensor(name));
    NAUT_CHECK(l->tensors_.back() >= 0, "the plan has no tensor `{}`", name);
  }
  for (const std::string& name : names.values) l->values_.push_back(l->plan_->value(name));
  l->names_ = std::move(names);
  if (!l->plan_->maps.empty()) {
    const auto pointer = device.allocate(Frame::kEmptyBackingBytes, error);
    if (!pointer) return nullptr;
    l->empty_backing_ = *pointer;
    if (!device.fill(*pointer, 0, Frame::kEmptyBackingBytes, error)) return nullptr;
  }
  l->frames_ = frames;
  for (size_t i = 0; i < frames; ++i) l->idle_.push_back(l->new_slot());
  return l;
}

Launcher::~Launcher() {
  std::string ignored;  // whoever waits for the results hears of it
  if (!loaded_.empty()) device_.synchronize(&ignored);
  if (empty_backing_) device_.free(empty_backing_);
  for (void* kernel : loaded_) device_.unload_kernel(kernel);
}

LaunchStatus Launcher::evaluate(const Call& call, Slot& slot, std::string* error) {
  slot.next.clear();
  for (const TensorView& t : call.tensors) {
    slot.next.push_back(static_cast<int64_t>(t.address));
    slot.next.insert(slot.next.end(), t.shape.begin(), t.shape.end());
    slot.next.insert(slot.next.end(), t.strides.begin(), t.strides.end());
  }
  for (const Call::Value& v : call.values) {
    slot.next.push_back(v.number);
    slot.next.push_back(v.value.i);
  }
  slot.next.push_back(static_cast<int64_t>(call.values.size()));
  if (slot.next == slot.key) return LaunchStatus::Ok;
  slot.key.clear();
  slot.is_packed = false;
  slot.frame.forget();
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (slot.frame.bind(tensors_[i], call.tensors[i])) continue;
    *error = fmt::format("tensor `{}` has {} dimensions, {} came", names_.tensors[i],
                         plan_->tensors[static_cast<size_t>(tensors_[i])].rank(),
                         call.tensors[i].shape.size());
    return LaunchStatus::Argument;
  }
  for (const Call::Value& v : call.values) {
    const int number = values_[static_cast<size_t>(v.number)];
    if (number >= 0) slot.frame.set(number, v.value);
  }
  if (!slot.frame.evaluate(device_.info().multiprocessors, error) ||
      !slot.workspace.lay_out(slot.frame, error))
    return LaunchStatus::Argument;
  std::swap(slot.key, slot.next);
  return LaunchStatus::Ok;
}

std::set<std::string> Launcher::names_of(const std::set<int>& tensors) const {
  std::set<std::string> names;
  for (int t : tensors) names.insert(plan_->tensors[static_cast<size_t>(t)].name);
  return names;
}

Launcher* Launcher::variant(const std::set<std::string>& tensors) {
  const std::shared_lock lock(variants_mutex_);
  const auto it = variants_.find(tensors);
  return it == variants_.end() ? nullptr : it->second.get();
}

LaunchStatus Launcher::put(const Call& call, const runtime::Stream& stream,
                           const CallMemory& memory, Slot& slot, std::string* error) {
  const uint64_t address = slot.workspace.bytes() > 0 ? memory.address : 0;
  if (!slot.is_packed || slot.address != address) {
    slot.is_packed = false;
    slot.workspace.bind(slot.frame, address);
    if (!slot.frame.pack(encode_, error)) {
      if (slot.frame.misaligned().empty()) return LaunchStatus::Argument;
      const auto names = names_of(slot.frame.misaligned());
      Launcher* other = variant(names);
      if (other) return other->launch(call, stream, memory, error);
      *error +=
          fmt::format("; launches with copies of `{}` have to be prepared with such tensors first",
                      fmt::join(names, "`, `"));
      return LaunchStatus::NotPrepared;
    }
    slot.address = address;
    slot.is_packed = true;
  }
  if (slot.workspace.zero_bytes() > 0 && !memory.is_kept &&
      !device_.fill_async(address, 0, slot.workspace.zero_bytes(), stream, error))
    return LaunchStatus::System;
  return launch_frame(slot.frame, kernels_, loaded_, device_, stream, error) ? LaunchStatus::Ok
                                                                             : LaunchStatus::System;
}

LaunchStatus Launcher::launch(const Call& call, const runtime::Stream& stream,
                              const CallMemory& memory, std::string* error) {
  Borrowed borrowed(*this);
  Slot& slot = *borrowed;
  const LaunchStatus evaluated = evaluate(call, slot, error);
  if (evaluated != LaunchStatus::Ok) return evaluated;
  const size_t needed = slot.workspace.bytes();
  if (needed == 0 || memory.address) {
    if (memory.address % Workspace::kAlignment != 0) {
      *error = fmt::format("the workspace is at {:#x}, which is no multiple of {}", memory.address,
                           Workspace::kAlignment);
      return LaunchStatus::Memory;
    }
    if (memory.bytes < needed) {
      *error = fmt::format("the workspace has {} bytes, the launch needs {}", memory.bytes, needed);
      return LaunchStatus::Memory;
    }
    return put(call, stream, memory, slot, error);
  }
  if (!memory.allocate) {
    *error = fmt::format("the launch needs a workspace of {} bytes", needed);
    return LaunchStatus::Memory;
  }
  CallMemory own = memory;
  void* pointer = memory.allocate(memory.user, needed, stream.get());
  own.address = reinterpret_cast<uint64_t>(pointer);
  own.bytes = needed;
  own.is_kept = false;
  LaunchStatus status = LaunchStatus::Memory;
  if (!pointer)
    *error = fmt::format("the allocator has no {} bytes for the workspace", needed);
  else if (own.address % Workspace::kAlignment != 0)
    *error = fmt::format("the allocator's memory is at {:#x}, which is no multiple of {}",
                         own.address, Workspace::kAlignment);
  else
    status = put(call, stream, own, slot, error);
  if (pointer && memory.release) memory.release(memory.user, pointer, needed, stream.get());
  return status;
}

LaunchStatus Launcher::misaligned(Slot& slot, std::set<std::string>* names, std::string* error) {
  slot.is_packed = false;
  // Any address that is aligned: nothing is launched.
  slot.workspace.bind(slot.frame, Workspace::kAlignment);
  if (slot.frame.pack(only_check, error)) return LaunchStatus::Ok;
  if (slot.frame.misaligned().empty()) return LaunchStatus::Argument;
  *names = names_of(slot.frame.misaligned());
  return LaunchStatus::Ok;
}

LaunchStatus Launcher::workspace_bytes(const Call& call, size_t* bytes, std::string* error) {
  Borrowed borrowed(*this);
  Slot& slot = *borrowed;
  LaunchStatus status = evaluate(call, slot, error);
  if (status != LaunchStatus::Ok) return status;
  std::set<std::string> names;
  status = misaligned(slot, &names, error);
  if (status != LaunchStatus::Ok) return status;
  *bytes = slot.workspace.bytes();
  if (names.empty()) return LaunchStatus::Ok;
  Launcher* other = variant(names);
  if (other) return other->workspace_bytes(call, bytes, error);
  *error += "; such launches have to be prepared first";
  return LaunchStatus::NotPrepared;
}

LaunchStatus Launcher::admit(const Call& call, expr::ExprPool& pool,
                             const std::string& architecture, std::string* error) {
  std::set<std::string> names;
  {
    Borrowed borrowed(*this);
    LaunchStatus status = evaluate(call, *borrowed, error);
    if (status == LaunchStatus::Ok) status = misaligned(*borrowed, &names, error);
    if (status != LaunchStatus::Ok) return status;
  }
  if (names.empty() || variant(names)) {
    error->clear();
    return LaunchStatus::Ok;
  }
  const std::set<std::string> copied = repackable_tensors(program_);
  if (!std::includes(copied.begin(), copied.end(), names.begin(), names.end()))
    return LaunchStatus::Argument;
  auto other = std::make_unique<ir::Program>(matile::repack(program_, names, pool));
  auto kernels = compile_device(*other, pool, architecture, true, error);
  if (!kernels) return LaunchStatus::System;
  auto launcher = load(*other, std::move(*kernels), names_, device_, frames_, error);
  if (!launcher) return LaunchStatus::System;
  launcher->own_program_ = std::move(other);
  const std::unique_lock lock(variants_mutex_);
  variants_.emplace(std::move(names), std::move(launcher));
  error->clear();
  return LaunchStatus::Ok;
}

}  // namespace nautilus::plan
