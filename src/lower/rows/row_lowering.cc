// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_lowering.h"

#include <algorithm>

#include "lower/rows/row_held.h"
#include "lower/rows/row_padding.h"
#include "lower/rows/row_reads.h"
#include "lower/rows/row_walk.h"

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

matile::Kernel RowLowering::run() {
  scope_.begin();
  ir::Block body;
  const ir::Name tile = is_blocked()             ? decode_block(body)
                        : scope_.shape.lanes > 0 ? decode_lanes(body)
                                                 : decode_row(body);
  scope_.define_lead(body);
  work(body);
  return assemble(tile, std::move(body));
}

void RowLowering::work(ir::Block& out) {
  RowValues values(scope_);
  values.set_padding(choose_padding(scope_));
  RowStatements statements(scope_, values, out);
  if (is_blocked())
    block(values, statements, out);
  else if (scope_.shape.is_held())
    HeldRow(scope_, values, statements).run(out);
  else
    RowWalk(scope_, values, statements).run(out);
  has_conditions_ = statements.has_conditions();
}

void RowLowering::block(RowValues& values, RowStatements& statements, ir::Block& out) {
  RowReads reads(scope_, values);
  for (const RowStatement& s : group_.statements) {
    if (scope_.is_kept(s)) reads.add(s.value);
    values.define_element(s);
  }
  for (Expr r : reads.all()) values.load(r, out);
  for (const RowStatement& s : group_.statements) {
    if (scope_.is_kept(s)) statements.put_element(s, out);
  }
}

matile::Kernel RowLowering::assemble(ir::Name tile, ir::Block body) {
  const ir::Name tiles = scope_.names.make("rows");
  ir::Block role;
  for (const auto& [name, type] : scope_.tiles) {
    const bool is_own = scope_.own.contains(name);
    matile::Tile t{name, type, is_own ? matile::Spread::Own : matile::Spread::RowVector, {}};
    if (!type.dims.empty()) t.by = scope_.shape.by;
    if (scope_.shape.lanes > 0) t.lanes = scope_.shape.lanes;
    role.push_back(ir::make(std::move(t)));
  }
  matile::Each each{tile, tiles, {}, std::move(body)};
  if (scope_.shape.lanes > 0) each.lanes = scope_.shape.lanes;
  role.push_back(ir::make(std::move(each)));
  ir::Block kernel;
  kernel.push_back(ir::make(matile::Tiles{tiles, count(), matile::TileSource::Static, {}}));
  const auto row_vectors = std::count_if(scope_.tiles.begin(), scope_.tiles.end(),
                                         [](const auto& t) { return !t.second.dims.empty(); });
  kernel.push_back(ir::make(matile::Role{
      scope_.names.make("compute"), matile::RoleUnit::Groups, scope_.shape.groups, scope_.part,
      scope_.answers.registers(scope_.use(), row_vectors), std::move(role)}));
  matile::Kernel out{.name = kernel_, .rank = scope_.rank, .body = std::move(kernel)};
  if (scope_.shape.ctas > 1) out.cluster = scope_.shape.ctas;
  return out;
}

Expr RowLowering::count() const {
  Expr n = is_blocked() ? scope_.blocks() : Expr();
  for (const ir::Axis& a : group_.rows) n = n ? pool_.binary(EK::Mul, n, a.extent) : a.extent;
  return n ? n : pool_.integer(1);
}

ir::Name RowLowering::decode_block(ir::Block& body) {
  const ir::Name tile = scope_.names.make("block");
  const ir::Name count = scope_.names.make("steps");
  const ir::Name step = scope_.names.make("step");
  body.push_back(ir::make(matile::Let{count, scope_.blocks()}));
  const Expr all = pool_.index(count);
  body.push_back(ir::make(matile::Let{step, pool_.binary(EK::Mod, pool_.index(tile), all)}));
  scope_.at = scope_.shifted(pool_.binary(
      EK::Add, pool_.binary(EK::Mul, pool_.integer(scope_.shape.columns), pool_.index(step)),
      scope_.column));
  if (group_.rows.empty()) return tile;
  const ir::Name row = scope_.names.make("row");
  body.push_back(ir::make(matile::Let{row, pool_.binary(EK::FloorDiv, pool_.index(tile), all)}));
  decode(pool_.index(row), body);
  return tile;
}

ir::Name RowLowering::decode_row(ir::Block& body) {
  if (group_.rows.size() == 1) return group_.rows[0].name;
  const ir::Name tile = scope_.names.make("row");
  decode(pool_.index(tile), body);
  return tile;
}

// Lanes behind the last row have that one, so that they read what is there, and write nothing.
ir::Name RowLowering::decode_lanes(ir::Block& body) {
  const ir::Name own = scope_.names.make("own");
  const Expr number = pool_.index(own);
  scope_.has_row = pool_.binary(EK::Lt, number, count());
  if (group_.rows.empty()) return own;
  const Expr last = pool_.binary(EK::Sub, count(), pool_.integer(1));
  const bool is_one = group_.rows.size() == 1;
  const ir::Name row = is_one ? group_.rows[0].name : scope_.names.make("row");
  body.push_back(ir::make(matile::Let{row, pool_.binary(EK::Min, number, last)}));
  if (!is_one) decode(pool_.index(row), body);
  return own;
}

void RowLowering::decode(Expr rest, ir::Block& body) {
  for (size_t k = group_.rows.size(); k-- > 0;) {
    const ir::Axis& a = group_.rows[k];
    if (k == 0) {
      body.push_back(ir::make(matile::Let{a.name, rest}));
      continue;
    }
    body.push_back(ir::make(matile::Let{a.name, pool_.binary(EK::Mod, rest, a.extent)}));
    const ir::Name above = k > 1 ? scope_.names.make("rest") : ir::Name();
    const Expr quotient = pool_.binary(EK::FloorDiv, rest, a.extent);
    if (above) body.push_back(ir::make(matile::Let{above, quotient}));
    rest = above ? pool_.index(above) : quotient;
  }
}

}  // namespace nautilus::lower
