// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "lower/rows/row_lines.h"
#include "lower/rows/row_lowering.h"
#include "matile/passes/memory/prefetch_rows.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

matile::Kernel RowLowering::run() {
  for (const ir::Axis& a : group_.rows) names_.take(a.name.str());
  for (const ir::Axis& a : group_.outer) names_.take(a.name.str());
  for (const RowStatement& s : group_.statements) {  // a buffer that is a tile has no other use
    if (!is_kept(s)) names_.release(s.target.str());
  }
  for (const auto& buffer : buffers_) {  // another of the same flat name keeps it
    if (std::none_of(group_.statements.begin(), group_.statements.end(),
                     [&](const RowStatement& s) { return s.target.str() == buffer.first; }))
      names_.take(buffer.first);
  }
  column_ = pool_.index(names_.make(group_.column.name.str()));
  if (shape_.groups > 1) part_ = names_.make("w");
  at_ = in_row(column_);
  place_ = column_;
  extent_ = shape_.columns;
  choose_padding();
  ir::Block body;
  main_ = &body;
  const ir::Name tile = is_blocked() ? decode_block(body) : decode_row(body);
  if (is_blocked())
    block(body);
  else if (shape_.is_held())
    resident(body);
  else
    walking(body);
  const ir::Name tiles = names_.make("rows");
  ir::Block role;
  for (const auto& [name, type] : tiles_) {
    matile::Tile t{name, type, matile::Spread::RowVector, {}};
    if (!type.dims.empty()) t.by = shape_.by;
    role.push_back(ir::make(std::move(t)));
  }
  role.push_back(ir::make(matile::Each{tile, tiles, {}, std::move(body)}));
  ir::Block kernel;
  kernel.push_back(ir::make(matile::Tiles{tiles, count(), matile::TileSource::Static, {}}));
  const auto lines = std::count_if(tiles_.begin(), tiles_.end(),
                                   [](const auto& t) { return !t.second.dims.empty(); });
  kernel.push_back(
      ir::make(matile::Role{names_.make("compute"), matile::RoleUnit::Groups, shape_.groups, part_,
                            answers_.registers(use(), lines), std::move(role)}));
  return {.name = kernel_, .body = std::move(kernel)};
}

Expr RowLowering::in_row(Expr column) {
  if (shape_.groups == 1) return column;
  const Expr first = pool_.binary(EK::Mul, pool_.integer(shape_.columns), pool_.index(part_));
  return pool_.binary(EK::Add, first, column);
}

Expr RowLowering::count() const {
  Expr n = is_blocked() ? steps() : Expr();
  for (const ir::Axis& a : group_.rows) n = n ? pool_.binary(EK::Mul, n, a.extent) : a.extent;
  return n ? n : pool_.integer(1);
}

int64_t RowLowering::row_registers() const {
  int64_t sum = 0;
  for (const auto& [name, type] : tiles_)
    sum += type.dims.empty() ? 1 : tile_registers(type.dtype, type.dims[0].integer());
  return sum;
}

Expr RowLowering::steps() const {
  const Expr more = pool_.binary(EK::Add, v_.limit, pool_.integer(shape_.columns - 1));
  return pool_.binary(EK::FloorDiv, more, pool_.integer(shape_.columns));
}

ir::Name RowLowering::decode_block(ir::Block& body) {
  const ir::Name tile = names_.make("block");
  const ir::Name count = names_.make("steps");
  const ir::Name step = names_.make("step");
  body.push_back(ir::make(matile::Let{count, steps()}));
  const Expr all = pool_.index(count);
  body.push_back(ir::make(matile::Let{step, pool_.binary(EK::Mod, pool_.index(tile), all)}));
  at_ = pool_.binary(
      EK::Add, pool_.binary(EK::Mul, pool_.integer(shape_.columns), pool_.index(step)), column_);
  if (group_.rows.empty()) return tile;
  const ir::Name row = names_.make("row");
  body.push_back(ir::make(matile::Let{row, pool_.binary(EK::FloorDiv, pool_.index(tile), all)}));
  decode(pool_.index(row), body);
  return tile;
}

// The row's indices from the number of the tile; returns the tile's name.
ir::Name RowLowering::decode_row(ir::Block& body) {
  if (group_.rows.size() == 1) return group_.rows[0].name;
  const ir::Name tile = names_.make("row");
  decode(pool_.index(tile), body);
  return tile;
}

void RowLowering::decode(Expr rest, ir::Block& body) {
  for (size_t k = group_.rows.size(); k-- > 0;) {
    const ir::Axis& a = group_.rows[k];
    if (k == 0) {
      body.push_back(ir::make(matile::Let{a.name, rest}));
      continue;
    }
    body.push_back(ir::make(matile::Let{a.name, pool_.binary(EK::Mod, rest, a.extent)}));
    const ir::Name above = k > 1 ? names_.make("rest") : ir::Name();
    const Expr quotient = pool_.binary(EK::FloorDiv, rest, a.extent);
    if (above) body.push_back(ir::make(matile::Let{above, quotient}));
    rest = above ? pool_.index(above) : quotient;
  }
}

std::optional<ir::Block> lower_rows(const RowContext& rows,
                                    const std::vector<ir::Block>& alternatives,
                                    const ir::Block& members, ir::PassContext& context) {
  std::vector<RowShape> shapes;
  std::deque<RowLines> lines;
  for (size_t k = 0; k < alternatives.size(); ++k) {
    lines.emplace_back(alternatives[k], k == 0, rows, context);
    const auto shape = lines[k].read();
    if (!shape) return std::nullopt;
    shapes.push_back(*shape);
  }
  ir::Block out;
  size_t unreached = 0;
  const auto variants = row_variants(shapes, rows, out, &unreached);
  if (!variants) {
    lines[unreached].refuse("no rows are left for it: alternatives before it take them");
    return std::nullopt;
  }
  const std::string stem = row_stem(rows.group);
  ir::Block launches;
  ir::Name single;  // takes tensors of any alignment; the first of the list
  for (size_t k = 0; k < shapes.size(); ++k) {
    const RowVariant& v = (*variants)[k];
    const ir::Name name = rows.names.make(fmt::format("{}_rows{}", stem, v.suffix));
    RowLowering lowering(rows, v, name, lines[k]);
    matile::Kernel kernel = lowering.run();
    const auto ahead = matile::usual_rows_ahead(kernel, rows.choice(), rows.pool);
    if (!lines[k].end(v.shape, ahead)) return std::nullopt;
    if (v.shape.ahead)
      kernel.body = decision::with_lines(std::move(kernel.body),
                                         {ir::make(decision::Ahead{*v.shape.ahead, {}})});
    out.push_back(ir::make(std::move(kernel)));
    ir::Block decided = k == 0 ? members : ir::Block();
    decided.insert(decided.end(), lines[k].decided().begin(), lines[k].decided().end());
    decision::note_kernel(rows.group.statements.back().target, decision::Form::Rows, decided, name,
                          context);
    const Expr all = lowering.count();
    const Expr grid =
        v.condition.is_true() ? all : rows.pool.select(v.condition, all, rows.pool.integer(0));
    const bool is_never = v.condition.op() == EK::BoolConst && !v.condition.is_true();
    if (!is_never) launches.push_back(ir::make(matile::Launch{name, grid, single}));
    if (!single) single = name;
  }
  for (ir::Op& op : launches) out.push_back(std::move(op));
  return out;
}

}  // namespace nautilus::lower
