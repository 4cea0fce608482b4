// SPDX-License-Identifier: Apache-2.0
#include "tune/records/best.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "driver/kernels/stored_kernels.h"
#include "driver/load/load.h"
#include "ir/decl.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "spec/equations_hash.h"
#include "tune/records/shipped.h"
#include "tune/records/trial_names.h"

namespace nautilus::tune {
// With the present compiler, in a unit of its own: a refusal is not an error of the user.
bool still_applies(const ir::Program& program, const std::string& schedule) {
  const runtime::KernelCache cache;
  if (driver::are_stored(program, {.schedule = schedule}, cache)) return true;
  driver::Unit unit;
  unit.target = &ir::target_of(program);
  const auto again = driver::load_text("tuned.spec", ir::print(program), {}, unit);
  std::string ignored;
  return again && driver::stored_kernels(*again, {.schedule = schedule}, cache, unit, &ignored);
}

std::map<std::string, int64_t> hinted_sizes(const ir::Program& program) {
  std::map<std::string, int64_t> out;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) out.emplace(d->name.str(), *d->hint);
  }
  return out;
}

std::optional<Best> best_that_applies(const std::vector<Trial>& trials,
                                      const std::function<bool(const std::string&)>& apply) {
  std::map<std::string, std::vector<Trial>> by_machine;
  for (const Trial& t : trials) {
    if (t.problem.machine != "emulator") by_machine[t.problem.machine].push_back(t);
  }
  const auto most = std::max_element(
      by_machine.begin(), by_machine.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == by_machine.end()) return std::nullopt;
  const auto first = winner_of(most->second);
  if (!first) return std::nullopt;
  std::vector<Winner> order = {*first};
  for (Winner& w : standings(most->second)) {
    if (w.schedule != first->schedule) order.push_back(std::move(w));
  }
  for (size_t i = 0; i < std::min(order.size(), kMostTried); ++i) {
    if (apply(order[i].schedule)) return Best{order[i], most->first, "", i};
  }
  return std::nullopt;
}

// Those at the sizes of the program, whatever names they have there.
static std::vector<Trial> at_hints(const ir::Program& program, std::vector<Trial> trials) {
  const auto sizes = hinted_sizes(program);
  std::vector<Trial> out = with_names_of(program, std::move(trials));
  std::erase_if(out, [&](const Trial& t) { return t.problem.sizes != sizes; });
  return out;
}

std::optional<Best> best_of(const ir::Program& program, const std::string& path,
                            std::string* error) {
  const Query query = {.equations = spec::equations_hash(program),
                       .target = std::string(ir::target_of(program).name)};
  const auto apply = [&](const std::string& schedule) { return still_applies(program, schedule); };
  // Without a database no trials are used.
  const char* asked = std::getenv("NAUTILUS_DB");
  if (path.empty() && asked && std::string_view(asked) == "none") return std::nullopt;
  std::error_code ignored;
  if (!path.empty() && std::filesystem::exists(path, ignored)) {
    const auto database = Database::open(path, Access::Read, error);
    const auto trials = database ? database->find(query, error) : std::nullopt;
    if (trials) {
      if (auto best = best_that_applies(at_hints(program, *trials), apply)) {
        best->source = path;
        return best;
      }
    }
  }
  auto best = best_that_applies(at_hints(program, shipped_trials(query)), apply);
  if (best) best->source = kShippedSource;
  return best;
}

std::string note(const Best& best) {
  const size_t count = best.winner.candidates;
  const std::string which =
      count > 1 ? fmt::format("the best of {} that were timed", count) : "the one that was timed";
  std::string text = fmt::format("the schedule is {} on {} ({})", which, best.machine, best.source);
  if (best.passed_over > 0)
    text += fmt::format("; {} better ones no longer apply", best.passed_over);
  return text;
}

}  // namespace nautilus::tune
