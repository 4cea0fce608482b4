// SPDX-License-Identifier: Apache-2.0
// Values of a row in terms of its kernel: which reads become tiles, what stands beyond the row, and
// what is one number for all columns.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/rows/row_lowering.h"
#include "lower/rows/row_padding.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using expr::Reducer;
using Kind = RowStatement::Kind;

namespace {

bool has_slow_op(Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    found |= (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div ||
             (x.op() == EK::Select && x.dtype() == DType::F32);
  });
  return found;
}

}  // namespace

ir::Name RowLowering::add_tile(std::string_view stem, DType dtype, bool is_row_vector) {
  const ir::Name name = names_.make(stem);
  ir::TensorType type{dtype, {}};
  if (is_row_vector) type.dims.push_back(pool_.integer(extent_));
  tiles_.emplace_back(name, type);
  return name;
}

// A read that a tile of the row may stand for: consecutive columns, and inside the tensor
// wherever it is evaluated.
bool RowLowering::is_row_read(Expr e, bool is_always) {
  if (e.op() != EK::Read || e.args().empty()) return false;
  if (e.dtype() != DType::F32 && !is_half(e.dtype())) return false;
  const Expr column = pool_.index(group_.column.name);
  const size_t last = e.args().size() - 1;
  if (e[last] != column) return false;
  for (size_t k = 0; k < last; ++k) {
    if (expr::depends_on(e[k], column)) return false;
  }
  return is_always || is_inside(e);
}

bool RowLowering::is_inside(Expr read) {
  const auto it = buffers_.find(std::string(read.name().str()));
  if (it == buffers_.end()) return false;
  expr::Facts facts = facts_;
  for (const ir::Axis& a : group_.rows) facts.add_axis(pool_.index(a.name), a.extent);
  for (const ir::Axis& a : group_.outer) facts.add_axis(pool_.index(a.name), a.extent);
  facts.add_axis(pool_.index(group_.column.name), group_.column.extent);
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr low = pool_.binary(EK::Ge, read[k], pool_.integer(0));
    const Expr high = pool_.binary(EK::Lt, read[k], it->second.dims[k]);
    if (facts.prove(low) != expr::Truth::True || facts.prove(high) != expr::Truth::True)
      return false;
  }
  return true;
}

// Reads of a value that become tiles, in order of their first use.
void RowLowering::collect_row_reads(Expr e, bool is_always, std::vector<Expr>& out) {
  if (!visited_.emplace(e, is_always).second) return;
  if (e.op() == EK::Read && element(e)) return collect_row_reads(*element(e), is_always, out);
  if (!own(e) && is_row_read(e, is_always)) {
    if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
    return;
  }
  const bool is_lazy = e.op() == EK::Select || e.op() == EK::And || e.op() == EK::Or;
  for (size_t k = 0; k < e.args().size(); ++k)
    collect_row_reads(e[k], is_always && !(is_lazy && k > 0), out);
}

// The value of an element of the group that is computed again where it is read.
const Expr* RowLowering::element(Expr read) const {
  const auto it = elements_.find(std::string(read.name().str()));
  return it == elements_.end() ? nullptr : &it->second;
}

bool RowLowering::own(Expr read) const {
  return read.op() == EK::Read &&
         (numbers_.contains(std::string(read.name().str())) || element(read));
}

// What a column beyond the row reads: chosen so that reductions need no condition.
void RowLowering::choose_padding() {
  int best = -1;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double candidate : {0.0, -infinity, infinity}) {
    int count = 0;
    for (const RowStatement& s : group_.statements)
      count += s.kind == Kind::Reduction && vanishes(s, candidate) ? 1 : 0;
    if (count <= best) continue;
    best = count;
    padding_ = candidate;
  }
}

bool RowLowering::vanishes(const RowStatement& s, double padding) {
  // With the group's elements written out.
  std::map<std::string, Expr> elements;
  for (const RowStatement& t : group_.statements) {
    if (t.target == s.target) break;
    if (t.kind == Kind::Element) elements[std::string(t.target.str())] = t.value;
  }
  return is_identity_outside(
      s.value, s.reducer, padding,
      [&](Expr read) -> Expr {
        const auto it = elements.find(std::string(read.name().str()));
        return it == elements.end() ? Expr() : it->second;
      },
      [&](Expr read) { return is_row_read(read, true); },
      [&](Expr read) -> Expr {
        for (const RowStatement& t : group_.statements) {
          if (t.target == read.name() && t.kind == Kind::Number) return t.value;
        }
        return {};
      });
}

// A value in terms of the kernel: tiles instead of reads, the kernel's column.
Expr RowLowering::rewrite(Expr e) {
  std::unordered_map<Expr, Expr> memo;
  const auto go = [&](const auto& self, Expr x) -> Expr {
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    Expr y;
    if (x.op() == EK::Read) {
      const std::string name(x.name().str());
      if (const auto n = numbers_.find(name); n != numbers_.end()) {
        y = pool_.cast(x.dtype(), pool_.read(n->second, DType::F32, {}));
      } else if (const auto t = loaded_.find(x); t != loaded_.end()) {
        y = pool_.read(t->second, x.dtype(), {{is_late(x) ? column_ : place_}});
      } else if (const auto k = kept_elements_.find(name); k != kept_elements_.end()) {
        y = pool_.cast(x.dtype(), pool_.read(k->second, DType::F32, {{place_}}));
      } else if (const Expr* value = element(x)) {
        y = self(self, *value);
      }
    } else if (x == pool_.index(group_.column.name)) {
      y = at_;
    }
    if (!y) {
      std::vector<Expr> args(x.args().begin(), x.args().end());
      bool is_changed = false;
      for (Expr& a : args) {
        const Expr b = self(self, a);
        is_changed |= b != a;
        a = b;
      }
      y = is_changed ? pool_.with_args(x, args) : x;
    }
    memo.emplace(x, y);
    return y;
  };
  return go(go, e);
}

bool RowLowering::is_tile(ir::Name name) const {
  return std::any_of(tiles_.begin(), tiles_.end(),
                     [&](const auto& tile) { return tile.first == name; });
}

// Reads of global memory inside a value go beyond the row if nothing keeps them.
bool RowLowering::has_direct_reads(Expr rewritten) {
  bool found = false;
  expr::for_each(rewritten, [&](Expr e) {
    found |= e.op() == EK::Read && !is_tile(e.name()) && expr::depends_on(e, column_);
  });
  return found;
}

bool RowLowering::reads_row_vector(Expr rewritten) {
  bool found = false;
  expr::for_each(rewritten, [&](Expr e) {
    found |= e.op() == EK::Read && e.args().size() == 1 && e[0] == column_ && is_tile(e.name());
  });
  return found;
}

Expr RowLowering::constant(Reducer reducer) {
  return pool_.floating(expr::identity(reducer, DType::F32).f, DType::F32);
}

bool RowLowering::is_broadcast(Expr read) {
  const auto moves = [&](const ir::Axis& a) { return expr::depends_on(read, pool_.index(a.name)); };
  return std::none_of(group_.rows.begin(), group_.rows.end(), moves) &&
         std::none_of(group_.outer.begin(), group_.outer.end(), moves);
}

void RowLowering::load(Expr read, ir::Block& out) {
  auto it = loaded_.find(read);
  if (it == loaded_.end()) {
    const ir::Name name = add_tile(fmt::format("{}_row", read.name().str()), read.dtype(), true);
    it = loaded_.emplace(read, name).first;
  }
  std::vector<Expr> indices;
  for (Expr i : read.args()) indices.push_back(rewrite(i));
  out.push_back(ir::make(
      matile::Load{it->second, columns(), pool_.read(read.name(), read.dtype(), indices),
                   is_whole() ? Expr() : in_range(), is_whole() ? Expr() : pool_.floating(padding_),
                   is_broadcast(read) ? matile::Reuse::Often : matile::Reuse::Once}));
}

// A tile that holds the value, for ops that need one.
Expr RowLowering::as_row_vector(Expr rewritten, std::string_view stem, ir::Block& out) {
  if (reads_row_vector(rewritten)) return rewritten;
  const ir::Name name = add_tile(stem, DType::F32, true);
  const Expr value = pool_.cast(DType::F32, rewritten);
  out.push_back(ir::make(matile::Set{name, columns(), value}));
  return pool_.cast(rewritten.dtype(), pool_.read(name, DType::F32, {{column_}}));
}

// Work that is the same for all columns, done once: `e[j] / (l[] + 1)` with the sum as a number.
Expr RowLowering::hoisted(Expr e) {
  if (const auto known = without_numbers_.find(e); known != without_numbers_.end())
    return known->second;
  const Expr out = hoist(e);
  without_numbers_.emplace(e, out);
  return out;
}

Expr RowLowering::hoist(Expr e) {
  if (is_number(e) && has_slow_op(e)) {
    auto it = hoisted_.find(e);
    if (it == hoisted_.end()) {
      const ir::Name name = add_tile("number", DType::F32, false);
      main_->push_back(ir::make(matile::Set{name, {}, e}));
      it = hoisted_.emplace(e, name).first;
    }
    return pool_.read(it->second, DType::F32, {});
  }
  std::vector<Expr> args(e.args().begin(), e.args().end());
  bool is_changed = false;
  for (Expr& a : args) {
    const Expr b = hoisted(a);
    is_changed |= b != a;
    a = b;
  }
  return is_changed ? pool_.with_args(e, args) : e;
}

// Of tiles without columns, sizes and scalars: nothing that is read under a condition.
bool RowLowering::is_number(Expr e) const {
  if (e.dtype() != DType::F32) return false;
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    ok &= x.op() != EK::Read || (x.args().empty() && is_tile(x.name()));
    ok &= x.op() != EK::Var || !expr::depends_on(at_, x);
    for (const ir::Axis& a : group_.outer) ok &= x != pool_.index(a.name);
  });
  return ok;
}

}  // namespace nautilus::lower
