// SPDX-License-Identifier: Apache-2.0
// A compiled program on a device, for callers that have threads, streams and memory of their own:
// each call has its tensors and values, and a launch does not compile, wait or allocate device
// memory. (executable.h holds bound tensors and its own memory.)
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>

#include "plan/compile.h"
#include "plan/frame.h"
#include "plan/workspace.h"
#include "runtime/cuda_device.h"

namespace nautilus::plan {

// The arguments of one launch. Tensors and values are numbered as in the lists that the launcher
// was loaded with.
struct Call {
  struct Value {
    int number = 0;
    expr::Value value{.i = 0};
  };
  std::span<const TensorView> tensors;  // all of them
  std::span<const Value> values;        // those that are given
};

// Memory for the plan's own tensors. `allocate` may be null; it is asked where `address` is 0.
struct CallMemory {
  uint64_t address = 0;
  size_t bytes = 0;
  bool is_kept = false;  // as launches of this plan with these sizes left it, or zero
  void* (*allocate)(void* user, size_t bytes, void* stream) = nullptr;
  void (*release)(void* user, void* pointer, size_t bytes, void* stream) = nullptr;
  void* user = nullptr;
};

enum class LaunchStatus : uint8_t { Ok, Argument, Memory, NotPrepared, System };

class Launcher {
 public:
  // The names by which calls number tensors and values; a value that is not the plan's is ignored.
  struct Names {
    std::vector<std::string> tensors;
    std::vector<std::string> values;
  };
  // Loads the kernels. Program and device must outlive the result. `frames`: launches that may be
  // prepared at the same time before one of them allocates host memory.
  static std::unique_ptr<Launcher> load(const ir::Program& program,
                                        std::vector<DeviceKernel> kernels, Names names,
                                        runtime::Device& device, size_t frames, std::string* error);
  // Waits for the device's work.
  ~Launcher();
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  // From several threads at a time. Not Ok: why is in `error`.
  LaunchStatus launch(const Call& call, const runtime::Stream& stream, const CallMemory& memory,
                      std::string* error);
  // How much memory such a launch needs.
  LaunchStatus workspace_bytes(const Call& call, size_t* bytes, std::string* error);

  // Compiles kernels with aligned copies of the tensors of the call that no kernel can use; does
  // nothing if there are none. Not at the same time as others of the same pool.
  LaunchStatus admit(const Call& call, expr::ExprPool& pool, const std::string& architecture,
                     std::string* error);

  const std::vector<DeviceKernel>& kernels() const { return kernels_; }

 private:
  // The state of one launch while it is prepared; it remembers the last call, so that an equal call
  // is only launched.
  struct Slot {
    explicit Slot(const Prepared& plan) : frame(plan), workspace(plan) {}
    Frame frame;
    Workspace workspace;
    std::vector<int64_t> key;   // of the call that the frame was evaluated for; empty: none
    std::vector<int64_t> next;  // of the call under way
    uint64_t address = 0;       // that it was packed for
    bool is_packed = false;
  };
  class Borrowed;

  Launcher(const ir::Program& program, runtime::Device& device);
  std::unique_ptr<Slot> new_slot() const;
  LaunchStatus evaluate(const Call& call, Slot& slot, std::string* error);
  LaunchStatus put(const Call& call, const runtime::Stream& stream, const CallMemory& memory,
                   Slot& slot, std::string* error);
  // Names of the tensors of an evaluated frame that no kernel can use.
  LaunchStatus misaligned(Slot& slot, std::set<std::string>* names, std::string* error);
  std::set<std::string> names_of(const std::set<int>& tensors) const;
  Launcher* variant(const std::set<std::string>& tensors);

  std::unique_ptr<const ir::Program> own_program_;  // of a variant; outlives what follows
  const ir::Program& program_;
  runtime::Device& device_;
  MapEncoder encode_;
  Names names_;
  std::vector<DeviceKernel> kernels_;
  std::vector<void*> loaded_;
  std::unique_ptr<Prepared> plan_;
  std::vector<int> tensors_;  // of the plan, by the caller's numbers
  std::vector<int> values_;   // -1: not the plan's
  runtime::DevicePointer empty_backing_ = 0;
  size_t frames_ = 0;

  std::mutex mutex_;  // of idle_
  std::vector<std::unique_ptr<Slot>> idle_;
  std::shared_mutex variants_mutex_;
  std::map<std::set<std::string>, std::unique_ptr<Launcher>> variants_;
};

}  // namespace nautilus::plan
