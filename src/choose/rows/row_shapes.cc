// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/row_shapes.h"

#include <algorithm>
#include <set>
#include <string>

#include "choose/rows/row_rules.h"
#include "choose/rows/short_rows.h"
#include "expr/walk.h"
#include "lower/rows/row_lowering.h"
#include "lower/rows/row_walks.h"

namespace nautilus::choose {
namespace {

using decision::HoldKind;
using expr::Expr;
using lower::RowContext;
using lower::RowLowering;
using lower::RowRoom;
using lower::RowShape;
using lower::RowStatement;
using Kind = RowStatement::Kind;
using EK = expr::Op;

class Shapes {
 public:
  Shapes(const RowContext& context, const RowSizes& sizes)
      : c_(context),
        choice_(context.choice()),
        rows_(sizes.rows),
        may_be_short_(sizes.may_be_short) {}

  std::vector<RowShape> run() {
    const Expr n = c_.columns();
    const int64_t width = lower::most_row_vector(c_);
    std::vector<RowShape> out;
    if (n.op() == EK::IntConst) {
      const bool is_whole = n.integer() % width == 0 && may_have_vectors(c_.length(), width);
      if (out = short_rows(n.integer(), is_whole ? width : 1); !out.empty()) return out;
      RowShape usual = single();
      if (is_whole) {
        out.push_back(usual);
        usual = {choice_.threads * width * 2, width};
      }
      // A register has two elements of 16 bits: a thread has an even number of them.
      const int64_t unit = choice_.threads * std::max<int64_t>(usual.by, 2);
      auto held = kept(n.integer() + usual.most_lead(), unit, usual.by);
      if (held) held->start = usual.start;
      out.push_back(held.value_or(usual));
      return out;
    }
    out.push_back(single());
    const Expr rest = c_.pool.binary(EK::Mod, n, c_.pool.integer(width));
    if (truth(c_.pool.binary(EK::Eq, rest, c_.pool.integer(0))) == expr::Truth::False)
      return add_shifted(std::move(out), width);
    if (may_be_short_) add_short(out, width);
    for (const int64_t cap : choice_.columns) {
      const auto shape = kept(cap, choice_.threads * width, width);
      if (!shape) break;
      const expr::Truth below = truth(c_.pool.binary(EK::Le, n, c_.pool.integer(cap)));
      if (below == expr::Truth::False) continue;
      if (is_worth_filled(*shape, cap)) {
        out.push_back(*shape);
        out.back().hold = HoldKind::Filled;
      }
      out.push_back(*shape);
      if (below == expr::Truth::True) return add_shifted(std::move(out), width);
    }
    out.push_back({choice_.threads * width * 2, width});
    return add_shifted(std::move(out), width);
  }

 private:
  // Those for rows of so many columns: for tensors of any alignment, and with vectors.
  std::vector<RowShape> short_rows(int64_t columns, int64_t by) const {
    const auto any = short_row(c_, columns, 1);
    if (!any || by == 1) return any ? std::vector{*any} : std::vector<RowShape>();
    const auto fast = short_row(c_, columns, by);
    return fast ? std::vector{*any, *fast} : std::vector<RowShape>();
  }

  // Those that lanes of a warp hold.
  void add_short(std::vector<RowShape>& out, int64_t by) const {
    for (const int64_t cap : choice_.short_columns) {
      const auto shape = short_row(c_, cap, by);
      if (!shape) return;
      const expr::Truth below = truth(c_.pool.binary(EK::Le, c_.columns(), c_.pool.integer(cap)));
      if (below != expr::Truth::False) out.push_back(*shape);
      if (below == expr::Truth::True) return;
    }
  }

  // With those that hold rows that are no whole vectors.
  std::vector<RowShape> add_shifted(std::vector<RowShape> out, int64_t width) {
    if (may_be_short_ && !lower::are_whole_vectors(c_, width)) add_short(out, 1);
    if (!single().is_shifted()) return out;
    for (const int64_t cap : choice_.shifted_columns) {
      auto shape = kept(cap, choice_.threads * width, width);
      if (!shape) break;
      shape->start = decision::VectorStart::Boundary;
      const Expr most = c_.pool.integer(shape->capacity() - shape->most_lead());
      const expr::Truth fits = truth(c_.pool.binary(EK::Le, c_.columns(), most));
      if (fits == expr::Truth::False) continue;
      out.push_back(*shape);
      if (fits == expr::Truth::True) break;
    }
    return out;
  }

  // For any length and any alignment: by vectors where memory has them, or element by element.
  RowShape single() const {
    const int64_t width = lower::most_row_vector(c_);
    if (!c_.group.outer.empty() || !lower::row_reference(c_) || lower::are_whole_vectors(c_, width))
      return {choice_.threads * choice_.turn_elements, 1};
    RowShape shape{choice_.threads * width * 2, width};
    shape.start = decision::VectorStart::Boundary;
    return shape;
  }
  expr::Truth truth(Expr condition) const { return c_.facts.prove(condition); }

  bool may_have_vectors(Expr length, int64_t width) const {
    if (length.op() == EK::IntConst) return length.integer() % width == 0;
    const Expr rest = c_.pool.binary(EK::Mod, length, c_.pool.integer(width));
    return truth(c_.pool.binary(EK::Eq, rest, c_.pool.integer(0))) != expr::Truth::False;
  }

  bool writes_rows() const {
    return std::any_of(
        c_.group.statements.begin(), c_.group.statements.end(), [&](const RowStatement& s) {
          return s.kind == Kind::Element && c_.kept.contains(std::string(s.target.str()));
        });
  }

  // Whether a walk along the row would not be enough: elements are written behind a reduction, or
  // a reduction needs another one.
  bool is_needed_again() const {
    std::set<std::string> reduced;
    for (const RowStatement& s : c_.group.statements) {
      const std::vector<ir::Name> read = expr::tensors_read(s.value);
      const bool depends = std::any_of(read.begin(), read.end(), [&](ir::Name n) {
        return reduced.contains(std::string(n.str()));
      });
      const bool is_written =
          s.kind == Kind::Element && c_.kept.contains(std::string(s.target.str()));
      if (depends && (s.kind == Kind::Reduction || is_written)) return true;
      if (depends || s.kind == Kind::Reduction) reduced.emplace(s.target.str());
    }
    return false;
  }

  // The shape that holds rows of this many columns, rounded up to whole units of each group; empty
  // if there is none.
  std::optional<RowShape> kept(int64_t columns, int64_t unit, int64_t by) {
    if (lower::has_elements_only(c_.group) || !c_.group.outer.empty()) return std::nullopt;
    for (const int64_t groups : {choice_.groups, int64_t{1}}) {
      if (groups > 1 && columns <= choice_.group_columns) continue;
      // A kernel that only reads rows has more of them in flight in small CTAs.
      if (groups > 1 && columns <= choice_.columns_of_group && !writes_rows()) continue;
      const int64_t all = groups * unit;
      const int64_t capacity = std::max<int64_t>((columns + all - 1) / all, 1) * all;
      const RowShape shape{capacity / groups, by, HoldKind::Row, groups};
      if (capacity <= (groups > 1 ? choice_.most_columns : choice_.columns_of_group) && fits(shape))
        return shape;
    }
    return shared_by_ctas(columns, unit, by);
  }

  // The same for rows that only several CTAs together can hold: the fewest of them that leave room
  // for a second one on a multiprocessor, else as many as there can be. Nothing if walking over the
  // row takes less time.
  std::optional<RowShape> shared_by_ctas(int64_t columns, int64_t unit, int64_t by) {
    std::optional<RowShape> out;
    if (!is_needed_again()) return out;
    double share = 0;  // of the memory's speed
    for (size_t k = 0; k < choice_.ctas.size(); ++k) {
      const int64_t ctas = choice_.ctas[k];
      if (ctas > c_.group.target->limits.cluster_ctas) break;
      const int64_t all = ctas * choice_.groups * unit;
      const int64_t capacity = (columns + all - 1) / all * all;
      const RowShape shape{capacity / ctas / choice_.groups, by, HoldKind::Row, choice_.groups,
                           ctas};
      if (shape.of_cta() > choice_.most_columns || !fits(shape)) continue;
      out = shape;
      share = choice_.alone_shares[k];
      if (lower::row_room(c_, shape).needed + choice_.spare_registers > choice_.pair_registers)
        continue;
      share = choice_.pair_shares[k];
      break;
    }
    return out && is_faster_held(static_cast<double>(columns), share) ? out : std::nullopt;
  }

  // Clusters are bound by memory, at a share of its speed. Walks are, too, at nearly all of it, or
  // by the steps that a CTA takes one after the other where rows are few.
  bool is_faster_held(double columns, double share) {
    const target::Target& target = *c_.group.target;
    const lower::RowWalks walks = lower::row_walks(c_.group, c_.kept, c_.pool);
    const double elements = rows_ * columns / target.costs.memory_bytes_per_cycle;
    const double held = elements * static_cast<double>(walks.held_bytes()) / share;
    const double walked = elements * static_cast<double>(walks.walked_bytes()) / choice_.walk_share;
    const double under_way = static_cast<double>(target.board.sms) * target.nests.resident_rows;
    const double steps = columns / static_cast<double>(choice_.turn_elements * choice_.threads);
    const double waiting = std::max(1.0, rows_ / under_way) * static_cast<double>(walks.walks) *
                           steps * target.nests.row_turn_cycles;
    return held <= std::max(walked, waiting);
  }

  // The elements read of a row must fit. A kernel of several groups is made to find out: its
  // threads have no registers to spare for computed values.
  bool fits(const RowShape& shape) {
    const RowRoom r = lower::row_room(c_, shape);
    if (r.needed > r.given) return false;
    if (shape.groups == 1) return true;
    if (shape.columns > choice_.positions_of_group && has_positions()) return false;
    return trial(shape).fits;
  }

  // Where a row that does not fill the tiles of several groups needs conditions in its reductions,
  // one that does has a kernel of its own: layernorm of 16384 columns has 450 instructions instead
  // of 617.
  bool is_worth_filled(const RowShape& shape, int64_t columns) {
    const Expr is_whole = c_.pool.binary(EK::Eq, c_.columns(), c_.pool.integer(columns));
    return shape.groups > 1 && shape.ctas == 1 && columns == shape.capacity() &&
           truth(is_whole) != expr::Truth::False && trial(shape).has_conditions;
  }

  struct Trial {
    bool fits = false;
    bool has_conditions = false;
  };
  // Of the kernel for such rows, of any length of whole vectors.
  Trial trial(const RowShape& shape) {
    const Expr n = c_.columns();
    const Expr by = c_.pool.integer(shape.by);
    const Expr is_vectors =
        c_.pool.binary(EK::Eq, c_.pool.binary(EK::Mod, n, by), c_.pool.integer(0));
    lower::FreshNames names = c_.names;
    const bool is_known = n.op() == EK::IntConst || truth(is_vectors) == expr::Truth::True;
    const Expr whole =
        is_known ? n : c_.pool.binary(EK::Mul, by, c_.pool.index(names.make("vectors")));
    const ir::Block no_lines;
    RowRules rules(*c_.group.target, no_lines);
    RowLowering lowering(c_, {shape, "", whole, {}}, c_.pool.name(lower::row_stem(c_.group)),
                         rules);
    lowering.run();
    return {lowering.fits(), lowering.has_conditions()};
  }

  // Columns as numbers, other than compared: a thread would keep one for each of its elements from
  // reduction to reduction (an argmax of 65536 columns: 800 registers spilled).
  bool has_positions() const {
    const Expr column = c_.pool.index(c_.group.column.name);
    bool found = false;
    for (const RowStatement& s : c_.group.statements) {
      expr::for_each(s.value, [&](Expr e) {
        const bool is_number =
            e.op() == EK::Cast && expr::is_float(e.dtype()) && expr::is_int(e[0].dtype());
        const bool is_divided =
            (e.op() == EK::FloorDiv || e.op() == EK::Mod) && expr::is_int(e.dtype());
        found |= (is_number || is_divided) && expr::depends_on(e, column);
      });
    }
    return found;
  }

  const RowContext& c_;
  const target::Rows& choice_;
  double rows_;
  bool may_be_short_;
};

// Steps of many tensors are shorter, so that they fit the registers of a thread.
void shorten(RowShape& shape, const RowContext& context) {
  const int64_t least = context.choice().threads * std::max<int64_t>(shape.by, 2);
  const auto is_too_long = [&] {
    const RowRoom room = lower::row_room(context, shape);
    return room.needed > room.given;
  };
  while (!shape.is_held() && shape.columns > least && is_too_long()) shape.columns /= 2;
}

}  // namespace

std::vector<RowShape> row_shapes(const RowContext& context, const RowSizes& sizes) {
  std::vector<RowShape> shapes = Shapes(context, sizes).run();
  for (RowShape& s : shapes) shorten(s, context);
  if (context.group.outer.empty()) return shapes;
  // One vector of a thread for each of several rows: as many bytes in flight as in a longer step,
  // and rows up to this length leave no thread idle.
  for (RowShape& s : shapes) {
    s.columns = context.choice().threads * std::max<int64_t>(s.by, 2);
    s.each = context.choice().walked_rows;
    // Between turns threads put their sums together: not where one longer turn is the whole walk.
    const auto turn = static_cast<double>(s.columns * s.each);
    const bool is_short =
        2 * s.columns <= context.choice().threads * context.choice().turn_elements;
    if (is_short && sizes.walked > turn && sizes.walked <= 2 * turn) s.columns *= 2;
  }
  return shapes;
}

}  // namespace nautilus::choose
