// SPDX-License-Identifier: Apache-2.0
// Ops of kernels in nest form, before passes have split roles and placed tiles (docs/matile.md).
#pragma once

#include "ir/op.h"

namespace nautilus::matile {

enum class ConvertKind : uint8_t { Free, Lanes, Shared };
const std::vector<std::string_view>& words(ConvertKind);

struct Fetch {
  static constexpr std::string_view kFormat = "fetch $slot_tile from $map[$at]";
  static constexpr std::string_view kDoc =
      "Nest form: one box of a map becomes the content of a slot tile, or one box for each of its "
      "panels "
      "if it is as wide as one. `split_roles` makes it a fill of a loading role and a get.";
  ir::Name slot_tile;
  ir::Name map;
  ir::Exprs at;
  static void fields(auto& s, auto&& f) {
    f("slot_tile", s.slot_tile);
    f("map", s.map);
    f("at", s.at);
  }
  static const ir::OpInfo& info();
};

struct Reduce {
  static constexpr std::string_view kFormat = "reduce $target[$axes] = $value";
  static constexpr std::string_view kDoc =
      "Nest form: as fold, but of all elements, whoever holds them. `split_reductions` makes it a "
      "fold and the exchanges that the layout asks for.";
  ir::Name target;
  ir::Axes axes;
  ir::Expr value;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("axes", s.axes);
    f("value", s.value);
  }
  static const ir::OpInfo& info();
};

struct Convert {
  static constexpr std::string_view kFormat = "convert $target from $source way $kind";
  static constexpr std::string_view kDoc =
      "A tile brought to another layout. free: no element leaves its thread; lanes: none leaves "
      "its warp; shared: through shared memory.";
  ir::Name target;
  ir::Name source;
  ConvertKind kind = ConvertKind::Free;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("source", s.source);
    f("kind", s.kind);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::matile
