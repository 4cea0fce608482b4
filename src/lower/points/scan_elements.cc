// SPDX-License-Identifier: Apache-2.0
#include "lower/points/scan_elements.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/scan_kernel.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

// The one equation of a scan.
struct OneScan {
  const scalar::Loop* loop = nullptr;
  const scalar::Store* store = nullptr;
  ir::Axes axes;  // all but the step
};

std::optional<OneScan> one_scan(const MapNest& nest) {
  if (!is_scan(nest)) return std::nullopt;
  OneScan out;
  out.loop = &nest.body[0].as<scalar::Loop>();
  if (out.loop->body.empty()) return std::nullopt;
  const ir::Block* body = &out.loop->body;
  const auto* f = body->front().get<scalar::For>();
  if (f && f->kind == scalar::LoopKind::Map) {
    out.axes = f->axes;
    body = &f->body;
  }
  if (body->size() != 1 || out.loop->body.size() != 1) return std::nullopt;
  out.store = body->front().get<scalar::Store>();
  return out.store ? std::optional(out) : std::nullopt;
}

// Of an axis of the scan, or of its steps; null for other places.
Expr extent_of(const OneScan& scan, Expr place, expr::ExprPool& pool) {
  for (const ir::Axis& a : scan.axes) {
    if (place == pool.index(a.name)) return a.extent;
  }
  const scalar::Loop& loop = *scan.loop;
  if (place != pool.index(loop.var)) return {};
  if (loop.direction == scalar::Direction::Up) return loop.from.is_int(0) ? loop.to : Expr();
  return loop.to.is_int(0)
             ? expr::canonical_index(pool, pool.binary(EK::Add, loop.from, pool.integer(1)))
             : Expr();
}

// The places of the scan in place of the axes of elements that read it so; nothing if the read is
// at another point.
std::optional<expr::Substitution> places_of(const OneScan& scan, const MapNest& next, Expr read,
                                            expr::ExprPool& pool) {
  if (read.args().size() != next.axes.size()) return std::nullopt;
  expr::Substitution out;
  for (const ir::Axis& a : next.axes) {
    const auto it = std::find(read.args().begin(), read.args().end(), pool.index(a.name));
    if (it == read.args().end()) return std::nullopt;
    const Expr place = scan.store->indices[static_cast<size_t>(it - read.args().begin())];
    const Expr extent = extent_of(scan, place, pool);
    if (!extent || extent != a.extent) return std::nullopt;
    out.emplace(pool.index(a.name), place);
  }
  return out;
}

// What all reads of the scan say; nothing if there are none, or if they differ.
std::optional<expr::Substitution> places_in(const OneScan& scan, const MapNest& next,
                                            expr::ExprPool& pool) {
  const auto* store = next.body.size() == 1 ? next.body[0].get<scalar::Store>() : nullptr;
  if (!store) return std::nullopt;
  std::optional<expr::Substitution> out;
  bool ok = true;
  expr::for_each(store->value, [&](Expr e) {
    if (e.op() != EK::Read || e.name() != scan.store->target) return;
    const auto places = places_of(scan, next, e, pool);
    ok &= places && (!out || *out == *places);
    out = places;
  });
  return ok ? out : std::nullopt;
}

}  // namespace

bool can_follow(const MapNest& first, const MapNest& next, const std::set<std::string>& written,
                expr::ExprPool& pool) {
  const auto scan = one_scan(first);
  if (!scan || is_scan(next) || !places_in(*scan, next, pool)) return false;
  bool ok = true;
  ir::for_each_expr(next.body[0], [&](Expr root) {
    for (ir::Name t : expr::tensors_read(root))
      ok &= t == scan->store->target || !written.contains(std::string(t.str()));
  });
  return ok;
}

MapNest with_elements(const std::vector<MapNest>& nests, expr::ExprPool& pool) {
  const auto scan = one_scan(nests[0]);
  if (!scan || nests.size() == 1) return nests[0];
  scalar::Loop loop = *scan->loop;
  for (size_t k = 1; k < nests.size(); ++k) {
    const expr::Substitution places = *places_in(*scan, nests[k], pool);
    auto store = nests[k].body[0].as<scalar::Store>();
    for (Expr& i : store.indices) i = expr::substitute(pool, i, places);
    store.value = expr::substitute(pool, store.value, places);
    ir::Op element = ir::make(std::move(store), nests[k].body[0].span());
    if (!scan->axes.empty())
      element = ir::make(scalar::For{scan->axes, scalar::LoopKind::Map, {std::move(element)}});
    loop.body.push_back(std::move(element));
  }
  return {{}, {ir::make(std::move(loop))}};
}

}  // namespace nautilus::lower
