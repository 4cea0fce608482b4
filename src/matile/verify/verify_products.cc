// SPDX-License-Identifier: Apache-2.0
// Matrix products: shapes, dtypes and places of the operands.
#include <fmt/format.h>

#include "estimate/registers.h"
#include "ir/operand_width.h"
#include "matile/verify/verify_role.h"
#include "target/target.h"

namespace nautilus::matile {

using expr::DType;
using expr::Expr;

struct RoleVerifier::Instruction {
  DType dtype;   // of the operands
  int rows = 0;  // of the accumulator
  int n = 0;     // columns
  int depth = 0;
  const target::OperandWidth* width = nullptr;
};

void RoleVerifier::dot(const Dot& op) {
  const TileUse* acc = find_tile(op.acc);
  const auto [b_ring, b] = r_.slot_tile(op.b);
  if (!b) return v_.fail(fmt::format("the kernel has no slot tile `{}`", op.b.str()));
  if (!acc) return;
  const DType dtype = b->op->type.dtype;
  const DType sum = expr::compute_dtype(dtype);
  if (acc->op->spread != Spread::Acc || acc->op->type.dtype != sum)
    return v_.fail(fmt::format("`{}` is no accumulator ({}, acc)", op.acc.str(), expr::name(sum)));
  const auto shape = static_shape(acc->op->type);
  const bool is_trans = op.trans == Trans::Yes;
  const int n = is_trans ? b->tile.rows : b->tile.cols;
  const int depth = is_trans ? b->tile.cols : b->tile.rows;
  const target::OperandWidth* width = ir::operand_width(r_.target->matrix, dtype);
  if (!width)
    return v_.fail(fmt::format("{} has no products of {}", r_.target->name, expr::name(dtype)));
  if (!width->is_any_major && (!is_trans || op.trans_a == Trans::Yes))
    v_.fail(fmt::format("operands of {} are stored along the depth", expr::name(dtype)));
  if (n != shape[1])
    v_.fail(fmt::format("`{}` gives {} columns, the accumulator has {}", op.b.str(), n, shape[1]));
  const Instruction i = {dtype, shape[0], n, depth, width};
  instruction(op, i);
  const auto a_tile = tiles_.find(op.a.str());
  if (a_tile != tiles_.end()) return register_operand(op, *a_tile->second.op, i);
  const auto [a_ring, a] = r_.slot_tile(op.a);
  if (!a) return v_.fail(fmt::format("`{}` is neither a tile nor a slot tile", op.a.str()));
  shared_operand(op, *a, i);
}

void RoleVerifier::instruction(const Dot& op, const Instruction& i) {
  const target::OperandWidth& width = *i.width;
  const target::Matrix& matrix = r_.target->matrix;
  if (i.depth % width.depth != 0)
    v_.fail(fmt::format("the depth {} is no multiple of {}", i.depth, width.depth));
  if (width.apart_depth > 0 && i.depth > width.apart_depth)
    v_.fail(fmt::format("the matrix unit sums at most {} products of {}", width.apart_depth,
                        expr::name(i.dtype)));
  if (width.apart_depth > 0 && op.mode != DotMode::Init)
    v_.fail(
        fmt::format("products of {} begin at 0: sums are added in registers", expr::name(i.dtype)));
  if (i.n % width.column_step != 0 || i.n > matrix.most_columns)
    v_.fail(fmt::format("{} columns are no multiple of {} up to {}", i.n, width.column_step,
                        matrix.most_columns));
  const int64_t needed = estimate::instruction_registers(i.n, *r_.target);
  // A kernel that cannot start at all is told so elsewhere.
  const bool can_start = r_.threads > 0 && r_.threads * r_.resident <= r_.target->limits.sm_threads;
  if (can_start && needed > r_.launch_registers())
    v_.fail(
        fmt::format("an instruction with {} columns needs {} registers of a thread, {} threads "
                    "start with {}",
                    i.n, needed, r_.threads * r_.resident, r_.launch_registers()));
}

void RoleVerifier::register_operand(const Dot& op, const Tile& a, const Instruction& i) {
  if (!is_half(i.dtype)) v_.fail("a register operand has 16 bits");
  const auto a_shape = static_shape(a.type);
  if (a.spread != Spread::Acc || a_shape[0] != i.rows || a_shape[1] != i.depth ||
      a.type.dtype != i.dtype)
    v_.fail(
        fmt::format("`{}` is not {} x {} of {}", op.a.str(), i.rows, i.depth, expr::name(i.dtype)));
  if (op.rows) v_.fail("a register operand has no first row");
  if (op.trans_a == Trans::Yes) v_.fail("a register operand is stored by rows");
  const int64_t rows = r_.target->matrix.rows;
  if (i.rows != rows) v_.fail(fmt::format("a register operand has {} rows", rows));
}

void RoleVerifier::shared_operand(const Dot& op, const SlotTileInfo& a, const Instruction& i) {
  const target::Matrix& matrix = r_.target->matrix;
  const bool is_transposed = op.trans_a == Trans::Yes;
  const int rows = is_transposed ? a.tile.cols : a.tile.rows;
  const int depth = is_transposed ? a.tile.rows : a.tile.cols;
  if (depth != i.depth || rows < i.rows || !expr::are_operands_together(a.op->type.dtype, i.dtype))
    v_.fail(
        fmt::format("`{}` is not {} x {} of {}", op.a.str(), i.rows, i.depth, expr::name(i.dtype)));
  // An instruction's rows are one panel then.
  if (is_transposed && a.tile.panel_cols() != matrix.rows)
    v_.fail(fmt::format("`{}` is stored as depth by rows, in panels of {}, not of {}", op.a.str(),
                        a.tile.panel_cols(), matrix.rows));
  if (op.rows) first_row(op.rows, is_transposed ? matrix.rows : kSwizzleRows);
}

void RoleVerifier::warp_dot(const WarpDot& op) {
  const TileUse* acc = find_tile(op.acc);
  const SlotTileInfo* a = r_.slot_tile(op.a).second;
  const SlotTileInfo* b = r_.slot_tile(op.b).second;
  if (!a || !b) return v_.fail("the operands of `warpdot` are slot tiles");
  if (!acc) return;
  const auto shape = static_shape(acc->op->type);
  if (acc->op->spread != Spread::Acc || acc->op->type.dtype != DType::F32 || shape[0] != 64 ||
      shape[1] % 16 != 0)
    return v_.fail("the accumulator of `warpdot` is f32, acc, 64 rows by a multiple of 16");
  if (op.trans != Trans::Yes || b->tile.rows != shape[1] || a->tile.cols != b->tile.cols ||
      a->tile.rows < 64 || b->tile.cols % 16 != 0 || !is_half(b->op->type.dtype) ||
      a->op->type.dtype != b->op->type.dtype || a->tile.swizzle != layout::Swizzle::B128 ||
      b->tile.swizzle != layout::Swizzle::B128)
    v_.fail(fmt::format("`{}` and `{}` do not give `{}`", op.a.str(), op.b.str(), op.acc.str()));
  if (op.rows) first_row(op.rows);
}

// The first row of an operand becomes a part of its address: a multiple of the swizzle's 8 rows, or
// of a panel where rows are contiguous; known at the beginning of the role.
void RoleVerifier::first_row(Expr rows, int64_t step) {
  scalar(rows, DType::I64, "the first row");
  const auto affine = affine_index(rows);
  bool ok = affine && affine->constant % step == 0 && affine->constant >= 0;
  if (affine) {
    for (const auto& [name, coefficient] : affine->coefficients)
      ok &=
          role_->index && name == role_->index.str() && coefficient % step == 0 && coefficient > 0;
  }
  if (!ok)
    v_.fail(fmt::format("the first row is a multiple of {} that depends on the role's index only",
                        step));
}

}  // namespace nautilus::matile
