// SPDX-License-Identifier: Apache-2.0
// Covers in which reductions have several steps: axes with the smallest strides first, or pieces of
// long rows.
#include <algorithm>

#include "choose/cover.h"
#include "choose/steps/moving_stages.h"
#include "choose/steps/piece_lists.h"
#include "choose/steps/stages.h"
#include "scalar/ops.h"

namespace nautilus::choose {

using lower::MapNest;

namespace {

size_t loops_of(const MapNest& nest) {
  for (const ir::Op& op : nest.body) {
    if (const auto* f = op.get<scalar::For>()) return f->axes.size();
  }
  return 0;
}

// This many of the reduction's axes with the smallest strides; empty if it has no steps.
ir::Names closest_axes(const MapNest& nest, size_t count,
                       const std::map<std::string, ir::TensorType>& buffers, expr::ExprPool& pool) {
  const auto order = axes_in_memory(nest, buffers, pool);
  if (order.empty()) return {};
  const ir::Axes& reduced = nest.body[1].as<scalar::For>().axes;
  ir::Names closest;
  for (const ir::Name name : order) {
    for (const ir::Axis& a : reduced) {
      if (a.name == name) closest.push_back(name);
    }
  }
  if (closest.size() <= count) return {};
  closest.erase(closest.begin(), closest.end() - static_cast<std::ptrdiff_t>(count));
  return closest;
}

}  // namespace

bool Coverer::reads_any(const MapNest& nest, const std::set<std::string>& names) {
  const std::set<std::string> read = lower::kept_for({}, std::span<const MapNest>(&nest, 1));
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return read.contains(n); });
}

void Coverer::in_steps(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest) {
  for (size_t inner = loops_of(nests[0]); inner-- > 1;) in_steps(nests, inner, names, cheapest);
}

// This many axes with the smallest strides first. Neighbouring reductions over the same axes share
// the step, so that they read shared elements together.
void Coverer::in_steps(const Nests& nests, size_t inner, const lower::FreshNames& names,
                       Cheapest& cheapest) {
  lower::FreshNames own = names;
  Nests first;
  Nests rest;
  Cover out;
  std::set<std::string> written;
  for (const MapNest& nest : nests) {
    const ir::Names closest = closest_axes(nest, inner, buffers_, context_.pool);
    if (closest.empty() || reads_any(nest, written)) break;
    if (!first.empty() &&
        (nest.axes.size() != nests[0].axes.size() || loops_of(nest) != loops_of(nests[0])))
      break;
    const auto made = stages(nest, closest, buffers_, own, context_.pool);
    if (!made) break;
    declare(made->buffer, made->type, out);
    const std::string target = *lower::written_by(nest).begin();
    out.inner[target].push_back(
        ir::make(decision::Inner{closest, {}, context_.pool.name(target), {}, {}, {}}));
    written.insert(target);
    first.push_back(made->first);
    rest.push_back(made->rest);
  }
  if (first.empty()) return;
  Nests all = first;
  all.insert(all.end(), rest.begin(), rest.end());
  all.insert(all.end(), nests.begin() + static_cast<std::ptrdiff_t>(first.size()), nests.end());
  const size_t count = first.size();
  consider(out, all, own, cheapest);
  if (take_along(all, count, inner, own, out)) consider(out, all, own, cheapest);
}

// Few long rows in pieces, or few columns, all reductions along them that can be.
void Coverer::in_pieces(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest) {
  const auto hinted = [&](expr::Expr e) { return costs_.hinted_extent(e); };
  in_pieces(
      nests, [&](const MapNest& nest) { return usual_piece(nest, target_); }, names, cheapest);
  // Of sizes that were asked for: others may have few elements in a column.
  if (!costs_.is_asked()) return;
  in_pieces(
      nests,
      [&](const MapNest& nest) { return usual_column_piece(nest, target_, hinted, context_.pool); },
      names, cheapest);
}

void Coverer::in_pieces(const Nests& nests,
                        const std::function<std::optional<int64_t>(const MapNest&)>& usual,
                        const lower::FreshNames& names, Cheapest& cheapest) {
  std::optional<int64_t> length;
  for (const MapNest& nest : nests) {
    length = usual(nest);
    if (length || loops_of(nest) > 0) break;
  }
  if (!length) return;
  const std::set<std::string> kept = lower::kept_for(program_.outputs, after_);
  lower::FreshNames own = names;
  Nests all = nests;
  Cover out;
  for (size_t k = 0; k < all.size(); ++k) {
    if (usual(all[k]) != length) continue;
    const auto made = piece_stages(all, k, {*length}, signs_, {buffers_, own, context_.pool});
    if (!made) break;
    const std::string target = *lower::written_by(all[k]).begin();
    const ir::Name axis = all[k].body[1].as<scalar::For>().axes[0].name;
    moving_.insert(target);
    for (const auto& [name, type] : made->buffers) declare(name, type, out);
    decision::Inner line{{axis},        *length,        context_.pool.name(target),
                         made->against, made->elements, {}};
    if (line.number) line.length = {};  // that of the other reduction
    out.inner[target].push_back(ir::make(line));
    k = put_pieces(all, k, *made, kept);
  }
  if (!out.inner.empty()) consider(out, all, own, cheapest);
}

void Coverer::declare(ir::Name buffer, const ir::TensorType& type, Cover& out) {
  buffers_.insert_or_assign(std::string(buffer.str()), type);
  costs_.declare(buffer, type);
  out.buffers.emplace_back(buffer, type);
  out.priced.emplace_back(buffer, type);
}

// Sums with terms that need numbers of the first sums of the list, in the same steps: their first
// steps come after the first `count` nests.
bool Coverer::take_along(Nests& all, size_t count, size_t inner, lower::FreshNames& names,
                         Cover& out) {
  bool found = false;
  for (size_t k = 2 * count; k < all.size(); ++k) {
    if (loops_of(all[k]) == 0) continue;
    const ir::Names closest = closest_axes(all[k], inner, buffers_, context_.pool);
    auto made = closest.empty() ? std::nullopt
                                : moving_stages(all, k, closest, {buffers_, names, context_.pool});
    if (!made) break;
    const std::string target = *lower::written_by(all[k]).begin();
    moving_.insert(target);
    for (const auto& [name, type] : made->buffers) declare(name, type, out);
    out.inner[target].push_back(
        ir::make(decision::Inner{closest, {}, context_.pool.name(target), made->against, {}, {}}));
    all[k] = made->rest;
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(count);
    all.insert(at, made->first.begin(), made->first.end());
    count += made->first.size();
    k += made->first.size();
    found = true;
  }
  return found;
}

}  // namespace nautilus::choose
