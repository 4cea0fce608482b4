// SPDX-License-Identifier: Apache-2.0
// Trials of one subject, one after another in this process. They share inputs, the results of the
// definition, and tensors on the device.
#pragma once

#include "driver/run/device_tensors.h"
#include "spec/eval/judge.h"
#include "tune/measure/measure.h"

namespace nautilus::tune {

class Workbench {
 public:
  explicit Workbench(Subject subject) : subject_(std::move(subject)) {}

  // Makes kernels, compares them with the definition, then times them. An empty text is the
  // compiler's choice.
  Trial measure(const std::string& schedule);
  // Compiles the kernels, which fills the cache. The error, or empty.
  std::string compile(const std::string& schedule);

  const Subject& subject() const { return subject_; }

 private:
  // The program at small sizes, with its results.
  struct Case {
    ir::Environment env;
    spec::Results want;
  };
  bool open(std::string* error);
  // At the program's own hints, and at sizes that fill no tile. Nothing if something was reported.
  const std::vector<Case>* cases();
  ir::Environment edge() const;

  std::optional<ir::Program> kernels_of(const std::string& schedule, driver::Unit& unit,
                                        Trial& trial) const;
  bool check(const ir::Program& kernels, driver::Unit& unit, Trial& trial);
  void count_steps(const ir::Program& kernels, driver::Unit& unit, Trial& trial);
  void time(const ir::Program& kernels, driver::Unit& unit, Trial& trial);
  std::optional<std::map<std::string, expr::Tensor>> outputs(const ir::Program& kernels,
                                                             const ir::Environment& env,
                                                             int64_t* steps, driver::Unit& unit,
                                                             std::string* error) const;

  Subject subject_;
  driver::Unit unit_;  // of what is kept
  std::optional<Problem> problem_;
  std::optional<ir::Program> definition_;
  std::optional<std::vector<Case>> cases_;
  std::unique_ptr<runtime::Device> device_;
  std::optional<driver::DeviceTensors> tensors_;
};

}  // namespace nautilus::tune
