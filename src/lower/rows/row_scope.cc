// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_scope.h"

#include "expr/walk.h"
#include "matile/ops.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

RowScope::RowScope(const RowContext& context, const RowAlternative& alternative, RowAnswers& given)
    : group(context.group),
      choice(context.choice()),
      kept(context.kept),
      buffers(context.buffers),
      facts(context.facts),
      answers(given),
      pool(context.pool),
      names(context.names),
      shape(alternative.shape),
      limit(alternative.limit),
      reference(shape.is_shifted() ? row_reference(context) : std::nullopt),
      exists(group.exists && alternative.length
                 ? pool.binary(EK::Lt, group.exists[0], alternative.length)
                 : group.exists) {}

void RowScope::begin() {
  for (const ir::Axis& a : group.rows) names.take(a.name.str());
  for (const ir::Axis& a : group.outer) names.take(a.name.str());
  for (const RowStatement& s : group.statements) {  // a buffer that is a tile has no other use
    if (!is_kept(s)) names.release(s.target.str());
  }
  for (const auto& buffer : buffers) {  // another of the same flat name keeps it
    if (std::none_of(group.statements.begin(), group.statements.end(),
                     [&](const RowStatement& s) { return s.target.str() == buffer.first; }))
      names.take(buffer.first);
  }
  column = pool.index(names.make(group.column.name.str()));
  if (shape.groups > 1) part = names.make("w");
  if (shape.ctas > 1) rank = names.make("rank");
  if (reference) lead = pool.index(names.make("lead"));
  at = in_row(column);
  place = column;
  extent = shape.columns;
}

ir::Name RowScope::add_tile(std::string_view stem, DType dtype, bool is_row_vector) {
  const ir::Name name = names.make(stem);
  ir::TensorType type{dtype, {}};
  if (is_row_vector) type.dims.push_back(pool.integer(extent));
  tiles.emplace_back(name, type);
  return name;
}

bool RowScope::is_tile(ir::Name name) const {
  return std::any_of(tiles.begin(), tiles.end(),
                     [&](const auto& tile) { return tile.first == name; });
}

bool RowScope::is_along_row(Expr e) const {
  if (e.op() != EK::Read || e.args().empty()) return false;
  if (e.dtype() != DType::F32 && !is_half(e.dtype())) return false;
  const Expr row_column = pool.index(group.column.name);
  const size_t last = e.args().size() - 1;
  if (e[last] != group.place) return false;
  for (size_t k = 0; k < last; ++k) {
    if (expr::depends_on(e[k], row_column)) return false;
  }
  return true;
}

Expr RowScope::in_row(Expr tile_column) const {
  Expr column_of_cta = tile_column;
  if (shape.groups > 1) {
    const Expr first = pool.binary(EK::Mul, pool.integer(shape.columns), pool.index(part));
    column_of_cta = pool.binary(EK::Add, first, tile_column);
  }
  if (shape.ctas == 1) return shifted(column_of_cta);
  const Expr first = pool.binary(EK::Mul, pool.integer(shape.of_cta()), pool.index(rank));
  return shifted(pool.binary(EK::Add, first, column_of_cta));
}

Expr RowScope::shifted(Expr at_column) const {
  return lead ? pool.binary(EK::Sub, at_column, lead) : at_column;
}

// Of the element's number in memory, as its tensor is dense. Each term is reduced: rows may have
// numbers that 32 bits do not hold.
void RowScope::define_lead(ir::Block& out) const {
  if (!lead) return;
  const auto reduced = [&](Expr e) {
    return e.op() == EK::IntConst ? pool.integer(e.integer() % shape.by)
                                  : pool.binary(EK::Mod, e, pool.integer(shape.by));
  };
  Expr number;
  for (size_t k = 0; k < reference->at.size(); ++k) {
    const Expr index = reduced(reference->at[k]);
    if (number) number = pool.binary(EK::Mul, number, reduced(reference->type.dims[k]));
    number = !number ? index : index.is_int(0) ? number : pool.binary(EK::Add, number, index);
    if (k > 0) number = reduced(number);
  }
  out.push_back(ir::make(matile::Let{lead.name(), number}));
}

Expr RowScope::is_first() const {
  Expr out;
  for (const ir::Name number : {part, rank}) {
    if (!number) continue;
    const Expr here = pool.binary(EK::Eq, pool.index(number), pool.integer(0));
    out = out ? pool.binary(EK::And, out, here) : here;
  }
  return out ? out : has_row;
}

Expr RowScope::is_written() const {
  if (is_whole()) return has_row;
  return has_row ? pool.binary(EK::And, has_row, in_range()) : in_range();
}

Expr RowScope::in_range() const {
  if (is_walked) return is_walked;
  Expr in_row = pool.binary(EK::Lt, at, limit);
  if (lead) in_row = pool.binary(EK::And, pool.binary(EK::Ge, at, pool.integer(0)), in_row);
  if (!exists) return in_row;
  const Expr here = expr::substitute(pool, exists, {{pool.index(group.column.name), at}});
  const bool has_all = shape.is_held() && limit.is_int(shape.capacity());
  return has_all ? here : pool.binary(EK::And, in_row, here);
}

Expr RowScope::present() const {
  if (!exists) return limit;
  const Expr first = group.place[0];
  return pool.binary(EK::Min, limit, pool.binary(EK::Sub, exists[1], first));
}

Expr RowScope::steps() const {
  const Expr with_lead = lead ? pool.binary(EK::Add, lead, limit) : limit;
  const Expr more = pool.binary(EK::Add, with_lead, pool.integer(shape.columns - 1));
  return pool.binary(EK::FloorDiv, more, pool.integer(shape.columns));
}

Expr RowScope::blocks() const {
  const Expr more =
      pool.binary(EK::Add, limit, pool.integer(shape.columns - 1 + shape.most_lead()));
  return pool.binary(EK::FloorDiv, more, pool.integer(shape.columns));
}

int64_t RowScope::registers() const {
  int64_t sum = 0;
  for (const auto& [name, type] : tiles)
    sum += type.dims.empty() ? 1 : tile_registers(type.dtype, type.dims[0].integer());
  return sum;
}

}  // namespace nautilus::lower
