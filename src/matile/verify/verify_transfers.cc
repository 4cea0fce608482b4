// SPDX-License-Identifier: Apache-2.0
// Transfers between tensors, shared memory and registers: shapes and places must match.
#include <fmt/format.h>

#include "matile/verify/verify_role.h"

namespace nautilus::matile {

using expr::DType;
using expr::Expr;
using ir::Op;

void RoleVerifier::fill(const Fill& op) {
  const RingInfo* info = r_.ring(op.ring);
  if (!info) return v_.fail(fmt::format("the kernel has no ring `{}`", op.ring.str()));
  if (is_compute()) v_.fail("only a loading role fills a ring");
  if (info->filler != role_)
    v_.fail(fmt::format("ring `{}` is filled by two roles", op.ring.str()));
  if (static_cast<bool>(op.group) != static_cast<bool>(info->op->per))
    v_.fail("a ring per group, and only such a ring, is filled for each group");
  const size_t mark = v_.mark();
  if (op.group) local(op.group, DType::I64);
  std::set<std::string> filled;
  for (const Op& inner : op.body) {
    v_.set_op(inner);
    if (const auto* c = inner.get<Copy>())
      copy(*c, *info, filled);
    else
      v_.fail("a fill consists of copies");
  }
  size_t boxes = 0;
  for (const SlotTileInfo& slot_tile : info->slot_tiles)
    boxes += filled.contains(std::string(slot_tile.op->name.str()))
                 ? 1
                 : static_cast<size_t>(slot_tile.tile.panels());
  if (filled.size() != boxes || op.body.size() != boxes)
    v_.fail(fmt::format("a fill of `{}` copies each slot tile of its slot once", op.ring.str()));
  v_.leave_axes(mark);
}

void RoleVerifier::copy(const Copy& c, const RingInfo& ring_info, std::set<std::string>& filled) {
  const auto [owner, slot_tile] = r_.slot_tile(c.slot_tile);
  if (owner != &ring_info)
    return v_.fail(fmt::format("`{}` is no slot tile of ring `{}`", c.slot_tile.str(),
                               ring_info.op->name.str()));
  filled.emplace(c.panel ? fmt::format("{} {}", c.slot_tile.str(), *c.panel) : c.slot_tile.str());
  if (c.panel && (*c.panel < 0 || *c.panel >= slot_tile->tile.panels()))
    v_.fail(fmt::format("`{}` has {} panels", c.slot_tile.str(), slot_tile->tile.panels()));
  const Map* m = coordinates(c.map, c.at);
  if (!m) return;
  if (c.reach == Reach::Multicast) return share(c, *m, *slot_tile);
  int64_t elements = 1;
  for (Expr b : m->box) elements *= b.integer();
  const int64_t rows = m->box.size() > 1 ? m->box[1].integer() : 1;
  const int width = slot_tile->tile.rows == 1 ? slot_tile->tile.cols : slot_tile->tile.panel_cols();
  if (m->value.dtype() != slot_tile->op->type.dtype || m->swizzle != slot_tile->op->swizzle ||
      m->box[0].integer() != width || rows != slot_tile->tile.rows ||
      elements != static_cast<int64_t>(slot_tile->tile.rows) *
                      (c.panel ? slot_tile->tile.panel_cols() : slot_tile->tile.cols))
    v_.fail(fmt::format("the box of `{}` is not what slot tile `{}` holds", c.map.str(),
                        c.slot_tile.str()));
}

// The box of a multicast copy is what one CTA contributes.
void RoleVerifier::share(const Copy& c, const Map& m, const SlotTileInfo& slot_tile) {
  if (r_.cluster == 1) return v_.fail("a copy is multicast in kernels with clusters only");
  const auto share = share_of(slot_tile, r_.cluster);
  if (!share)
    return v_.fail(fmt::format(
        "slot tile `{}` does not divide into {} shares: whole panels, or multiples of 8 "
        "rows of one panel",
        c.slot_tile.str(), r_.cluster));
  bool ok = m.value.dtype() == slot_tile.op->type.dtype && m.swizzle == slot_tile.op->swizzle &&
            m.box.size() > share->axis && m.box[0].integer() == slot_tile.tile.panel_cols();
  for (size_t k = 1; k < m.box.size(); ++k) {
    const int wanted = k == share->axis ? share->extent : k == 1 ? slot_tile.tile.rows : 1;
    ok = ok && m.box[k].integer() == wanted;
  }
  if (!ok)
    v_.fail(fmt::format(
        "the box of `{}` is not one of {} shares of slot tile `{}`, which have {} along axis {}",
        c.map.str(), r_.cluster, c.slot_tile.str(), share->extent, share->axis + 1));
}

const Map* RoleVerifier::coordinates(ir::Name name, const ir::Exprs& at) {
  const auto it = scope_.maps.find(name.str());
  if (it == scope_.maps.end()) {
    v_.fail(fmt::format("there is no map `{}`", name.str()));
    return nullptr;
  }
  if (at.size() != it->second->axes.size())
    v_.fail(fmt::format("map `{}` has {} axes, {} given", name.str(), it->second->axes.size(),
                        diag::counted(at.size(), "coordinate is", "coordinates are")));
  for (Expr e : at) scalar(e, DType::I64, "a coordinate");
  return it->second;
}

void RoleVerifier::take(const Take& op) {
  const TileUse* tile = find_tile(op.tile);
  const SlotTileInfo* slot_tile = r_.slot_tile(op.slot_tile).second;
  if (!slot_tile)
    return v_.fail(fmt::format("the kernel has no slot tile `{}`", op.slot_tile.str()));
  if (op.rows) first_row(op.rows);
  if (!tile) return;
  const auto shape = static_shape(tile->op->type);
  const DType dtype = tile->op->type.dtype;
  const DType source = slot_tile->op->type.dtype;
  const bool is_row_piece = slot_tile->tile.rows == 1 && tile->op->spread == Spread::Col &&
                            !op.rows && shape[0] % 8 == 0 &&
                            shape[0] + first_column(op.cols) <= slot_tile->tile.cols &&
                            dtype == DType::F32 && (is_half(source) || source == DType::F32);
  const bool is_box = tile->op->spread == Spread::Acc && source == dtype && shape[0] == 64 &&
                      shape[1] % 16 == 0 && (is_half(dtype) || dtype == DType::F32) &&
                      slot_tile->tile.rows >= 64 && slot_tile->tile.cols >= shape[1] && !op.cols &&
                      slot_tile->tile.swizzle == layout::Swizzle::B128;
  const bool is_transposed = tile->op->spread == Spread::Acc && source == dtype && shape[0] == 64 &&
                             shape[1] % 16 == 0 && is_half(dtype) &&
                             slot_tile->tile.cols % 64 == 0 && slot_tile->tile.rows >= shape[1] &&
                             !op.cols && slot_tile->tile.swizzle == layout::Swizzle::B128;
  if (op.trans == Trans::Yes ? !is_transposed : !is_row_piece && !is_box)
    v_.fail(fmt::format("`{}` does not hold what `{}` takes", op.slot_tile.str(), op.tile.str()));
}

// The greatest first column: constants and unrolled variables, in steps of 8.
int64_t RoleVerifier::first_column(Expr cols) {
  if (!cols) return 0;
  scalar(cols, DType::I64, "the first column");
  const auto affine = affine_index(cols);
  bool ok = affine && affine->constant % 8 == 0 && affine->constant >= 0;
  int64_t last = affine ? affine->constant : 0;
  if (affine) {
    for (const auto& [name, coefficient] : affine->coefficients) {
      const auto it = unrolled_.find(std::string(name));
      ok &= it != unrolled_.end() && coefficient % 8 == 0 && coefficient > 0;
      if (it != unrolled_.end()) last += coefficient * (it->second - 1);
    }
  }
  if (!ok) v_.fail("the first column is a multiple of 8 of unrolled variables");
  return last;
}

void RoleVerifier::store(const Store& op) {
  const TileUse* tile = find_tile(op.tile);
  const StageInfo* stage = r_.stage(op.stage);
  const Map* m = coordinates(op.map, op.at);
  if (!stage) return v_.fail(fmt::format("the kernel has no stage `{}`", op.stage.str()));
  if (stage->op->role != role_->name)
    v_.fail(fmt::format("stage `{}` belongs to role `{}`", op.stage.str(), stage->op->role.str()));
  if (!tile || !m) return;
  const auto role = scope_.tensors.find(m->value.name().str());
  if (role != scope_.tensors.end() && role->second == TensorRole::Input)
    v_.fail(fmt::format("the input `{}` is written", m->value.name().str()));
  if (tile->op->spread != Spread::Acc || !(tile->op->type == stage->op->type))
    v_.fail(fmt::format("`{}` is not what stage `{}` holds", op.tile.str(), op.stage.str()));
  int64_t elements = 1;
  for (Expr b : m->box) elements *= b.integer();
  if (m->value.dtype() != tile->op->type.dtype || m->box[0].integer() != 64 || m->box.size() < 2 ||
      m->box[1].integer() != 64 ||
      elements != static_cast<int64_t>(stage->tile.rows) * stage->tile.cols ||
      m->swizzle != MapSwizzle::B128)
    v_.fail(
        fmt::format("the box of `{}` is not what stage `{}` holds", op.map.str(), op.stage.str()));
}

}  // namespace nautilus::matile
