// SPDX-License-Identifier: Apache-2.0
// The lines of one kernel of points: what they ask for within the limits of the target, what rules
// answer where there is none, and what is noted of the kernel that was made.
#pragma once

#include <optional>
#include <string>

#include "decision/choice.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/kernel/point_answers.h"
#include "lower/points/scan_lines.h"
#include "target/target.h"

namespace nautilus::lower {

struct MapNest;

class PointLines {
 public:
  // `rules`: answer what no line does; null: the lines are complete.
  PointLines(const ir::Block& alternative, const target::Target& target, PointAnswers* rules,
             ir::PassContext& context);
  PointLines(const PointLines&) = delete;
  PointLines& operator=(const PointLines&) = delete;

  // False if a line is refused.
  bool read();

  int64_t lanes() const { return lanes_.asked() ? lanes_.asked()->count.value_or(0) : 1; }
  int64_t each() const { return each_.asked() ? each_.asked()->points.value_or(0) : 1; }
  int64_t threads() const;
  // Of a scan with vectors; nothing without that line.
  std::optional<ScanLines> scan() const;
  // With the number of lines, which rules answer; nothing if there is no such line.
  std::optional<decision::Across> across() const;
  // The sizes that an alternative behind the first runs for: those of its line, or, with rules for
  // lines that are not there, theirs. Nothing if it runs for none.
  std::optional<decision::Serves> serves(const ServedFacts& facts);
  // Null if there is no such line.
  const decision::Held* held() const { return held_.asked(); }
  const decision::Spread* spread() const { return spread_.asked(); }
  const decision::Patch* patch() const { return patch_.asked(); }
  bool is_private() const {
    return private_.asked() && private_.asked()->use == decision::Switch::On;
  }
  // CTAs of a multiprocessor with such copies.
  int64_t private_ctas() const;
  // Numbers of the target for such kernels, with the threads of this one.
  target::Points choice() const;

  // The axes get the order of the line. `terms`: those that are scattered, where rules answer, too;
  // null: there are none. False if the line is refused.
  bool order_axes(LoweredKernel& parts, const MapNest* terms);
  // Loops of the kernel have as many turns under way as the line says. `over_parts`: of a kernel
  // that puts parts together.
  void unroll(LoweredKernel& parts, bool over_parts, expr::ExprPool& pool);
  // Windows are written out as the line says. False if the line is refused.
  bool windows(LoweredKernel& parts);
  // Registers are left for as many CTAs as the line says; without one, as the compiler of the text
  // takes them.
  void resident(LoweredKernel& parts);

  // The kernel has no scan that vectors are for.
  void refuse_no_scan();
  void refuse_lanes(std::string_view why) { lanes_.refuse(why); }
  void refuse_each(std::string_view why) { each_.refuse(why); }
  void refuse_across(std::string_view why) { across_.refuse(why); }
  void refuse_held(std::string_view why) { held_.refuse(why); }
  void refuse_spread(std::string_view why) { spread_.refuse(why); }
  void refuse_patch(std::string_view why) { patch_.refuse(why); }
  void refuse_private(std::string_view why) { private_.refuse(why); }
  // The line about sizes; where rules have answered, what makes it another alternative.
  void refuse_served(std::string_view why);
  void refuse_threads(std::string_view why) { threads_.refuse(why); }

  // Notes what the kernel is. False if a line had no effect or was missing.
  bool end(const LoweredKernel& parts, std::string_view name, decision::Form form,
           const ir::Block& members, ir::PassContext& context);
  // The kernel gets the lines that are read last.
  void leave(LoweredKernel& parts) const;

 private:
  // Each of them: false if its line is refused.
  bool read_lanes();
  bool read_across();
  bool read_spread();
  bool read_patch();
  bool read_turns();
  bool read_threads();
  bool read_private();
  bool read_scan();

  // A line that nobody wrote and no rule answers for.
  int64_t lacks(std::string_view line) const;
  bool refuse_missing();

  const target::Target& target_;
  PointAnswers* rules_;
  mutable std::string missing_;
  ir::Block decided_;
  ir::PassContext context_;
  ir::Block body_;
  ir::Block read_last_;
  decision::Choice<decision::Lanes> lanes_;
  decision::Choice<decision::Each> each_;
  decision::Choice<decision::Vector> vector_;
  decision::Choice<decision::Across> across_;
  decision::Choice<decision::Spread> spread_;
  decision::Choice<decision::Patch> patch_;
  decision::Choice<decision::Held> held_;
  decision::Choice<decision::PointAxes> axes_;
  decision::Choice<decision::Private> private_;
  decision::Choice<decision::Unroll> unroll_;
  decision::Choice<decision::Windows> windows_;
  decision::Choice<decision::Resident> resident_;
  decision::Choice<decision::Threads> threads_;
  decision::Choice<decision::Serves> serves_;
};

}  // namespace nautilus::lower
