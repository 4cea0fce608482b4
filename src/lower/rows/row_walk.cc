// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_walk.h"

#include "expr/walk.h"
#include "lower/rows/row_reads.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

void RowWalk::run(ir::Block& out) {
  const ir::Name count = scope_.names.make("steps");
  out.push_back(ir::make(matile::Let{count, scope_.steps()}));
  for (size_t k = 0; k < group_.statements.size();) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Number) {
      statements_.number(s, out);
      ++k;
      continue;
    }
    // Reductions and elements that need no number computed among them share a walk.
    size_t end = k;
    std::set<std::string> among;
    for (; end < group_.statements.size(); ++end) {
      const RowStatement& t = group_.statements[end];
      if (t.kind == Kind::Number || depends(t.value, among)) break;
      if (t.kind == Kind::Reduction) among.emplace(t.target.str());
      if (t.kind == Kind::Element) values_.define_element(t);
    }
    walk(k, end, count, out);
    k = end;
  }
}

bool RowWalk::depends(Expr value, const std::set<std::string>& numbers) const {
  bool found = false;
  expr::for_each(value, [&](Expr e) {
    if (e.op() != EK::Read) return;
    found |= numbers.contains(std::string(e.name().str()));
    if (const Expr* inner = values_.element(e)) found |= depends(*inner, numbers);
  });
  return found;
}

void RowWalk::walk(size_t begin, size_t end, ir::Name count, ir::Block& out) {
  std::vector<ir::Name> accs(end - begin);
  bool has_work = false;
  for (size_t k = begin; k < end; ++k) {
    const RowStatement& s = group_.statements[k];
    has_work |= s.kind == Kind::Reduction || scope_.is_kept(s);
    if (s.kind != Kind::Reduction) continue;
    accs[k - begin] = scope_.add_tile(s.target.str(), DType::F32, false);
    out.push_back(ir::make(matile::Set{accs[k - begin], {}, statements_.identity(s.reducer)}));
  }
  if (!has_work) return;
  matile::Loop loop{
      scope_.names.make("step"), pool_.integer(0), matile::Direction::Up, pool_.index(count), {}};
  scope_.at = pool_.binary(
      EK::Add, pool_.binary(EK::Mul, pool_.integer(scope_.shape.columns), pool_.index(loop.var)),
      scope_.column);
  if (!group_.outer.empty()) {
    walk_rows(begin, end, accs, loop);
  } else {
    RowReads reads(scope_, values_);
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction || scope_.is_kept(s)) reads.add(s.value);
    }
    for (Expr r : reads.all()) values_.load(r, loop.body);
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction) statements_.fold(s, accs[k - begin], false, loop.body);
      if (s.kind == Kind::Element && scope_.is_kept(s)) statements_.put_element(s, loop.body);
    }
  }
  out.push_back(with_outer_loops(std::move(loop)));
  scope_.at = scope_.in_row(scope_.column);
  for (size_t k = begin; k < end; ++k) {
    if (accs[k - begin]) statements_.finish(group_.statements[k], accs[k - begin], out);
  }
}

void RowWalk::walk_rows(size_t begin, size_t end, const std::vector<ir::Name>& accs,
                        matile::Loop& loop) {
  const ir::Axis& last = group_.outer.back();
  const Expr step = pool_.index(last.name);
  std::vector<std::vector<RowStatement>> of_row(static_cast<size_t>(scope_.shape.each));
  const auto row = [&](size_t n) {
    if (scope_.shape.each == 1) return step;
    return pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.integer(scope_.shape.each), step),
                        pool_.integer(static_cast<int64_t>(n)));
  };
  for (size_t n = 0; n < of_row.size(); ++n) {
    if (scope_.shape.each > 1) scope_.is_walked = pool_.binary(EK::Lt, row(n), last.extent);
    RowReads reads(scope_, values_);
    for (size_t k = begin; k < end; ++k) {
      RowStatement s = group_.statements[k];
      s.value = expr::substitute(pool_, s.value, {{step, row(n)}});
      reads.add(s.value);
      of_row[n].push_back(std::move(s));
    }
    for (Expr r : reads.all()) values_.load(r, loop.body);
  }
  for (size_t n = 0; n < of_row.size(); ++n) {
    if (scope_.shape.each > 1) scope_.is_walked = pool_.binary(EK::Lt, row(n), last.extent);
    for (size_t k = begin; k < end; ++k)
      statements_.fold(of_row[n][k - begin], accs[k - begin], false, loop.body);
  }
  scope_.is_walked = {};
}

ir::Op RowWalk::with_outer_loops(matile::Loop loop) const {
  ir::Op around = ir::make(std::move(loop));
  for (size_t k = group_.outer.size(); k-- > 0;) {
    const ir::Axis& a = group_.outer[k];
    const bool is_last = k + 1 == group_.outer.size();
    const Expr turns =
        is_last && scope_.shape.each > 1
            ? pool_.binary(EK::FloorDiv,
                           pool_.binary(EK::Add, a.extent, pool_.integer(scope_.shape.each - 1)),
                           pool_.integer(scope_.shape.each))
            : a.extent;
    around =
        ir::make(matile::Loop{a.name, pool_.integer(0), matile::Direction::Up, turns, {around}});
  }
  return around;
}

}  // namespace nautilus::lower
