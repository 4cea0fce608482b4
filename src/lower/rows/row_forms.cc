// SPDX-License-Identifier: Apache-2.0
// The three forms of a kernel's work: a row in registers, a block of elements, a row walked over.
#include <algorithm>
#include <span>

#include "expr/walk.h"
#include "lower/rows/row_lowering.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using Kind = RowStatement::Kind;

namespace {

// Worth keeping rather than computing again.
bool is_expensive(Expr e, Expr column) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    const bool is_slow = (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div;
    found |= is_slow && expr::depends_on(x, column);  // else it is one number of the row
  });
  return found;
}

}  // namespace

bool RowLowering::is_late(Expr read) const {
  return std::find(late_.begin(), late_.end(), read) != late_.end();
}

// Of what all rows share.
void RowLowering::find_late(const std::vector<Expr>& reads) {
  int64_t sum = 0;
  for (Expr r : reads) sum += tile_registers(r.dtype(), shape_.columns);
  if (shape_.columns % piece() != 0) return;
  for (Expr r : shared_by_rows(group_, pool_)) {
    if (std::find(reads.begin(), reads.end(), r) != reads.end() &&
        answers_.is_late(r.name(), use(), sum, shape_.columns / piece()))
      late_.push_back(r);
  }
}

int RowLowering::uses_after(size_t index) const {
  int uses = 0;
  for (size_t k = index + 1; k < group_.statements.size(); ++k) {
    for (ir::Name t : expr::tensors_read(group_.statements[k].value))
      uses += t == group_.statements[index].target ? 1 : 0;
  }
  return uses;
}

bool RowLowering::can_be_held(size_t index) const {
  return uses_after(index) > 1 &&
         is_expensive(group_.statements[index].value, pool_.index(group_.column.name));
}

// Whether statements after `index` need the read, other than through that statement's elements.
bool RowLowering::is_read_after(size_t index, Expr read) const {
  const auto reaches = [&](const auto& self, Expr value) -> bool {
    bool is_found = false;
    expr::for_each(value, [&](Expr e) {
      if (is_found || e.op() != EK::Read) return;
      is_found = e == read;
      if (e.name() == group_.statements[index].target) return;
      const auto it = elements_.find(std::string(e.name().str()));
      if (it != elements_.end()) is_found = is_found || self(self, it->second);
    });
    return is_found;
  };
  for (size_t k = index + 1; k < group_.statements.size(); ++k)
    if (reaches(reaches, group_.statements[k].value)) return true;
  return false;
}

// A read whose tile the elements of a statement may take over: its last use is in them. Empty if
// there is none.
Expr RowLowering::replaced_by(size_t index, const std::vector<Expr>& reads) const {
  for (Expr r : reads) {
    if (r.dtype() == DType::F32 && loaded_.contains(r) &&
        r.args().back() == pool_.index(group_.column.name) && !is_read_after(index, r))
      return r;
  }
  return {};
}

void RowLowering::resident(ir::Block& out) {
  std::vector<Expr> reads;
  std::vector<size_t> known;  // how many of the reads the statements up to each need
  visited_.clear();
  for (size_t k = 0; k < group_.statements.size(); ++k) {
    const RowStatement& s = group_.statements[k];
    const bool is_needed = s.kind != Kind::Element || can_be_held(k) || is_kept(s);
    if (is_needed) collect_row_reads(s.value, true, reads);
    known.push_back(reads.size());
    if (s.kind == Kind::Element) elements_[std::string(s.target.str())] = s.value;
  }
  elements_.clear();
  // Everything that comes from memory is asked for at once, except what is late: the cache has it
  // when it is needed.
  find_late(reads);
  const bool is_delayed = reads.size() > 2;
  for (Expr r : reads) {
    if (!is_late(r) && (!is_delayed || !is_broadcast(r))) load(r, out);
  }
  for (size_t k = 0; k < group_.statements.size(); ++k) {
    const RowStatement& s = group_.statements[k];
    for (size_t r = k ? known[k - 1] : 0; r < known[k]; ++r) {
      if (is_delayed && is_broadcast(reads[r]) && !is_late(reads[r])) load(reads[r], out);
    }
    const std::string target(s.target.str());
    if (s.kind == Kind::Number) number(s, out);
    if (s.kind == Kind::Reduction) {
      const ir::Name acc = add_tile(target, DType::F32, false);
      fold(s, acc, true, out);
      const std::span<const Expr> unpacked(reads.data(), known[k]);
      if (k + 1 < group_.statements.size() && !stays_unpacked(s.target, unpacked))
        rematerialize(unpacked, out);
      finish(s, acc, out);
    }
    if (s.kind != Kind::Element) continue;
    const Expr replaced = replaced_by(k, reads);
    const int64_t more = replaced ? 0 : shape_.columns / choice_.threads;
    const bool is_held = late_.empty() && can_be_held(k) && answers_.is_held(s.target, use(), more);
    if (is_held) {
      Expr value = hoisted(rewrite(s.value));
      if (!is_whole() && has_direct_reads(value))
        value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
      const ir::Name tile = replaced ? loaded_.at(replaced) : add_tile(target, DType::F32, true);
      loaded_.erase(replaced);
      out.push_back(ir::make(matile::Set{tile, columns(), pool_.cast(DType::F32, value)}));
      kept_elements_[target] = tile;
    }
    if (kept_.contains(target)) put_pieces(s, out);
    if (!is_held) elements_[target] = s.value;
  }
}

bool RowLowering::stays_unpacked(ir::Name reduction, std::span<const Expr> reads) {
  int64_t sum = 0;
  for (Expr r : reads) {
    if (is_half(r.dtype()) && loaded_.contains(r)) sum += tile_registers(r.dtype(), shape_.columns);
  }
  return sum == 0 || answers_.stays_unpacked(reduction, use(), sum);
}

void RowLowering::rematerialize(std::span<const Expr> reads, ir::Block& out) {
  for (Expr r : reads) {
    if (is_half(r.dtype()) && loaded_.contains(r))
      out.push_back(ir::make(matile::Forget{loaded_.at(r)}));
  }
}

void RowLowering::block(ir::Block& out) {
  std::vector<Expr> reads;
  visited_.clear();
  for (const RowStatement& s : group_.statements) {
    if (is_kept(s)) collect_row_reads(s.value, true, reads);
    elements_[std::string(s.target.str())] = s.value;
  }
  for (Expr r : reads) load(r, out);
  for (const RowStatement& s : group_.statements) {
    if (is_kept(s)) put_element(s, out);
  }
}

void RowLowering::walking(ir::Block& out) {
  const ir::Name count = names_.make("steps");
  out.push_back(ir::make(matile::Let{count, steps()}));
  for (size_t k = 0; k < group_.statements.size();) {
    const RowStatement& s = group_.statements[k];
    if (s.kind == Kind::Number) {
      number(s, out);
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
      if (t.kind == Kind::Element) elements_[std::string(t.target.str())] = t.value;
    }
    walk(k, end, count, out);
    k = end;
  }
}

// Whether a value needs one of the numbers, through elements that are computed again too.
bool RowLowering::depends(Expr value, const std::set<std::string>& numbers) const {
  bool found = false;
  expr::for_each(value, [&](Expr e) {
    if (e.op() != EK::Read) return;
    found |= numbers.contains(std::string(e.name().str()));
    if (const Expr* inner = element(e)) found |= depends(*inner, numbers);
  });
  return found;
}

void RowLowering::walk(size_t begin, size_t end, ir::Name count, ir::Block& out) {
  std::vector<ir::Name> accs(end - begin);
  bool has_work = false;
  for (size_t k = begin; k < end; ++k) {
    const RowStatement& s = group_.statements[k];
    has_work |= s.kind == Kind::Reduction || is_kept(s);
    if (s.kind != Kind::Reduction) continue;
    accs[k - begin] = add_tile(s.target.str(), DType::F32, false);
    out.push_back(ir::make(matile::Set{accs[k - begin], {}, constant(s.reducer)}));
  }
  if (!has_work) return;
  matile::Loop loop{
      names_.make("step"), pool_.integer(0), matile::Direction::Up, pool_.index(count), {}};
  at_ = pool_.binary(EK::Add,
                     pool_.binary(EK::Mul, pool_.integer(shape_.columns), pool_.index(loop.var)),
                     column_);
  if (!group_.outer.empty()) {
    walk_rows(begin, end, accs, loop);
  } else {
    std::vector<Expr> reads;
    visited_.clear();
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction || is_kept(s)) collect_row_reads(s.value, true, reads);
    }
    for (Expr r : reads) load(r, loop.body);
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction) fold(s, accs[k - begin], false, loop.body);
      if (s.kind == Kind::Element && is_kept(s)) put_element(s, loop.body);
    }
  }
  ir::Op around = ir::make(std::move(loop));
  for (size_t k = group_.outer.size(); k-- > 0;) {
    const ir::Axis& a = group_.outer[k];
    const bool is_last = k + 1 == group_.outer.size();
    const Expr turns =
        is_last && shape_.each > 1
            ? pool_.binary(EK::FloorDiv,
                           pool_.binary(EK::Add, a.extent, pool_.integer(shape_.each - 1)),
                           pool_.integer(shape_.each))
            : a.extent;
    around =
        ir::make(matile::Loop{a.name, pool_.integer(0), matile::Direction::Up, turns, {around}});
  }
  out.push_back(std::move(around));
  at_ = in_row(column_);
  for (size_t k = begin; k < end; ++k) {
    if (accs[k - begin]) finish(group_.statements[k], accs[k - begin], out);
  }
}

// A step of a walk over several rows: what all of them need is loaded first. The loop over the last
// outer axis counts steps of them.
void RowLowering::walk_rows(size_t begin, size_t end, const std::vector<ir::Name>& accs,
                            matile::Loop& loop) {
  const ir::Axis& last = group_.outer.back();
  const Expr step = pool_.index(last.name);
  std::vector<std::vector<RowStatement>> of_row(static_cast<size_t>(shape_.each));
  const auto row = [&](size_t n) {
    if (shape_.each == 1) return step;
    return pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.integer(shape_.each), step),
                        pool_.integer(static_cast<int64_t>(n)));
  };
  for (size_t n = 0; n < of_row.size(); ++n) {
    if (shape_.each > 1) is_walked_ = pool_.binary(EK::Lt, row(n), last.extent);
    std::vector<Expr> reads;
    visited_.clear();
    for (size_t k = begin; k < end; ++k) {
      RowStatement s = group_.statements[k];
      s.value = expr::substitute(pool_, s.value, {{step, row(n)}});
      collect_row_reads(s.value, true, reads);
      of_row[n].push_back(std::move(s));
    }
    for (Expr r : reads) load(r, loop.body);
  }
  for (size_t n = 0; n < of_row.size(); ++n) {
    if (shape_.each > 1) is_walked_ = pool_.binary(EK::Lt, row(n), last.extent);
    for (size_t k = begin; k < end; ++k)
      fold(of_row[n][k - begin], accs[k - begin], false, loop.body);
  }
  is_walked_ = {};
}

}  // namespace nautilus::lower
