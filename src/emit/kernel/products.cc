// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel/products.h"

#include <algorithm>

namespace nautilus::emit {

using expr::Expr;
using ir::Op;
using matile::SlotTileInfo;

namespace {

layout::Operand operand(const SlotTileInfo& slot_tile, layout::Major major) {
  return {.tile = slot_tile.tile, .major = major};
}

layout::Major major_of_a(const matile::Dot& d) {
  return d.trans_a == matile::Trans::Yes ? layout::Major::MN : layout::Major::K;
}

std::string stepped(std::string_view base, uint32_t units) {
  return units == 0 ? std::string(base) : fmt::format("descriptor_at({}, {})", base, units);
}

}  // namespace

void ProductEmitter::begin_role() {
  descriptors_.clear();
  ir::for_each_op(scope_.role->op->body, [&](const Op& op) {
    if (const auto* d = op.get<matile::Dot>()) {
      descriptor(d->a, major_of_a(*d), d->rows);
      descriptor(d->b, d->trans == matile::Trans::Yes ? layout::Major::K : layout::Major::MN, {});
    }
  });
}

std::string ProductEmitter::descriptor(ir::Name slot_tile_name, layout::Major major, Expr rows) {
  const auto [ring, slot_tile] = scope_.resources.slot_tile(slot_tile_name);
  if (!slot_tile) return "";  // a register tile
  const auto key = std::make_tuple(slot_tile_name, major, rows);
  for (const auto& [known, name] : descriptors_) {
    if (known == key) return name;
  }
  std::string name = identifier(slot_tile_name.str()) + "_desc";
  if (!descriptors_.empty()) {
    const auto clashes = std::count_if(descriptors_.begin(), descriptors_.end(),
                                       [&](auto& d) { return d.second.starts_with(name); });
    if (clashes > 0) name += fmt::format("{}", clashes + 1);
  }
  const layout::MatrixDescriptor d = layout::step_descriptor(operand(*slot_tile, major), 0);
  std::string address = fmt::format("smem + {}", ring->offset + slot_tile->offset);
  if (ring->copies > 1)
    address += fmt::format(" + {} * {}", scope_.group_text(), ring->copy_bytes());
  // Rows are consecutive, or in panels that are next to each other.
  const int row_bytes = major == layout::Major::K
                            ? layout::span_bytes(slot_tile->tile.swizzle)
                            : slot_tile->tile.panel_bytes() / slot_tile->tile.panel_cols();
  if (rows) address += fmt::format(" + ({}) * {}", scope_.text(rows), row_bytes);
  out_.line("const u64 {} = matrix_descriptor({}, {}, {}, {});", name, address, d.leading, d.stride,
            layout::encode({.swizzle = slot_tile->tile.swizzle}) >> 62);
  descriptors_.emplace_back(key, name);
  return name;
}

OperandDTypes ProductEmitter::operand_dtypes(const matile::Dot& op) const {
  const auto dtype_of = [&](ir::Name name) {
    const SlotTileInfo* slot_tile = scope_.resources.slot_tile(name).second;
    return slot_tile ? slot_tile->op->type.dtype
                     : scope_.registers.tiles.find(name.str())->second.op->type.dtype;
  };
  return {dtype_of(op.a), dtype_of(op.b)};
}

void ProductEmitter::dot(const matile::Dot& op) {
  const auto& acc = scope_.registers.tiles.find(op.acc.str())->second;
  const std::vector<int> shape = matile::static_shape(acc.op->type);
  const auto [b_ring, b_slot_tile] = scope_.resources.slot_tile(op.b);
  const bool is_trans = op.trans == matile::Trans::Yes;
  const layout::Major b_major = is_trans ? layout::Major::K : layout::Major::MN;
  const layout::Operand b = operand(*b_slot_tile, b_major);
  const auto a_tile = scope_.registers.tiles.find(op.a.str());
  const bool a_in_registers = a_tile != scope_.registers.tiles.end();
  const int n = shape[1];
  const bool is_transposed = op.trans_a == matile::Trans::Yes;
  const FirstOperand form = a_in_registers  ? FirstOperand::Registers
                            : is_transposed ? FirstOperand::DepthByRows
                                            : FirstOperand::RowsByDepth;
  const OperandDTypes dtypes = operand_dtypes(op);
  scope_.instructions.products.emplace(dtypes, n, form);
  const std::string function = product_name(dtypes, n, form);

  const auto at_slot = [&](ir::Name slot_tile_name, layout::Major major, Expr rows) {
    const auto [ring, slot_tile] = scope_.resources.slot_tile(slot_tile_name);
    std::string out = descriptor(slot_tile_name, major, rows);
    if (ring->slots() > 1)
      out = fmt::format("descriptor_at({}, {}.slot * {})", out, identifier(ring->op->name.str()),
                        ring->slot_bytes / 16);
    return out;
  };
  out_.line("wgmma_fence();");
  out_.open("{{  // {} {} {} . {}", op.acc.str(),
            op.mode == matile::DotMode::Init ? "=" : "+=", op.a.str(), op.b.str());
  if (!a_in_registers) out_.line("const u64 from_a = {};", at_slot(op.a, major_of_a(op), op.rows));
  out_.line("const u64 from_b = {};", at_slot(op.b, b_major, {}));
  const int blocks = shape[0] / 64;
  for (int k = 0; k < b.k_steps(); ++k) {
    for (int x = 0; x < blocks; ++x) {
      const char* mode = k == 0 && op.mode == matile::DotMode::Init ? "INIT" : "ADD";
      std::string a = fmt::format("{}, {}", identifier(op.a.str()), 4 * (k + x * b.k_steps()));
      if (!a_in_registers) {
        layout::Operand rows = operand(*scope_.resources.slot_tile(op.a).second, major_of_a(op));
        rows.first_mn = 64 * x;
        const auto first = layout::step_descriptor(
            operand(*scope_.resources.slot_tile(op.a).second, major_of_a(op)), 0);
        const uint32_t shift = (layout::step_descriptor(rows, k).start - first.start) / 16;
        a = stepped("from_a", shift);
      }
      out_.line("{}<{}, {}>({}, {}, {}, {});", function, mode, is_trans ? 0 : 1,
                identifier(op.acc.str()), x * n / 2, a,
                stepped("from_b", layout::step_advance(b, k)));
    }
  }
  out_.close();
  out_.line("wgmma_commit();");
  if (a_in_registers) a_of_[std::string(op.acc.str())] = op.a;
}

void ProductEmitter::warp_dot(const matile::WarpDot& op) {
  const auto& acc = scope_.registers.tiles.find(op.acc.str())->second;
  const std::string name = identifier(op.acc.str());
  const auto address = [&](ir::Name slot_tile_name) {
    const auto [ring, slot_tile] = scope_.resources.slot_tile(slot_tile_name);
    return scope_.own_slot_address(*ring, *slot_tile);
  };
  const SlotTileInfo& a = *scope_.resources.slot_tile(op.a).second;
  const SlotTileInfo& b = *scope_.resources.slot_tile(op.b).second;
  out_.open("{{  // {} = {} . {}, by this warp", op.acc.str(), op.a.str(), op.b.str());
  out_.line("const u32 from_a = {}{};", address(op.a),
            op.rows ? fmt::format(" + ({}) * 128", scope_.text(op.rows)) : "");
  out_.line("const u32 from_b = {};", address(op.b));
  out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
  out_.line("UNROLL for (int reg = 0; reg < {}; ++reg) {}[reg] = 0.f;", array_length(acc), name);
  out_.open("NO_UNROLL for (int step = 0; step < {}; ++step) {{", a.tile.cols / 16);
  out_.line("u32 x[4], y[4];");
  out_.line(
      "ldmatrix_x4(from_a + step / 4 * {} + row * 128 + ((step % 4 * 2 + half) ^ (row % 8)) "
      "* 16, x);",
      a.tile.panel_bytes());
  out_.open("UNROLL for (int reg = 0; reg < {}; reg += 8) {{", array_length(acc));
  out_.line(
      "ldmatrix_x4(from_b + step / 4 * {} + (2 * reg + 8 * half + lane % 8) * 128 + ((step % "
      "4 * 2 + lane / 8 % 2) ^ (lane % 8)) * 16, y);",
      b.tile.panel_bytes());
  out_.line("mma_{}({}, reg, x, y[0], y[1]);", expr::name(b.op->type.dtype), name);
  out_.line("mma_{}({}, reg + 4, x, y[2], y[3]);", expr::name(b.op->type.dtype), name);
  out_.close();
  out_.close();
  out_.close();
}

void ProductEmitter::wait(const matile::Wait& op) {
  if (!op.acc) return out_.line("wgmma_wait<{}>();", *op.leaves);
  std::vector<RegisterArray> arrays;
  std::string names;
  const auto add = [&](ir::Name name) {
    const TileText& tile = scope_.registers.tiles.find(name.str())->second;
    arrays.push_back({register_type(tile), array_length(tile)});
    names += (names.empty() ? "" : ", ") + identifier(name.str());
  };
  add(op.acc);
  if (const auto it = a_of_.find(std::string(op.acc.str())); it != a_of_.end()) add(it->second);
  scope_.instructions.waits.insert(arrays);
  out_.line("wgmma_wait<{}>({});", *op.leaves, names);
}

}  // namespace nautilus::emit
