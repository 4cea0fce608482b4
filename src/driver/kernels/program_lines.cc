// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/program_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"
#include "scalar/ops.h"
#include "schedule/text/schedule_names.h"
#include "spec/equations_hash.h"

namespace nautilus::driver {
namespace {

using decision::Rewrite;

bool is_about(const ir::Op& line, Rewrite rewrite) {
  const auto* a = line.get<decision::Algebra>();
  return a && a->rewrite == rewrite;
}

// Whether the program is the same without this rewrite.
bool is_idle(decision::Rewrite rewrite, const Algebra& form, const ir::Program& program,
             const ir::Program& lowered, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  return form.has(rewrite) && unit.forms.get(program, context, form.without(rewrite)) == lowered;
}

const scalar::Buffer* find_tensor(const ir::Program& loops, ir::Name name) {
  for (const ir::Op& op : loops.body) {
    const auto* b = op.get<scalar::Buffer>();
    if (b && b->name == name) return b;
  }
  return nullptr;
}

// Whether a tensor of the scheduled program passes through memory: it is not local to a kernel.
bool is_in_memory(const ir::Program& scheduled, ir::Name name) {
  const scalar::Buffer* b = find_tensor(scheduled, name);
  return b && b->role != scalar::Role::Local;
}

}  // namespace

void add_stored(const ir::Block& decided, FirstSchedule& schedule) {
  ir::Block stored;
  for (const ir::Op& line : decided) {
    const auto* noted = line.get<decision::Store>();
    if (!noted && decision::is_about_equations(line)) stored.push_back(line);
    if (!noted) continue;
    decision::Store store = *noted;
    if (store.as != decision::StoredAs::Off) {
      if (!find_tensor(schedule.unscheduled, store.tensors.front())) continue;
      if (!is_in_memory(schedule.program, store.tensors.front())) store.axes.clear();
    }
    stored.push_back(ir::make(store));
  }
  schedule::complete(schedule.decisions.lines, stored);
}

void add_algebra(FirstSchedule& schedule, const ir::Program& program, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  ir::Block lines;
  for (const Rewrite rewrite : compile::rewrites()) {
    if (std::any_of(schedule.decisions.lines.begin(), schedule.decisions.lines.end(),
                    [&](const ir::Op& line) { return is_about(line, rewrite); }))
      continue;
    const bool is_taken = schedule.algebra.has(rewrite) && !Algebra().has(rewrite);
    if (!is_taken && !unit.forms.changes(compile::pass_of(rewrite), program, context,
                                         schedule.algebra.with(rewrite)))
      continue;
    // A rewrite that has nothing left to do after another one was not chosen.
    if (is_idle(rewrite, schedule.algebra, program, schedule.unscheduled, unit))
      schedule.algebra = schedule.algebra.without(rewrite);
    using decision::Switch;
    const Switch use = schedule.algebra.has(rewrite) ? Switch::On : Switch::Off;
    lines.push_back(ir::make(decision::Algebra{rewrite, use, {}}));
  }
  ir::Block& all = schedule.decisions.lines;
  const auto stands_before = [](const ir::Op& a, const ir::Op& b) {
    const auto* left = a.get<decision::Algebra>();
    const auto* right = b.get<decision::Algebra>();
    return left && (!right || left->rewrite < right->rewrite);
  };
  all.insert(all.begin(), lines.begin(), lines.end());
  std::stable_sort(all.begin(), all.end(), stands_before);
}

std::map<std::string, int64_t> places_of(const ir::Program& program) {
  std::map<std::string, int64_t> out;
  const std::vector<std::string> names = spec::names_in_equations(program);
  for (size_t k = 0; k < names.size(); ++k) out.emplace(names[k], static_cast<int64_t>(k));
  return out;
}

std::set<std::string> sizes_of(const ir::Program& program) {
  std::set<std::string> out;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) out.emplace(d->name.str());
  }
  return out;
}

schedule::Schedule with_names_of(const ir::Program& program, const schedule::Schedule& given,
                                 expr::ExprPool& pool) {
  if (given.equations != spec::equations_hash(program)) return given;
  schedule::Schedule out = given;
  if (given.places.empty())
    out.places = places_of(program);
  else
    out = schedule::with_names(given, spec::names_in_equations(program), pool);
  out.listed = sizes_of(program);
  return out;
}

std::string refuse_places(const ir::Program& program, const schedule::Schedule& given) {
  if (given.equations != spec::equations_hash(program)) return "";
  const size_t count = spec::names_in_equations(program).size();
  for (const auto& [name, place] : given.places) {
    if (static_cast<size_t>(place) >= count)
      return fmt::format("`names {} {}`: names of these equations have places up to {}", name,
                         place, count - 1);
  }
  return "";
}

void describe(FirstSchedule& schedule, const ir::Program& program, Unit& unit) {
  schedule.decisions.equations = spec::equations_hash(program);
  schedule.decisions.places = places_of(program);
  schedule.decisions.listed = sizes_of(program);
  add_algebra(schedule, program, unit);
  ir::Block decided;
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  context.decided = &decided;
  unit.forms.get(program, context, schedule.algebra);
  add_stored(decided, schedule);
}

Algebra as_given(const schedule::Schedule& decisions, Algebra form) {
  for (const ir::Op& line : decisions.lines) {
    if (const auto* a = line.get<decision::Algebra>())
      form = form.with(a->rewrite, a->use == decision::Switch::On);
  }
  return form;
}

void add_forms(schedule::Schedule& decisions, const Algebra& form) {
  for (const Rewrite rewrite : compile::rewrites()) {
    if (form.has(rewrite) != as_given(decisions, {}).has(rewrite))
      decisions.lines.push_back(ir::make(decision::Algebra{
          rewrite, form.has(rewrite) ? decision::Switch::On : decision::Switch::Off, {}}));
  }
}

std::vector<Algebra> forms_for(const schedule::Schedule& decisions) {
  std::vector<Algebra> out = {Algebra()};
  for (const Rewrite rewrite : compile::rewrites()) {
    const auto line = std::find_if(decisions.lines.begin(), decisions.lines.end(),
                                   [&](const ir::Op& l) { return is_about(l, rewrite); });
    const bool is_given = line != decisions.lines.end();
    const bool is_on = is_given && line->as<decision::Algebra>().use == decision::Switch::On;
    const size_t count = out.size();
    for (size_t k = 0; k < count; ++k) {
      if (is_given)
        out[k] = out[k].with(rewrite, is_on);
      else if (!Algebra().has(rewrite))
        out.push_back(out[k].with(rewrite));
    }
  }
  return out;
}

std::string refuse_unstored(const schedule::Schedule& decisions, const ir::Program& loops) {
  for (const ir::Op& line : decisions.lines) {
    const auto* store = line.get<decision::Store>();
    if (!store || store->as == decision::StoredAs::Off) continue;
    for (ir::Name tensor : store->tensors) {
      if (!find_tensor(loops, tensor))
        return decision::refusal(line, fmt::format("nothing reads `{}`", tensor.str()));
    }
  }
  return "";
}

std::string refuse_order(const schedule::Schedule& decisions, const ir::Program& scheduled) {
  for (const ir::Op& line : decisions.lines) {
    const auto* store = line.get<decision::Store>();
    if (store && !store->axes.empty() && !is_in_memory(scheduled, store->tensors.front()))
      return decision::refusal(
          line, "its kernel computes it on the way (`fuse`), so it lies in no order in memory");
  }
  return "";
}

std::string refuse_idle(const schedule::Schedule& decisions, const Algebra& form,
                        const ir::Program& program, const ir::Program& lowered, Unit& unit) {
  for (const ir::Op& line : decisions.lines) {
    const auto* a = line.get<decision::Algebra>();
    if (a && a->use == decision::Switch::On && is_idle(a->rewrite, form, program, lowered, unit))
      return decision::refusal(line, "nothing of the program changes by it");
  }
  return "";
}

std::string refuse_program(const ir::Program& program, const schedule::Schedule& decisions) {
  // The program's name does not count where equations have a hash.
  const std::string equations = spec::equations_hash(program);
  if (decisions.equations != equations && decisions.program != program.name)
    return fmt::format("the schedule is for @{}, the program is @{}", decisions.program,
                       program.name);
  for (size_t k = 0; k < decisions.lines.size(); ++k) {
    for (size_t n = 0; n < k; ++n) {
      if (decision::is_about_the_same(decisions.lines[n], decisions.lines[k]))
        return decision::refusal(decisions.lines[k], "another line is about the same");
    }
  }
  if (decisions.equations.empty() || decisions.equations == equations) return "";
  return fmt::format("the schedule is for equations with hash {}, these have {}",
                     decisions.equations, equations);
}

ir::Program with_operand_lines(const ir::Program& program, const schedule::Schedule& decisions) {
  ir::Block lines;
  for (const ir::Op& line : decisions.lines) {
    if (decision::is_about_equations(line)) lines.push_back(line);
  }
  ir::Program out = program;
  if (program.level->name == "spec" && !lines.empty())
    out.body = decision::with_lines(std::move(out.body), lines);
  return out;
}

}  // namespace nautilus::driver
