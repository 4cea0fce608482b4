// SPDX-License-Identifier: Apache-2.0
// Replay of a schedule's text, which may be about some kernels only: the others are those that the
// first schedule has. Statements that neither names have kernels by the rules of lowering, as
// everywhere.
#include <algorithm>
#include <set>

#include "driver/kernels/given_schedule.h"
#include "driver/kernels/program_lines.h"
#include "driver/kernels/scheduling.h"
#include "schedule/apply/apply.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

using schedule::KernelSchedule;
using schedule::Schedule;
using Names = std::set<std::string>;

// Statements that a kernel computes.
Names statements_of(const KernelSchedule& kernel) {
  Names out = {kernel.name};
  for (const ir::Op& line : kernel.alternatives[0]) {
    const auto* fuse = line.get<decision::Fuse>();
    const auto* roll = line.get<decision::Roll>();
    if (!fuse && !roll) continue;
    for (ir::Name s : fuse ? fuse->statements : roll->statements) out.emplace(s.str());
  }
  return out;
}

Names statements_of(const Schedule& schedule) {
  Names out;
  for (const KernelSchedule& k : schedule.kernels) out.merge(statements_of(k));
  return out;
}

// Whether kernels of the schedule compute all statements of the program.
bool names_all(const Schedule& given, const ir::Program& loops, Unit& unit) {
  const Names named = statements_of(given);
  const auto list = schedule::statements_of(loops, unit.pool);
  return std::all_of(
      list.statements.begin(), list.statements.end(),
      [&](const schedule::Statement& s) { return named.contains(std::string(s.target.str())); });
}

// The kernel without statements that others compute; its sizes were chosen with them, so they are
// chosen again.
KernelSchedule without(const KernelSchedule& kernel, const Names& others) {
  KernelSchedule out{kernel.name, {{}}, kernel.form};
  const auto reduced = [&](auto line) {
    std::erase_if(line.statements,
                  [&](ir::Name s) { return others.contains(std::string(s.str())); });
    if (!line.statements.empty()) out.alternatives[0].push_back(ir::make(line));
  };
  for (const ir::Op& line : kernel.alternatives[0]) {
    if (const auto* fuse = line.get<decision::Fuse>()) {
      reduced(*fuse);
    } else if (const auto* roll = line.get<decision::Roll>()) {
      reduced(*roll);
    } else if (decision::topic(line.info()) == decision::Topic::Members) {
      out.alternatives[0].push_back(line);
    }
  }
  return out;
}

// Its tile kernels, with the decisions of passes.
std::vector<KernelSchedule> tile_kernels(const FirstSchedule& first) {
  std::vector<KernelSchedule> out = first.decisions.kernels;
  std::erase_if(out, [](const KernelSchedule& k) { return k.form != decision::Form::Tile; });
  return out;
}

// How kernels take part that lose statements to those that are given.
enum class Losing : uint8_t { Reduced, LeftOut };

// The given kernels, and of the rest those that they do not replace.
Schedule with_rest(const Schedule& given, const std::vector<KernelSchedule>& rest, Losing losing) {
  const Names named = statements_of(given);
  Schedule out = given;
  for (const KernelSchedule& k : rest) {
    if (named.contains(k.name)) continue;
    const Names own = statements_of(k);
    const bool loses = std::any_of(given.kernels.begin(), given.kernels.end(),
                                   [&](const KernelSchedule& g) { return own.contains(g.name); });
    if (!loses) {
      out.kernels.push_back(k);
    } else if (losing == Losing::Reduced) {
      out.kernels.push_back(without(k, named));
    }
  }
  return out;
}

}  // namespace

std::optional<FirstSchedule> replay_schedule(const ir::Program& program, std::string_view text,
                                             Unit& unit, std::string* error) {
  const auto parsed = schedule::parse_schedule(text, unit.pool);
  if (!parsed) {
    *error = parsed.rejection().message;
    return std::nullopt;
  }
  *error = refuse_places(program, *parsed);
  if (!error->empty()) return std::nullopt;
  Schedule given = with_names_of(program, *parsed, unit.pool);
  auto alone = std::optional<FirstSchedule>();
  // Lines about the program alone: the other rewrites are chosen with them.
  if (given.kernels.empty() && !given.lines.empty()) {
    if (const auto form = chosen_forms(program, given, unit)) {
      Schedule chosen = given;
      add_forms(chosen, *form);
      alone = replay(program, chosen, unit, error);
      if (alone) given = std::move(chosen);
    }
  }
  if (!alone) alone = replay(program, given, unit, error);
  const bool has_lines = !given.lines.empty();  // about the program: then it says all of them
  if (!alone && error->ends_with("there is no such statement")) {
    const std::string unknown = unknown_kernel(program, given, unit);
    if (!unknown.empty()) *error = unknown;
  }
  if (alone ? names_all(given, alone->unscheduled, unit) : has_lines) return alone;
  Schedule said = given;
  std::vector<KernelSchedule> rest;
  if (has_lines) {
    const auto untried = schedule_loops(alone->unscheduled, false, unit).kernels;
    rest = schedule::to_schedule(untried, schedule::By::Auto);
    if (with_rest(said, rest, Losing::Reduced).kernels.size() == given.kernels.size()) return alone;
    FirstSchedule tried = schedule_loops(alone->unscheduled, true, unit);
    complete(tried, unit);
    rest = tile_kernels(tried);
  } else {
    const auto first = first_schedule(program, unit);
    if (!first) return std::nullopt;
    said.lines = first->decisions.lines;
    rest = tile_kernels(*first);
  }
  for (const Losing losing : {Losing::Reduced, Losing::LeftOut}) {
    std::string why;
    auto both = replay(program, with_rest(said, rest, losing), unit, &why);
    // A line about the program that holds for no kernel by rule.
    if (!both && why.starts_with("`store ")) {
      *error = why;
      return std::nullopt;
    }
    if (!both) continue;
    error->clear();
    return both;
  }
  return alone;
}

}  // namespace nautilus::driver
