// SPDX-License-Identifier: Apache-2.0
// Changes of the first schedule for all of its tile kernels.
#include <algorithm>
#include <charconv>

#include "driver/kernels/scheduling.h"
#include "schedule/apply/apply.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

namespace {

// Puts the line into every alternative of every tile kernel.
void ask_for(const decision::Reference& line, schedule::Schedule& changed) {
  for (auto& kernel : changed.kernels) {
    for (ir::Block& alternative : kernel.alternatives) {
      const bool is_tile = std::any_of(
          alternative.begin(), alternative.end(),
          [](const ir::Op& op) { return op.is<decision::Stream>() || op.is<decision::Tile>(); });
      if (is_tile) schedule::complete(alternative, {ir::make(line)});
    }
  }
}

}  // namespace

std::optional<std::string> edited_schedule(const ir::Program& program, const ScheduleEdit& edit,
                                           Unit& unit) {
  std::optional<int64_t> parts;
  if (!edit.parts.empty() && edit.parts != "fill") {
    int64_t n = 0;
    const auto r = std::from_chars(edit.parts.data(), edit.parts.data() + edit.parts.size(), n);
    if (r.ec == std::errc()) parts = n;
  }
  const bool is_combine =
      edit.combine.empty() || edit.combine == "kernel" || edit.combine == "last";
  if ((!parts && !edit.parts.empty() && edit.parts != "fill") || !is_combine) {
    unit.sink.report(diag::Code::BadPass, {},
                     "parts are a number or `fill`, put together by `kernel` or `last`");
    return std::nullopt;
  }
  using decision::ReferenceKind;
  const auto& alternatives = decision::words(ReferenceKind{});
  const auto reference = std::find(alternatives.begin(), alternatives.end(), edit.reference);
  if (reference == alternatives.end() && !edit.reference.empty()) {
    unit.sink.report(diag::Code::BadPass, {}, "a reference is `follow`, `lazy` or `speculative`");
    return std::nullopt;
  }
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  schedule::Schedule changed = first->decisions;
  // Only what kernels are made of stays: the passes decide anew.
  changed.kernels = schedule::to_schedule(first->kernels, schedule::By::Auto);
  for (size_t k = 0; k < changed.kernels.size(); ++k) {
    ir::Block& lines = changed.kernels[k].alternatives[0];
    decision::Split split{.axis = first->kernels[k].fusion.stream.name()};
    bool is_split = !edit.parts.empty();
    for (const ir::Op& line : lines) {
      if (const auto* s = line.get<decision::Split>()) {
        split = *s;
        is_split = true;
      }
    }
    if (!is_split) continue;
    if (!edit.parts.empty()) {
      split.parts = parts;
      changed.kernels[k].alternatives.resize(1);
    }
    if (!edit.combine.empty())
      split.combine =
          edit.combine == "last" ? decision::CombineKind::Last : decision::CombineKind::Kernel;
    split.by = schedule::By::User;
    // Parts of a tile are not alike: its groups do not alternate.
    for (ir::Op& line : lines) {
      const auto* groups = line.get<decision::Groups>();
      if (groups && groups->kind == decision::GroupKind::Alternating)
        line = ir::make(decision::Groups{1, decision::GroupKind::Sharing, {}});
    }
    schedule::complete(lines, {ir::make(split)});
  }
  if (reference != alternatives.end())
    ask_for({static_cast<ReferenceKind>(reference - alternatives.begin()), {}, schedule::By::User},
            changed);
  return schedule::print(changed);
}

}  // namespace nautilus::driver
