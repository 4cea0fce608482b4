// SPDX-License-Identifier: Apache-2.0
#include "emit/vector_access.h"

#include <algorithm>

#include "emit/expression.h"
#include "emit/limits.h"
#include "emit/walked_place.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "layout/line.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using expr::Poly;
using matile::Domain;

constexpr int kVectorBytes = 16;

// True if a comparison gives the same for all of a piece, which starts at a multiple of `width`.
bool is_whole(Expr condition, Expr axis, int64_t width, const RegisterScope& scope) {
  if (!expr::depends_on(condition, axis)) return true;
  const auto difference = difference_of(condition);
  const auto parts = difference ? difference->split(axis) : std::nullopt;
  const auto slope = parts ? parts->first.constant() : std::nullopt;
  if (slope == 1) return expr::is_multiple(parts->second, width, scope.divisors);
  if (slope != -1) return false;
  // limit - 1 - axis >= 0
  const auto limit = expr::plus(parts->second, 1);
  return limit && expr::is_multiple(*limit, width, scope.divisors);
}

// A quotient or remainder of a count along the axis that turns at multiples of `width` only.
bool turns_between_pieces(Expr e, Expr axis, int64_t width, const RegisterScope& scope) {
  if (e.op() != expr::Op::FloorDiv && e.op() != expr::Op::Mod) return false;
  if (expr::depends_on(e[1], axis)) return false;
  const auto count = Poly::of(e[0]);
  const auto parts = count ? count->split(axis) : std::nullopt;
  const auto by = Poly::of(e[1]);
  return parts && by && parts->first.constant() == 1 &&
         expr::is_multiple(parts->second, width, scope.divisors) &&
         expr::is_multiple(*by, width, scope.divisors);
}

bool is_same_in_piece(Expr e, Expr axis, int64_t width, const RegisterScope& scope) {
  if (!expr::depends_on(e, axis)) return true;
  if (e.op() == expr::Op::FloorDiv && turns_between_pieces(e, axis, width, scope)) return true;
  if (e.op() == expr::Op::Read || e.args().empty()) return false;
  return std::all_of(e.args().begin(), e.args().end(),
                     [&](Expr a) { return is_same_in_piece(a, axis, width, scope); });
}

// Elements that are counted through several dimensions: x[k / W, k % W], where no piece crosses a
// row.
bool is_folded(std::span<const Expr> indices, Expr axis, int64_t width,
               const RegisterScope& scope) {
  return indices.back().op() == expr::Op::Mod &&
         turns_between_pieces(indices.back(), axis, width, scope) &&
         std::all_of(indices.begin(), indices.end() - 1,
                     [&](Expr i) { return is_same_in_piece(i, axis, width, scope); });
}

// The place of a piece whose elements lie in such rows. `at_piece`: the text of an index there.
template <class AtPiece>
std::string folded_place(const GlobalTensor& global, std::span<const Expr> indices,
                         const AtPiece& at_piece) {
  const auto place = walked_place(indices);
  const size_t rows = indices.size() - (place ? 2 : 0);
  std::string out;
  for (size_t k = 0; k < rows; ++k) out += (k ? " + " : "") + global.step(at_piece(indices[k]), k);
  if (!place) return out;
  if (place->first) out += (rows ? " + " : "") + global.step(at_piece(place->first), rows);
  out += fmt::format("{}walked_place({}, {}, {}, {})", out.empty() ? "" : " + ",
                     at_piece(place->count), at_piece(place->columns), global.strides[rows],
                     global.strides[rows + 1]);
  return out;
}

// The offset of a domain's elements, apart from what all of them have in common.
struct AlongDomain {
  std::vector<int64_t> steps;  // of its axes
  std::string thread;          // text of what the thread adds
};

// Takes the domain's axes out of an offset; nothing if their steps are not constant.
std::optional<AlongDomain> along_domain(const matile::Domain& pieces, Poly& offset,
                                        expr::ExprPool& pool) {
  AlongDomain out;
  for (size_t a = 0; a < pieces.axes.size(); ++a) {
    const auto parts = offset.split(pool.index(pieces.axes[a]));
    const auto step = parts ? parts->first.constant() : std::nullopt;
    if (!step && !(parts && parts->first.is_zero())) return std::nullopt;
    out.steps.push_back(step.value_or(0));
    offset = parts->second;
    const std::string thread = matile::thread_coordinate(pieces.layout, static_cast<int>(a));
    if (out.steps.back() != 0 && thread != "0")
      out.thread +=
          fmt::format("{}{} * ({})", out.thread.empty() ? "" : " + ", out.steps.back(), thread);
  }
  return out;
}

// Takes what unrolling makes constant out of an offset: it goes into the instructions, so that all
// pieces have one address.
std::string take_numbers(Poly& offset, const RegisterScope& scope) {
  std::string numbers;
  for (const auto& [name, extent] : scope.unrolled) {
    const auto parts = offset.split(scope.pool->index(name));
    const auto step = parts ? parts->first.constant() : std::nullopt;
    if (!step || *step < 0) continue;
    numbers += fmt::format(" + {} * {}", *step, identifier(name));
    offset = parts->second;
  }
  return numbers;
}

}  // namespace

std::optional<int> deciding_end(Expr condition, Expr axis) {
  if (!expr::depends_on(condition, axis)) return 0;
  const auto difference = difference_of(condition);
  const auto parts = difference ? difference->split(axis) : std::nullopt;
  const auto slope = parts ? parts->first.constant() : std::nullopt;
  if (!slope) return std::nullopt;
  return *slope > 0 ? 0 : 1;
}

std::optional<VectorAccess> vector_access(const Domain& domain, std::string_view tensor,
                                          std::span<const Expr> indices, Expr condition,
                                          const RegisterScope& scope) {
  const GlobalTensor& global = scope.globals->find(tensor)->second;
  const ir::TensorType& type = global.type;
  VectorAccess access;
  access.width = kVectorBytes / expr::bytes(type.dtype);
  const auto pieces = layout::pieces(domain.layout, access.width);
  if (!pieces || indices.empty()) return std::nullopt;
  const Expr axis = scope.pool->index(domain.axes[static_cast<size_t>(pieces->axis)]);
  access.pieces = {pieces->layout, domain.axes};
  access.in_pieces = {
      {axis, scope.pool->binary(expr::Op::Mul, scope.pool->integer(access.width), axis)}};
  const bool is_line = domain.axes.size() == 1 && expr::bytes(type.dtype) > 1;
  for (Expr part : expr::conjuncts(condition)) {
    if (is_whole(part, axis, access.width, scope)) continue;
    if (!is_line || !deciding_end(part, axis)) return std::nullopt;
    access.is_asked = true;
  }
  // The last index counts elements, the others rows: only the last may go along the pieces.
  Writer nowhere;
  const ElementPrinter text = element_printer(access.pieces, scope, nowhere);
  if (is_line && !access.is_asked && is_folded(indices, axis, access.width, scope)) {
    access.folded = folded_place(global, indices, [&](Expr e) {
      return text.at(expr::substitute(*scope.pool, e, access.in_pieces), "vec");
    });
    access.thread = "0";
    return access;
  }
  for (size_t k = 0; k + 1 < indices.size(); ++k) {
    for (expr::Name name : domain.axes) {
      if (expr::depends_on(indices[k], scope.pool->index(name))) return std::nullopt;
    }
    access.thread += (k ? " + " : "") + global.step(text.at(indices[k], "0"), k);
  }
  auto rest = Poly::of(expr::substitute(*scope.pool, indices.back(), access.in_pieces));
  if (!rest) return std::nullopt;
  if (!expr::is_multiple(*rest, access.width, scope.divisors)) {
    if (!is_line) return std::nullopt;
    access.is_asked = true;
  }
  auto along = along_domain(access.pieces, *rest, *scope.pool);
  if (!along || along->steps[static_cast<size_t>(pieces->axis)] != access.width)
    return std::nullopt;
  access.register_ = matile::fit(pieces->layout, [&](int e) {
    const auto point = pieces->layout.coordinates_of({0, 0, 0, e});
    int64_t sum = 0;
    for (size_t a = 0; a < point.size(); ++a) sum += along->steps[a] * point[a];
    return static_cast<int>(sum);
  });
  const std::string numbers = take_numbers(*rest, scope);
  if (!rest->is_zero())
    along->thread += fmt::format("{}{}", along->thread.empty() ? "" : " + ",
                                 text.at(expr::to_expr(*scope.pool, *rest), "0"));
  if (!along->thread.empty())
    access.thread += fmt::format("{}(u64)({})", access.thread.empty() ? "" : " + ", along->thread);
  if (access.thread.empty()) access.thread = "0";
  access.thread += numbers;
  return access;
}

std::string piece_offset(const VectorAccess& access) {
  if (!access.folded.empty()) return access.folded;
  const std::string step = access.register_.text("vec");
  return step == "0" ? "at" : "at + " + step;
}

}  // namespace nautilus::emit
