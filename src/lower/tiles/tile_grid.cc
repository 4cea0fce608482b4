// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

class Numbering {
 public:
  Numbering(const ir::Axes& axes, FreshNames& names, expr::ExprPool& pool)
      : axes_(axes), names_(names), pool_(pool) {}

  TileGrid run(const GridFacts& facts) {
    cluster_ = facts.rows >= 0 && facts.growing < 0 ? facts.packing.cluster : 1;
    if (cluster_ > 1) out_.rank = names_.make("rank");
    for (size_t k = 0; k < axes_.size(); ++k) {
      const bool is_paired = cluster_ > 1 && static_cast<int>(k) == facts.rows;
      const std::string stem(axes_[k].name.str());
      const Expr pairs =
          is_paired ? div(pool_.binary(EK::Add, axes_[k].extent, pool_.integer(cluster_ - 1)),
                          pool_.integer(cluster_))
                    : axes_[k].extent;
      counts_.push_back(plan_let(stem + (is_paired ? "_pairs" : "_tiles"), pairs));
    }
    Expr tiles;
    for (Expr c : counts_) tiles = tiles ? mul(tiles, c) : c;
    if (!tiles) tiles = pool_.integer(1);
    tiles = plan_let("tiles", tiles);
    out_.tile = names_.make("t");
    out_.op = {names_.make("T"), tiles, matile::TileSource::Static, {}};
    Expr t = pool_.index(out_.tile);
    if (facts.order.kind == decision::OrderKind::Longest) {
      longest_first(t, facts);
    } else if (facts.order.kind == decision::OrderKind::Raster) {
      raster(t, facts);
    } else {
      std::vector<size_t> all;
      for (size_t k = 0; k < axes_.size(); ++k) all.push_back(k);
      split(t, all);
    }
    if (facts.source.kind == decision::SourceKind::Dynamic) dynamic();
    const Expr ctas = cluster_ > 1 ? mul(pool_.integer(cluster_), tiles) : tiles;
    const int64_t resident = facts.packing.resident;
    const Expr sms = pool_.index(facts.machine);
    out_.launch =
        pool_.binary(EK::Min, ctas, resident > 1 ? mul(pool_.integer(resident), sms) : sms);
    return std::move(out_);
  }

 private:
  Expr mul(Expr a, Expr b) { return pool_.binary(EK::Mul, a, b); }
  Expr sub(Expr a, Expr b) { return pool_.binary(EK::Sub, a, b); }
  Expr div(Expr a, Expr b) { return pool_.binary(EK::FloorDiv, a, b); }
  Expr mod(Expr a, Expr b) { return pool_.binary(EK::Mod, a, b); }

  // A named scalar of the plan, unless the value is as short as a name.
  Expr plan_let(const std::string& stem, Expr value) {
    if (value.op() == EK::Var || value.is_const()) return value;
    const ir::Name name = names_.make(stem);
    out_.plan.push_back(ir::make(matile::Let{name, value}));
    return pool_.index(name);
  }
  Expr let(const std::string& stem, Expr value) {
    if (value.op() == EK::Var || value.is_const()) return value;
    const ir::Name name = names_.make(stem);
    out_.decode.push_back(ir::make(matile::Let{name, value}));
    return pool_.index(name);
  }
  void coordinate(size_t axis, Expr value) {
    out_.decode.push_back(ir::make(matile::Let{axes_[axis].name, value}));
  }

  // The number as coordinates of these axes, the last one fastest.
  void split(Expr number, const std::vector<size_t>& axes) {
    for (size_t k = axes.size(); k-- > 0;) {
      if (k == 0) return coordinate(axes[0], number);
      const Expr count = counts_[axes[k]];
      coordinate(axes[k], mod(number, count));
      number = k == 1 ? div(number, count) : let("rest", div(number, count));
    }
  }

  std::vector<size_t> others(size_t a, size_t b) const {
    std::vector<size_t> out;
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (k != a && k != b) out.push_back(k);
    }
    return out;
  }

  void raster(Expr t, const GridFacts& facts) {
    const auto rows = static_cast<size_t>(facts.rows);
    const auto cols = static_cast<size_t>(facts.cols);
    const Expr tm = counts_[rows];
    const Expr tn = counts_[cols];
    if (const auto batch = others(rows, cols); !batch.empty()) {
      const Expr plane = let("plane", div(t, mul(tm, tn)));
      split(plane, batch);
      t = let("inner", sub(t, mul(plane, mul(tm, tn))));
    }
    const Expr most = pool_.integer(facts.order.rows.value_or(1));
    const Expr group = let("group", div(t, mul(most, tn)));
    const Expr rest = let("in_group", sub(t, mul(group, mul(most, tn))));
    const Expr height = let("height", pool_.binary(EK::Min, most, sub(tm, mul(most, group))));
    coordinate(cols, div(rest, height));
    Expr row = pool_.binary(EK::Add, mul(most, group), mod(rest, height));
    if (cluster_ > 1)
      row = pool_.binary(EK::Add, mul(pool_.integer(cluster_), row), pool_.index(out_.rank));
    coordinate(rows, row);
  }

  void longest_first(Expr t, const GridFacts& facts) {
    const auto growing = static_cast<size_t>(facts.growing);
    const Expr shared_bytes = facts.shared_bytes;
    const Expr lengths = counts_[growing];
    auto rest_axes = others(growing, growing);
    std::stable_partition(rest_axes.begin(), rest_axes.end(),
                          [&](size_t k) { return static_cast<int>(k) != facts.repeated; });
    Expr heads;
    for (size_t k : rest_axes) heads = heads ? mul(heads, counts_[k]) : counts_[k];
    if (!heads) {
      coordinate(growing, sub(sub(lengths, pool_.integer(1)), t));
      return;
    }
    heads = plan_let("planes", heads);
    const Expr one = pool_.integer(1);
    Expr section = heads;
    const int64_t section_bytes = facts.order.section_mib.value_or(0) << 20;
    if (shared_bytes && section_bytes > 0) {
      const Expr bytes = pool_.binary(EK::Max, shared_bytes, one);
      const Expr fit = pool_.binary(EK::Max, div(pool_.integer(section_bytes), bytes), one);
      section = plan_let("section", pool_.binary(EK::Min, fit, heads));
    }
    const Expr number = let("section_number", div(t, mul(section, lengths)));
    const Expr first = mul(number, section);
    const Expr width = let("width", pool_.binary(EK::Min, section, sub(heads, first)));
    const Expr rest = let("in_section", sub(t, mul(number, mul(section, lengths))));
    coordinate(growing, sub(sub(lengths, one), div(rest, width)));
    split(let("plane", pool_.binary(EK::Add, first, mod(rest, width))), rest_axes);
  }

  void dynamic() {
    const ir::Name counter = names_.make("next_tile");
    out_.plan.push_back(ir::make(matile::Tensor{
        counter, {expr::DType::I32, {pool_.integer(1)}}, matile::TensorRole::Scratch}));
    out_.op.source = matile::TileSource::Dynamic;
    out_.op.counter = counter;
  }

  const ir::Axes& axes_;
  FreshNames& names_;
  expr::ExprPool& pool_;
  std::vector<Expr> counts_;
  int64_t cluster_ = 1;
  TileGrid out_;
};

}  // namespace

std::string refuse_order(const decision::TileOrder& order, const GridFacts& facts,
                         const target::Target& target) {
  const int64_t most_rows = target.tiles.most_raster_rows;
  using decision::OrderKind;
  const bool is_raster = order.kind == OrderKind::Raster;
  const bool is_longest = order.kind == OrderKind::Longest;
  if (order.rows.has_value() != is_raster || (order.section_mib && !is_longest))
    return "a raster counts rows of tiles, sections are for `longest`";
  if (is_raster && (*order.rows < 1 || *order.rows > most_rows))
    return fmt::format("a raster has 1 to {} rows of tiles", most_rows);
  if (is_raster && facts.rows < 0) return "no two axes of tiles share operands";
  if (is_longest && facts.growing < 0) return "all tiles have as many steps";
  if (order.section_mib && (*order.section_mib < 1 || !facts.shared_bytes))
    return "sections are for operands that tiles share";
  if (!is_raster && facts.packing.cluster > 1) return "tiles of a cluster need a raster";
  return "";
}

std::string refuse_source(const decision::TileSource& source, const GridFacts& facts) {
  const bool is_dynamic = source.kind == decision::SourceKind::Dynamic;
  return is_dynamic && facts.packing.cluster > 1 ? "CTAs of a cluster have their tiles by number"
                                                 : "";
}

TileGrid number_tiles(const ir::Axes& axes, const GridFacts& facts, FreshNames& names,
                      expr::ExprPool& pool) {
  return Numbering(axes, names, pool).run(facts);
}

}  // namespace nautilus::lower
