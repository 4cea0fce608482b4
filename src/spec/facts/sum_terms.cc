// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/sum_terms.h"

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

constexpr size_t kMostSumTerms = 8;
constexpr int64_t kLargestCounted = 4096;

bool is_plain_sum(Expr e) {
  return e.op() == Op::Reduce && e.reducer() == expr::Reducer::Sum && !e.init() &&
         e.dtype() == expr::DType::F32 && !expr::has_reduce(e.body());
}

void count_reads(Expr e, std::unordered_map<ir::Name, int>& reads) {
  if (e.op() == Op::Read) ++reads[e.name()];
  for (Expr a : e.args()) count_reads(a, reads);
}

}  // namespace

SumTerms::SumTerms(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
  std::unordered_map<ir::Name, int> reads;
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (!let) continue;
    expr::for_each(let->body, [&](Expr e) {
      if (e.op() == Op::Reduce) ++written_[e];
    });
    if (let->body.tree_size() <= kLargestCounted) {
      count_reads(let->body, reads);
    } else {
      for (ir::Name name : expr::tensors_read(let->body)) reads[name] += 2;
    }
  }
  const auto outputs = output_set(program);
  const auto scanned = scanned_tensors(program);
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (let && let->dtype == expr::DType::F32 && let->body.dtype() == expr::DType::F32 &&
        reads[let->name] == 1 && !outputs.contains(let->name) && !scanned.contains(let->name))
      private_.emplace(let->name, *let);
  }
}

// Whether the indices take every element at most once, as pieces of an axis do: each is an axis, or
// a piece and a place in it, of axes that no other index has. Windows that overlap read elements
// several times.
bool SumTerms::reads_once(Expr read) const {
  for (size_t k = 0; k < read.args().size(); ++k) {
    const auto p = expr::Poly::of(read[k]);
    const std::vector<Expr> axes = expr::free_vars(read[k]);
    if (!p || axes.size() > 2) return false;
    std::vector<std::pair<int64_t, Expr>> steps;
    for (Expr v : axes) {
      const auto parts = p->split(v);
      const auto step = parts ? parts->first.constant() : std::nullopt;
      if (!step || *step < 1) return false;
      steps.emplace_back(*step, v);
      for (size_t n = 0; n < k; ++n) {
        if (expr::depends_on(read[n], v)) return false;
      }
    }
    if (steps.size() < 2) continue;
    if (steps[0].first > steps[1].first) std::swap(steps[0], steps[1]);
    const auto places = places_.find(steps[0].second);
    if (places == places_.end() || steps[0].first * places->second > steps[1].first) return false;
  }
  return true;
}

Expr SumTerms::definition(Expr read) const {
  const auto it = private_.find(read.name());
  return it != private_.end() && reads_once(read) ? it->second.body : Expr();
}

bool SumTerms::has_sum(Expr e) {
  if (const auto it = has_sum_.find(e); it != has_sum_.end()) return it->second;
  const auto written = written_.find(e);
  bool has = is_plain_sum(e) && (written == written_.end() || written->second == 1);
  if (e.op() == Op::Add || e.op() == Op::Sub || e.op() == Op::Mul) {
    has = has_sum(e[0]) || has_sum(e[1]);
  } else if (e.op() == Op::Neg || e.op() == Op::Div) {
    has = has_sum(e[0]);
  } else if (e.op() == Op::Read) {
    const Expr body = definition(e);
    has = body && has_sum(body);
  }
  has_sum_.emplace(e, has);
  return has;
}

// The equation with other names for the axes of its reductions where the reader has such axes.
Let SumTerms::with_own_axes(const Let& let, std::unordered_set<Expr>& taken) {
  const std::vector<Expr> results = result_axes(let, pool_);
  const auto is_taken = [&](Expr axis) {
    return taken.contains(axis) || std::find(results.begin(), results.end(), axis) != results.end();
  };
  expr::Substitution own;
  expr::for_each(let.body, [&](Expr e) {
    if (e.op() != Op::Reduce) return;
    for (size_t k = 0; k < e.axis_count(); ++k) {
      std::string name(e.axis(k).name().str());
      while (is_taken(pool_.index(name))) name += ".own";
      const Expr axis = pool_.index(name);
      taken.insert(axis);
      if (axis != e.axis(k)) own.emplace(e.axis(k), axis);
    }
  });
  Let out = let;
  if (!own.empty()) out.body = expr::substitute(pool_, let.body, own);
  return out;
}

bool SumTerms::add(Expr e, SumTerm term, std::unordered_set<Expr>& taken,
                   std::vector<SumTerm>& out) {
  if (out.size() >= kMostSumTerms) return false;
  if (!has_sum(e)) {
    term.factors.push_back(e);
    out.push_back(std::move(term));
    return true;
  }
  switch (e.op()) {
    case Op::Reduce:
      if (term.sum) return false;
      term.sum = e;
      out.push_back(std::move(term));
      return true;
    case Op::Read:
      return add(body_at(with_own_axes(private_.at(e.name()), taken), e, pool_), std::move(term),
                 taken, out);
    case Op::Neg:
      term.is_negative = !term.is_negative;
      return add(e[0], std::move(term), taken, out);
    case Op::Add:
    case Op::Sub: {
      SumTerm second = term;
      if (e.op() == Op::Sub) second.is_negative = !second.is_negative;
      return add(e[0], std::move(term), taken, out) && add(e[1], std::move(second), taken, out);
    }
    case Op::Mul: {
      if (has_sum(e[0]) && has_sum(e[1])) return false;
      const size_t k = has_sum(e[0]) ? 0 : 1;
      term.factors.push_back(e[1 - k]);
      return add(e[k], std::move(term), taken, out);
    }
    case Op::Div:
      if (has_sum(e[1])) return false;
      term.divisors.push_back(e[1]);
      return add(e[0], std::move(term), taken, out);
    default:
      return false;
  }
}

std::vector<SumTerm> SumTerms::of(Expr value, const ir::Axes& axes,
                                  std::unordered_set<Expr>& taken) {
  std::vector<SumTerm> out;
  has_sum_.clear();
  places_.clear();
  for (const ir::Axis& a : axes) {
    if (a.extent.op() == Op::IntConst) places_.emplace(pool_.index(a.name), a.extent.integer());
  }
  if (!has_sum(value) || !add(value, {}, taken, out)) return {};
  return out;
}

}  // namespace nautilus::spec
