// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/operand_cast.h"

#include <fmt/format.h>

#include "ir/walk.h"
#include "vrtile/names.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using ir::Block;
using ir::DType;
using ir::Name;
using ir::Op;

class Caster {
 public:
  Caster(const ir::Program& program, expr::ExprPool& pool)
      : pool_(pool), names_(program.body, pool) {}

  Block block(const Block& ops) {
    Block out;
    std::unordered_map<Name, Name> rounded;  // in this block
    for (const Op& op : ops) {
      if (const Name n = defined(op)) types_.insert_or_assign(n, type_of(op));
      if (const auto* set = op.get<Set>()) note_widened(*set);
      if (const Block* body = body_of(op)) {
        out.push_back(with_body(op, block(*body)));
        continue;
      }
      if (!op.is<Dot>()) {
        out.push_back(op);
        continue;
      }
      Dot d = op.as<Dot>();
      const DType a = types_.at(d.a).dtype;
      const DType b = types_.at(d.b).dtype;
      if (a == DType::F32 && is_half(b)) d.a = cast(d.a, b, axis_names(ops, d.a), rounded, out);
      if (b == DType::F32 && is_half(a)) d.b = cast(d.b, a, axis_names(ops, d.b), rounded, out);
      out.push_back(ir::make(std::move(d), op.span()));
    }
    return out;
  }

 private:
  // A tile that is another one, widened.
  void note_widened(const Set& set) {
    widened_.erase(set.name);
    const ir::Expr from = set.value.op() == expr::Op::Cast ? set.value[0] : ir::Expr();
    if (!from || from.op() != expr::Op::Read || !is_half(from.dtype())) return;
    const auto type = types_.find(from.name());
    if (type == types_.end() || type->second.dims.size() != set.axes.size()) return;
    for (size_t k = 0; k < set.axes.size(); ++k) {
      if (from[k] != pool_.index(set.axes[k].name) || type->second.dims[k] != set.axes[k].extent)
        return;
    }
    widened_.insert_or_assign(set.name, from.name());
  }

  Name cast(Name tile, DType to, std::vector<Name> axes, std::unordered_map<Name, Name>& rounded,
            Block& out) {
    if (const auto it = rounded.find(tile); it != rounded.end()) return it->second;
    if (const auto it = widened_.find(tile);
        it != widened_.end() && types_.at(it->second).dtype == to)
      return it->second;
    const ir::TensorType type = types_.at(tile);
    const Name name = names_.fresh(fmt::format("{}_{}", tile.str(), expr::name(to)));
    Set set{name, {}, {}};
    std::vector<ir::Expr> at;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      if (axes.size() <= k) axes.push_back(names_.fresh("x"));
      set.axes.push_back({axes[k], type.dims[k]});
      at.push_back(pool_.index(axes[k]));
    }
    set.value = pool_.cast(to, pool_.read(tile, type.dtype, at));
    out.push_back(ir::make(std::move(set)));
    types_.insert_or_assign(name, ir::TensorType{to, type.dims});
    rounded.emplace(tile, name);
    return name;
  }

  // The axes with which the tile is defined in the block, if it is.
  static std::vector<Name> axis_names(const Block& ops, Name tile) {
    std::vector<Name> out;
    for (const Op& op : ops) {
      if (defined(op) != tile || !op.is<Set>()) continue;
      for (const ir::Axis& a : op.as<Set>().axes) out.push_back(a.name);
    }
    return out;
  }

  expr::ExprPool& pool_;
  Names names_;
  std::unordered_map<Name, ir::TensorType> types_;
  std::unordered_map<Name, Name> widened_;  // from what
};

}  // namespace

std::optional<ir::Program> operand_cast(const ir::Program& program, ir::PassContext& context) {
  if (ir::numerics_of(program).rounding == ir::Rounding::Exact) return program;
  return ir::Program{program.level, program.name,
                     Caster(program, context.pool).block(program.body)};
}

}  // namespace nautilus::vrtile
