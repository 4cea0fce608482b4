// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/tile_numbers.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "expr/syntax.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class NumberReader {
 public:
  NumberReader(const Op& nest, const std::unordered_map<ir::Name, ir::TensorType>& types,
               expr::Facts facts, vrtile::Names& names, expr::ExprPool& pool)
      : types_(types), facts_(std::move(facts)), names_(names), pool_(pool) {
    for (const ir::Axis& a : nest.as<scalar::For>().axes)
      facts_.add_axis(pool_.index(a.name), a.extent);
    ir::for_each_op(nest.as<scalar::For>().body, [&](const Op& op) {
      const auto* f = op.get<scalar::For>();
      for (const ir::Axis& a : f ? f->axes : ir::Axes()) {
        const Expr var = pool_.index(a.name);
        if (f->kind != scalar::LoopKind::Group) {
          inner_.insert(var);
          continue;
        }
        groups_.push_back(var);
        facts_.add_axis(var, a.extent);
      }
      if (const auto* s = op.get<scalar::Store>()) written_.insert(s->target);
      if (const auto* s = op.get<scalar::Init>()) written_.insert(s->target);
      if (const auto* l = op.get<scalar::Loop>()) {
        steps_.push_back(pool_.index(l->var));
        reads_ |= !expr::tensors_read(l->from).empty() || !expr::tensors_read(l->to).empty();
      }
    });
  }

  TileNumbers run(const Op& nest) {
    if (!reads_) return {{}, {}, {}, nest};
    // Of several loops it would not be clear whose step a number belongs to.
    if (steps_.size() > 1) inner_.insert(steps_.begin(), steps_.end());
    Op changed = ir::map_exprs(nest, [&](Expr e) { return with_numbers(e); });
    return {std::move(lets_), std::move(group_lets_), std::move(step_lets_), std::move(changed)};
  }

 private:
  // An integer of the tile, made of small integers that lie inside their tensors.
  bool is_number(Expr e) const {
    if (!expr::is_int(e.dtype()) || expr::tensors_read(e).empty()) return false;
    bool ok = !expr::has_reduce(e);
    expr::for_each(e, [&](Expr x) {
      ok &= !expr::is_float(x.dtype()) && !inner_.contains(x);
      if (!ok || x.op() != EK::Read) return;
      ok = expr::is_int(x.dtype()) && expr::bytes(x.dtype()) <= 4 && !written_.contains(x.name());
      const auto& dims = types_.at(x.name()).dims;
      for (size_t k = 0; ok && k < x.args().size(); ++k) {
        ok = facts_.prove(pool_.binary(EK::Ge, x[k], pool_.integer(0))) == expr::Truth::True &&
             facts_.prove(pool_.binary(EK::Lt, x[k], dims[k])) == expr::Truth::True;
      }
    });
    return ok;
  }

  bool is_of_step(Expr e) const {
    return std::any_of(steps_.begin(), steps_.end(),
                       [&](Expr v) { return expr::depends_on(e, v); });
  }

  // The largest such parts of an expression, as variables. Of indices only what lies elsewhere in
  // every step.
  Expr with_numbers(Expr e, bool is_index = false) {
    auto& memo = memo_[is_index ? 1 : 0];
    if (const auto it = memo.find(e); it != memo.end()) return it->second;
    Expr out = e;
    if (is_number(e) && (!is_index || is_of_step(e))) {
      out = number(e);
    } else if (!e.args().empty()) {
      std::vector<Expr> args;
      for (Expr a : e.args()) args.push_back(with_numbers(a, is_index || e.op() == EK::Read));
      out = pool_.with_args(e, args);
    }
    memo.emplace(e, out);
    return out;
  }

  Expr number(Expr e) {
    if (const auto it = numbers_.find(e); it != numbers_.end()) return it->second;
    std::string base(expr::tensors_read(e)[0].str());
    for (char& c : base)
      c = c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (expr::is_reserved(base)) base += "_number";
    const ir::Name name = names_.fresh(base);
    const bool is_of_group =
        std::any_of(groups_.begin(), groups_.end(), [&](Expr g) { return expr::depends_on(e, g); });
    (is_of_step(e) ? step_lets_
     : is_of_group ? group_lets_
                   : lets_)
        .push_back(ir::make(vrtile::Let{name, e}));
    const Expr out = pool_.var(name, e.dtype());
    numbers_.emplace(e, out);
    return out;
  }

  const std::unordered_map<ir::Name, ir::TensorType>& types_;
  expr::Facts facts_;
  vrtile::Names& names_;
  expr::ExprPool& pool_;
  std::unordered_set<Expr> inner_;  // variables of the tiles' loops inside the grid
  std::vector<Expr> steps_;         // those of loops over steps
  std::vector<Expr> groups_;        // but not those that number warp groups
  std::unordered_set<ir::Name> written_;
  bool reads_ = false;
  std::unordered_map<Expr, Expr> memo_[2];
  std::unordered_map<Expr, Expr> numbers_;
  ir::Block lets_;
  ir::Block group_lets_;
  ir::Block step_lets_;
};

}  // namespace

TileNumbers read_tile_numbers(const Op& nest,
                              const std::unordered_map<ir::Name, ir::TensorType>& types,
                              expr::Facts facts, vrtile::Names& names, expr::ExprPool& pool) {
  return NumberReader(nest, types, std::move(facts), names, pool).run(nest);
}

}  // namespace nautilus::lower
