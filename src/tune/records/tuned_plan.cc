// SPDX-License-Identifier: Apache-2.0
#include "tune/records/tuned_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/kernels/sized_kernels.h"
#include "driver/load/load.h"
#include "ir/decl.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "spec/equations_hash.h"
#include "tune/records/best.h"
#include "tune/records/trial_names.h"
#include "tune/records/winner.h"

namespace nautilus::tune {
namespace {

std::string at_line(const std::map<std::string, int64_t>& sizes) {
  std::vector<std::string> names;
  std::vector<int64_t> numbers;
  for (const auto& [name, size] : sizes) {
    names.push_back(name);
    numbers.push_back(size);
  }
  return fmt::format("at {} = {} within {} tuned\n", fmt::join(names, ", "),
                     fmt::join(numbers, ", "), kNearFactor);
}

// The program again in a unit of its own: a refusal there is not an error of the user.
std::optional<ir::Program> loaded_again(const ir::Program& program, driver::Unit& unit) {
  unit.target = &ir::target_of(program);
  return driver::load_text("tuned.spec", ir::print(program), {}, unit);
}

// Names of all dims: sizes of other names are of another program with the same equations.
std::set<std::string> dim_names(const ir::Program& program) {
  std::set<std::string> out;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) out.emplace(d->name.str());
  }
  return out;
}

using BySizes = std::map<std::map<std::string, int64_t>, std::vector<Trial>>;

std::vector<TunedSizes> winners_of(const ir::Program& program, const BySizes& problems) {
  const std::set<std::string> dims = dim_names(program);
  std::map<std::string, bool> followed;
  std::vector<TunedSizes> out;
  for (const auto& [sizes, trials] : problems) {
    std::set<std::string> names;
    for (const auto& [name, size] : sizes) names.insert(name);
    const auto winner = names == dims ? winner_of(trials) : std::nullopt;
    if (!winner) continue;
    const auto [known, is_new] = followed.emplace(winner->schedule, false);
    if (is_new) known->second = still_applies(program, winner->schedule);
    if (known->second) out.push_back({sizes, winner->schedule});
  }
  return out;
}

}  // namespace

std::string tuned_plan_text(const std::string& own, const std::vector<TunedSizes>& winners) {
  std::map<std::map<std::string, int64_t>, std::string> by_sizes;
  for (const TunedSizes& w : winners) by_sizes.emplace(w.sizes, w.schedule);
  std::vector<std::pair<std::string, std::string>> parts = {{own, ""}};  // with their lines
  for (const auto& at : by_sizes) {
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const auto& p) { return p.first == at.second; });
    if (part == parts.end()) part = parts.insert(parts.end(), {at.second, ""});
    part->second += at_line(at.first);
  }
  if (parts.size() == 1) return own;
  std::string out;
  for (const auto& [schedule, lines] : parts) {
    const size_t header = schedule.find('\n') + 1;
    out += out.empty() ? schedule.substr(0, header) : "or schedule\n";
    out += lines + schedule.substr(header);
  }
  return out;
}

std::optional<std::string> tuned_plan_text(const ir::Program& program,
                                           const std::vector<TunedSizes>& winners) {
  driver::Unit unit;
  const auto again = loaded_again(program, unit);
  auto first = again ? driver::first_schedule(*again, unit) : std::nullopt;
  const auto own = first ? driver::complete_kernels(*first, unit) : std::nullopt;
  if (!own) return std::nullopt;
  std::string ignored;
  const auto all =
      driver::sized_schedules(*again, tuned_plan_text(own->schedule, winners), unit, &ignored);
  if (!all) return std::nullopt;
  return schedule::print(*all);
}

std::optional<TunedPlan> tuned_plan_of(const ir::Program& program, const std::string& path,
                                       std::string* error) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const auto database = Database::open(path, Access::Read, error);
  if (!database) return std::nullopt;
  Query query;
  query.equations = spec::equations_hash(program);
  query.target = std::string(ir::target_of(program).name);
  const auto trials = database->find(query, error);
  if (!trials) return std::nullopt;
  std::map<std::string, size_t> counts;
  for (const Trial& t : *trials) {
    if (t.problem.machine != "emulator") ++counts[t.problem.machine];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) return std::nullopt;
  BySizes problems;
  for (const Trial& t : with_names_of(program, *trials)) {
    if (t.problem.machine == most->first) problems[t.problem.sizes].push_back(t);
  }
  if (problems.size() < 2) return std::nullopt;
  const std::vector<TunedSizes> winners = winners_of(program, problems);
  if (winners.size() < 2) return std::nullopt;
  const auto text = tuned_plan_text(program, winners);
  if (!text) return std::nullopt;
  return TunedPlan{*text, winners.size(), most->first};
}

}  // namespace nautilus::tune
