// SPDX-License-Identifier: Apache-2.0
// The contents of a role: its blocks, its scalars, its register tiles.
#include "matile/verify/verify_role.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "layout/convert.h"

namespace nautilus::matile {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

std::set<std::string> written_tensors(const Kernel& kernel, const KernelMaps& maps) {
  std::set<std::string> written;
  ir::for_each_op(kernel.body, [&](const Op& op) {
    if (const auto* p = op.get<Put>()) written.emplace(p->target.str());
    const auto* s = op.get<Store>();
    const auto m = s ? maps.find(s->map.str()) : maps.end();
    if (m != maps.end()) written.emplace(m->second->value.name().str());
  });
  return written;
}

}  // namespace

RoleVerifier::RoleVerifier(const Kernel& kernel, KernelScope& scope)
    : scope_(scope),
      r_(scope.resources),
      v_(scope.verifier),
      e_(scope.verifier, tiles_, scope.tensors, unrolled_) {
  e_.set_written(written_tensors(kernel, scope.maps));
}

void RoleVerifier::run(const Role& role) {
  role_ = &role;
  tiles_.clear();
  unrolled_.clear();
  votes_.clear();
  tickets_.clear();
  const size_t mark = v_.mark();
  has_each_ = false;
  if (role.index) local(role.index, DType::I64);
  depth_ = 0;
  lanes_of_each_.reset();
  block(role.body, true);
  lanes_of_tiles();
  v_.leave_axes(mark);
  for (const auto& [name, tile] : tiles_) v_.forget_tensor(tile.op->name);
}

void RoleVerifier::block(const ir::Block& ops, bool is_uniform) {
  const size_t mark = v_.mark();
  const std::set<std::string> votes = votes_;
  ++depth_;
  for (const Op& op : ops) {
    v_.set_op(op);
    statement(op, is_uniform);
  }
  --depth_;
  votes_ = votes;
  v_.leave_axes(mark);
}

// A name of the open block. It may not hide one of the kernel's: both are names of one text.
void RoleVerifier::local(ir::Name name, DType dtype) {
  if (scope_.names.contains(std::string(name.str())))
    return v_.fail(fmt::format("`{}` is defined twice", name.str()));
  v_.declare_local(name, dtype);
}

bool RoleVerifier::is_ticket(Expr e) const {
  return e.op() == EK::Var && tickets_.contains(std::string(e.name().str()));
}

bool RoleVerifier::is_vote(Expr e) const {
  return e.op() == EK::Var && votes_.contains(std::string(e.name().str()));
}

void RoleVerifier::body(ir::Name var, const ir::Block& ops) {
  const size_t mark = v_.mark();
  local(var, DType::I64);
  block(ops, true);
  v_.leave_axes(mark);
}

void RoleVerifier::each(const Each& op) {
  if (!r_.tiles_of(op.tiles))
    return v_.fail(fmt::format("the kernel has no tiles `{}`", op.tiles.str()));
  const int64_t by = op.alternate.value_or(1);
  if (by != 1 && (!is_compute() || by != *role_->count || !role_->index))
    v_.fail("the groups of a role alternate all together, by its index");
  if (by != 1 && r_.tiles_of(op.tiles)->op->source == TileSource::Dynamic)
    v_.fail("groups alternate on static tiles only");
  if (has_each_) v_.fail("a role walks the tiles once");
  if (depth_ != 1) v_.fail("the walk over the tiles stands directly in the role");
  has_each_ = true;
  lanes_of_rows(op);
  body(op.var, op.body);
}

void RoleVerifier::unroll(const Unroll& op) {
  const size_t mark = v_.enter_axes(op.axes);
  bool ok = true;
  for (const ir::Axis& a : op.axes) {
    ok &= a.extent.op() == EK::IntConst && a.extent.integer() >= 1 && a.extent.integer() <= 64;
    if (ok) unrolled_[std::string(a.name.str())] = static_cast<int>(a.extent.integer());
  }
  if (ok)
    block(op.body, true);
  else
    v_.fail("an unrolled loop has a constant extent from 1 to 64");
  for (const ir::Axis& a : op.axes) unrolled_.erase(std::string(a.name.str()));
  v_.leave_axes(mark);
}

// A scalar of a role: no tensors, no reductions.
void RoleVerifier::scalar(Expr e, DType dtype, std::string_view what) {
  v_.check(e, what);
  v_.check_dtype(e, dtype, what);
  if (expr::has_reduce(e) || !expr::tensors_read(e).empty())
    v_.fail(fmt::format("{} is a scalar; it reads no tensor", what));
  for (Expr v : expr::free_vars(e)) {
    if (is_vote(v))
      v_.fail(fmt::format("the vote `{}` differs from warp to warp; it stands alone as a condition",
                          v.name().str()));
  }
  e_.functions(e);
}

// A scalar that may be read from memory.
void RoleVerifier::number(Expr e) {
  if (expr::tensors_read(e).empty() || expr::has_reduce(e))
    return scalar(e, e.dtype(), "the value");
  v_.check(e, "the value");
  for (Expr v : expr::free_vars(e)) {
    if (is_vote(v)) v_.fail("a number that is read does not depend on a vote");
  }
  if (const std::string why = number_problem(e, scope_.program); !why.empty()) v_.fail(why);
  e_.functions(e);
}

void RoleVerifier::tile(const Tile& t) {
  if (!is_compute()) return v_.fail("a loading role has no register tiles");
  if (depth_ != 1) return v_.fail("register tiles stand directly in the role");
  if (t.spread == Spread::Unset) return v_.fail("a register tile is acc, row, col, line or own");
  if (!scope_.declare(t.name)) return;
  scope_.names.erase(std::string(t.name.str()));  // another role may use the name again
  const auto shape = static_shape(t.type);
  const bool is_acc = t.spread == Spread::Acc;
  if (t.spread == Spread::RowVector) return row_vector(t, shape);
  if (t.spread == Spread::Own) {
    if (!shape.empty() || t.type.dtype != DType::F32 || t.by || t.lanes)
      return v_.fail("an own tile is one f32 of each thread");
    v_.declare_tensor(t.name, t.type);
    tiles_.emplace(t.name.str(), TileUse{&t, layout_of(t)});
    return;
  }
  if (t.lanes) return v_.fail("`lanes` is for line tiles");
  if (t.by) return v_.fail("`by` is for line tiles");
  const bool ok = shape.size() == (is_acc ? 2u : 1u) &&
                  (t.spread == Spread::Col ? shape[0] % 8 == 0 : shape[0] % 64 == 0) &&
                  shape[0] > 0 && shape[0] <= 512 &&
                  (!is_acc || (shape[1] % 8 == 0 && shape[1] > 0 && shape[1] <= 256));
  if (!ok)
    return v_.fail(
        "an acc tile has a multiple of 64 rows and of 8 columns (up to 256), a row tile a "
        "multiple of 64, a col tile a multiple of 8");
  const bool is_of_acc = is_half(t.type.dtype) || t.type.dtype == DType::I32;
  if (t.type.dtype != DType::F32 && !(is_acc && is_of_acc))
    return v_.fail("register tiles are f32, acc tiles also i32 and 16-bit floats");
  v_.declare_tensor(t.name, t.type);
  tiles_.emplace(t.name.str(), TileUse{&t, layout_of(t)});
}

void RoleVerifier::row_vector(const Tile& t, const std::vector<int>& shape) {
  if (t.type.dtype != DType::F32 && !is_half(t.type.dtype))
    return v_.fail("a line tile holds f32 or 16-bit floats");
  const int64_t lanes = t.lanes.value_or(0);
  if (t.lanes && (lanes < 1 || lanes > 32 || (lanes & (lanes - 1)) != 0))
    return v_.fail("a line is over 1 to 32 lanes, a power of two");
  const int64_t threads = t.lanes ? lanes : 128;
  const int64_t by = t.by.value_or(16 / expr::bytes(t.type.dtype));
  const bool is_value = shape.empty() && t.type.dtype == DType::F32 && !t.by;
  const bool is_row_vector = shape.size() == 1 && (by == 1 || by == 2 || by == 4 || by == 8) &&
                             shape[0] > 0 && shape[0] % (threads * by) == 0;
  if (!is_value && !is_row_vector)
    return v_.fail(
        "a line tile is one f32, or a multiple of 128 threads, or of its lanes, times 1, 2, 4 or 8 "
        "neighbours");
  // Registers hold two of them.
  if (is_row_vector && is_half(t.type.dtype) && shape[0] % (2 * threads) != 0)
    return v_.fail("a thread has an even number of 16-bit elements");
  v_.declare_tensor(t.name, t.type);
  tiles_.emplace(t.name.str(), TileUse{&t, layout_of(t)});
}

void RoleVerifier::warps(const Warps& op) {
  const TileUse* tile = find_tile(op.tile);
  if (!ElementRules::is_foldable(op.reducer)) v_.fail("warps combine by sum, max or min");
  if (!tile) return;
  const auto& digits = tile->layout.digits();
  const bool has_copies = std::any_of(digits.begin(), digits.end(), [](const auto& d) {
    return d.axis == layout::kCopies && d.owner == layout::Owner::Warp;
  });
  if (!has_copies || tile->op->type.dtype != DType::F32)
    v_.fail(fmt::format("`{}` is no f32 tile of which every warp holds a part of each element",
                        op.tile.str()));
}

// Whether all groups come here is another question (verify_groups.cc).
void RoleVerifier::groups(const Groups& op) {
  const TileUse* tile = find_tile(op.tile);
  if (!ElementRules::is_foldable(op.reducer)) v_.fail("groups combine by sum, max or min");
  if (role_->count.value_or(1) < 2) v_.fail("one group alone has nobody to meet");
  if (tile && !(tile->op->spread == Spread::RowVector && tile->op->type.dims.empty()))
    v_.fail(fmt::format("groups combine one value, a line tile without axes; `{}` is none",
                        op.tile.str()));
}

// Whether all CTAs come here is another question (verify_clusters.cc).
void RoleVerifier::ctas(const Ctas& op) {
  const TileUse* tile = find_tile(op.tile);
  if (!ElementRules::is_foldable(op.reducer)) v_.fail("CTAs combine by sum, max or min");
  if (r_.cluster < 2) v_.fail("a CTA without a cluster has nobody to meet");
  if (r_.roles.size() != 1) v_.fail("`ctas` waits for all threads, so the kernel has one role");
  if (tile && !(tile->op->spread == Spread::RowVector && tile->op->type.dims.empty()))
    v_.fail(fmt::format("CTAs combine one value, a line tile without axes; `{}` is none",
                        op.tile.str()));
}

void RoleVerifier::convert(const Convert& op) {
  const TileUse* from = find_tile(op.source);
  const TileUse* to = find_tile(op.target);
  if (!from || !to) return;
  if (op.source == op.target) return v_.fail("a tile is converted to another one");
  if (from->op->type.dtype != to->op->type.dtype || from->layout.shape() != to->layout.shape())
    return v_.fail(fmt::format("`{}` and `{}` differ in more than their layout", op.source.str(),
                               op.target.str()));
  if (op.kind == ConvertKind::Shared) return;  // everything can go there
  const layout::ConvertKind least = layout::convert_kind(from->layout, to->layout).kind;
  if (static_cast<ConvertKind>(least) == op.kind) return;
  const std::string_view why = least == layout::ConvertKind::Free ? "no element leaves its thread"
                               : least == layout::ConvertKind::Lanes ? "elements go to other lanes"
                                                                     : "elements go to other warps";
  v_.fail(fmt::format("{} from `{}` to `{}`: the way is {}", why, op.source.str(), op.target.str(),
                      layout::convert_kind_name(least)));
}

void RoleVerifier::ring(ir::Name name) {
  const RingInfo* info = r_.ring(name);
  if (!info) return v_.fail(fmt::format("the kernel has no ring `{}`", name.str()));
  if (!is_compute()) return v_.fail("a loading role fills rings, it does not read them");
  if (info->op->per && info->op->per != role_->name)
    v_.fail(fmt::format("ring `{}` belongs to role `{}`", name.str(), info->op->per.str()));
}

void RoleVerifier::turn(ir::Name name) {
  const TurnInfo* info = r_.turn(name);
  if (!info) return v_.fail(fmt::format("the kernel has no turn `{}`", name.str()));
  if (info->op->role != role_->name)
    v_.fail(fmt::format("turn `{}` is among the groups of `{}`", name.str(), info->op->role.str()));
}

void RoleVerifier::ticket(const Ticket& op) {
  if (!is_compute()) v_.fail("a loading role takes no ticket");
  scalar(op.index, DType::I64, "the index");
  scalar(op.count, DType::I64, "the count");
  const ir::TensorType* type = v_.tensor(op.counter);
  if (!type || type->dtype != DType::I32 || type->dims.size() != 1 ||
      !scope_.is_scratch(op.counter))
    v_.fail("the counter is a scratch tensor of i32 with one dimension");
  tickets_.emplace(op.name.str());
  local(op.name, DType::Bool);
}

}  // namespace nautilus::matile
