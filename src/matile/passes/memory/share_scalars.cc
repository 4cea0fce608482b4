// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/memory/share_scalars.h"

#include <algorithm>
#include <unordered_map>

#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class ScalarSharer {
 public:
  ScalarSharer(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), taken_(names_of(program)) {
    for (const Op& op : program.body) {
      const auto* p = op.get<ir::Param>();
      if (p && p->dtype == expr::DType::F32) params_.emplace(p->name.str());
    }
  }

  ir::Program run() {
    ir::Program out = program_;
    for (Op& op : out.body) {
      if (op.is<Kernel>()) op = ir::map_exprs(op, [&](Expr e) { return shared(e); });
    }
    // Behind the declarations, before anything that may use them.
    const auto at = std::find_if(out.body.begin(), out.body.end(), [](const Op& op) {
      return op.is<Let>() || op.is<Map>() || op.is<Kernel>();
    });
    out.body.insert(at, lets_.begin(), lets_.end());
    return out;
  }

 private:
  bool is_scalar(Expr e) const {
    if (e.dtype() != expr::DType::F32) return false;
    if (e.op() == EK::FloatConst) return true;
    if (e.op() == EK::Var) return params_.contains(e.name().str());
    const bool is_plain = e.op() == EK::Add || e.op() == EK::Sub || e.op() == EK::Mul ||
                          e.op() == EK::Div || e.op() == EK::Neg;
    return is_plain &&
           std::all_of(e.args().begin(), e.args().end(), [&](Expr a) { return is_scalar(a); });
  }

  Expr shared(Expr e) {
    if (e.args().empty() || params_.empty()) return e;
    if (is_scalar(e)) return computed(e);
    std::vector<Expr> args;
    bool is_changed = false;
    for (Expr a : e.args()) {
      args.push_back(shared(a));
      is_changed |= args.back() != a;
    }
    return is_changed ? pool_.with_args(e, args) : e;
  }

  Expr computed(Expr e) {
    const auto [it, is_new] = names_.try_emplace(e);
    if (is_new) {
      ir::Name first;
      expr::for_each(e, [&](Expr x) {
        if (x.op() == EK::Var && !first) first = x.name();
      });
      if (!first) return it->second = e;
      const ir::Name name = fresh_name(std::string(first.str()) + "_once", taken_, pool_);
      lets_.push_back(ir::make(Let{name, e}));
      it->second = pool_.var(name, e.dtype());
    }
    return it->second;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  Names taken_;
  Names params_;
  std::unordered_map<Expr, Expr> names_;
  ir::Block lets_;
};

}  // namespace

std::optional<ir::Program> share_scalars(const ir::Program& program, ir::PassContext& context) {
  return ScalarSharer(program, context.pool).run();
}

}  // namespace nautilus::matile
