// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/grid_facts.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "expr/rules/simplify.h"
#include "ir/decl.h"
#include "ir/machine.h"
#include "ir/walk.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

namespace {

class GridReader {
 public:
  GridReader(const ir::Axes& axes, const ir::Block& body, const NestScope& scope)
      : axes_(axes), body_(body), scope_(scope), pool_(scope.pool) {
    // Scalars written out, so that a bound that depends on an axis is seen to.
    ir::for_each_op(body, [&](const Op& op) {
      const auto* let = op.get<vrtile::Let>();
      if (let)
        lets_.insert_or_assign(pool_.var(let->name, let->value.dtype()),
                               expr::substitute(pool_, let->value, lets_));
    });
  }

  GridFacts run() {
    facts_.machine = ir::machine_name(scope_.program, pool_);
    read_loops();
    ir::for_each_op(body_, [&](const Op& op) {
      if (const auto* l = op.get<vrtile::Load>()) read_load(*l);
    });
    if (facts_.shared_bytes)
      facts_.shared_bytes = expr::Simplifier(pool_).simplify(facts_.shared_bytes);
    facts_.growing >= 0 ? find_repeated() : find_rows_and_columns();
    return facts_;
  }

 private:
  bool depends(Expr e, const ir::Axis& a) const {
    return expr::depends_on(expr::substitute(pool_, e, lets_), pool_.index(a.name));
  }

  // What products read, what loops load, and the axis along which loops become longer.
  void read_loops() {
    std::unordered_set<Expr> computed;
    for (const Op& op : scope_.program.body) {
      if (const auto* s = op.get<ir::Size>()) computed.insert(pool_.index(s->name));
    }
    ir::for_each_op(body_, [&](const Op& op) {
      if (const auto* d = op.get<vrtile::Dot>()) {
        operands_.emplace(d->a.str());
        operands_.emplace(d->b.str());
      }
      const auto* loop = op.get<vrtile::For>();
      if (!loop) return;
      for (const Op& inner : loop->body) {
        if (const auto* l = inner.get<vrtile::Load>()) looped_.emplace(l->name.str());
      }
      for (size_t k = 0; k < axes_.size(); ++k) {
        // Parts that a schedule made of a loop are alike.
        if (computed.contains(axes_[k].extent)) continue;
        if (depends(loop->from, axes_[k]) || depends(loop->to, axes_[k]))
          facts_.growing = static_cast<int>(k);
      }
    });
  }

  // Which axes a tile depends on that is read from memory step by step or by products.
  void read_load(const vrtile::Load& l) {
    const bool is_operand = operands_.contains(std::string(l.name.str()));
    const bool is_looped = looped_.contains(std::string(l.name.str()));
    if (!is_operand && (l.axes.size() != 2 || !is_looped)) return;
    std::set<size_t> set;
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (depends(l.value, axes_[k])) set.insert(k);
    }
    sets_.push_back(set);
    // Read again by all tiles along the growing axis.
    const bool is_shared = facts_.growing >= 0 && is_operand && is_looped &&
                           !set.contains(static_cast<size_t>(facts_.growing));
    if (is_shared && counted_.emplace(l.value.name().str()).second) add_shared_bytes(l.value);
  }

  void add_shared_bytes(Expr read) {
    const auto type = scope_.tensors.find(read.name().str());
    if (type == scope_.tensors.end()) return;
    Expr bytes = pool_.integer(expr::bytes(type->second.dtype));
    for (size_t d = 0; d < read.args().size(); ++d) {
      const bool is_walked =
          std::ranges::none_of(axes_, [&](const ir::Axis& a) { return depends(read[d], a); });
      if (is_walked) bytes = pool_.binary(EK::Mul, type->second.dims[d], bytes);
    }
    facts_.shared_bytes =
        facts_.shared_bytes ? pool_.binary(EK::Add, facts_.shared_bytes, bytes) : bytes;
  }

  void find_repeated() {
    const auto growing = static_cast<size_t>(facts_.growing);
    for (size_t k = 0; k < axes_.size(); ++k) {
      const bool is_repeated = std::any_of(sets_.begin(), sets_.end(), [&](const auto& s) {
        return s.contains(growing) && !s.contains(k);
      });
      if (k != growing && is_repeated) facts_.repeated = static_cast<int>(k);
    }
  }

  void find_rows_and_columns() {
    for (size_t r = 0; r < axes_.size(); ++r) {
      for (size_t c = r + 1; c < axes_.size(); ++c) {
        bool has_row = false;
        bool has_col = false;
        for (const auto& s : sets_) {
          has_row |= s.contains(r) && !s.contains(c);
          has_col |= s.contains(c) && !s.contains(r);
        }
        if (!has_row || !has_col) continue;
        facts_.rows = static_cast<int>(r);
        facts_.cols = static_cast<int>(c);
      }
    }
  }

  const ir::Axes& axes_;
  const ir::Block& body_;
  const NestScope& scope_;
  expr::ExprPool& pool_;
  expr::Substitution lets_;
  std::set<std::string> operands_;  // of products
  std::set<std::string> looped_;    // loaded in loops
  std::set<std::string> counted_;   // tensors whose bytes are in `shared_bytes`
  std::vector<std::set<size_t>> sets_;
  GridFacts facts_;
};

}  // namespace

GridFacts grid_facts(const ir::Axes& axes, const ir::Block& body, const NestScope& scope) {
  return GridReader(axes, body, scope).run();
}

}  // namespace nautilus::lower
