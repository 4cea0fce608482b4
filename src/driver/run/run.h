// SPDX-License-Identifier: Apache-2.0
// Runs an MA-tile program on given inputs, in the emulator or on a device, and compares it with the
// program of the math language that it names as its oracle.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "driver/load/load.h"
#include "driver/oracle/ladder.h"
#include "plan/compile.h"
#include "spec/eval/judge.h"

namespace nautilus::driver {

using Outputs = std::map<std::string, expr::Tensor>;

// The oracle program of a file, with the statics of the MA-tile program. Empty if something was
// reported.
std::optional<ir::Program> load_oracle(const ir::Program& program, const std::string& path,
                                       Unit& unit);

// The same of a file that somebody else names.
std::optional<ir::Program> load_given_oracle(const ir::Program& program, const std::string& file,
                                             Unit& unit);

struct EmulateOptions {
  uint64_t seed = 1;
  int multiprocessors = 2;   // few, so that a CTA runs several tiles
  std::string body;          // if not empty: replaces the emitted text, for programs of one kernel
  int max_grid = 0;          // if not 0: the most CTAs, each of which then runs more tiles
  bool use_cache = true;     // of compiled bodies
  int64_t idle_limit = 0;    // calls without progress that mean a loop; 0: emulator::kIdleLimit
  int64_t* steps = nullptr;  // if not null: gets the steps of all launches
};

// `env` holds sizes, scalars and inputs; outputs are poisoned before the run. Empty (and why) on
// failure.
std::optional<Outputs> run_emulated(const ir::Program& program, const ir::Environment& env,
                                    const EmulateOptions& options, expr::ExprPool& pool,
                                    std::string* error);
// The device compiler's name of the program's target; nothing (and why) if the target is not a real
// device.
std::optional<std::string> architecture_of(const ir::Program& program, std::string* error);

struct DeviceOptions {
  plan::EditedSources sources = {};  // of kernels that replace the emitted ones
};
// Kernels for such a run.
std::optional<std::vector<plan::DeviceKernel>> compile_for(const ir::Program& program,
                                                           const DeviceOptions& options,
                                                           expr::ExprPool& pool,
                                                           std::string* error);
std::optional<Outputs> run_on_device(const ir::Program& program, const ir::Environment& env,
                                     const DeviceOptions& options, expr::ExprPool& pool,
                                     std::string* error);

// The environment of the oracle restricted to what the MA-tile program declares: sizes and scalars
// of the same names.
ir::Environment environment_of(const ir::Program& program, const ir::Environment& oracle);

struct CheckLine {
  std::string tensor;
  spec::Comparison comparison;
  double relative_error = 0;  // ||got - want|| / ||want||
};
std::vector<CheckLine> compare_outputs(const Outputs& got, const spec::Results& want,
                                       const ir::Numerics& numerics);

}  // namespace nautilus::driver
