// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_walk.h"

#include "expr/walk.h"
#include "lower/rows/row_reads.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

namespace {

// Elements of a block of rows, of which 32 bits count a step more.
constexpr int64_t kMostElements = int64_t{1} << 30;

}  // namespace

void RowWalk::run(ir::Block& out) {
  ir::Name count;
  if (group_.outer.empty()) count = let("steps", scope_.steps(), out);
  for (size_t k = 0; k < group_.statements.size();) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Number) {
      statements_.number(s, out);
      ++k;
      continue;
    }
    const RowSegment segment = row_segment(
        group_, k,
        {[&](const RowStatement& sum) { return scope_.answers.moves(sum.target, scope_.use()); },
         [&](const RowStatement& element) { return scope_.is_kept(element); }},
        pool_);
    for (size_t e = k; e < segment.end; ++e) {
      if (group_.statements[e].kind == Kind::Element) values_.define_element(group_.statements[e]);
    }
    walk(segment, count, out);
    k = segment.end;
  }
}

ir::Name RowWalk::let(std::string_view stem, Expr value, ir::Block& out) const {
  const ir::Name name = scope_.names.make(stem);
  out.push_back(ir::make(matile::Let{name, value}));
  return name;
}

Expr RowWalk::both(EK op, Expr a, Expr b) const {
  if (a.op() == EK::IntConst && b.op() == EK::IntConst) {
    if (op == EK::Mul) return pool_.integer(a.integer() * b.integer());
    if (op == EK::Add) return pool_.integer(a.integer() + b.integer());
  }
  return pool_.binary(op, a, b);
}

void RowWalk::walk(const RowSegment& segment, ir::Name count, ir::Block& out) {
  std::map<std::string, ir::Name> accs;
  bool has_work = false;
  for (size_t k = segment.begin; k < segment.end; ++k) {
    const RowStatement& s = group_.statements[k];
    has_work |= s.kind == Kind::Reduction || (s.kind == Kind::Element && scope_.is_kept(s));
    if (segment.early.contains(k)) statements_.number(s, out);
    if (s.kind != Kind::Reduction || !segment.is_plain(k)) continue;
    const ir::Name acc = scope_.add_tile(s.target.str(), DType::F32, false);
    accs.emplace(s.target.str(), acc);
    out.push_back(ir::make(matile::Set{acc, {}, statements_.identity(s.reducer)}));
  }
  if (!has_work) return;
  Following following;
  start(segment, accs, following, out);
  if (!group_.outer.empty()) {
    walk_through(segment, accs, following, out);
  } else {
    matile::Loop loop{
        scope_.names.make("step"), pool_.integer(0), matile::Direction::Up, pool_.index(count), {}};
    const Expr first =
        pool_.binary(EK::Mul, pool_.integer(scope_.shape.columns), pool_.index(loop.var));
    scope_.at = scope_.shifted(pool_.binary(EK::Add, first, scope_.column));
    step(segment, accs, following, elements_of_step(first), loop.body);
    out.push_back(ir::make(std::move(loop)));
  }
  scope_.at = scope_.in_row(scope_.column);
  for (size_t k = segment.begin; k < segment.end; ++k) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Number && !segment.early.contains(k)) statements_.number(s, out);
    if (s.kind != Kind::Reduction) continue;
    if (const RowMovingSum* moving = segment.find_moving(k))
      following.moving->settle(*moving, out);
    else if (const RowScaledSum* scaled = segment.find_scaled(k))
      following.scaled->settle(*scaled, out);
    else
      statements_.finish(s, accs.at(std::string(s.target.str())), out);
  }
}

void RowWalk::start(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                    Following& following, ir::Block& out) {
  if (!segment.moving.empty()) {
    following.moving.emplace(scope_, values_, statements_, segment, accs);
    Expr all = pool_.cast(DType::F32, scope_.present());
    for (const ir::Axis& a : group_.outer)
      all = pool_.binary(EK::Mul, all, pool_.cast(DType::F32, a.extent));
    following.moving->start(all, out);
  }
  if (!segment.scaled.empty()) {
    following.scaled.emplace(scope_, values_, statements_, segment, accs);
    following.scaled->start(out);
  }
}

void RowWalk::Following::move(Expr more, ir::Block& out) {
  if (moving) moving->move(more, out);
  if (scaled) scaled->move(out);
}

void RowWalk::Following::fold(ir::Block& out) {
  if (moving) moving->fold(out);
  if (scaled) scaled->fold(out);
}

Expr RowWalk::elements_of_step(Expr first) const {
  const Expr columns = pool_.integer(scope_.shape.columns);
  if (!scope_.lead) {
    const Expr left = pool_.binary(EK::Sub, scope_.present(), first);
    return pool_.binary(EK::Min, columns, left);
  }
  const Expr begin = scope_.shifted(first);
  const Expr end = pool_.binary(EK::Min, scope_.present(), pool_.binary(EK::Add, begin, columns));
  return pool_.binary(EK::Sub, end, pool_.binary(EK::Max, begin, pool_.integer(0)));
}

void RowWalk::step(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                   Following& following, Expr more, ir::Block& out) {
  RowReads reads(scope_, values_);
  for (size_t k = segment.begin; k < segment.end; ++k) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Reduction || (s.kind == Kind::Element && scope_.is_kept(s)))
      reads.add(s.value);
  }
  for (Expr r : reads.all()) values_.load(r, out);
  for (size_t k = segment.begin; k < segment.end; ++k) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Reduction && segment.is_plain(k))
      statements_.fold(s, accs.at(std::string(s.target.str())), false, out);
    if (s.kind == Kind::Element && scope_.is_kept(s)) statements_.put_element(s, out);
  }
  following.move(pool_.cast(DType::F32, more), out);
  following.fold(out);
}

RowWalk::Rows RowWalk::blocks_of_rows(ir::Block& out) const {
  Expr all_rows = pool_.integer(1);
  for (const ir::Axis& a : group_.outer)
    all_rows = all_rows.is_int(1) ? a.extent : both(EK::Mul, all_rows, a.extent);
  const Expr elements = both(EK::Mul, all_rows, scope_.limit);
  Rows rows;
  rows.is_one = elements.op() == EK::IntConst && elements.integer() <= kMostElements;
  if (all_rows.op() != EK::IntConst && all_rows.op() != EK::Var)
    all_rows = pool_.index(let("all_rows", all_rows, out));
  rows.count = all_rows;
  rows.blocks = {{}, pool_.integer(0), matile::Direction::Up, {}, {}};
  if (rows.is_one) return rows;
  const Expr fitting = pool_.binary(EK::FloorDiv, pool_.integer(kMostElements),
                                    pool_.binary(EK::Max, scope_.limit, pool_.integer(1)));
  const Expr of_block =
      pool_.index(let("rows_of_block", pool_.binary(EK::Max, fitting, pool_.integer(1)), out));
  rows.blocks.var = scope_.names.make("block");
  // No sum that leaves 32 bits.
  rows.blocks.to = pool_.binary(
      EK::Add,
      pool_.binary(EK::FloorDiv, pool_.binary(EK::Sub, all_rows, pool_.integer(1)), of_block),
      pool_.integer(1));
  rows.first = pool_.binary(EK::Mul, of_block, pool_.index(rows.blocks.var));
  const Expr left = pool_.binary(EK::Sub, all_rows, rows.first);
  rows.count = pool_.index(let("rows_here", pool_.binary(EK::Min, of_block, left), rows.body));
  return rows;
}

Expr RowWalk::steps_through(Expr elements, int64_t of_step) const {
  const Expr round = both(EK::Add, elements, pool_.integer(of_step - 1));
  return round.op() == EK::IntConst ? pool_.integer(round.integer() / of_step)
                                    : pool_.binary(EK::FloorDiv, round, pool_.integer(of_step));
}

void RowWalk::walk_through(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                           Following& following, ir::Block& out) {
  Rows rows = blocks_of_rows(out);
  const int64_t of_step = scope_.shape.each * scope_.shape.columns;
  const Expr here = both(EK::Mul, rows.count, scope_.limit);
  const Expr count = steps_through(here, of_step);
  matile::Loop loop{scope_.names.make("step"), pool_.integer(0), matile::Direction::Up, count, {}};
  step_through(segment, accs, following, rows, loop);
  rows.body.push_back(ir::make(std::move(loop)));
  if (rows.is_one) {
    out.push_back(std::move(rows.body.back()));
    return;
  }
  rows.blocks.body = std::move(rows.body);
  out.push_back(ir::make(std::move(rows.blocks)));
}

void RowWalk::step_through(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                           Following& following, const Rows& rows, matile::Loop& loop) {
  const Expr step = pool_.index(loop.var);
  std::vector<RowValues::Loaded> loaded(static_cast<size_t>(scope_.shape.each));
  const auto each_part = [&](const auto& work) {
    for (size_t n = 0; n < loaded.size(); ++n) {
      go_to(n, step, rows.first, rows.count);
      values_.exchange_loaded(loaded[n]);
      work();
      values_.exchange_loaded(loaded[n]);
    }
  };
  // All parts of a step are loaded first: as many bytes under way as can be.
  each_part([&] {
    RowReads reads(scope_, values_);
    for (size_t k = segment.begin; k < segment.end; ++k) {
      if (group_.statements[k].kind == Kind::Reduction) reads.add(group_.statements[k].value);
    }
    for (Expr r : reads.all()) values_.load(r, loop.body);
  });
  each_part([&] {
    for (size_t k = segment.begin; k < segment.end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction && segment.is_plain(k))
        statements_.fold(s, accs.at(std::string(s.target.str())), false, loop.body);
    }
  });
  const Expr elements = both(EK::Mul, rows.count, scope_.limit);
  const Expr step_elements = pool_.integer(scope_.shape.each * scope_.shape.columns);
  const Expr left = pool_.binary(EK::Sub, elements, pool_.binary(EK::Mul, step_elements, step));
  following.move(pool_.cast(DType::F32, pool_.binary(EK::Min, step_elements, left)), loop.body);
  each_part([&] { following.fold(loop.body); });
  scope_.is_walked = {};
  scope_.outer_at.clear();
}

void RowWalk::go_to(size_t n, Expr step, Expr first_row, Expr rows) {
  const int64_t columns = scope_.shape.columns;
  Expr first = pool_.binary(EK::Mul, pool_.integer(scope_.shape.each * columns), step);
  if (n > 0) first = pool_.binary(EK::Add, first, pool_.integer(static_cast<int64_t>(n) * columns));
  const Expr element = pool_.binary(EK::Add, first, scope_.column);
  scope_.is_walked = pool_.binary(EK::Lt, element, both(EK::Mul, rows, scope_.limit));
  scope_.at = pool_.binary(EK::Mod, element, scope_.limit);
  Expr row = pool_.binary(EK::FloorDiv, element, scope_.limit);
  if (first_row) row = pool_.binary(EK::Add, first_row, row);
  scope_.outer_at.clear();
  for (size_t k = group_.outer.size(); k-- > 0;) {
    const ir::Axis& a = group_.outer[k];
    scope_.outer_at.emplace(pool_.index(a.name),
                            k == 0 ? row : pool_.binary(EK::Mod, row, a.extent));
    if (k > 0) row = pool_.binary(EK::FloorDiv, row, a.extent);
  }
}

}  // namespace nautilus::lower
