// SPDX-License-Identifier: Apache-2.0
// A compiled program on a device: tensors are bound and the plan is launched, any number of times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "plan/compile.h"
#include "plan/frame.h"
#include "runtime/cuda_device.h"

namespace nautilus::plan {

class Executable {
 public:
  // Loads the kernels. Program and device must outlive the result.
  static std::unique_ptr<Executable> load(const ir::Program& program,
                                          std::vector<DeviceKernel> kernels,
                                          runtime::Device& device, std::string* error);
  // Waits for everything that runs on the device: a launch may still be running. Graphs that
  // captured launches must be destroyed before.
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // False if the program has no such tensor of this rank. What is bound is copied.
  bool bind(std::string_view tensor, const TensorView& view);
  // The element type of a tensor; empty if the program has none of that name.
  std::optional<expr::DType> dtype(std::string_view tensor) const;
  // A size or a scalar; false if the program has none of that name.
  bool set(std::string_view name, double value);

  // Evaluates the plan for the bound tensors and launches its kernels. If nothing was bound or set
  // since the last launch, that launch is repeated. Launches must not run at the same time as
  // others of the same executable, which share its scratch memory: use one stream, or order the
  // streams. The first launch allocates scratch memory, so it must not be captured.
  bool launch(const runtime::Stream& stream, std::string* error);

  // Makes an executable of the same program with aligned copies of some tensors.
  using VariantMaker = std::function<std::unique_ptr<Executable>(
      const std::set<std::string>& tensors, std::string* error)>;
  // For launches with tensors that have strides or addresses which the kernels cannot use. Each set
  // of such tensors is compiled when it is first met. Without a maker these launches fail.
  void set_variants(VariantMaker maker) { make_variant_ = std::move(maker); }

  // Keeps the program, for an executable with a maker that does not.
  void keep(std::unique_ptr<const ir::Program> program) { program_ = std::move(program); }

  const std::vector<DeviceKernel>& kernels() const { return kernels_; }
  const Prepared& plan() const { return *plan_; }

 private:
  explicit Executable(runtime::Device& device);
  bool prepare(const runtime::Stream& stream, std::string* error);
  // Memory for the maps of empty tensors.
  bool provide_empty_backing(const runtime::Stream& stream, std::string* error);
  bool provide_scratch(const runtime::Stream& stream, std::string* error);
  Executable* variant(std::string* error);

  struct Scratch {
    int tensor = 0;
    runtime::DevicePointer pointer = 0;
    size_t bytes = 0;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  std::unique_ptr<const ir::Program> program_;  // outlives what follows
  runtime::Device& device_;
  MapEncoder encode_;
  std::vector<DeviceKernel> kernels_;
  std::vector<void*> loaded_;
  std::unique_ptr<Prepared> plan_;
  std::unique_ptr<Frame> frame_;
  std::vector<Scratch> scratch_;
  uint64_t empty_backing_ = 0;
  bool is_ready_ = false;
  VariantMaker make_variant_;
  std::map<std::set<std::string>, std::unique_ptr<Executable>> variants_;
};

}  // namespace nautilus::plan
