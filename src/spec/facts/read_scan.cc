// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/read_scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"
#include "expr/bounds/at_most_zero.h"
#include "expr/print.h"
#include "ir/environment.h"
#include "ir/target_of.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using algebra::Rejection;
using expr::Expr;
using ReaderOp = expr::Op;

bool reads(Expr e, ir::Name tensor) {
  const auto read = expr::tensors_read(e);
  return std::find(read.begin(), read.end(), tensor) != read.end();
}

bool has_any(const std::vector<Expr>& list, Expr axis) {
  return std::any_of(list.begin(), list.end(), [&](Expr e) { return expr::depends_on(e, axis); });
}

class ReaderFinder {
 public:
  ReaderFinder(const ir::Program& program, expr::ExprPool& pool, ReadScan& scan)
      : program_(program), pool_(pool), scan_(scan), let_(*scan.let) {}

  std::optional<Rejection> run() {
    if (output_set(program_).contains(let_.name))
      return Rejection{"output", "all of its states are a result"};
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (!let || let->name == let_.name || !reads(let->body, let_.name)) continue;
      if (auto why = reader(*let)) return why;
    }
    if (scan_.readers.empty()) return Rejection{"reader", "no sum of products reads its states"};
    return sides();
  }

 private:
  Expr extent() const { return let_.axes[scan_.step.along].extent; }
  Expr extent_of(Expr axis) const {
    const auto it = std::find_if(let_.axes.begin(), let_.axes.end(),
                                 [&](const ir::Axis& a) { return a.name == axis.name(); });
    return it->extent;
  }

  Rejection refuse(const Let& let, Expr node) const {
    return {"reader", fmt::format("`{}` reads the state otherwise than in a sum of products: `{}`",
                                  let.name.str(), expr::to_string(node))};
  }

  std::optional<Rejection> reader(const Let& let) {
    // Reads of the last state.
    const Expr rest = expr::rebuild(pool_, let.body, [&](Expr e) {
      const bool is_last = e.op() == ReaderOp::Read && e.name() == let_.name &&
                           is_last_step(e[scan_.step.along], extent());
      scan_.has_last |= is_last;
      return is_last ? pool_.floating(0, e.dtype()) : e;
    });
    if (!reads(rest, let_.name)) return std::nullopt;
    const Expr sum = let.body;
    if (sum.op() != ReaderOp::Reduce || sum.reducer() != expr::Reducer::Sum || sum.init() ||
        sum.axis_count() != 1 || expr::has_reduce(sum.body()) || let.dtype != expr::DType::F32)
      return refuse(let, sum);
    ScanReader out;
    out.let = &let;
    out.depth = sum.axis(0);
    Expr state;
    for (Expr f : algebra::factors(sum.body())) {
      if (!reads(f, let_.name)) {
        out.q.push_back(f);
        continue;
      }
      if (state) return refuse(let, f);
      state = f;
    }
    if (!state || !find_state(let, state, out)) return refuse(let, state ? state : sum);
    scan_.readers.push_back(out);
    return std::nullopt;
  }

  // Indices of the state: the step, the depth, and axes of the equation.
  bool find_state(const Let& let, Expr state, ScanReader& out) {
    Expr read = state;
    if (state.op() == ReaderOp::Select) read = state[1];
    if (read.op() != ReaderOp::Read || read.name() != let_.name) return false;
    out.at.assign(read.args().begin(), read.args().end());
    const size_t along = scan_.step.along;
    bool has_steps = false;
    for (size_t k = 0; k < let.axes.size(); ++k) {
      const Expr s = pool_.index(let.axes[k].name);
      const Expr before = pool_.binary(ReaderOp::Add, s, pool_.integer(-1));
      if (out.at[along] != s && out.at[along] != before) continue;
      if (let.axes[k].extent != extent()) return false;
      out.is_before = out.at[along] == before;
      out.steps = k;
      has_steps = true;
    }
    if (!has_steps || out.is_before != (state.op() == ReaderOp::Select)) return false;
    const Expr s = pool_.index(let.axes[out.steps].name);
    if (out.is_before && !is_initial(state, read, s)) return false;
    // One of the state's axes is summed; the others are places.
    size_t depth = SIZE_MAX;
    for (size_t k = 0; k < out.at.size(); ++k) {
      if (k == along) continue;
      if (expr::depends_on(out.at[k], s)) return false;
      if (!expr::depends_on(out.at[k], out.depth)) continue;
      if (out.at[k] != out.depth || depth != SIZE_MAX) return false;
      depth = k;
    }
    if (depth == SIZE_MAX || let_.axes[depth].extent != let.body.extent(0)) return false;
    if (!scan_.readers.empty() && scan_.depth != depth) return false;
    scan_.depth = depth;
    return true;
  }

  // `where(s >= 1, S[s - 1, ..], z)` with the initial element z of the scan.
  bool is_initial(Expr state, Expr read, Expr s) {
    const auto condition = expr::at_most_zero(state[0]);
    const auto later = expr::at_most_zero(pool_.binary(ReaderOp::Ge, s, pool_.integer(1)));
    if (!condition || condition != later) return false;
    expr::Substitution at;
    for (size_t k = 0; k < let_.axes.size(); ++k) {
      if (k != scan_.step.along) at.emplace(pool_.index(let_.axes[k].name), read[k]);
    }
    return expr::substitute(pool_, scan_.step.initial, at) == state[2];
  }

  // Which factor of the term is on which side, and whether that makes products of matrices.
  std::optional<Rejection> sides() {
    const Expr t = pool_.index(let_.axes[scan_.step.along].name);
    const Expr d = pool_.index(let_.axes[scan_.depth].name);
    std::vector<Expr> others;
    for (Expr f : factors_of(scan_.step.term)) {
      (expr::depends_on(f, d) ? scan_.k : others).push_back(f);
    }
    if (scan_.k.empty())
      return Rejection{"term", fmt::format("no factor of `{}` has the axis `{}`",
                                           expr::to_string(scan_.step.term), d.name().str())};
    const Expr decay = scan_.step.decay;
    if (decay && expr::depends_on(decay, d))
      return Rejection{"decay", fmt::format("its decay `{}` has the axis `{}` that readers sum",
                                            expr::to_string(decay), d.name().str())};
    // Axes of columns: one side has them alone.
    std::vector<Expr> columns;
    for (size_t k = 0; k < let_.axes.size(); ++k) {
      const Expr axis = pool_.index(let_.axes[k].name);
      const bool is_own = axis != t && axis != d && has_any(others, axis) &&
                          !has_any(scan_.k, axis) && !(decay && expr::depends_on(decay, axis));
      const bool is_column =
          std::all_of(scan_.readers.begin(), scan_.readers.end(), [&](const ScanReader& r) {
            return r.at[k].op() == ReaderOp::Var && !has_any(r.q, r.at[k]);
          });
      if (is_own && is_column) columns.push_back(axis);
    }
    // The last of them is the column; a factor without it is one of the whole row.
    if (columns.empty())
      return Rejection{"column",
                       fmt::format("no axis stands in one side of `{}` alone, apart from `{}`",
                                   expr::to_string(scan_.step.term), d.name().str())};
    for (Expr f : others) (expr::depends_on(f, columns.back()) ? scan_.v : scan_.u).push_back(f);
    for (size_t k = 0; k < let_.axes.size(); ++k) {
      if (let_.axes[k].name == columns.back().name()) scan_.column = k;
    }
    for (Expr axis : {d, columns.back()}) {
      const Expr n = extent_of(axis);
      // Less than one matrix instruction sums over.
      if (n.op() == ReaderOp::IntConst && n.integer() < ir::target_of(program_).matrix.depth)
        return Rejection{"small",
                         fmt::format("its states have {} numbers along `{}`, a product of matrices "
                                     "would be mostly empty",
                                     n.integer(), axis.name().str())};
    }
    return halves();
  }

  // Where the term is 0 by a condition, the condition is a factor: what it hides are elements of
  // inputs at the scan's own place, which are there and finite.
  bool is_masked(Expr f) const {
    if (f.op() != ReaderOp::Select || f[2].op() != ReaderOp::FloatConst || f[2].number() != 0)
      return false;
    const std::vector<Expr> hidden = algebra::factors(f[1]);
    return std::all_of(hidden.begin(), hidden.end(), [&](Expr x) {
      const Expr read = algebra::element_of(x);
      return read && !find_equation(program_, read.name()) &&
             std::all_of(read.args().begin(), read.args().end(),
                         [](Expr index) { return index.op() == ReaderOp::Var; });
    });
  }

  std::vector<Expr> factors_of(Expr term) {
    std::vector<Expr> out;
    for (Expr f : algebra::factors(term)) {
      if (is_masked(f)) {
        out.push_back(pool_.select(f[0], pool_.floating(1, f.dtype()), f[2]));
        for (Expr g : factors_of(f[1])) out.push_back(g);
        continue;
      }
      if (f.op() != ReaderOp::Neg) {
        out.push_back(f);
        continue;
      }
      out.push_back(pool_.floating(-1, f.dtype()));
      for (Expr g : factors_of(f[0])) out.push_back(g);
    }
    return out;
  }

  std::optional<Rejection> halves() {
    if (ir::numerics_of(program_).rounding == ir::Rounding::Exact)
      return Rejection{"exact", "`numerics exact` forbids to round operands of products"};
    for (const auto* list : {&scan_.v, &scan_.k, &scan_.readers[0].q}) {
      for (Expr f : *list) {
        if (!algebra::is_half_element(f)) continue;
        scan_.half = algebra::element_of(f).dtype();
        return std::nullopt;
      }
    }
    return Rejection{"dtype", "no factor beside its states is an element of 16 bits"};
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  ReadScan& scan_;
  const Let& let_;
};

}  // namespace

bool is_last_step(Expr index, Expr extent) {
  const auto apart = expr::difference(extent, index);
  return apart && apart->constant() && *apart->constant() == 1;
}

algebra::Outcome<ReadScan> read_scan(const EquationGroup& scan, const ir::Program& program,
                                     expr::ExprPool& pool) {
  auto step = affine_scan(scan, program, pool);
  if (!step) return step.rejection();
  ReadScan out;
  out.let = &scan.equations[0]->as<Let>();
  out.step = *step;
  if (auto why = ReaderFinder(program, pool, out).run()) return *why;
  return out;
}

}  // namespace nautilus::spec
