// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/lowered.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/run/launch_report.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "matile/ops.h"

namespace nautilus::tune {
namespace {

// Kernels that are launched, with the CTAs of each, as a hash.
std::string hash_of(const ir::Program& kernels, const std::vector<driver::PlannedLaunch>& launches,
                    expr::ExprPool& pool) {
  std::string text;
  for (const driver::PlannedLaunch& launch : launches) {
    for (const ir::Op& op : kernels.body) {
      const auto* kernel = op.get<matile::Kernel>();
      if (!kernel || kernel->name.str() != launch.kernel) continue;
      matile::Kernel unnamed = *kernel;
      unnamed.name = pool.name("kernel");
      text += fmt::format("{} {}\n", launch.grid, ir::print(ir::make(std::move(unnamed))));
    }
  }
  return text.empty() ? "" : text_hash(text);
}

}  // namespace

Lowered lower(const Subject& subject, const std::string& schedule) {
  Lowered out;
  // In a unit of its own: the memory of a long search would otherwise grow without end.
  driver::Unit unit;
  const auto program = load(subject, unit);
  std::string error;
  auto scheduled = !program           ? std::nullopt
                   : schedule.empty() ? driver::first_schedule(*program, unit)
                                      : driver::replay_schedule(*program, schedule, unit, &error);
  const auto kernels = scheduled ? driver::complete_kernels(*scheduled, unit) : std::nullopt;
  if (!kernels) {
    if (error.empty() && !unit.sink.all().empty()) error = unit.sink.all()[0].message;
    out.refusal = error.empty() ? "no reason was given" : error;
    return out;
  }
  out.schedule = kernels->schedule;
  ir::Environment env;
  const target::Target& target = ir::target_of(kernels->program);
  diag::Sink ignored(unit.sources);
  for (const ir::Op& op : kernels->program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) env.sizes.emplace(d->name.str(), *d->hint);
  }
  if (!ir::complete(kernels->program, {}, env, ignored)) return out;
  const int64_t sms = subject.emulates ? subject.multiprocessors : target.board.sms;
  auto launches = driver::planned_launches(kernels->program, env, static_cast<int>(sms));
  std::erase_if(launches, [](const driver::PlannedLaunch& launch) { return launch.grid == 0; });
  out.kernels = hash_of(kernels->program, launches, unit.pool);
  for (const driver::PlannedLaunch& launch : launches) {
    for (const driver::KernelNote& note : kernels->notes) {
      if (note.kernel == launch.kernel)
        out.running.emplace_back(note.statement, note.alternative - 1);
    }
  }
  out.features = features_of(kernels->program, launches, env, sms, target);
  return out;
}

std::string to_json(const Lowered& l) {
  nlohmann::json j = {{"schedule", l.schedule}, {"kernels", l.kernels}, {"features", l.features}};
  if (!l.refusal.empty()) j["refusal"] = l.refusal;
  for (const auto& [kernel, alternative] : l.running)
    j["running"].push_back({{"kernel", kernel}, {"alternative", alternative}});
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Lowered> lowered_of_json(std::string_view line) {
  const nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
  const auto text = [&](const nlohmann::json& from, const char* name) -> std::string {
    const auto it = from.find(name);
    return it != from.end() && it->is_string() ? it->get<std::string>() : "";
  };
  if (!j.is_object() || !j.contains("schedule") || !j.contains("kernels")) return std::nullopt;
  Lowered out;
  out.schedule = text(j, "schedule");
  out.refusal = text(j, "refusal");
  out.kernels = text(j, "kernels");
  if (const auto list = j.find("running"); list != j.end() && list->is_array()) {
    for (const nlohmann::json& r : *list) {
      const auto n = r.find("alternative");
      if (n != r.end() && n->is_number_unsigned())
        out.running.emplace_back(text(r, "kernel"), n->get<size_t>());
    }
  }
  if (const auto list = j.find("features"); list != j.end() && list->is_array()) {
    for (const nlohmann::json& f : *list) {
      if (f.is_number()) out.features.push_back(f.get<double>());
    }
  }
  return out;
}

}  // namespace nautilus::tune
