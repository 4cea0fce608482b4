// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/scalar_to_vrtile.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "decision/lines.h"
#include "ir/walk.h"
#include "lower/to_vrtile/nests_to_tiles.h"
#include "lower/to_vrtile/tile_numbers.h"
#include "vrtile/passes/drop_unused_tiles.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Axes;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;
namespace vr = vrtile;

std::optional<ir::Program> NestsToTiles::run(const ir::Program& program, const Op* only) {
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

void NestsToTiles::fail(const Op& op, std::string message) {
  if (has_failed_) return;
  has_failed_ = true;
  sink_.report(diag::Code::NoTileForm, op.span(), std::move(message));
}

void NestsToTiles::buffer(const scalar::Buffer& b, const Op& op, Block& out) {
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

void NestsToTiles::kernel(const Op& op, Block& out) {
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
  out.push_back(ir::make(vr::Par{grid->axes, vr::ParKind::Grid, std::move(body)}, op.span()));
}

void NestsToTiles::know(const Block& lets) {
  for (const Op& let : lets) {
    const auto& number = let.as<vr::Let>();
    const auto value = expr::Poly::of(number.value);
    if (number.value.dtype() == ir::DType::I64 && value && facts_.is_nonnegative(*value))
      facts_.add_size(pool_.index(number.name));
  }
}

Block NestsToTiles::block(const Block& ops) {
  Block out;
  Block* outer = std::exchange(out_, &out);
  for (const Op& op : ops) {
    if (!has_failed_) structure(op);
  }
  out_ = outer;
  return out;
}

void NestsToTiles::structure(const Op& op) {
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

void NestsToTiles::loop(const Op& op) {
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

std::optional<ir::Program> scalar_to_vrtile(const ir::Program& program, ir::PassContext& context) {
  return NestsToTiles(program, context).run(program, nullptr);
}

std::optional<ir::Program> nest_to_vrtile(const ir::Program& program, const Op& nest,
                                          ir::PassContext& context) {
  return NestsToTiles(program, context).run(program, &nest);
}

}  // namespace nautilus::lower
