// SPDX-License-Identifier: Apache-2.0
#include "schedule/apply/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "expr/position_blocks.h"
#include "expr/scalar_ops.h"

namespace nautilus::schedule {
namespace {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The nest of an argmax or argmin along one axis, of f32 values.
struct Position {
  const For* nest = nullptr;
  const For* steps = nullptr;
  const scalar::UpdateArg* update = nullptr;
};

std::optional<Position> position_of(const ir::Op& op, expr::ExprPool& pool) {
  Position p;
  p.nest = op.get<For>();
  if (!p.nest || p.nest->kind != LoopKind::Map || p.nest->body.size() != 3) return std::nullopt;
  p.steps = p.nest->body[2].get<For>();
  const bool is_reduction =
      p.nest->body[0].is<scalar::Init>() && p.nest->body[1].is<scalar::Init>() && p.steps &&
      p.steps->kind == LoopKind::Reduce && p.steps->axes.size() == 1 && p.steps->body.size() == 1;
  if (!is_reduction) return std::nullopt;
  p.update = p.steps->body[0].get<scalar::UpdateArg>();
  if (!p.update || p.update->value.dtype() != DType::F32 ||
      p.update->position != pool.index(p.steps->axes[0].name) ||
      p.update->indices.size() != p.nest->axes.size())
    return std::nullopt;
  for (size_t k = 0; k < p.nest->axes.size(); ++k) {
    if (p.update->indices[k] != pool.index(p.nest->axes[k].name)) return std::nullopt;
  }
  return p;
}

std::string near_name(std::string_view target) { return fmt::format("{}.near", target); }
std::string rest_name(std::string_view target) { return fmt::format("{}.rest", target); }
std::string value_name(std::string_view target) { return fmt::format("{}.value", target); }

bool has_buffer(const ir::Program& program, std::string_view name) {
  return std::any_of(program.body.begin(), program.body.end(), [&](const ir::Op& op) {
    const auto* b = op.get<scalar::Buffer>();
    return b && b->name.str() == name;
  });
}

class Locator {
 public:
  Locator(const Position& p, expr::ExprPool& pool) : p_(p), pool_(pool) {}

  ir::Block nests() {
    const Expr axis = p_.update->position;
    const Expr inf = pool_.floating(kInfinity);
    const bool is_maximum = p_.update->reducer == expr::Reducer::ArgMax;
    Expr value = p_.update->value;
    if (!is_stored()) {
      ir::Exprs at = p_.update->indices;
      at.push_back(axis);
      For each{p_.nest->axes, LoopKind::Map, {}};
      each.axes.push_back(p_.steps->axes[0]);
      each.body.push_back(ir::make(scalar::Store{value_buffer(), at, value}));
      out_.push_back(ir::make(std::move(each)));
      value = pool_.read(value_buffer(), DType::F32, at);
    }
    const Expr best =
        reduction(p_.update->best, is_maximum ? expr::Reducer::Max : expr::Reducer::Min, value);
    const Expr is_best = pool_.binary(Op::Eq, value, best);
    const auto number = [&](Expr e) { return pool_.cast(DType::F32, e); };
    const Expr block =
        is_long() ? pool_.binary(Op::FloorDiv, axis, pool_.integer(expr::kPositionBlock)) : axis;
    const Expr term = pool_.select(is_best, number(block), inf);
    const Expr near = reduction(name(near_name(target())), expr::Reducer::Min, term);
    Expr whole = pool_.cast(DType::I64, near);
    if (is_long()) {
      const Expr place = number(pool_.binary(Op::Mod, axis, pool_.integer(expr::kPositionBlock)));
      const Expr in_block = pool_.select(pool_.binary(Op::Eq, term, near), place, inf);
      const Expr rest = reduction(name(rest_name(target())), expr::Reducer::Min, in_block);
      whole =
          pool_.binary(Op::Add, pool_.binary(Op::Mul, whole, pool_.integer(expr::kPositionBlock)),
                       pool_.cast(DType::I64, rest));
    }
    const Expr found = pool_.select(pool_.binary(Op::Eq, near, inf), pool_.integer(-1), whole);
    For each{p_.nest->axes, LoopKind::Map, {}};
    each.body.push_back(ir::make(scalar::Store{p_.update->target, p_.update->indices, found}));
    out_.push_back(ir::make(std::move(each)));
    return std::move(out_);
  }

  ir::Block buffers(const ir::Exprs& dims) {
    ir::Block out;
    const auto add = [&](ir::Name n, ir::Exprs d) {
      out.push_back(ir::make(scalar::Buffer{n, {DType::F32, std::move(d)}, scalar::Role::Temp}));
    };
    add(name(near_name(target())), dims);
    if (is_long()) add(name(rest_name(target())), dims);
    ir::Exprs with_axis = dims;
    with_axis.push_back(p_.steps->axes[0].extent);
    if (!is_stored()) add(value_buffer(), with_axis);
    return out;
  }

 private:
  std::string_view target() const { return p_.update->target.str(); }
  ir::Name name(const std::string& text) { return pool_.name(text); }
  ir::Name value_buffer() { return name(value_name(target())); }
  bool is_stored() const { return p_.update->value.op() == Op::Read; }
  bool is_long() const {
    const Expr extent = p_.steps->axes[0].extent;
    return extent.op() != Op::IntConst || extent.integer() > expr::kExactPositions;
  }

  Expr reduction(ir::Name to, expr::Reducer reducer, Expr value) {
    const ir::Exprs& at = p_.update->indices;
    For each{p_.nest->axes, LoopKind::Map, {}};
    const Expr start = pool_.floating(expr::identity(reducer, DType::F32).f);
    each.body.push_back(ir::make(scalar::Init{to, at, start}));
    For steps{p_.steps->axes, LoopKind::Reduce, {}};
    steps.body.push_back(ir::make(scalar::Update{to, at, reducer, value}));
    each.body.push_back(ir::make(std::move(steps)));
    out_.push_back(ir::make(std::move(each)));
    return pool_.read(to, DType::F32, at);
  }

  const Position& p_;
  expr::ExprPool& pool_;
  ir::Block out_;
};

}  // namespace

std::vector<std::string> positions(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<std::string> out;
  for (const ir::Op& op : program.body) {
    const auto p = position_of(op, pool);
    if (!p) continue;
    const std::string_view target = p->update->target.str();
    if (has_buffer(program, near_name(target)) || has_buffer(program, rest_name(target)) ||
        has_buffer(program, value_name(target)))
      continue;
    out.emplace_back(target);
  }
  return out;
}

Outcome<ir::Program> locate(const ir::Program& program, std::string_view target,
                            expr::ExprPool& pool) {
  const auto all = positions(program, pool);
  if (std::find(all.begin(), all.end(), target) == all.end())
    return Rejection{"locate", fmt::format("`{}` is no position of an extreme of f32 values along "
                                           "one axis",
                                           target)};
  ir::Program out{program.level, program.name, {}};
  const ir::Op* nest = nullptr;
  for (const ir::Op& op : program.body) {
    const auto p = position_of(op, pool);
    if (p && p->update->target.str() == target) nest = &op;
  }
  const Position p = *position_of(*nest, pool);
  for (const ir::Op& op : program.body) {
    if (&op == nest) {
      for (ir::Op& made : Locator(p, pool).nests()) out.body.push_back(std::move(made));
      continue;
    }
    out.body.push_back(op);
    const auto* b = op.get<scalar::Buffer>();
    if (!b || b->name != p.update->target) continue;
    for (ir::Op& made : Locator(p, pool).buffers(b->type.dims)) out.body.push_back(std::move(made));
  }
  return out;
}

bool is_located_in_one_kernel(const ir::Program& program, std::string_view target,
                              const std::vector<Kernel>& kernels) {
  const bool is_long = has_buffer(program, rest_name(target));
  const auto of = [&](const Kernel& k, const std::string& name) -> const Member* {
    for (const Member& m : k.fusion.members) {
      if (m.target.str() == name && m.is_rolled && k.stored.contains(m.statement)) return &m;
    }
    return nullptr;
  };
  return std::any_of(kernels.begin(), kernels.end(), [&](const Kernel& k) {
    const Member* near = of(k, near_name(target));
    if (!near || (is_long && !of(k, rest_name(target)))) return false;
    // The extreme it compares with is of this kernel, too.
    bool is_own = true;
    bool is_compared = false;
    expr::for_each(near->value, [&](Expr e) {
      if (e.op() != Op::Eq) return;
      is_compared = true;
      const Member* best = e[1].op() == Op::Read ? k.fusion.find(e[1]) : nullptr;
      is_own &= best && best->is_rolled;
    });
    return is_own && is_compared;
  });
}

}  // namespace nautilus::schedule
