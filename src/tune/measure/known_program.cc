// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/known_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "spec/equations_hash.h"
#include "target/target.h"

namespace nautilus::tune {
namespace {

struct Loaded {
  KnownProgram program;
  std::set<std::string> statics;
};

std::optional<Loaded> loaded(const Subject& subject, std::string* error) {
  driver::Unit unit;
  auto sizes = load_sizes(subject, unit, error);
  if (!sizes) return std::nullopt;
  return Loaded{{subject, spec::equations_hash(sizes->program), std::move(sizes->dims)},
                std::move(sizes->statics)};
}

}  // namespace

std::optional<KnownProgram> known_program(const Subject& subject, std::string* error) {
  auto program = loaded(subject, error);
  return program ? std::optional(std::move(program->program)) : std::nullopt;
}

std::optional<std::vector<KnownProgram>> with_statics(
    const Subject& subject, const std::vector<std::map<std::string, int64_t>>& settings,
    std::vector<bool>& is_used, std::string* error) {
  const auto own = loaded(subject, error);
  if (!own) return std::nullopt;
  std::vector<KnownProgram> out = {own->program};
  is_used.resize(settings.size(), false);
  for (size_t k = 0; k < settings.size(); ++k) {
    const auto is_static = [&](const auto& pair) { return own->statics.contains(pair.first); };
    if (!std::all_of(settings[k].begin(), settings[k].end(), is_static)) continue;
    is_used[k] = true;
    Subject set = subject;
    set.sizes.insert(settings[k].begin(), settings[k].end());
    auto program = known_program(set, error);
    if (!program) return std::nullopt;
    const auto is_same = [&](const KnownProgram& p) { return p.equations == program->equations; };
    if (std::none_of(out.begin(), out.end(), is_same)) out.push_back(std::move(*program));
  }
  return out;
}

std::optional<Subject> subject_of(const Problem& problem, const KnownProgram& program,
                                  std::string* error) {
  if (problem.equations != program.equations) return std::nullopt;
  std::set<std::string> names;
  for (const auto& [name, size] : problem.sizes) names.insert(name);
  if (names != program.dims) {
    *error = fmt::format("{}: its sizes are {}, those of the trials {}", program.subject.path,
                         fmt::join(program.dims, ", "), fmt::join(names, ", "));
    return std::nullopt;
  }
  Subject out = program.subject;
  out.sizes.insert(problem.sizes.begin(), problem.sizes.end());
  out.target = target::find_target(problem.target);
  if (!out.target) {
    *error = fmt::format("this version has no target `{}`", problem.target);
    return std::nullopt;
  }
  out.emulates = problem.machine == "emulator";
  return out;
}

}  // namespace nautilus::tune
