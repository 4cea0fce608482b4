// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/spread_layouts.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "layout/convert.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class Spreader {
 public:
  Spreader(const Kernel& kernel, const Role& role, const target::Matrix& matrix, Names& taken,
           ir::PassContext& context)
      : kernel_(kernel),
        role_(role),
        matrix_(matrix),
        taken_(taken),
        pool_(context.pool),
        sink_(context.sink) {}

  std::optional<Role> run() {
    tiles_ = declared_tiles(role_);
    for (auto& [name, tile] : tiles_) {
      if (tile.spread == Spread::Unset && tile.type.dims.size() == 2) tile.spread = Spread::Acc;
    }
    // Facts are passed from op to op until nothing is new; tiles without one get the row layout.
    while (true) {
      changed_ = false;
      ir::for_each_op(role_.body, [&](const Op& op) { spread(op); });
      if (changed_) continue;
      const auto open = std::find_if(tiles_.begin(), tiles_.end(), [](const auto& t) {
        return t.second.spread == Spread::Unset;
      });
      if (open == tiles_.end()) break;
      open->second.spread = Spread::Row;
    }
    Role out = role_;
    out.body.clear();
    const ir::Block body = map_blocks(role_.body, [&](ir::Block b) { return converted(b); });
    if (const Tile* tile = without_layout()) {
      sink_.report(diag::Code::NotVerified, {},
                   fmt::format("kernel `{}`: no layout has the shape of tile `{}`",
                               kernel_.name.str(), tile->name.str()));
      return std::nullopt;
    }
    for (const Op& op : body) {
      if (const auto* t = op.get<Tile>()) {
        out.body.push_back(ir::make(tiles_.find(t->name.str())->second, op.span()));
        continue;
      }
      if (op.is<Each>()) {
        for (const Tile& t : made_) out.body.push_back(ir::make(t));
      }
      out.body.push_back(op);
    }
    return out;
  }

 private:
  // Which dimension of an accumulator each axis of an op runs along.
  using AxisSpread = std::map<std::string, Spread, std::less<>>;

  // The axis that an index moves with: the only axis variable in it.
  static std::string axis_in(Expr index, const Names& axes) {
    std::string found;
    for (Expr v : expr::free_vars(index)) {
      if (!axes.contains(v.name().str())) continue;
      if (!found.empty()) return "";
      found = v.name().str();
    }
    return found;
  }

  static Names axes_of(const Op& op) {
    Names axes;
    for (const ir::Field& f : op.info().fields) {
      if (f.kind != ir::FieldKind::AxisList) continue;
      for (const ir::Axis& a : ir::field_value<ir::Axes>(op.data(), f)) axes.emplace(a.name.str());
    }
    ir::for_each_expr(op, [&](Expr e) {
      expr::for_each(e, [&](Expr x) {
        if (x.op() != EK::Reduce) return;
        for (size_t k = 0; k < x.axis_count(); ++k) axes.emplace(x.axis(k).name().str());
      });
    });
    return axes;
  }

  // Calls f(tile, dimension, axis) for every dimension of a tile that the op accesses along an
  // axis.
  template <class F>
  void accesses(const Op& op, const Names& axes, F&& f) {
    const auto target = [&](ir::Name name, const ir::Axes& own) {
      for (size_t k = 0; k < own.size(); ++k)
        f(std::string(name.str()), k, std::string(own[k].name.str()));
    };
    if (const auto* s = op.get<Set>()) target(s->target, s->axes);
    if (const auto* s = op.get<Fold>()) target(s->target, s->axes);
    if (const auto* s = op.get<Reduce>()) target(s->target, s->axes);
    if (const auto* s = op.get<Load>()) target(s->target, s->axes);
    ir::for_each_expr(op, [&](Expr e) {
      expr::for_each(e, [&](Expr x) {
        if (x.op() != EK::Read) return;
        for (size_t k = 0; k < x.args().size(); ++k) {
          const std::string axis = axis_in(x[k], axes);
          if (!axis.empty()) f(std::string(x.name().str()), k, axis);
        }
      });
    });
  }

  AxisSpread axis_spreads(const Op& op, const Names& axes, bool with_lines) {
    AxisSpread spreads;
    accesses(op, axes, [&](const std::string& name, size_t k, const std::string& axis) {
      const auto it = tiles_.find(name);
      if (it == tiles_.end()) return;
      const Spread s = it->second.spread;
      if (s == Spread::Acc) spreads.emplace(axis, k == 0 ? Spread::Row : Spread::Col);
    });
    if (!with_lines) return spreads;
    accesses(op, axes, [&](const std::string& name, size_t, const std::string& axis) {
      const auto it = tiles_.find(name);
      if (it == tiles_.end()) return;
      const Spread s = it->second.spread;
      if (s == Spread::Row || s == Spread::Col) spreads.emplace(axis, s);
    });
    return spreads;
  }

  void spread(const Op& op) {
    if (block_of(op)) return;
    const Names axes = axes_of(op);
    const AxisSpread spreads = axis_spreads(op, axes, true);
    accesses(op, axes, [&](const std::string& name, size_t, const std::string& axis) {
      const auto it = tiles_.find(name);
      const auto s = spreads.find(axis);
      if (it == tiles_.end() || s == spreads.end() || it->second.spread != Spread::Unset) return;
      it->second.spread = s->second;
      changed_ = true;
    });
  }

  // Conversions around the ops that have a tile along the other axis: before those that read it,
  // after those that write it.
  ir::Block converted(const ir::Block& block) {
    ir::Block out;
    for (const Op& op : block) {
      if (block_of(op)) {
        out.push_back(op);
        continue;
      }
      const Names axes = axes_of(op);
      const AxisSpread spreads = axis_spreads(op, axes, true);
      Renaming renaming;
      ir::Block behind;
      const Touched touched = touched_by(op);
      accesses(op, axes, [&](const std::string& name, size_t, const std::string& axis) {
        if (!is_along_other(name, axis, spreads) || renaming.contains(name)) return;
        const Tile& tile = tiles_.find(name)->second;
        Tile other = tile;
        other.spread = spreads.find(axis)->second;
        other.name =
            fresh_name(name + (other.spread == Spread::Row ? "_by_row" : "_by_col"), taken_, pool_);
        renaming.emplace(name, other.name);
        made_.push_back(other);
        if (!has_layout(other)) return;  // refused below
        if (touched.reads.contains(name)) out.push_back(conversion(other, tile));
        if (touched.writes.contains(name)) behind.push_back(conversion(tile, other));
      });
      out.push_back(renaming.empty() ? op : renamed(op, axes, spreads, renaming));
      out.insert(out.end(), behind.begin(), behind.end());
    }
    return out;
  }

  // Whether a tile of one dimension has the layout of the other axis than the op needs.
  bool is_along_other(const std::string& name, const std::string& axis,
                      const AxisSpread& spreads) const {
    const auto it = tiles_.find(name);
    const auto s = spreads.find(axis);
    if (it == tiles_.end() || s == spreads.end()) return false;
    const Spread spread = it->second.spread;
    return (spread == Spread::Row || spread == Spread::Col) && spread != s->second;
  }

  // An op may read a tile along both axes: only reads along the other axis get the new name.
  Op renamed(const Op& op, const Names& axes, const AxisSpread& spreads, const Renaming& renaming) {
    const Op mapped = ir::map_exprs(op, [&](Expr e) {
      return expr::rebuild(pool_, e, [&](Expr x) {
        if (x.op() != EK::Read || x.args().size() != 1) return x;
        const std::string name(x.name().str());
        if (!is_along_other(name, axis_in(x[0], axes), spreads)) return x;
        return pool_.read(renaming.find(name)->second, x.dtype(), x.args());
      });
    });
    const auto with_target = [&](auto changed) {
      const std::string name(changed.target.str());
      if (changed.axes.size() == 1 &&
          is_along_other(name, std::string(changed.axes[0].name.str()), spreads))
        changed.target = renaming.find(name)->second;
      return ir::make(std::move(changed), op.span());
    };
    if (const auto* set = mapped.get<Set>()) return with_target(*set);
    if (const auto* fold = mapped.get<Fold>()) return with_target(*fold);
    if (const auto* reduce = mapped.get<Reduce>()) return with_target(*reduce);
    if (const auto* load = mapped.get<Load>()) return with_target(*load);
    return mapped;
  }

  static Op conversion(const Tile& to, const Tile& from) {
    const layout::ConvertKind kind = layout::convert_kind(layout_of(from), layout_of(to)).kind;
    return ir::make(Convert{to.name, from.name, static_cast<ConvertKind>(kind)});
  }

  // Whether the matrix unit has tiles of this shape, or values of their rows and columns.
  bool has_layout(const Tile& tile) const {
    const auto shape = static_shape(tile.type);
    switch (tile.spread) {
      case Spread::Acc:
        return shape.size() == 2 && shape[0] % matrix_.rows == 0 &&
               shape[1] % matrix_.column_step == 0 && shape[1] <= matrix_.most_columns;
      case Spread::Row:
        return shape.size() == 1 && shape[0] % matrix_.rows == 0;
      case Spread::Col:
        return shape.size() == 1 && shape[0] % matrix_.column_step == 0;
      default:
        return true;
    }
  }

  // The first tile with a shape that no layout has.
  const Tile* without_layout() const {
    for (const auto& [name, tile] : tiles_) {
      if (!has_layout(tile)) return &tile;
    }
    for (const Tile& tile : made_) {
      if (!has_layout(tile)) return &tile;
    }
    return nullptr;
  }

  const Kernel& kernel_;
  const Role& role_;
  const target::Matrix& matrix_;
  Names& taken_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::vector<Tile> made_;
  bool changed_ = false;
};

}  // namespace

std::optional<ir::Program> spread_layouts(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  const target::Matrix& matrix = ir::target_of(program).matrix;
  return map_nests(program, [&](const Kernel& kernel, const Role& role) {
    return Spreader(kernel, role, matrix, taken, context).run();
  });
}

}  // namespace nautilus::matile
