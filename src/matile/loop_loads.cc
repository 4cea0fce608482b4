// SPDX-License-Identifier: Apache-2.0
#include "matile/loop_loads.h"

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using EK = expr::Op;

// Loads of one turn.
class TurnLoads {
 public:
  explicit TurnLoads(Expr var) : var_(var) {}

  void look(const ir::Block& body) {
    for (const ir::Op& op : body) {
      are_apart_ &= is_plain(op);
      if (const auto* branch = op.get<If>()) {
        look(branch->condition, false);
        ir::for_each_op(branch->body, [&](const ir::Op& inner) {
          are_apart_ &= is_plain(inner);
          ir::for_each_expr(inner, [&](Expr root) { look(root, true); });
        });
      } else {
        ir::for_each_expr(op, [&](Expr root) { look(root, false); });
      }
    }
  }

  int64_t count() const { return are_apart_ ? static_cast<int64_t>(loads_.size()) : 0; }

 private:
  static bool is_plain(const ir::Op& op) {
    return !op.is<Loop>() && !op.is<Write>() && !op.is<Scatter>();
  }

  void look(Expr e, bool is_behind) {
    if (is_load_where(e)) {
      add(e, is_behind);
      return look(e[0], is_behind);
    }
    if (e.op() == EK::Read && expr::depends_on(e, var_)) add(e, is_behind);
    for (size_t k = 0; k < e.args().size(); ++k)
      look(e[k], is_behind || (e.op() == EK::Select && k > 0));
  }
  void add(Expr load, bool is_behind) {
    loads_.insert(load.node());
    are_apart_ &= !is_behind;
  }

  Expr var_;
  std::set<const expr::Node*> loads_;
  bool are_apart_ = true;
};

}  // namespace

bool is_load_where(Expr e) {
  if (e.op() != EK::Select || !e[2].is_const()) return false;
  const Expr read = e[1].op() == EK::Cast && e[1].dtype() == expr::DType::F32 ? e[1][0] : e[1];
  const bool has_places = std::ranges::all_of(
      read.args(), [](Expr index) { return expr::tensors_read(index).empty(); });
  return read.op() == EK::Read && has_places && e.dtype() == e[1].dtype() &&
         (read.dtype() == expr::DType::F32 || expr::is_half(read.dtype()));
}

std::vector<Expr> loads_ahead(const Loop& l, expr::ExprPool& pool) {
  std::vector<Expr> out;
  if (l.direction != Direction::Up || !l.from.is_int(0) || l.to.op() == EK::IntConst) return out;
  const Expr var = pool.index(l.var);
  std::set<std::string, std::less<>> written;
  std::set<std::string, std::less<>> defined;
  for (const ir::Op& op : l.body) {
    if (op.is<Loop>() || op.is<If>() || op.is<Scatter>()) return out;
    if (const auto* w = op.get<Write>()) written.emplace(w->target.str());
    if (const auto* let = op.get<Let>()) defined.emplace(let->name.str());
    if (const auto* a = op.get<Assign>()) defined.emplace(a->name.str());
    if (const auto* v = op.get<Value>()) defined.emplace(v->name.str());
  }
  if (written.empty()) return out;
  const auto is_known = [&](Expr e) {
    if (!expr::depends_on(e, var)) return false;
    for (ir::Name t : expr::tensors_read(e)) {
      if (written.contains(t.str())) return false;
    }
    const auto vars = expr::free_vars(e);
    return std::none_of(vars.begin(), vars.end(),
                        [&](Expr v) { return defined.contains(v.name().str()); });
  };
  const auto look = [&](const auto& self, Expr e) -> void {
    const bool is_load = is_load_where(e) || e.op() == EK::Read;
    if (is_load && is_known(e)) {
      if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
      return;
    }
    for (size_t k = 0; k < e.args().size(); ++k) {
      if (k == 0 || e.op() != EK::Select) self(self, e[k]);
    }
  };
  for (const ir::Op& op : l.body) {
    if (const auto* let = op.get<Let>()) look(look, let->value);
    if (const auto* a = op.get<Assign>()) look(look, a->value);
    if (const auto* w = op.get<Write>()) look(look, w->value);
  }
  return out;
}

int64_t loads_of_turn(const Loop& l, expr::ExprPool& pool) {
  const bool is_open =
      l.direction == Direction::Up && l.from.is_int(0) && l.to.op() != EK::IntConst;
  if (!is_open) return 0;
  TurnLoads loads(pool.index(l.var));
  loads.look(l.body);
  return loads.count();
}

}  // namespace nautilus::matile
