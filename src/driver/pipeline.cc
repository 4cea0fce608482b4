// SPDX-License-Identifier: Apache-2.0
#include "driver/pipeline.h"

#include <fmt/format.h>

#include "base/files.h"
#include "driver/load.h"
#include "ir/print.h"
#include "lower/spec_to_scalar.h"
#include "spec/passes/base2.h"
#include "spec/passes/defer.h"
#include "spec/passes/drop_unused.h"
#include "spec/passes/merge_equal.h"
#include "spec/passes/pull_scale.h"
#include "spec/passes/simplify.h"
#include "spec/passes/split_reductions.h"

namespace nautilus::driver {

const std::vector<PassInfo>& pipeline() {
  static const std::vector<PassInfo> passes = {
      // Guards that bounds decide disappear first, so that splitting need not carry them into
      // reductions.
      {"simplify", "spec", "spec", spec::simplify, kNone, kNone,
       "exact rules and bounds on every expression"},
      {"split_reductions", "spec", "spec", spec::split_reductions, kNone, kReductionsSplit,
       "every reduction becomes an equation of its own"},
      // Splitting names the same reduction once per reader; one is enough.
      {"merge_equal", "spec", "spec", spec::merge_equal, kNone, kNone,
       "equal equations become one"},
      {"drop_unused", "spec", "spec", spec::drop_unused, kNone, kNone,
       "equations that no output needs go"},
      {"spec_to_scalar", "spec", "scalar", lower::spec_to_scalar, kReductionsSplit, kNone,
       "one loop nest per equation"},
  };
  return passes;
}

const std::vector<PassInfo>& algebra_passes() {
  static const std::vector<PassInfo> passes = {
      {"pull_scale", "spec", "spec", spec::pull_scale, kNone, kNone,
       "positive scalar factors leave sums, maxima and selects"},
      {"defer", "spec", "spec", spec::defer, kReductionsSplit, kNone,
       "factors without the reduced axis leave a sum"},
      {"base2", "spec", "spec", spec::base2, kNone, kNone, "exponentials become powers of two"},
  };
  return passes;
}

const PassInfo* find_pass(std::string_view name) {
  for (const auto* list : {&pipeline(), &algebra_passes()}) {
    for (const PassInfo& p : *list) {
      if (p.name == name) return &p;
    }
  }
  return nullptr;
}

const std::vector<std::string_view>& algebra_sequence() {
  // A scale that leaves the reduction of an output stands in front of it: split again.
  static const std::vector<std::string_view> names = {
      "simplify", "split_reductions", "merge_equal", "pull_scale", "split_reductions", "defer",
      "base2",    "simplify",         "merge_equal", "drop_unused"};
  return names;
}

std::optional<ir::Program> lower_with_algebra(const ir::Program& program,
                                              ir::PassContext& context) {
  ir::Program current = program;
  for (std::string_view name : algebra_sequence()) {
    auto next = run_pass(*find_pass(name), current, context);
    if (!next) return std::nullopt;
    current = std::move(*next);
  }
  return run_pass(*find_pass("spec_to_scalar"), current, context);
}

std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context) {
  const base::StageScope stage(
      fmt::format("running pass {} on @{}", pass.name, program.name),
      fmt::format("nautilus opt --pass {} <dump of the program before it>", pass.name));
  if (pass.from != program.level->name) {
    context.sink.report(diag::Code::BadPass, {},
                        fmt::format("pass `{}` takes level {}, the program is at level {}",
                                    pass.name, pass.from, program.level->name));
    return std::nullopt;
  }
  auto result = pass.run(program, context);
  if (!result) return std::nullopt;
  diag::Sink sink(context.sink.sources());
  const bool ok = verify(*result, sink);
  NAUT_CHECK(ok, "pass {} made a program that does not verify: {}\n{}", pass.name,
             sink.all()[0].message, ir::print(*result));
  return result;
}

std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context, const RunOptions& options) {
  ir::Program current = program;
  uint32_t known = kNone;
  int number = 0;
  auto dump = [&](std::string_view after) {
    if (options.dump_dir.empty()) return true;
    const std::string path =
        fmt::format("{}/{:03}-{}{}", options.dump_dir, number++, after, current.level->file_suffix);
    std::string error;
    if (base::write_file_atomic(path, ir::print(current), &error)) return true;
    context.sink.report(diag::Code::BadInput, {}, fmt::format("cannot write {}: {}", path, error));
    return false;
  };
  if (!dump("input")) return std::nullopt;
  for (const PassInfo& pass : pipeline()) {
    if (current.level->name == level) break;
    if (pass.from != current.level->name) continue;
    NAUT_CHECK((pass.needs & ~known) == 0, "pass {} stands before what it needs", pass.name);
    auto next = run_pass(pass, current, context);
    if (!next) return std::nullopt;
    known = pass.from == pass.to ? known | pass.gives : pass.gives;
    const bool is_changed = !(*next == current);
    current = std::move(*next);
    if (is_changed && !dump(fmt::format("after-{}", pass.name))) return std::nullopt;
  }
  if (current.level->name != level) {
    context.sink.report(
        diag::Code::BadPass, {},
        fmt::format("level {} cannot be lowered to level {}", program.level->name, level));
    return std::nullopt;
  }
  return current;
}

}  // namespace nautilus::driver
