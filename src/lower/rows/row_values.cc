// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

const Expr* RowValues::element(Expr read) const {
  const auto it = elements_.find(std::string(read.name().str()));
  return it == elements_.end() ? nullptr : &it->second;
}

bool RowValues::is_own(Expr read) const {
  return read.op() == EK::Read &&
         (numbers_.contains(std::string(read.name().str())) || element(read));
}

bool RowValues::is_late(Expr read) const {
  return std::find(late_.begin(), late_.end(), read) != late_.end();
}

void RowValues::load(Expr read, ir::Block& out) {
  auto it = loaded_.find(read);
  if (it == loaded_.end()) {
    const ir::Name name =
        scope_.add_tile(fmt::format("{}_row", read.name().str()), read.dtype(), true);
    it = loaded_.emplace(read, name).first;
  }
  std::vector<Expr> indices;
  for (Expr i : read.args()) indices.push_back(rewrite(i));
  out.push_back(ir::make(
      matile::Load{it->second, scope_.columns(), pool_.read(read.name(), read.dtype(), indices),
                   scope_.is_whole() ? Expr() : scope_.in_range(),
                   scope_.is_whole() ? Expr() : pool_.floating(padding_),
                   is_broadcast(read) ? matile::Reuse::Often : matile::Reuse::Once}));
}

bool RowValues::is_broadcast(Expr read) const {
  const auto moves = [&](const ir::Axis& a) { return expr::depends_on(read, pool_.index(a.name)); };
  return std::none_of(group_.rows.begin(), group_.rows.end(), moves) &&
         std::none_of(group_.outer.begin(), group_.outer.end(), moves);
}

Expr RowValues::rewrite(Expr e) const {
  std::unordered_map<Expr, Expr> memo;
  const auto go = [&](const auto& self, Expr x) -> Expr {
    if (const auto it = memo.find(x); it != memo.end()) return it->second;
    Expr y;
    if (x.op() == EK::Read && x.args().empty() && scope_.moving.contains(x.name())) {
      y = x;  // a tile of the kernel, whatever statements are called
    } else if (x.op() == EK::Read) {
      const std::string name(x.name().str());
      if (const auto n = numbers_.find(name); n != numbers_.end()) {
        y = pool_.cast(x.dtype(), pool_.read(n->second, DType::F32, {}));
      } else if (const auto t = loaded_.find(x); t != loaded_.end()) {
        y = pool_.read(t->second, x.dtype(), {{is_late(x) ? scope_.column : scope_.place}});
      } else if (const auto k = held_.find(name); k != held_.end()) {
        y = pool_.cast(x.dtype(), pool_.read(k->second, DType::F32, {{scope_.place}}));
      } else if (const Expr* value = element(x)) {
        y = self(self, *value);
      }
    } else if (x == pool_.index(group_.column.name)) {
      y = scope_.at;
    } else if (const auto o = scope_.outer_at.find(x); o != scope_.outer_at.end()) {
      y = o->second;
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

bool RowValues::has_direct_reads(Expr rewritten) const {
  bool found = false;
  expr::for_each(rewritten, [&](Expr e) {
    found |= e.op() == EK::Read && !scope_.is_tile(e.name()) && expr::depends_on(e, scope_.column);
  });
  return found;
}

bool RowValues::reads_row_vector(Expr rewritten) const {
  bool found = false;
  expr::for_each(rewritten, [&](Expr e) {
    found |= e.op() == EK::Read && e.args().size() == 1 && e[0] == scope_.column &&
             scope_.is_tile(e.name());
  });
  return found;
}

Expr RowValues::as_row_vector(Expr rewritten, std::string_view stem, ir::Block& out) {
  if (reads_row_vector(rewritten)) return rewritten;
  const ir::Name name = scope_.add_tile(stem, DType::F32, true);
  const Expr value = pool_.cast(DType::F32, rewritten);
  out.push_back(ir::make(matile::Set{name, scope_.columns(), value}));
  return pool_.cast(rewritten.dtype(), pool_.read(name, DType::F32, {{scope_.column}}));
}

}  // namespace nautilus::lower
