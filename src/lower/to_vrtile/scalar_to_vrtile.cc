// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/scalar_to_vrtile.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "decision/lines.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/walk.h"
#include "lower/to_vrtile/tile_dot.h"
#include "lower/to_vrtile/tile_numbers.h"
#include "lower/to_vrtile/tile_reads.h"
#include "lower/to_vrtile/tile_versions.h"
#include "scalar/ops.h"
#include "vrtile/conditions.h"
#include "vrtile/ops.h"
#include "vrtile/passes/drop_unused_tiles.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using ir::Axes;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;
namespace vr = vrtile;
using vr::conjunction;

class Lowering {
 public:
  Lowering(const ir::Program& program, ir::PassContext& context)
      : context_(context),
        pool_(context.pool),
        sink_(context.sink),
        names_(program.body, context.pool),
        facts_(ir::facts_of(program, context.pool)) {}

  std::optional<ir::Program> run(const ir::Program& program, const Op* only) {
    Block out;
    for (const Op& op : program.body) {
      if (op.is<scalar::Kernel>()) continue;  // lines of kernels without tiles
      const bool is_nest = op.is<scalar::For>() || op.is<scalar::Loop>() || op.is<scalar::If>() ||
                           op.is<scalar::Store>() || op.is<scalar::Init>();
      if (const auto* b = op.get<scalar::Buffer>()) {
        buffer(*b, op, out);
      } else if (!is_nest) {
        out.push_back(op);
      } else if (!only || op.data() == only->data()) {
        kernel(op, out);
      }
      if (has_failed_) return std::nullopt;
    }
    return vr::drop_unused_tiles({&vr::level(), program.name, std::move(out)}, context_);
  }

 private:
  struct Place {
    Axes axes;                 // of the map loops around
    Axes reduced;              // of the reduce loops around
    std::vector<Expr> guards;  // conditions around
  };

  void fail(const Op& op, std::string message) {
    if (has_failed_) return;
    has_failed_ = true;
    sink_.report(diag::Code::NoTileForm, op.span(), std::move(message));
  }

  void buffer(const scalar::Buffer& b, const Op& op, Block& out) {
    types_.emplace(b.name, b.type);
    if (b.role == scalar::Role::Local) {
      tiles_.emplace(b.name, Name());
      for (Expr d : b.type.dims) {
        if (d.op() != EK::IntConst)
          return fail(op, fmt::format("the shape of `{}` is not constant", b.name.str()));
      }
      return;
    }
    const vr::TensorRole role = b.role == scalar::Role::Input    ? vr::TensorRole::Input
                                : b.role == scalar::Role::Output ? vr::TensorRole::Output
                                                                 : vr::TensorRole::Temp;
    out.push_back(ir::make(vr::Tensor{b.name, b.type, role}, op.span()));
  }

  void kernel(const Op& op, Block& out) {
    if (!op.is<scalar::For>() || op.as<scalar::For>().kind != scalar::LoopKind::Grid)
      return fail(op, "a nest without a grid loop has no tiles");
    const TileNumbers numbers = read_tile_numbers(op, types_, facts_, names_, pool_);
    const auto* grid = numbers.nest.get<scalar::For>();
    const expr::Facts before = facts_;
    for (auto& [name, tile] : tiles_) tile = {};
    versions_.find_carried(grid->body);
    for (const ir::Axis& a : grid->axes) facts_.add_axis(pool_.index(a.name), a.extent);
    group_lets_ = numbers.group_lets;
    step_lets_ = numbers.step_lets;
    know(numbers.lets);
    Block body = numbers.lets;
    for (Op& inner : block(grid->body)) body.push_back(std::move(inner));
    facts_ = before;
    body = decision::with_lines(std::move(body), decision::lines(grid->body));
    out.push_back(ir::make(vr::Par{grid->axes, vr::ParKind::Grid, std::move(body), grid->cluster,
                                   grid->resident, grid->cost},
                           op.span()));
  }

  // Numbers that are positions.
  void know(const Block& lets) {
    for (const Op& let : lets) {
      const auto& number = let.as<vr::Let>();
      const auto value = expr::Poly::of(number.value);
      if (number.value.dtype() == ir::DType::I64 && value && facts_.is_nonnegative(*value))
        facts_.add_size(pool_.index(number.name));
    }
  }

  Block block(const Block& ops) {
    Block out;
    Block* outer = std::exchange(out_, &out);
    for (const Op& op : ops) {
      if (!has_failed_) structure(op);
    }
    out_ = outer;
    return out;
  }

  void structure(const Op& op) {
    if (op.is<scalar::Decisions>()) return;  // kernel() hands them on
    if (op.is<scalar::Loop>()) return loop(op);
    const auto* f = op.get<scalar::For>();
    if (!f || f->kind != scalar::LoopKind::Group) return visit(op, {});
    const expr::Facts before = facts_;
    for (const ir::Axis& a : f->axes) facts_.add_axis(pool_.index(a.name), a.extent);
    const TileReads::Tiles tiles = tiles_;
    know(group_lets_);
    Block body = group_lets_;
    for (Op& inner : block(f->body)) body.push_back(std::move(inner));
    tiles_ = tiles;
    facts_ = before;
    out_->push_back(ir::make(vr::Par{f->axes, vr::ParKind::Group, std::move(body)}, op.span()));
  }

  void loop(const Op& op) {
    const auto& l = op.as<scalar::Loop>();
    if (!expr::tensors_read(l.from).empty() || !expr::tensors_read(l.to).empty())
      return fail(op, "how far the loop runs is not one number for the whole tile");
    const Expr from = converted(l.from, {}, op);
    const Expr to = converted(l.to, {}, op);
    if (has_failed_) return;
    std::vector<Name> order;  // of first writing, so that the text does not depend on addresses
    ir::for_each_op(l.body, [&](const Op& inner) {
      const Name n = written_by(inner);
      if (n && tiles_.contains(n) && std::find(order.begin(), order.end(), n) == order.end())
        order.push_back(n);
    });
    Block carries;
    std::vector<std::pair<Name, vr::Carry>> carried;
    for (Name n : order) {
      if (!tiles_.at(n)) continue;
      const Name carry = versions_.carry(n);
      carried.emplace_back(n, vr::Carry{carry, types_.at(n), tiles_.at(n), {}});
      tiles_.at(n) = carry;
    }
    const expr::Facts before = facts_;
    const Expr var = pool_.index(l.var);
    const bool is_up = l.direction == scalar::Direction::Up;
    facts_.assume(pool_.binary(is_up ? EK::Le : EK::Ge, from, var));
    facts_.assume(pool_.binary(is_up ? EK::Lt : EK::Ge, var, to));
    know(step_lets_);
    ++loop_depth_;
    Block body = step_lets_;
    for (Op& inner : block(l.body)) body.push_back(std::move(inner));
    --loop_depth_;
    facts_ = before;
    for (auto& [n, carry] : carried) {
      carry.next = tiles_.at(n);
      carries.push_back(ir::make(carry, op.span()));
      tiles_.at(n) = carry.name;
    }
    // Without a value from before the loop there may be none after it.
    for (Name n : order) {
      const bool is_carried =
          std::any_of(carried.begin(), carried.end(), [&](const auto& c) { return c.first == n; });
      if (!is_carried) tiles_.at(n) = {};
    }
    carries.insert(carries.end(), body.begin(), body.end());
    const auto direction = is_up ? vr::Direction::Up : vr::Direction::Down;
    out_->push_back(ir::make(vr::For{l.var, from, direction, to, std::move(carries)}, op.span()));
  }

  void visit(const Op& op, Place place) {
    if (has_failed_) return;
    if (const auto* f = op.get<scalar::For>()) {
      if (f->kind != scalar::LoopKind::Map && f->kind != scalar::LoopKind::Reduce)
        return fail(op, "a grid or group loop inside a tile statement");
      for (const ir::Axis& a : f->axes) {
        if (a.extent.op() != EK::IntConst || a.extent.integer() < 1)
          return fail(op, fmt::format("the extent of `{}` is no constant", a.name.str()));
      }
      Axes& axes = f->kind == scalar::LoopKind::Map ? place.axes : place.reduced;
      if (f->kind == scalar::LoopKind::Map && !place.reduced.empty())
        return fail(op, "a map loop inside a reduce loop");
      axes.insert(axes.end(), f->axes.begin(), f->axes.end());
      for (const Op& inner : f->body) visit(inner, place);
    } else if (const auto* i = op.get<scalar::If>()) {
      place.guards.push_back(i->condition);
      for (const Op& inner : i->body) visit(inner, place);
    } else if (const auto* s = op.get<scalar::Store>()) {
      store(op, *s, place);
    } else if (op.is<scalar::Init>()) {
      init(op, op.as<scalar::Init>(), place);
    } else if (const auto* u = op.get<scalar::Update>()) {
      update(op, *u, place);
    } else if (op.is<scalar::UpdateArg>()) {
      fail(op, fmt::format("{} has no form in tiles", name(op.as<scalar::UpdateArg>().reducer)));
    } else {
      fail(op, "a loop inside a tile statement");
    }
  }

  // The axes of a statement in the order of its target's dimensions; every element is written once.
  std::optional<Axes> target_axes(const Op& op, Name target, const ir::Exprs& indices,
                                  const Place& place) {
    const auto& dims = types_.at(target).dims;
    Axes out;
    for (size_t k = 0; k < indices.size(); ++k) {
      for (const ir::Axis& a : place.axes) {
        const bool is_used = std::find(out.begin(), out.end(), a) != out.end();
        if (!is_used && indices[k] == pool_.index(a.name) && a.extent == dims[k]) out.push_back(a);
      }
      if (out.size() != k + 1) break;
    }
    if (out.size() == indices.size() && out.size() == place.axes.size()) return out;
    fail(op, fmt::format("`{}` is not written once for every element", target.str()));
    return std::nullopt;
  }

  void store(const Op& op, const scalar::Store& s, const Place& place) {
    const Expr guard = conjunction(pool_, place.guards);
    if (!place.reduced.empty()) return fail(op, "a store inside a reduce loop");
    if (!tiles_.contains(s.target)) {
      ir::Exprs indices;
      for (Expr i : s.indices) indices.push_back(converted(i, place.axes, op));
      // Under its guard the value's reads stay inside.
      Expr value = s.value;
      if (guard) value = pool_.select(guard, value, zero(pool_, value.dtype()));
      value = converted(value, place.axes, op, points(place.axes));
      const Expr condition = guard ? converted(guard, place.axes, op) : Expr();
      if (has_failed_) return;
      if (guard && value.op() == EK::Select && value[0] == condition) value = value[1];
      out_->push_back(
          ir::make(vr::Store{place.axes, s.target, indices, value, condition}, op.span()));
      return;
    }
    const auto axes = target_axes(op, s.target, s.indices, place);
    if (!axes) return;
    Expr value = s.value;
    if (guard) value = pool_.select(guard, value, old_value(s.target, *axes, op));
    value = converted(value, *axes, op, points(*axes));
    if (!has_failed_) assign(op, s.target, *axes, value);
  }

  std::vector<Expr> points(const Axes& axes) {
    std::vector<Expr> out;
    for (const ir::Axis& a : axes) out.push_back(pool_.index(a.name));
    return out;
  }

  Expr old_value(Name target, const Axes& axes, const Op& op) {
    if (!tiles_.at(target))
      fail(op,
           fmt::format("`{}` is written under a condition and has no value before", target.str()));
    return pool_.read(target, types_.at(target).dtype, points(axes));
  }

  void init(const Op& op, const scalar::Init& s, const Place& place) {
    if (!tiles_.contains(s.target))
      return fail(op, fmt::format("a reduction into `{}`, which is not local", s.target.str()));
    if (!place.guards.empty() || !place.reduced.empty())
      return fail(op, "an init under a condition or in a reduce loop");
    const auto axes = target_axes(op, s.target, s.indices, place);
    if (!axes) return;
    const Expr value = converted(s.value, *axes, op);
    if (has_failed_) return;
    assign(op, s.target, *axes, value, true);
    if (s.value.is_const()) starts_.insert_or_assign(tiles_.at(s.target), s.value);
  }

  // The target's value is a new tile; a plain copy is another name for the old one.
  void assign(const Op& op, Name target, const Axes& axes, Expr value, bool is_init = false) {
    if (value.op() == EK::Read && value.args().size() == axes.size()) {
      const ir::TensorType* type = versions_.type(value.name());
      bool is_copy = type && *type == types_.at(target);
      for (size_t k = 0; k < axes.size(); ++k) is_copy &= value[k] == pool_.index(axes[k].name);
      if (is_copy) {
        tiles_.at(target) = value.name();
        return;
      }
    }
    const Name tile = version(target, is_init);
    out_->push_back(ir::make(vr::Set{tile, axes, value}, op.span()));
  }

  void update(const Op& op, const scalar::Update& u, const Place& place) {
    if (!tiles_.contains(u.target))
      return fail(op, fmt::format("a reduction into `{}`, which is not local", u.target.str()));
    const auto axes = target_axes(op, u.target, u.indices, place);
    if (!axes) return;
    const Name old = tiles_.at(u.target);
    if (!old) return fail(op, fmt::format("`{}` has no value to add to", u.target.str()));
    const ir::DType dtype = types_.at(u.target).dtype;
    const Expr identity = identity_of(u.reducer, dtype);
    Expr value = u.value;
    if (const Expr guard = conjunction(pool_, place.guards))
      value = pool_.select(guard, value, identity);
    const auto start = starts_.find(old);
    const bool is_first = start != starts_.end() && start->second == identity;
    if (u.reducer == expr::Reducer::Sum && axes->size() == 2 && place.reduced.size() == 1 &&
        dot(op, u.target, value, *axes, place.reduced[0], is_first ? Name() : old))
      return;
    if (has_failed_) return;

    Axes all = *axes;
    all.insert(all.end(), place.reduced.begin(), place.reduced.end());
    const Expr body = converted(value, all, op, points(all));
    if (has_failed_) return;
    std::vector<Expr> vars;
    std::vector<Expr> extents;
    for (const ir::Axis& a : place.reduced) {
      vars.push_back(pool_.index(a.name));
      extents.push_back(a.extent);
    }
    const Expr reduction = pool_.reduce(u.reducer, body, vars, extents);
    const Name tile = is_first ? version(u.target) : versions_.part(u.target);
    out_->push_back(ir::make(vr::Reduce{tile, *axes, reduction}, op.span()));
    if (!is_first) combine(op, u.target, *axes, expr::combiner(u.reducer), old, tile, {});
  }

  // new = old (+) outer * part
  void combine(const Op& op, Name target, const Axes& axes, EK combiner, Name old, Name part,
               Expr outer) {
    const std::vector<Expr> at = points(axes);
    const ir::DType dtype = types_.at(target).dtype;
    Expr value = pool_.read(part, dtype, at);
    if (outer) value = pool_.binary(EK::Mul, value, outer);
    if (old) value = pool_.binary(combiner, pool_.read(old, dtype, at), value);
    out_->push_back(ir::make(vr::Set{version(target), axes, value}, op.span()));
  }

  // True if the sum is a product of matrices, or has failed.
  bool dot(const Op& op, Name target, Expr value, const Axes& axes, const ir::Axis& depth,
           Name old) {
    const Expr row = pool_.index(axes[0].name);
    const Expr col = pool_.index(axes[1].name);
    const Expr inner = pool_.index(depth.name);
    const auto split = split_dot(pool_, value, row, col, inner);
    if (!split) return false;
    const Axes all = {axes[0], axes[1], depth};
    const std::vector<Expr> order = {row, inner};
    Expr rows = converted(split->rows, all, op, order);
    Expr cols = converted(split->cols, all, op);
    if (split->is_guarded_twice) {
      // Elements of tensors are finite: what the guard of the other side makes 0 stays 0.
      if (const Expr load = loaded(cols)) {
        cols = load;
      } else if (const Expr other = loaded(rows)) {
        rows = other;
      }
    }
    const Expr outer = split->outer ? converted(split->outer, all, op) : Expr();
    if (has_failed_) return true;
    const Name a = operand(op, rows, {axes[0], depth}, target, "a");
    // A column operand that is there with its depth first stays so.
    Axes col_axes = {axes[1], depth};
    bool is_plain = false;
    if (cols.op() == EK::Read && cols.args().size() == 2 && cols[0] == inner && cols[1] == col) {
      col_axes = {depth, axes[1]};
      is_plain = true;
    }
    const Name b = operand(op, cols, col_axes, target, "b");
    const auto trans = is_plain ? vr::Trans::No : vr::Trans::Yes;
    const ir::TensorType& type = types_.at(target);
    if (!outer) {
      out_->push_back(ir::make(vr::Dot{version(target), type, a, b, trans, old}, op.span()));
      return true;
    }
    const Name product = versions_.part(target);
    out_->push_back(ir::make(vr::Dot{product, type, a, b, trans, {}}, op.span()));
    combine(op, target, axes, EK::Add, old, product, outer);
    return true;
  }

  // The element of a load under a guard; null if the value is anything else.
  Expr loaded(Expr value) const {
    if (value.op() != EK::Select || value[1].op() != EK::Read) return {};
    return loads_.contains(value[1].name()) ? value[1] : Expr();
  }

  // The tile whose elements are `value` at the axes: an existing one, or a new one.
  Name operand(const Op& op, Expr value, const Axes& axes, Name target, std::string_view side) {
    if (value.op() == EK::Read && value.args().size() == axes.size()) {
      bool is_whole = true;
      for (size_t k = 0; k < axes.size(); ++k) is_whole &= value[k] == pool_.index(axes[k].name);
      if (const ir::TensorType* type = versions_.type(value.name())) {
        for (size_t k = 0; k < axes.size(); ++k) is_whole &= type->dims[k] == axes[k].extent;
      }
      if (is_whole) return value.name();
    }
    const Name tile = names_.fresh(fmt::format("{}_{}", target.str(), side));
    out_->push_back(ir::make(vr::Set{tile, axes, value}, op.span()));
    versions_.remember(out_->back());
    return tile;
  }

  Expr identity_of(expr::Reducer reducer, ir::DType dtype) {
    const expr::Value v = expr::identity(reducer, dtype);
    if (dtype == ir::DType::Bool) return pool_.boolean(v.i != 0);
    return is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype);
  }

  Expr converted(Expr e, const Axes& axes, const Op& op, const std::vector<Expr>& order = {}) {
    if (has_failed_) return e;
    TileReads reads(pool_, names_, types_, tiles_, facts_);
    const size_t before = out_->size();
    const Expr out = reads.convert(e, axes, *out_, order);
    for (size_t k = before; k < out_->size(); ++k) {
      versions_.remember((*out_)[k]);
      loads_.insert(vr::defined((*out_)[k]));
    }
    if (!out) fail(op, reads.error());
    return out ? out : e;
  }

  Name version(Name target, bool is_init = false) {
    return tiles_.at(target) = versions_.next(target, is_init, loop_depth_ > 0);
  }

  ir::PassContext& context_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  vr::Names names_;
  expr::Facts facts_;
  TileReads::Types types_;
  TileVersions versions_{names_, types_};
  TileReads::Tiles tiles_;  // a local buffer's current tile; none before it is written
  std::unordered_map<Name, Expr> starts_;  // constant that an init wrote, by tile
  std::unordered_set<Name> loads_;
  Block* out_ = nullptr;
  int loop_depth_ = 0;
  Block group_lets_;  // numbers that every warp group reads
  Block step_lets_;   // and those of every step
  bool has_failed_ = false;
};

}  // namespace

std::optional<ir::Program> scalar_to_vrtile(const ir::Program& program, ir::PassContext& context) {
  return Lowering(program, context).run(program, nullptr);
}

std::optional<ir::Program> nest_to_vrtile(const ir::Program& program, const Op& nest,
                                          ir::PassContext& context) {
  return Lowering(program, context).run(program, &nest);
}

}  // namespace nautilus::lower
