// SPDX-License-Identifier: Apache-2.0
// Lines about which warp groups work on which tile: warp groups, the order of tiles and their
// source, the work of the last tile.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

enum class GroupKind : uint8_t { Sharing, Alternating };
const std::vector<std::string_view>& words(GroupKind);

struct Groups {
  static constexpr std::string_view kFormat = "groups $count $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: warp groups of a CTA that compute. sharing: each has some rows of the same tile. "
      "alternating: each has tiles of its own, and they take turns at the matrix unit. Form rows: "
      "groups that share a row.";
  ir::OptionalInt count;
  GroupKind kind = GroupKind::Sharing;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("count", s.count);
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class OrderKind : uint8_t { Plain, Raster, Longest };
const std::vector<std::string_view>& words(OrderKind);

struct TileOrder {
  static constexpr std::string_view kFormat =
      "order $kind{ by $rows}{ sections $section_mib}{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: the order in which CTAs take tiles. plain: the last axis fastest. raster by N: N "
      "rows of tiles are walked column by column. longest: tiles with the most steps first; the "
      "other axes in sections whose shared operands take so many MiB.";
  OrderKind kind = OrderKind::Plain;
  ir::OptionalInt rows;
  ir::OptionalInt section_mib;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("rows", s.rows);
    f("section_mib", s.section_mib);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

enum class SourceKind : uint8_t { Static, Dynamic };
const std::vector<std::string_view>& words(SourceKind);

struct TileSource {
  static constexpr std::string_view kFormat = "source $kind{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile: a CTA computes which tiles are its own (static), or takes the next one from a "
      "counter in memory (dynamic).";
  SourceKind kind = SourceKind::Static;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("kind", s.kind);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct LastTile {
  static constexpr std::string_view kFormat = "last $points points $parts parts $loads loads{ $by}";
  static constexpr std::string_view kDoc =
      "Form tile, where the tile that comes last puts parts together: so many elements at a time, "
      "of which it reads at most so many parts at once; half as many, or a quarter, in a loop "
      "where "
      "a thread would have more loads under way than this.";
  ir::OptionalInt points;
  ir::OptionalInt parts;
  ir::OptionalInt loads;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("points", s.points);
    f("parts", s.parts);
    f("loads", s.loads);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
