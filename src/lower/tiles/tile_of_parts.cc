// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_of_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/walk.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class PartsBinder {
 public:
  PartsBinder(const ir::Axes& tiles, expr::ExprPool& pool, TileOfParts& out, std::string* why)
      : tiles_(tiles), pool_(pool), out_(out), why_(why) {}

  bool run(const ir::Block& body, const matile::Points& points) {
    return find_parts(body) && bind_axes(points);
  }

 private:
  bool refuse(std::string reason) {
    if (why_->empty()) *why_ = std::move(reason);
    return false;
  }

  bool find_parts(const ir::Block& body) {
    for (const Op& op : body) {
      const auto* put = op.get<matile::Put>();
      if (!put) continue;
      if (!out_.puts.emplace(put->target.str(), put).second)
        return refuse(fmt::format("`{}` is written twice", put->target.str()));
    }
    std::string elsewhere;
    ir::for_each_op(body, [&](const Op& op) {
      const auto* put = op.get<matile::Put>();
      if (put && !out_.puts.contains(put->target.str())) elsewhere = put->target.str();
    });
    return elsewhere.empty() ||
           refuse(fmt::format("`{}` is not written once for every tile", elsewhere));
  }

  // The index of a read that is no axis of the points: the number of a part.
  size_t part_index(Expr read) const {
    size_t found = read.args().size();
    for (size_t k = 0; k < read.args().size(); ++k) {
      if (point_axes_.contains(read[k])) continue;
      if (found < read.args().size() || read[k].op() != EK::Var) return read.args().size();
      found = k;
    }
    return found;
  }

  // Where the tile's elements of the parts are tells what the axes of the points are in it.
  bool bind_axes(const matile::Points& points) {
    for (const ir::Axis& a : points.axes) point_axes_.insert(pool_.index(a.name));
    bool ok = true;
    for (const Op& op : points.body) {
      ir::for_each_expr(op, [&](Expr root) {
        expr::for_each(root, [&](Expr e) {
          const matile::Put* put = e.op() == EK::Read ? out_.put_of(e) : nullptr;
          if (ok && put) ok = bind(e, *put);
        });
      });
    }
    if (!ok) return false;
    if (!out_.part) return refuse("what follows reads no parts");
    for (const ir::Axis& a : points.axes) {
      const Expr axis = pool_.index(a.name);
      if (out_.positions.contains(axis)) continue;
      bool is_used = false;
      for (const Op& op : points.body)
        ir::for_each_expr(op, [&](Expr e) { is_used |= expr::depends_on(e, axis); });
      if (is_used) return refuse(fmt::format("`{}` is no axis of the parts", a.name.str()));
    }
    return true;
  }

  bool bind(Expr read, const matile::Put& put) {
    const size_t at = part_index(read);
    if (at == put.indices.size() || (out_.part && put.indices[at] != out_.part))
      return refuse(fmt::format("`{}` is read by more than its parts", put.target.str()));
    out_.part = put.indices[at];
    const bool is_known = std::any_of(tiles_.begin(), tiles_.end(), [&](const auto& a) {
      return pool_.index(a.name) == out_.part;
    });
    if (!is_known) return refuse(fmt::format("`{}` has no parts", put.target.str()));
    for (size_t k = 0; k < put.indices.size(); ++k) {
      if (k == at) continue;
      const auto [it, is_new] = out_.positions.emplace(read[k], put.indices[k]);
      if (read[k].op() != EK::Var || (!is_new && it->second != put.indices[k]))
        return refuse(fmt::format("`{}` is not read where its tile puts it", put.target.str()));
    }
    for (size_t k = 0; k < put.axes.size(); ++k) {
      const Expr lane = pool_.index(put.axes[k].name);
      if (out_.lanes.size() == k) out_.lanes.emplace_back(lane, put.axes[k].extent.integer());
      if (out_.lanes[k].first != lane || out_.lanes[k].second != put.axes[k].extent.integer())
        return refuse("the parts have tiles of different shapes");
    }
    for (Expr c = put.condition; c; c = c.op() == EK::And ? c[0] : Expr()) {
      const Expr own = c.op() == EK::And ? c[1] : c;
      // One of several tiles that have the same parts writes them; it need not be done.
      if (std::none_of(out_.lanes.begin(), out_.lanes.end(),
                       [&](const auto& l) { return expr::depends_on(own, l.first); }))
        return refuse(fmt::format("tiles share the parts of `{}`", put.target.str()));
      if (std::find(out_.conditions.begin(), out_.conditions.end(), own) == out_.conditions.end())
        out_.conditions.push_back(own);
    }
    return true;
  }

  const ir::Axes& tiles_;
  expr::ExprPool& pool_;
  TileOfParts& out_;
  std::string* why_;
  std::unordered_set<Expr> point_axes_;
};

}  // namespace

const matile::Put* TileOfParts::put_of(Expr read) const {
  const auto it = puts.find(read.name().str());
  return it == puts.end() ? nullptr : it->second;
}

bool read_tile_of_parts(const ir::Block& body, const matile::Points& points, const ir::Axes& tiles,
                        expr::ExprPool& pool, TileOfParts& out, std::string* why) {
  return PartsBinder(tiles, pool, out, why).run(body, points);
}

}  // namespace nautilus::lower
