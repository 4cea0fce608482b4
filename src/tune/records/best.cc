// SPDX-License-Identifier: Apache-2.0
#include "tune/records/best.h"

#include <algorithm>
#include <filesystem>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/load.h"
#include "ir/decl.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "spec/equations_hash.h"

namespace nautilus::tune {
namespace {

// With today's compiler, in a unit of its own: what it refuses is nobody's mistake.
bool still_applies(const ir::Program& program, const std::string& schedule) {
  driver::Unit unit;
  unit.target = &ir::target_of(program);
  const auto again = driver::load_text("tuned.spec", ir::print(program), {}, unit);
  std::string ignored;
  return again && driver::make_kernels(*again, {.schedule = schedule}, unit, &ignored);
}

}  // namespace

std::map<std::string, int64_t> hinted_sizes(const ir::Program& program) {
  std::map<std::string, int64_t> out;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) out.emplace(d->name.str(), *d->hint);
  }
  return out;
}

std::optional<Best> best_of(const ir::Program& program, const std::string& path,
                            std::string* error) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const auto database = Database::open(path, Access::Read, error);
  if (!database) return std::nullopt;
  const auto trials = database->find({.equations = spec::equations_hash(program),
                                      .sizes = hinted_sizes(program),
                                      .target = std::string(ir::target_of(program).name)},
                                     error);
  if (!trials) return std::nullopt;
  std::map<std::string, std::vector<Trial>> by_machine;
  for (const Trial& t : *trials) {
    if (t.problem.machine != "emulator") by_machine[t.problem.machine].push_back(t);
  }
  const auto most = std::max_element(
      by_machine.begin(), by_machine.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == by_machine.end()) return std::nullopt;
  const auto winner = winner_of(most->second);
  if (!winner || !still_applies(program, winner->schedule)) return std::nullopt;
  return Best{*winner, most->first};
}

}  // namespace nautilus::tune
