// SPDX-License-Identifier: Apache-2.0
// How a program became its kernels, as text for people.
#pragma once

#include "driver/kernels/scheduling.h"
#include "driver/report/explain_passes.h"
#include "driver/report/warnings.h"

namespace nautilus::driver {

struct ExplainRequest {
  std::optional<std::string> schedule = {};  // its text; empty: the first schedule
  bool has_summary = true;                   // at the hints
  bool has_derivation = true;
  bool has_passes = true;
  PassesRequest passes = {};
  std::optional<WarningRequest> warnings = {};  // to report
};

// The summary (summary.h), the derivation and the passes (explain_passes.h). Programs of lower
// levels have no derivation. Nothing if something was reported, or is in `error`.
std::optional<std::string> explain(const ir::Program& program, const ExplainRequest& request,
                                   Unit& unit, std::string* error);

// The derivation: the equations, each algebra pass that changed them with its exactness class, the
// schedule, which reductions were rolled with which repair, what was refused and why, the
// candidates for tiles with their floors, the roles of each kernel with products, and the main loop
// of the first. `kernels` are those of the schedule.
std::optional<std::string> derivation(const ir::Program& program, const FirstSchedule& scheduled,
                                      const ir::Program& kernels, Unit& unit);
// The section of the derivation about what each kernel computes: repairs and refusals, without
// sizes and costs.
std::string fusion(const ir::Program& program, Unit& unit);

}  // namespace nautilus::driver
