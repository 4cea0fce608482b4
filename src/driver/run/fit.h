// SPDX-License-Identifier: Apache-2.0
// Costs of a target from recorded measurements (bench/results/*.jsonl), without a device.
//
// A row of a sweep says how long one candidate of one program took at some sizes. The model
// predicts the same candidates today; constants are changed until predictions differ from
// measurements by a common factor within each problem. A choice between candidates needs no more,
// and the factor absorbs the clock of the day. A constant that no prediction depends on stays
// unchanged, and the report says so.
//
// The quality is tested on programs that were not fitted: programs are divided into two halves, and
// each half is predicted with constants fitted to the other.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/run/ranking.h"
#include "driver/run/steps.h"
#include "target/target.h"

namespace nautilus::driver {

// Measurements of one program at one set of sizes, at one time.
struct MeasuredProblem {
  std::string program;  // "attention_full"
  std::map<std::string, int64_t> sizes;
  std::map<std::string, double> ms;  // by candidate

  std::string text() const;    // "attention_full B=1 D=64 ..."
  std::string family() const;  // of problems that are fitted or held out together
};

// The rows of a sweep: those with a schedule in a folder named after the program and its sizes.
// Other rows are left out. Nothing, and why, if a line is not JSON.
std::optional<std::vector<MeasuredProblem>> measured_problems(std::string_view jsonl,
                                                              std::string* error);

// The model's predictions for the same candidates, in cycles by name; empty if no folder has the
// program.
std::map<std::string, double> predicted_cycles(const MeasuredProblem& problem,
                                               const std::vector<std::string>& folders,
                                               const target::Target& target);

struct FittedConstant {
  std::string name;  // "costs.special_slots"
  double value = 0;
  double in_table = 0;
  bool is_probed = false;  // some prediction depends on it
};

struct FitReport {
  std::vector<FittedConstant> constants;  // fitted to everything
  size_t problems = 0;
  size_t candidates = 0;
  size_t families = 0;               // of programs: with one there are no others to fit to
  std::vector<std::string> unknown;  // programs that no folder has
  Ranking table;                     // with the target's constants
  Ranking held_out;                  // with constants fitted to other programs
};

// `folders`: where the programs are. Nothing, and why, if there is nothing to fit to.
std::optional<FitReport> fit_costs(const std::vector<MeasuredProblem>& problems,
                                   const std::vector<std::string>& folders,
                                   const target::Target& target, const TellStep& tell,
                                   std::string* error);

std::string to_text(const FitReport& report, const target::Target& target);

}  // namespace nautilus::driver
