// SPDX-License-Identifier: Apache-2.0
// What touches shared memory: rings and copies, operands of products, staging.
#include <algorithm>

#include "emit/kernel_emitter.h"

namespace nautilus::emit {

using expr::Expr;
using ir::Op;
using matile::RingInfo;
using matile::SlotTileInfo;

// Maps that the role copies with are fetched early; operands of products get their descriptors.
void KernelEmitter::maps_and_descriptors() {
  std::set<std::string> maps;
  ir::for_each_op(role_->op->body, [&](const Op& op) {
    if (const auto* c = op.get<matile::Copy>()) maps.emplace(c->map.str());
    if (const auto* d = op.get<matile::Dot>()) {
      descriptor(d->a, layout::Major::K, d->rows);
      descriptor(d->b, d->trans == matile::Trans::Yes ? layout::Major::K : layout::Major::MN, {});
    }
  });
  for (const std::string& m : maps) out_.line("tma_prefetch(&p.{});", identifier(m));
}

layout::Operand KernelEmitter::operand(const SlotTileInfo& part, layout::Major major) {
  return {.tile = part.tile, .major = major};
}

// The name of the variable that describes a part; declares it at first sight.
std::string KernelEmitter::descriptor(ir::Name part_name, layout::Major major, Expr rows) {
  const auto [ring, part] = r_.part(part_name);
  if (!part) return "";  // a register tile
  const auto key = std::make_tuple(part_name, major, rows);
  for (const auto& [known, name] : descriptors_) {
    if (known == key) return name;
  }
  std::string name = identifier(part_name.str()) + "_desc";
  if (!descriptors_.empty()) {
    const auto clashes = std::count_if(descriptors_.begin(), descriptors_.end(),
                                       [&](auto& d) { return d.second.starts_with(name); });
    if (clashes > 0) name += fmt::format("{}", clashes + 1);
  }
  const layout::MatrixDescriptor d = layout::step_descriptor(operand(*part, major), 0);
  std::string address = fmt::format("smem + {}", ring->offset + part->offset);
  if (ring->copies > 1) address += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
  if (rows)
    address += fmt::format(" + ({}) * {}", text(rows), layout::span_bytes(part->tile.swizzle));
  out_.line("const u64 {} = matrix_descriptor({}, {}, {}, {});", name, address, d.leading, d.stride,
            layout::encode({.swizzle = part->tile.swizzle}) >> 62);
  descriptors_.emplace_back(key, name);
  return name;
}

void KernelEmitter::fill(const matile::Fill& op) {
  const RingInfo& ring = *r_.ring(op.ring);
  const std::string name = identifier(op.ring.str());
  int bytes = 0;
  for (const SlotTileInfo& part : ring.parts) bytes += part.tile.bytes();
  std::string copy;
  if (op.group) {
    const std::string g = identifier(op.group.str());
    define(op.group);
    facts_.add_size(pool_.index(op.group));
    out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", g, ring.copies);
    out_.line("const u32 full = {}.fill_copy({}, {});", name, g, bytes);
    copy = fmt::format(" + {} * {}", g, ring.copy_bytes());
  } else {
    out_.open("{{");
    out_.line("const u32 full = {}.fill({});", name, bytes);
  }
  for (const Op& inner : op.body) {
    const auto& c = inner.as<matile::Copy>();
    const auto [owner, part] = r_.part(c.part);
    const std::string panel =
        c.panel ? fmt::format(" + {}", *c.panel * part->tile.panel_bytes()) : "";
    const std::string to = slot_address(ring, *part, name) + copy + panel;
    const std::string map = identifier(c.map.str());
    if (c.reach == matile::Reach::Own) {
      out_.line("tma_load({}, &p.{}, full{});", to, map, list(c.at));
      continue;
    }
    const matile::Share share = *matile::share_of(*part, r_.cluster);
    const std::string mine = kernel_.rank ? identifier(kernel_.rank.str()) : "(" + rank() + ")";
    std::string at;
    for (size_t k = 0; k < c.at.size(); ++k) {
      at += ", ";
      if (k == share.axis) {
        at += share.extent > 1 ? fmt::format("{} * {}", mine, share.extent) : mine;
        if (c.at[k].is_int(0)) continue;
        at += " + ";
      }
      // Only a choice binds weaker than a sum.
      at += c.at[k].op() == expr::Op::Select ? "(" + text(c.at[k]) + ")" : text(c.at[k]);
    }
    out_.line("tma_load_all<{}>({} + {} * {}, &p.{}, full{});", r_.cluster, to, mine, share.bytes,
              map, at);
  }
  if (op.group) {
    out_.close();
    return out_.line("{}.advance();", name);
  }
  out_.line("{}.advance();", name);
  out_.close();
}

std::string KernelEmitter::slot_address(const RingInfo& ring, const SlotTileInfo& part,
                                        const std::string& name) {
  std::string out = fmt::format("smem + {}", ring.offset + part.offset);
  if (ring.slots() > 1) out += fmt::format(" + {}.slot * {}", name, ring.slot_bytes);
  return out;
}

void KernelEmitter::get(ir::Name ring) {
  // The cursor stands on the newest slot held, or on the next one if none is.
  if (held_[std::string(ring.str())]++ > 0) out_.line("{}.advance();", identifier(ring.str()));
  out_.line("{}.get();", identifier(ring.str()));
}

// The oldest slot held is `held - 1` gets behind the cursor.
void KernelEmitter::release(ir::Name ring) {
  int& held = held_[std::string(ring.str())];
  const bool is_stage = std::any_of(r_.stages.begin(), r_.stages.end(),
                                    [&](const auto& s) { return s.op->ring == ring; });
  if (is_stage) out_.line("if (leader) tma_wait_read<0>();");
  out_.line("{}.release({}, lane);", identifier(ring.str()), held - 1);
  if (--held == 0) out_.line("{}.advance();", identifier(ring.str()));
}

std::string KernelEmitter::stepped(std::string_view base, uint32_t units) {
  return units == 0 ? std::string(base) : fmt::format("descriptor_at({}, {})", base, units);
}

void KernelEmitter::dot(const matile::Dot& op) {
  const auto& acc = scope_.tiles.find(op.acc.str())->second;
  const std::vector<int> shape = matile::static_shape(acc.op->type);
  const auto [b_ring, b_part] = r_.part(op.b);
  const bool is_trans = op.trans == matile::Trans::Yes;
  const layout::Major b_major = is_trans ? layout::Major::K : layout::Major::MN;
  const layout::Operand b = operand(*b_part, b_major);
  const auto a_tile = scope_.tiles.find(op.a.str());
  const bool a_in_registers = a_tile != scope_.tiles.end();
  const std::string_view dtype = expr::name(b_part->op->type.dtype);
  const int n = shape[1];
  instructions_.products.emplace(dtype, n, a_in_registers);

  const auto at_slot = [&](ir::Name part_name, layout::Major major, Expr rows) {
    const auto [ring, part] = r_.part(part_name);
    std::string out = descriptor(part_name, major, rows);
    if (ring->slots() > 1)
      out = fmt::format("descriptor_at({}, {}.slot * {})", out, identifier(ring->op->name.str()),
                        ring->slot_bytes / 16);
    return out;
  };
  out_.line("wgmma_fence();");
  out_.open("{{  // {} {} {} . {}", op.acc.str(),
            op.mode == matile::DotMode::Init ? "=" : "+=", op.a.str(), op.b.str());
  if (!a_in_registers)
    out_.line("const u64 from_a = {};", at_slot(op.a, layout::Major::K, op.rows));
  out_.line("const u64 from_b = {};", at_slot(op.b, b_major, {}));
  const int blocks = shape[0] / 64;
  for (int k = 0; k < b.k_steps(); ++k) {
    for (int x = 0; x < blocks; ++x) {
      const char* mode = k == 0 && op.mode == matile::DotMode::Init ? "INIT" : "ADD";
      std::string a = fmt::format("{}, {}", identifier(op.a.str()), 4 * (k + x * b.k_steps()));
      if (!a_in_registers) {
        layout::Operand rows = operand(*r_.part(op.a).second, layout::Major::K);
        rows.first_mn = 64 * x;
        const auto first =
            layout::step_descriptor(operand(*r_.part(op.a).second, layout::Major::K), 0);
        const uint32_t shift = (layout::step_descriptor(rows, k).start - first.start) / 16;
        a = stepped("from_a", shift);
      }
      out_.line("wgmma_{}_n{}<{}, {}>({}, {}, {}, {});", dtype, n, mode, is_trans ? 0 : 1,
                identifier(op.acc.str()), x * n / 2, a,
                stepped("from_b", layout::step_advance(b, k)));
    }
  }
  out_.close();
  out_.line("wgmma_commit();");
  if (a_in_registers) a_of_[std::string(op.acc.str())] = op.a;
}

// mma.sync on the rows of this warp; its accumulator lies as that of the warp group's product.
void KernelEmitter::warp_dot(const matile::WarpDot& op) {
  const auto& acc = scope_.tiles.find(op.acc.str())->second;
  const std::string name = identifier(op.acc.str());
  const auto address = [&](ir::Name part_name) {
    const auto [ring, part] = r_.part(part_name);
    std::string out = slot_address(*ring, *part, identifier(ring->op->name.str()));
    if (ring->copies > 1) out += fmt::format(" + {} * {}", group_text(), ring->copy_bytes());
    return out;
  };
  const SlotTileInfo& a = *r_.part(op.a).second;
  const SlotTileInfo& b = *r_.part(op.b).second;
  out_.open("{{  // {} = {} . {}, by this warp", op.acc.str(), op.a.str(), op.b.str());
  out_.line("const u32 from_a = {}{};", address(op.a),
            op.rows ? fmt::format(" + ({}) * 128", text(op.rows)) : "");
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

void KernelEmitter::wait(const matile::Wait& op) {
  if (!op.acc) return out_.line("wgmma_wait<{}>();", *op.leaves);
  std::vector<std::pair<bool, int>> arrays;
  std::string names;
  const auto add = [&](ir::Name name) {
    const TileText& tile = scope_.tiles.find(name.str())->second;
    arrays.emplace_back(expr::bytes(tile.op->type.dtype) == 2, array_length(tile));
    names += (names.empty() ? "" : ", ") + identifier(name.str());
  };
  add(op.acc);
  if (const auto it = a_of_.find(std::string(op.acc.str())); it != a_of_.end()) add(it->second);
  instructions_.waits.insert(arrays);
  out_.line("wgmma_wait<{}>({});", *op.leaves, names);
}

void KernelEmitter::ticket(const matile::Ticket& op) {
  const std::string name = identifier(op.name.str());
  const std::string slot = fmt::format("smem + {} + 4 * group", r_.tickets);
  const std::string sync = fmt::format("bar_sync({} + {}, 128);", role_->sync, group_text());
  out_.line("global_fence();");
  out_.line("{}", sync);
  out_.open("if (leader) {{");
  out_.line("int* const counter = p.{} + {};", identifier(op.counter.str()), text(op.index));
  out_.line("const bool is_last = global_add(counter, 1) == {} - 1;", text(op.count));
  out_.line("if (is_last) global_set(counter, 0);");
  out_.line("shared_store_i32({}, is_last);", slot);
  out_.close();
  out_.line("{}", sync);
  out_.line("const bool {} = uniform(shared_load_i32({})) != 0;", name, slot);
  out_.line("if ({}) global_fence();", name);
  define(op.name);
}

void KernelEmitter::store(const matile::Store& op) {
  const auto& stage = *r_.stage(op.stage);
  const auto& tile = scope_.tiles.find(op.tile.str())->second;
  const layout::FragmentStore fragment{.tile = stage.tile, .cols = stage.tile.cols};
  const std::string cursor = identifier(op.stage.str()) + "_at";
  const bool has_cursor = stage.buffers() > 1;
  check_store_formula(fragment);
  out_.open("{{  // store {} through {}", op.tile.str(), op.stage.str());
  if (const RingInfo* ring = stage.op->ring ? r_.ring(stage.op->ring) : nullptr) {
    // The newest slot held; it was given back, so that it could be filled, after it had been read.
    out_.line("const u32 to = {} + {} * {};",
              slot_address(*ring, ring->parts[0], identifier(ring->op->name.str())), group_text(),
              ring->copy_bytes());
  } else {
    out_.line("const u32 to = smem + {} + ({}{}) * {};", stage.offset,
              has_cursor ? fmt::format("{} * {} + ", group_text(), stage.buffers()) : group_text(),
              has_cursor ? cursor : "", stage.tile.bytes());
  }
  out_.line("const int row = 16 * warp + lane % 16, half = lane / 16;");
  if (!stage.op->ring) out_.line("if (leader) tma_wait_read<{}>();", stage.buffers() - 1);
  out_.line("bar_sync({} + {}, 128);", role_->sync, group_text());
  const std::string x = identifier(op.tile.str());
  out_.line(
      "UNROLL for (int step = 0; step < {0}; ++step) stmatrix_x4(to + step / 4 * {1} + row * 128 "
      "+ "
      "((2 * step % 8 + half) ^ (row % 8)) * 16, {2}[4 * step], {2}[4 * step + 1], {2}[4 * step "
      "+ "
      "2], {2}[4 * step + 3]);",
      array_length(tile) / 4, stage.tile.panel_bytes(), x);
  out_.line("fence_async();");
  out_.line("bar_sync({} + {}, 128);", role_->sync, group_text());
  out_.line("if (leader) {{ tma_store(&p.{}, to{}); tma_commit(); }}", identifier(op.map.str()),
            list(op.at));
  if (has_cursor) out_.line("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", cursor, stage.buffers());
  out_.close();
}

// The text above computes what layout/stmatrix.h defines.
void KernelEmitter::check_store_formula(const layout::FragmentStore& f) {
  for (int step = 0; step < f.steps(); ++step) {
    for (int warp = 0; warp < 4; ++warp) {
      for (int lane = 0; lane < 32; ++lane) {
        const int row = 16 * warp + lane % 16;
        const int half = lane / 16;
        const auto at = static_cast<uint32_t>(step / 4 * f.tile.panel_bytes() + row * 128 +
                                              ((2 * step % 8 + half) ^ (row % 8)) * 16);
        NAUT_CHECK(at == layout::lane_row_offset(f, warp, lane, step),
                   "the staging address of step {} is wrong", step);
      }
    }
  }
}

}  // namespace nautilus::emit
