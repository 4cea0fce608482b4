// SPDX-License-Identifier: Apache-2.0
#include "tune/records/near_best.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/build_id.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "driver/load/load.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "runtime/kernel_cache.h"
#include "schedule/choose/plan_cost.h"
#include "spec/equations_hash.h"
#include "tune/records/shipped.h"
#include "tune/records/trial_names.h"
#include "tune/records/tuned_plan.h"

namespace nautilus::tune {
namespace {

// Of a schedule's text at the hints; of the compiler's own choice if it is empty. Nothing where a
// size has no hint.
std::optional<double> cycles_of(const ir::Program& program, const std::string& schedule) {
  driver::Unit unit;
  unit.target = &ir::target_of(program);
  const auto again = driver::load_text("tuned.spec", ir::print(program), {}, unit);
  if (!again) return std::nullopt;
  std::string ignored;
  const auto scheduled = schedule.empty()
                             ? driver::first_schedule(*again, unit)
                             : driver::replay_schedule(*again, schedule, unit, &ignored);
  if (!scheduled) return std::nullopt;
  return schedule::own_cycles(schedule.empty() ? scheduled->kernels : scheduled->replayed,
                              scheduled->rounded, *unit.target, unit.pool);
}

// The time of a schedule over that of the compiler's own choice, by the model; 1 if it has no
// opinion. Stored next to kernels, because a program with stored kernels starts without scheduling.
double predicted_ratio(const ir::Program& program, const std::string& schedule) {
  const runtime::KernelCache cache;
  const std::string key =
      runtime::KernelCache::key({"predicted ratio 1", base::build_id(), ir::print(program),
                                 ir::target_of(program).name, schedule});
  double ratio = 1;
  if (const auto stored = cache.get(key)) {
    const auto r = std::from_chars(stored->data(), stored->data() + stored->size(), ratio);
    if (r.ec == std::errc() && r.ptr == stored->data() + stored->size()) return ratio;
  }
  const auto own = cycles_of(program, "");
  const auto given = cycles_of(program, schedule);
  ratio = own && given && *own > 0 && *given > 0 ? *given / *own : 1;
  std::string ignored;
  cache.put(key, fmt::format("{}", ratio), &ignored);
  return ratio;
}

// The same as it was measured. The compiler's own choice has no tuned lines; without a trial of it
// all that is known is that the winner was not slower.
double measured_ratio(const Best& best, const std::vector<Trial>& trials) {
  std::vector<Trial> own;
  for (const Trial& t : trials) {
    if (t.problem.machine == best.machine && lines_taken(t.schedule) == 0) own.push_back(t);
  }
  const auto first = winner_of(own);
  return first && first->median > 0 ? std::min(best.winner.median / first->median, 1.0) : 1;
}

using BySizes = std::map<std::map<std::string, int64_t>, std::vector<Trial>>;

std::optional<NearBest> nearest_of(const ir::Program& program, const std::vector<Trial>& found) {
  const auto own = hinted_sizes(program);
  const std::vector<Trial> trials = with_names_of(program, found);
  BySizes problems;
  for (const Trial& t : trials) problems[t.problem.sizes].push_back(t);
  std::vector<std::pair<double, const BySizes::value_type*>> order;
  for (const auto& problem : problems) {
    const auto far = distance(own, problem.first);
    if (far && problem.first != own && *far <= static_cast<double>(kNearFactor))
      order.emplace_back(*far, &problem);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [far, problem] : order) {
    const auto apply = [&](const std::string& schedule) {
      return still_applies(program, schedule);
    };
    const auto best = best_that_applies(problem->second, apply);
    if (!best) continue;
    const ir::Program there = driver::with_hints(program, problem->first);
    const std::string& schedule = best->winner.schedule;
    return NearBest{*best, problem->first,
                    measured_ratio(*best, problem->second) * predicted_ratio(program, schedule) /
                        predicted_ratio(there, schedule)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> distance(const std::map<std::string, int64_t>& a,
                               const std::map<std::string, int64_t>& b) {
  if (a.size() != b.size()) return std::nullopt;
  double out = 1;
  for (const auto& [name, size] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return std::nullopt;
    const double ratio = static_cast<double>(std::max<int64_t>(size, 1)) /
                         static_cast<double>(std::max<int64_t>(other->second, 1));
    out *= std::max(ratio, 1 / ratio);
  }
  return out;
}

std::optional<NearBest> near_best_of(const ir::Program& program, const std::string& path,
                                     std::string* error) {
  const char* asked = std::getenv("NAUTILUS_DB");
  if (path.empty() && asked && std::string_view(asked) == "none") return std::nullopt;
  Query query;
  query.equations = spec::equations_hash(program);
  query.target = std::string(ir::target_of(program).name);
  std::error_code ignored;
  if (!path.empty() && std::filesystem::exists(path, ignored)) {
    const auto database = Database::open(path, Access::Read, error);
    const auto trials = database ? database->find(query, error) : std::nullopt;
    if (trials) {
      if (auto near = nearest_of(program, *trials)) {
        near->best.source = path;
        return near;
      }
    }
  }
  auto near = nearest_of(program, shipped_trials(query));
  if (near) near->best.source = kShippedSource;
  return near;
}

std::string note(const NearBest& near) {
  const std::string at = sizes_text(near.sizes);
  if (!near.is_used())
    return fmt::format(
        "the first schedule: the best for the nearest tuned sizes, {} on {} ({}), is expected to "
        "take {:.2f} times as long at these",
        at, near.best.machine, near.best.source, near.expected);
  return fmt::format(
      "{}, for {}, the nearest sizes that were tuned; at these it is expected to take {:.2f} of "
      "the "
      "first schedule's time",
      note(near.best), at, near.expected);
}

}  // namespace nautilus::tune
