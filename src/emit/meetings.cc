// SPDX-License-Identifier: Apache-2.0
#include "emit/meetings.h"

#include "emit/expression.h"
#include "emit/vector.h"

namespace nautilus::emit {

void emit_warps(const matile::Warps& op, const RegisterScope& scope, const Meeting& meeting,
                Writer& out) {
  const TileText& tile = scope.tiles.find(op.tile.str())->second;
  const layout::Layout& layout = tile.layout;
  const std::string name = identifier(op.tile.str());
  // Elements of a warp are counted over registers and over the lanes that hold different ones; of
  // the lanes that hold the same, one writes.
  std::string element;
  std::string writer;
  int stride = 1;
  bool is_shared = false;
  for (const layout::Digit& d : layout.digits()) {
    if (d.owner == layout::Owner::Warp) is_shared = d.axis == layout::kCopies && d.extent == 4;
    if (d.owner != layout::Owner::Lane) continue;
    const std::string digit =
        d.extent == 32 ? "lane" : fmt::format("lane / {} % {}", d.owner_stride, d.extent);
    if (d.axis == layout::kCopies) {
      writer += fmt::format("{}{} == 0", writer.empty() ? "" : " && ", digit);
    } else {
      element += fmt::format("{} * ({}) + ", stride, digit);
      stride *= d.extent;
    }
  }
  NAUT_CHECK(is_shared && !is_packed(tile), "the warps do not share the elements of `{}`",
             op.tile.str());
  const std::string from = fmt::format("to + 16 * ({}{} * reg)", element, stride);
  out.open("{{  // {}: the warps' parts", op.tile.str());
  out.line("const u32 to = {} + {} * {};", meeting.address, meeting.cursor, meeting.buffer_bytes);
  out.line("UNROLL for (int reg = 0; reg < {}; ++reg)", layout.registers());
  out.line("  {}shared_store_f32({} + 4 * warp, {}[reg]);",
           writer.empty() ? "" : fmt::format("if ({}) ", writer), from, name);
  out.line("bar_sync({}, 128);", meeting.barrier);
  out.open("UNROLL for (int reg = 0; reg < {}; ++reg) {{", layout.registers());
  out.line("float parts[4];");
  out.line("shared_load_f32x4({}, parts);", from);
  out.line("{}[reg] = {};", name,
           combined(op.reducer, combined(op.reducer, "parts[0]", "parts[1]"),
                    combined(op.reducer, "parts[2]", "parts[3]")));
  out.close();
  out.line("{0} = 1 - {0};", meeting.cursor);
  out.close();
}

namespace {

// Of `parts[0]` to the last, neighbours first: a chain as short as can be, and the same order
// everywhere.
std::string combined_parts(expr::Reducer reducer, int count) {
  std::vector<std::string> parts;
  for (int k = 0; k < count; ++k) parts.push_back(fmt::format("parts[{}]", k));
  while (parts.size() > 1) {
    std::vector<std::string> halves;
    for (size_t k = 0; k + 1 < parts.size(); k += 2)
      halves.push_back(combined(reducer, parts[k], parts[k + 1]));
    if (parts.size() % 2) halves.push_back(parts.back());
    parts = std::move(halves);
  }
  return parts[0];
}

}  // namespace

void emit_groups(const matile::Groups& op, const RegisterScope& scope, const GroupMeeting& meeting,
                 Writer& out) {
  const std::string name = identifier(op.tile.str());
  const layout::Layout& layout = scope.tiles.find(op.tile.str())->second.layout;
  NAUT_CHECK(layout.registers() == 1, "`{}` is more than one value", op.tile.str());
  const Meeting& place = meeting.place;
  const int warps = meeting.are_warps_apart ? 4 : 1;
  const int words = warps * meeting.groups;
  out.open("{{  // {}: the groups' parts", op.tile.str());
  out.line("const u32 to = {} + {} * {};", place.address, place.cursor, place.buffer_bytes);
  out.line("if ({}) shared_store_f32(to + 4 * {}, {}[0]);",
           meeting.are_warps_apart ? "lane == 0" : one_of_copies(layout),
           meeting.are_warps_apart ? fmt::format("(4 * {} + warp)", meeting.group) : meeting.group,
           name);
  out.line("bar_sync({}, {});", place.barrier, 128 * meeting.groups);
  out.line("float parts[{}];", words);
  out.line("UNROLL for (int digit = 0; digit < {}; ++digit) {};", meeting.groups,
           meeting.are_warps_apart ? "shared_load_f32x4(to + 16 * digit, parts + 4 * digit)"
                                   : "parts[digit] = shared_load_f32(to + 4 * digit)");
  out.line("{}[0] = {};", name, combined_parts(op.reducer, words));
  out.line("{0} = 1 - {0};", place.cursor);
  out.close();
}

// A CTA that writes the same buffer again has passed the barrier of the other one, which those that
// read this buffer reach after they have: two buffers are enough.
void emit_ctas(const matile::Ctas& op, const RegisterScope& scope, const CtaMeeting& meeting,
               Writer& out) {
  const std::string name = identifier(op.tile.str());
  NAUT_CHECK(scope.tiles.find(op.tile.str())->second.layout.registers() == 1,
             "`{}` is more than one value", op.tile.str());
  out.open("{{  // {}: the CTAs' parts", op.tile.str());
  out.line("const u32 to = {} + {} * {};", meeting.address, meeting.cursor, meeting.buffer_bytes);
  out.line("if (thread < {}) shared_store_remote_f32(to + 4 * ({}), thread, {}[0]);", meeting.ctas,
           meeting.rank, name);
  out.line("sync_cluster();");
  out.line("float parts[{}];", meeting.ctas);
  out.line("UNROLL for (int cta = 0; cta < {}; ++cta) parts[cta] = shared_load_f32(to + 4 * cta);",
           meeting.ctas);
  out.line("{}[0] = {};", name, combined_parts(op.reducer, meeting.ctas));
  out.line("{0} = 1 - {0};", meeting.cursor);
  out.close();
}

}  // namespace nautilus::emit
