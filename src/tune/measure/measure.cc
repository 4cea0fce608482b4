// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/measure.h"

#include <fmt/format.h>

#include "diag/render.h"
#include "driver/load/hints.h"
#include "driver/run/run.h"
#include "ir/target_of.h"
#include "runtime/cuda_device.h"
#include "spec/equations_hash.h"
#include "tune/measure/workbench.h"
#include "tune/records/best.h"

namespace nautilus::tune {
std::optional<ir::Program> load(const Subject& subject, driver::Unit& unit) {
  unit.target = subject.target;
  auto program = driver::load_text(subject.path, subject.text, subject.sizes, unit);
  if (!program) return std::nullopt;
  return driver::with_hints(std::move(*program), subject.sizes);
}

std::optional<SubjectSizes> load_sizes(const Subject& subject, driver::Unit& unit,
                                       std::string* error) {
  auto program = load(subject, unit);
  if (!program) {
    *error = diag::render_all(unit.sink);
    return std::nullopt;
  }
  if (program->level->name != "spec") {
    *error = fmt::format("{}: schedules are for programs of the math language", subject.path);
    return std::nullopt;
  }
  SubjectSizes out{std::move(*program), {}, {}};
  for (const ir::Op& op : out.program.body) {
    if (const auto* s = op.get<ir::Static>()) out.statics.emplace(s->name.str());
    if (const auto* d = op.get<ir::Dim>()) out.dims.emplace(d->name.str());
  }
  return out;
}

std::optional<Problem> problem_of(const Subject& subject, std::string* error) {
  driver::Unit unit;
  const auto loaded = load_sizes(subject, unit, error);
  if (!loaded) return std::nullopt;
  Problem out;
  out.equations = spec::equations_hash(loaded->program);
  out.target = ir::target_of(loaded->program).name;
  out.sizes = hinted_sizes(loaded->program);
  for (const std::string& dim : loaded->dims) {
    if (out.sizes.contains(dim)) continue;
    *error = fmt::format("size `{}` is open: give it with --shape, or a hint", dim);
    return std::nullopt;
  }
  for (const auto& [name, size] : subject.sizes) {
    if (loaded->statics.contains(name) || loaded->dims.contains(name)) continue;
    *error = fmt::format("the program has no size `{}`", name);
    return std::nullopt;
  }
  if (subject.emulates) {
    out.machine = "emulator";
    return out;
  }
  const auto architecture = driver::architecture_of(loaded->program, error);
  if (!architecture) return std::nullopt;
  const auto device = runtime::Device::open(0, *architecture, error);
  if (!device) return std::nullopt;
  out.machine = device->info().name;
  return out;
}

Trial measure(const Subject& subject, const std::string& schedule) {
  return Workbench(subject).measure(schedule);
}

}  // namespace nautilus::tune
