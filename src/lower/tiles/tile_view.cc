// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algebra/inside_guard.h"
#include "expr/bounds/affine.h"
#include "expr/bounds/quotient.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

// The factor of the axis in the index; 0 if it is not constant.
int64_t step_of(Expr index, Expr axis) {
  const auto p = expr::Poly::of(index);
  const auto parts = p ? p->split(axis) : std::nullopt;
  return parts ? parts->first.constant().value_or(0) : 0;
}

// The index without the axis if it is `base + step * axis`; null otherwise.
Expr base_of(Expr index, Expr axis, expr::ExprPool& pool, int64_t step = 1) {
  const auto p = expr::Poly::of(index);
  const auto parts = p ? p->split(axis) : std::nullopt;
  if (!parts || parts->first.constant() != step) return {};
  const Expr base = expr::substitute(pool, index, expr::Substitution{{axis, pool.integer(0)}});
  // An atom such as (x + i) / 2 hides the axis from the polynomial.
  return expr::depends_on(expr::to_expr(pool, parts->second), axis)
             ? Expr()
             : expr::Simplifier(pool).simplify(base);
}

// The copy engine begins at whole units of a row; it stops with an illegal instruction elsewhere
// (docs/performance.md, hardware facts).
bool begins_aligned(Expr base, const TileElements& e) {
  const auto p = expr::Poly::of(base);
  const expr::Divisors none;
  return p && expr::is_multiple(*p, e.copies->begin_bytes / expr::bytes(e.type.dtype),
                                e.divisors ? *e.divisors : none);
}

bool is_inside(Expr c, const TileElements& e) {
  return algebra::is_inside_test(c, e.indices, e.type.dims);
}

// A sum of places and sizes, none of which are negative; not of data, which may be.
bool is_never_negative(Expr e) {
  const auto p = expr::Poly::of(e);
  if (!p || !expr::tensors_read(e).empty()) return false;
  return std::all_of(p->terms().begin(), p->terms().end(),
                     [](const auto& term) { return term.second >= 0; });
}

// Takes `first + row < n` as the end of a block of n rows, if the dimension is made of such blocks
// and the rows are counted from the beginning of one.
bool take_block(Expr c, Expr row, const TileElements& e, TileView& view, expr::ExprPool& pool) {
  const bool is_swapped = c.op() == EK::Gt;
  if (c.op() != EK::Lt && !is_swapped) return false;
  const Expr n = c[is_swapped ? 0 : 1];
  const Expr in_block = c[is_swapped ? 1 : 0];
  const Expr first = in_block.dtype() == expr::DType::I64 ? base_of(in_block, row, pool) : Expr();
  // Before its first row there is another block.
  if (!first || expr::depends_on(n, row) || !is_never_negative(first)) return false;
  if (view.block_rows) return view.block_rows == n && view.row_base == first;
  const auto before = expr::difference(e.indices[view.row_dim], in_block);
  const Expr blocks = expr::exact_quotient(pool, e.type.dims[view.row_dim], n);
  const Expr block = before ? expr::exact_quotient(pool, expr::to_expr(pool, *before), n) : Expr();
  if (!blocks || !block) return false;
  view.block_rows = n;
  view.block = block;
  view.row_base = first;
  return true;
}

// Whether the number is made of the sizes that the tensor has: the host knows them when it makes
// the view.
bool is_of_sizes(Expr n, const TileElements& e) {
  const auto vars = expr::free_vars(n);
  return expr::tensors_read(n).empty() && std::all_of(vars.begin(), vars.end(), [&](Expr v) {
           return std::any_of(e.type.dims.begin(), e.type.dims.end(),
                              [&](Expr dim) { return expr::depends_on(dim, v); });
         });
}

// Takes `at < n`, where the index of the rows or of the columns is `at + shift`, as their end.
bool take_end(Expr c, const TileElements& e, TileView& view, expr::ExprPool& pool) {
  const bool is_swapped = c.op() == EK::Gt;
  if (c.op() != EK::Lt && !is_swapped) return false;
  const Expr n = c[is_swapped ? 0 : 1];
  const Expr at = c[is_swapped ? 1 : 0];
  if (at.dtype() != expr::DType::I64 || !is_of_sizes(n, e)) return false;
  const size_t last = e.indices.size() - 1;
  for (const size_t k : {last, view.row_dim}) {
    const auto difference = expr::difference(e.indices[k], at);
    const Expr shift = difference ? expr::to_expr(pool, *difference) : Expr();
    if (!shift || !is_of_sizes(shift, e) || (k != last && view.block_rows)) continue;
    Expr& end = k == last ? view.col_end : view.row_end;
    const Expr own = expr::Simplifier(pool).simplify(pool.binary(EK::Add, n, shift));
    if (end && end != own) return false;
    end = own;
    return true;
  }
  return false;
}

bool is_all_inside(Expr c, const TileElements& e) {
  if (c.op() == EK::And) return is_all_inside(c[0], e) && is_all_inside(c[1], e);
  return c.is_true() || is_inside(c, e);
}

// The same for a box of rows, whose end of a block is noted in the view.
bool is_all_inside(Expr c, Expr row, const TileElements& e, TileView& view, expr::ExprPool& pool) {
  if (c.op() == EK::And)
    return is_all_inside(c[0], row, e, view, pool) && is_all_inside(c[1], row, e, view, pool);
  return c.is_true() || is_inside(c, e) || take_block(c, row, e, view, pool) ||
         take_end(c, e, view, pool);
}

// The axes of a tile that run along another dimension and along the last one of the tensor.
struct BoxAxes {
  Expr row;
  Expr col;
};
BoxAxes box_axes(const TileElements& e, expr::ExprPool& pool) {
  const Expr first = pool.index(e.axes[0].name);
  const Expr second = pool.index(e.axes[1].name);
  const Expr last = e.indices.back();
  const bool is_transposed = !expr::depends_on(last, second) && expr::depends_on(last, first);
  return is_transposed ? BoxAxes{second, first} : BoxAxes{first, second};
}

bool has_box_step(Expr index, Expr row, const TileElements& e) {
  const int64_t step = step_of(index, row);
  return step >= 1 && step <= e.copies->box_step;
}

// Rows of a box that are a step apart; empty if it reaches over all of them.
std::string refuse_reach(const TileElements& e, int64_t rows, int64_t step) {
  if ((rows - 1) * step < e.copies->box_extent) return "";
  return fmt::format("the tile of `{}`: a box reaches over at most {} rows", e.tensor.str(),
                     e.copies->box_extent);
}

// From the widest; each is half as wide as the one before.
constexpr std::array kSwizzles = {matile::MapSwizzle::B128, matile::MapSwizzle::B64,
                                  matile::MapSwizzle::B32};

struct Panels {
  matile::MapSwizzle swizzle;
  int bytes;  // of a row
};

// The widest swizzle whose panels divide rows of so many bytes.
std::optional<Panels> widest_panels(int row_bytes, int most_bytes) {
  int bytes = most_bytes;
  for (const matile::MapSwizzle swizzle : kSwizzles) {
    if (row_bytes % bytes == 0) return Panels{swizzle, bytes};
    bytes /= 2;
  }
  return std::nullopt;
}

// An end beyond the tensor would read what is not its own.
Expr end_within(Expr end, Expr dim, expr::ExprPool& pool) {
  if (!end) return dim;
  const auto beyond = expr::difference(dim, end);
  const auto known = beyond ? beyond->constant() : std::nullopt;
  return known && *known >= 0 ? end : pool.binary(EK::Min, end, dim);
}

// All panels in one box if the view's rows are whole panels; otherwise one box a panel, so that
// what lies beyond the end of a row reads as 0.
bool has_whole_panels(const TileView& view, Expr row_end, int cols, int width) {
  const auto base = expr::Poly::of(view.col_base);
  const auto first_panel = base ? expr::divide(*base, width) : std::nullopt;
  return cols > width && row_end.op() == EK::IntConst && row_end.integer() % width == 0 &&
         first_panel && base->constant_term() % width == 0;
}

// Gives a map its axes, and the tensor's element at a point of them.
void add_axes(const TileElements& e, const TileView& view, BoxExtents box, TileMap& out,
              FreshNames& names, expr::ExprPool& pool) {
  const auto add = [&](const char* stem, Expr extent, int of_box) {
    const ir::Name name = names.make(stem);
    out.op.axes.push_back({name, extent});
    out.op.box.push_back(pool.integer(of_box));
    return pool.index(name);
  };
  const size_t last = e.indices.size() - 1;
  const int width = out.panel_cols;
  const Expr dim = end_within(view.col_end, e.type.dims[last], pool);
  std::vector<Expr> indices(e.indices.size());
  const Expr col = add("col", out.has_panels ? pool.integer(width) : dim, width);
  const Expr row_dim = end_within(view.row_end, e.type.dims[view.row_dim], pool);
  const Expr row = add("row", view.block_rows ? view.block_rows : row_dim, box.rows);
  indices[last] = col;
  if (out.has_panels) {
    const Expr panel = add("panel", pool.integer(dim.integer() / width), box.cols / width);
    indices[last] = pool.binary(EK::Add, pool.binary(EK::Mul, pool.integer(width), panel), col);
  }
  for (size_t k = last; k-- > 0;) {
    if (k != view.row_dim) {
      indices[k] = add("at", e.type.dims[k], 1);
    } else if (view.block_rows) {
      const Expr block =
          add("block", expr::exact_quotient(pool, e.type.dims[k], view.block_rows), 1);
      indices[k] = pool.binary(EK::Add, pool.binary(EK::Mul, view.block_rows, block), row);
    } else {
      indices[k] = row;
    }
  }
  out.op.value = pool.read(e.tensor, e.type.dtype, indices);
}

}  // namespace

std::string refuse_indices(const TileElements& e, expr::ExprPool& pool) {
  const auto refused = [&](std::string reason) {
    return fmt::format("the tile of `{}`: {}", e.tensor.str(), reason);
  };
  if (e.axes.size() != 2 || e.indices.size() < 2)
    return refused("only boxes of two axes are copied");
  const auto [row, col] = box_axes(e, pool);
  const Expr last = e.indices.back();
  if (!base_of(last, col, pool) || expr::depends_on(last, row))
    return refused("no axis runs along the last dimension in steps of one");
  int rows_found = 0;
  bool has_base = false;
  for (size_t k = 0; k + 1 < e.indices.size(); ++k) {
    if (expr::depends_on(e.indices[k], col)) return refused("an axis runs along two dimensions");
    if (!expr::depends_on(e.indices[k], row)) continue;
    ++rows_found;
    has_base = has_box_step(e.indices[k], row, e) &&
               base_of(e.indices[k], row, pool, step_of(e.indices[k], row));
  }
  if (rows_found == 1 && has_base) return "";
  return refused(
      fmt::format("no axis runs along another dimension in steps of up to {}", e.copies->box_step));
}

std::string refuse_box(const TileElements& e, expr::ExprPool& pool) {
  std::string why = refuse_indices(e, pool);
  if (!why.empty()) return why;
  const auto [row, col] = box_axes(e, pool);
  for (const ir::Axis& a : e.axes) {
    if (pool.index(a.name) != row || a.extent.op() != EK::IntConst) continue;
    for (size_t k = 0; k + 1 < e.indices.size() && why.empty(); ++k) {
      if (expr::depends_on(e.indices[k], row))
        why = refuse_reach(e, a.extent.integer(), step_of(e.indices[k], row));
    }
  }
  return why;
}

std::optional<TileView> view_of(const TileElements& e, expr::ExprPool& pool, std::string* why) {
  const auto fail = [&](std::string reason) {
    *why = fmt::format("the tile of `{}`: {}", e.tensor.str(), reason);
    return std::nullopt;
  };
  if (std::string reason = refuse_indices(e, pool); !reason.empty()) {
    *why = std::move(reason);
    return std::nullopt;
  }
  TileView view;
  const auto [row, col] = box_axes(e, pool);
  const size_t last = e.indices.size() - 1;
  view.is_transposed = col == pool.index(e.axes[0].name);
  view.cols = static_cast<int>(e.axes[view.is_transposed ? 0 : 1].extent.integer());
  view.rows = static_cast<int>(e.axes[view.is_transposed ? 1 : 0].extent.integer());
  view.col_base = base_of(e.indices[last], col, pool);
  if (!begins_aligned(view.col_base, e))
    return fail(fmt::format("it may begin inside {} bytes, where the copy engine cannot",
                            e.copies->begin_bytes));
  for (size_t k = 0; k < last; ++k) {
    if (!expr::depends_on(e.indices[k], row)) {
      view.rest.push_back(e.indices[k]);
      continue;
    }
    view.row_dim = k;
    view.row_step = static_cast<int>(step_of(e.indices[k], row));
    view.row_base = base_of(e.indices[k], row, pool, view.row_step);
    view.rest.push_back({});
  }
  view.rest.push_back({});
  if (e.condition && !is_all_inside(e.condition, row, e, view, pool))
    return fail("its condition is more than a test whether the element exists");
  return view;
}

std::vector<Expr> rest_of(const TileView& view) {
  std::vector<Expr> out;
  for (size_t k = view.rest.size() - 1; k-- > 0;) {
    if (k != view.row_dim) {
      out.push_back(view.rest[k]);
    } else if (view.block_rows) {
      out.push_back(view.block);
    }
  }
  return out;
}

std::optional<TileMap> map_of(const TileElements& e, const TileView& view, BoxExtents box,
                              FreshNames& names, expr::ExprPool& pool, std::string* why) {
  const auto fail = [&](std::string reason) {
    *why = fmt::format("the tile of `{}`: {}", e.tensor.str(), reason);
    return std::nullopt;
  };
  const int bytes = expr::bytes(e.type.dtype);
  if (bytes > 4) return fail("only elements of up to 32 bits are copied in panels");
  if (std::string reason = refuse_reach(e, box.rows, view.row_step); !reason.empty()) {
    *why = std::move(reason);
    return std::nullopt;
  }
  const auto panels = widest_panels(box.cols * bytes, e.copies->panel_bytes);
  if (!panels)
    return fail(fmt::format("its columns are no multiple of {}",
                            (e.copies->panel_bytes >> (kSwizzles.size() - 1)) / bytes));
  TileMap out;
  out.op.swizzle = panels->swizzle;
  out.panel_cols = panels->bytes / bytes;
  if (view.row_step != 1) out.op.step = view.row_step;
  const auto most_axes = static_cast<size_t>(e.copies->box_axes);
  const size_t rank = e.indices.size() + (view.block_rows ? 1 : 0);
  const Expr row_end = end_within(view.col_end, e.type.dims.back(), pool);
  out.has_panels = rank < most_axes && has_whole_panels(view, row_end, box.cols, out.panel_cols);
  out.op.name = names.make(std::string(e.tensor.str()) + "_map");
  add_axes(e, view, box, out, names, pool);
  out.rest = rest_of(view);
  if (out.op.axes.size() > most_axes) return fail("it has more dimensions than the copy engine");
  return out;
}

ir::Exprs TileMap::at(Expr row, Expr col, expr::ExprPool& pool) const {
  ir::Exprs out;
  if (has_panels) {
    const auto p = expr::Poly::of(col);
    const auto panel = p ? expr::divide(*p, panel_cols) : std::nullopt;
    NAUT_CHECK(panel, "the first column of a box is no multiple of its panels");
    out = {pool.integer(0), row, expr::to_expr(pool, *panel)};
  } else {
    out = {col, row};
  }
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::optional<RowPieceView> row_piece_view_of(const TileElements& e, expr::ExprPool& pool) {
  if (e.axes.size() != 1 || e.indices.empty()) return std::nullopt;
  // Parts of a row are an axis of their own beside those of the tensor.
  if (static_cast<int>(e.indices.size()) >= e.copies->box_axes) return std::nullopt;
  if (e.condition && !is_all_inside(e.condition, e)) return std::nullopt;
  RowPieceView view;
  const Expr axis = pool.index(e.axes[0].name);
  view.extent = static_cast<int>(e.axes[0].extent.integer());
  view.base = base_of(e.indices.back(), axis, pool);
  // The copy engine moves whole units, of 16-bit elements at most so many.
  const int unit = e.copies->begin_bytes / expr::bytes(expr::DType::BF16);
  if (!view.base || view.extent > e.copies->box_extent || view.extent % unit != 0)
    return std::nullopt;
  if (!begins_aligned(view.base, e)) return std::nullopt;
  for (size_t k = 0; k + 1 < e.indices.size(); ++k) {
    if (expr::depends_on(e.indices[k], axis)) return std::nullopt;
    view.rest.push_back(e.indices[k]);
  }
  return view;
}

RowPieceMap row_piece_map_of(const TileElements& e, const RowPieceView& view, FreshNames& names,
                             expr::ExprPool& pool) {
  RowPieceMap out;
  out.op.name = names.make(std::string(e.tensor.str()) + "_map");
  out.op.swizzle = matile::MapSwizzle::None;
  const auto add = [&](const char* stem, Expr extent, int box, Expr at) {
    const ir::Name name = names.make(stem);
    out.op.axes.push_back({name, extent});
    out.op.box.push_back(pool.integer(box));
    out.at.push_back(at);
    return pool.index(name);
  };
  std::vector<Expr> indices(e.indices.size());
  indices.back() = add("col", e.type.dims.back(), view.extent, view.base);
  // A box has rows; this one has one.
  add("row", pool.integer(1), 1, pool.integer(0));
  for (size_t k = e.indices.size() - 1; k-- > 0;)
    indices[k] = add("at", e.type.dims[k], 1, view.rest[k]);
  out.op.value = pool.read(e.tensor, e.type.dtype, indices);
  return out;
}

}  // namespace nautilus::lower
