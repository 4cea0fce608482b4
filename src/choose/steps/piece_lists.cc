// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/piece_lists.h"

#include <algorithm>

#include "choose/steps/along_axis.h"
#include "expr/walk.h"
#include "lower/program_nests.h"

namespace nautilus::choose {
namespace {

using expr::Expr;
using lower::MapNest;
using EK = expr::Op;

bool reads_what(const MapNest& nest, const MapNest& writer) {
  const std::set<std::string> read = lower::kept_for({}, std::span<const MapNest>(&nest, 1));
  const std::set<std::string> written = lower::written_by(writer);
  return std::any_of(written.begin(), written.end(),
                     [&](const std::string& w) { return read.contains(w); });
}

bool has_same_extents(const ir::Axes& a, const ir::Axes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ir::Axis& x, const ir::Axis& y) { return x.extent == y.extent; });
}

}  // namespace

std::optional<int64_t> pieces_of(std::span<const MapNest> nests, ir::Name reduction) {
  const auto find = [&](ir::Name name) -> std::optional<AlongAxis> {
    for (const MapNest& nest : nests) {
      if (lower::written_by(nest).contains(std::string(name.str()))) return along_axis(nest);
    }
    return std::nullopt;
  };
  const auto rest = find(reduction);
  const Expr part = rest ? part_read(*rest) : Expr();
  const auto first = part ? find(part.name()) : std::nullopt;
  if (!first || first->axis.extent.op() != EK::IntConst) return std::nullopt;
  return first->axis.extent.integer();
}

size_t put_pieces(std::vector<MapNest>& nests, size_t place, const PieceStages& made,
                  const std::set<std::string>& kept) {
  nests[place] = made.rest;
  // Behind the last first step of the same pieces, if it needs nothing that is computed later.
  size_t at = place;
  for (size_t k = place; k-- > 0;) {
    const auto needs = [&](const MapNest& first) { return reads_what(first, nests[k]); };
    if (has_same_extents(nests[k].axes, made.first[0].axes)) {
      at = k + 1;
      break;
    }
    if (std::any_of(made.first.begin(), made.first.end(), needs)) break;
  }
  nests.insert(nests.begin() + static_cast<std::ptrdiff_t>(at), made.first.begin(),
               made.first.end());
  size_t left = place + made.first.size();
  // Elements between reductions are moved away, so that the reductions share a kernel.
  for (size_t k = left; k-- > 0;) {
    if (!element_of(nests[k]) || nests[k].axes.size() <= made.rest.axes.size()) continue;
    const auto begin = nests.begin() + static_cast<std::ptrdiff_t>(k);
    const auto end = nests.begin() + static_cast<std::ptrdiff_t>(left + 1);
    const auto needs = [&](const MapNest& later) { return reads_what(later, nests[k]); };
    if (std::any_of(begin + 1, end, needs)) continue;
    const std::set<std::string> written = lower::written_by(nests[k]);
    const bool is_kept = std::any_of(written.begin(), written.end(),
                                     [&](const std::string& w) { return kept.contains(w); });
    if (is_kept || std::any_of(end, nests.end(), needs))
      std::rotate(begin, begin + 1, end);
    else
      nests.erase(begin);
    --left;
  }
  return left;
}

std::optional<int64_t> usual_piece(const MapNest& nest, const target::Target& target) {
  const auto own = along_axis(nest);
  if (!own || own->axis.extent.op() != EK::IntConst) return std::nullopt;
  int64_t rows = 1;
  for (const ir::Axis& a : nest.axes) {
    if (a.extent.op() != EK::IntConst || a.extent.integer() >= target.board.sms)
      return std::nullopt;
    rows *= std::max<int64_t>(a.extent.integer(), 1);
    if (rows >= target.board.sms) return std::nullopt;
  }
  const int64_t n = own->axis.extent.integer();
  std::optional<int64_t> out;
  for (const int64_t length : target.rows.pieces) {
    if (n < 2 * length) continue;
    out = length;
    if (rows * ((n + length - 1) / length) >= target.rows.resident_pieces * target.board.sms) break;
  }
  return out;
}

std::optional<int64_t> usual_column_piece(const MapNest& nest, const target::Target& target,
                                          const std::function<double(Expr)>& usual,
                                          expr::ExprPool& pool) {
  const auto own = along_axis(nest);
  if (!own || nest.axes.empty()) return std::nullopt;
  const Expr last = pool.index(nest.axes.back().name);
  const Expr axis = pool.index(own->axis.name);
  bool is_across = false;
  bool is_along = false;
  expr::for_each(own->update->value, [&](Expr e) {
    if (e.op() != EK::Read || !expr::depends_on(e, axis)) return;
    is_across |= e.args().back() == last;
    is_along |= expr::depends_on(e.args().back(), axis);
  });
  if (!is_across || is_along) return std::nullopt;
  double points = 1;
  for (const ir::Axis& a : nest.axes) points *= usual(a.extent);
  const int64_t length = target.points.column_piece;
  // With fewer pieces one kernel with lanes, or parts without a number between, is as good.
  const auto least = static_cast<double>(target.points.column_pieces * length);
  const bool is_few = points < static_cast<double>(target.points.few_results);
  return is_few && usual(own->axis.extent) >= least ? std::optional(length) : std::nullopt;
}

}  // namespace nautilus::choose
