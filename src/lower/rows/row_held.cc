// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_held.h"

#include <algorithm>

#include "expr/walk.h"
#include "lower/rows/row_reads.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

void HeldRow::run(ir::Block& out) {
  RowReads found(scope_, values_);
  std::vector<size_t> known;  // how many of the reads the statements up to each need
  for (size_t k = 0; k < group_.statements.size(); ++k) {
    const RowStatement& s = group_.statements[k];
    const bool is_needed = s.kind != Kind::Element || can_be_held(k) || scope_.is_kept(s);
    if (is_needed) found.add(s.value);
    known.push_back(found.all().size());
    if (s.kind == Kind::Element) values_.define_element(s);
  }
  values_.forget_elements();
  const std::vector<Expr>& reads = found.all();
  // Everything that comes from memory is asked for at once, except what is late: the cache has it
  // when it is needed.
  find_late(reads);
  const bool is_delayed = reads.size() > 2;
  for (Expr r : reads) {
    if (!values_.is_late(r) && (!is_delayed || !values_.is_broadcast(r))) values_.load(r, out);
  }
  for (size_t k = 0; k < group_.statements.size(); ++k) {
    const RowStatement& s = group_.statements[k];
    for (size_t r = k ? known[k - 1] : 0; r < known[k]; ++r) {
      if (is_delayed && values_.is_broadcast(reads[r]) && !values_.is_late(reads[r]))
        values_.load(reads[r], out);
    }
    if (s.kind == Kind::Number) statements_.number(s, out);
    if (s.kind == Kind::Reduction) {
      const ir::Name acc = scope_.add_tile(s.target.str(), DType::F32, false);
      statements_.fold(s, acc, true, out);
      const std::span<const Expr> unpacked(reads.data(), known[k]);
      if (k + 1 < group_.statements.size() && !stays_unpacked(s.target, unpacked))
        rematerialize(unpacked, out);
      statements_.finish(s, acc, out);
    }
    if (s.kind == Kind::Element) element(k, reads, out);
  }
}

void HeldRow::element(size_t index, const std::vector<Expr>& reads, ir::Block& out) {
  const RowStatement& s = group_.statements[index];
  const Expr replaced = replaced_by(index, reads);
  const int64_t more = replaced ? 0 : scope_.shape.columns / scope_.shape.holders(scope_.choice);
  const bool is_held = !values_.has_late() && can_be_held(index) &&
                       scope_.answers.is_held(s.target, scope_.use(), more);
  if (is_held) statements_.hold_element(s, replaced, out);
  if (scope_.is_kept(s)) statements_.put_pieces(s, out);
  if (!is_held) values_.define_element(s);
}

// Of what all rows share.
void HeldRow::find_late(const std::vector<Expr>& reads) {
  int64_t sum = 0;
  for (Expr r : reads) sum += scope_.tile_registers(r.dtype(), scope_.shape.columns);
  if (scope_.shape.columns % scope_.piece() != 0) return;
  for (Expr r : shared_by_rows(group_, pool_)) {
    if (std::find(reads.begin(), reads.end(), r) != reads.end() &&
        scope_.answers.is_late(r.name(), scope_.use(), sum, scope_.shape.columns / scope_.piece()))
      values_.set_late(r);
  }
}

int HeldRow::uses_after(size_t index) const {
  int uses = 0;
  for (size_t k = index + 1; k < group_.statements.size(); ++k) {
    for (ir::Name t : expr::tensors_read(group_.statements[k].value))
      uses += t == group_.statements[index].target ? 1 : 0;
  }
  return uses;
}

bool HeldRow::is_expensive(Expr value) const {
  const Expr column = pool_.index(group_.column.name);
  bool found = false;
  expr::for_each(value, [&](Expr x) {
    if (found || !expr::depends_on(x, column)) return;  // else it is one number of the row
    const bool is_slow = (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div;
    const bool is_elsewhere = x.op() == EK::Read && !values_.is_own(x) && !values_.element(x) &&
                              x.args().back() != group_.place;
    found = is_slow || is_elsewhere;
  });
  return found;
}

bool HeldRow::can_be_held(size_t index) const {
  return uses_after(index) > 1 && is_expensive(group_.statements[index].value);
}

bool HeldRow::is_read_after(size_t index, Expr read) const {
  const auto reaches = [&](const auto& self, Expr value) -> bool {
    bool is_found = false;
    expr::for_each(value, [&](Expr e) {
      if (is_found || e.op() != EK::Read) return;
      is_found = e == read;
      if (e.name() == group_.statements[index].target) return;
      const Expr* inner = values_.element(e);
      if (inner) is_found = is_found || self(self, *inner);
    });
    return is_found;
  };
  for (size_t k = index + 1; k < group_.statements.size(); ++k)
    if (reaches(reaches, group_.statements[k].value)) return true;
  return false;
}

Expr HeldRow::replaced_by(size_t index, const std::vector<Expr>& reads) const {
  for (Expr r : reads) {
    if (r.dtype() == DType::F32 && values_.is_loaded(r) && r.args().back() == group_.place &&
        !is_read_after(index, r))
      return r;
  }
  return {};
}

bool HeldRow::stays_unpacked(ir::Name reduction, std::span<const Expr> reads) {
  int64_t sum = 0;
  for (Expr r : reads) {
    if (is_half(r.dtype()) && values_.is_loaded(r))
      sum += scope_.tile_registers(r.dtype(), scope_.shape.columns);
  }
  return sum == 0 || scope_.answers.stays_unpacked(reduction, scope_.use(), sum);
}

void HeldRow::rematerialize(std::span<const Expr> reads, ir::Block& out) const {
  for (Expr r : reads) {
    if (is_half(r.dtype()) && values_.is_loaded(r))
      out.push_back(ir::make(matile::Forget{values_.loaded(r)}));
  }
}

}  // namespace nautilus::lower
