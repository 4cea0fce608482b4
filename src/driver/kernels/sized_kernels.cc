// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/sized_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "decision/lines.h"
#include "driver/kernels/program_lines.h"
#include "driver/kernels/scheduling.h"
#include "ir/decl.h"
#include "ir/print.h"
#include "lower/kernel/plan_by_sizes.h"
#include "matile/ops.h"

namespace nautilus::driver {
namespace {

using decision::At;
using schedule::SizedSchedule;

std::vector<std::string> dims_of(const ir::Program& program) {
  std::vector<std::string> out;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) out.emplace_back(d->name.str());
  }
  return out;
}

// Why a line does not fit the program; empty if it does.
std::string refuse_at(const At& at, const std::vector<std::string>& dims) {
  if (at.dims.size() != at.sizes.size())
    return fmt::format("{} dims and {} sizes", at.dims.size(), at.sizes.size());
  std::set<std::string> seen;
  for (size_t k = 0; k < at.dims.size(); ++k) {
    const std::string name(at.dims[k].str());
    if (std::find(dims.begin(), dims.end(), name) == dims.end())
      return base::no_such_name("dim", name, dims);
    if (!seen.insert(name).second) return fmt::format("`{}` stands twice", name);
    const expr::Expr size = at.sizes[k];
    if (size.op() != expr::Op::IntConst || size.integer() < 1 ||
        size.integer() > lower::kLargestSize)
      return fmt::format("sizes are numbers from 1 to {}", lower::kLargestSize);
  }
  if (at.factor && *at.factor < 1) return "a factor is 1 or more";
  return "";
}

std::map<std::string, int64_t> sizes_of(const At& at) {
  std::map<std::string, int64_t> out;
  for (size_t k = 0; k < at.dims.size(); ++k) out.emplace(at.dims[k].str(), at.sizes[k].integer());
  return out;
}

// All lines of all schedules, each alone and together.
std::string refuse_all_at(const std::vector<SizedSchedule>& list,
                          const std::vector<std::string>& dims) {
  std::set<std::map<std::string, int64_t>> seen;
  const At* first = nullptr;
  for (size_t k = 0; k < list.size(); ++k) {
    if (k > 0 && list[k].at.empty())
      return fmt::format("schedule {} of {} does not say its sizes: a line `at {} = ...`", k + 1,
                         list.size(), fmt::join(dims, ", "));
    for (const ir::Op& line : list[k].at) {
      const At& at = line.as<At>();
      std::string why = refuse_at(at, dims);
      const auto names = [](const At& a) {
        std::set<std::string> out;
        for (ir::Name n : a.dims) out.emplace(n.str());
        return out;
      };
      if (!first) first = &at;
      if (why.empty() && names(*first) != names(at))
        why = fmt::format("all lines name the same dims, the first names {}",
                          fmt::join(names(*first), ", "));
      if (why.empty() && !seen.insert(sizes_of(at)).second) why = "another line has the same sizes";
      if (!why.empty()) return decision::refusal(line, why);
    }
  }
  return "";
}

// Its sizes, too.
SizedSchedule with_names_of(const ir::Program& program, const SizedSchedule& given, Unit& unit) {
  schedule::Schedule all = given.schedule;
  all.lines.insert(all.lines.begin(), given.at.begin(), given.at.end());
  all = driver::with_names_of(program, all, unit.pool);
  const auto behind = all.lines.begin() + static_cast<std::ptrdiff_t>(given.at.size());
  SizedSchedule out{{all.lines.begin(), behind}, {}};
  all.lines.erase(all.lines.begin(), behind);
  out.schedule = std::move(all);
  return out;
}

}  // namespace

std::optional<std::vector<SizedSchedule>> sized_schedules(const ir::Program& program,
                                                          std::string_view text, Unit& unit,
                                                          std::string* error) {
  const auto parsed = schedule::parse_sized_schedules(text, unit.pool);
  if (!parsed) {
    *error = parsed.rejection().message;
    return std::nullopt;
  }
  std::vector<SizedSchedule> out = *parsed;
  for (SizedSchedule& s : out) s = with_names_of(program, s, unit);
  *error = refuse_all_at(out, dims_of(program));
  return error->empty() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Kernels> sized_kernels(const ir::Program& program, const KernelRequest& request,
                                     Unit& unit, std::string* error) {
  auto list = sized_schedules(program, *request.schedule, unit, error);
  if (!list) return std::nullopt;
  std::vector<lower::SizedPlan> plans;
  std::vector<std::vector<KernelNote>> notes;
  std::optional<Origin> origin;
  for (SizedSchedule& s : *list) {
    auto one = make_kernels(program,
                            {.schedule = schedule::print(s.schedule),
                             .trace = request.trace,
                             .has_notes = request.has_notes},
                            unit, error);
    if (!one) return std::nullopt;
    plans.push_back({std::move(one->program), s.at});
    notes.push_back(std::move(one->notes));
    if (!origin) origin = std::move(one->origin);
  }
  lower::PlanBySizes plan = lower::plan_by_sizes(plans, unit.pool);
  if (!matile::verify_final(plan.program, unit.sink)) return std::nullopt;
  Kernels out{std::move(plan.program), schedule::print(*list), {}, std::move(origin)};
  for (size_t k = 0; k < notes.size(); ++k) {
    for (KernelNote& note : notes[k]) {
      note.kernel = plan.kernels[k].at(note.kernel);
      out.notes.push_back(std::move(note));
    }
  }
  return out;
}

std::optional<std::string> complete_sized(const ir::Program& program, std::string_view text,
                                          Unit& unit, std::string* error) {
  auto list = sized_schedules(program, text, unit, error);
  if (!list) return std::nullopt;
  for (SizedSchedule& s : *list) {
    auto scheduled = replay_schedule(program, schedule::print(s.schedule), unit, error);
    if (!scheduled) return std::nullopt;
    *error = refused_lines(*scheduled, unit);
    if (!error->empty()) return std::nullopt;
    complete(*scheduled, unit);
    s.schedule = scheduled->decisions;
  }
  return schedule::print(*list);
}

}  // namespace nautilus::driver
