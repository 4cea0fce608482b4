// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/random_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Poly;

struct IntRange {
  int64_t low = -8;
  int64_t high = 8;
  bool is_derived = false;
};

Expr strip_casts(Expr e) {
  while (e.op() == Op::Cast) e = e[0];
  return e;
}

// Ranges of integer inputs, from where they are used.
class IntRanges {
 public:
  IntRanges(const ir::Program& program, const ir::Environment& env, expr::ExprPool& pool)
      : env_(env), pool_(pool), types_(tensor_types(program)) {
    const expr::Facts facts = ir::facts_of(program, pool);
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      if (!let) continue;
      expr::Facts inner = facts;
      for (const ir::Axis& a : let->axes) inner.add_axis(pool.index(a.name), a.extent);
      expr::for_each(let->body, [&](Expr e) {
        if (e.op() != Op::Reduce) return;
        for (size_t k = 0; k < e.axis_count(); ++k) inner.add_axis(e.axis(k), e.extent(k));
      });
      expr::for_each(let->body, [&](Expr e) {
        if (e.op() == Op::Read) indexed(e);
        if (is_comparison(e.op())) compared(e, inner);
      });
    }
  }

  IntRange of(const std::string& name) const {
    const auto it = ranges_.find(name);
    return it == ranges_.end() ? IntRange() : it->second;
  }

 private:
  void limit(Expr read, int64_t high) {
    IntRange& r = ranges_[std::string(read.name().str())];
    r.high = r.is_derived ? std::min(r.high, high) : high;
    r.low = 0;
    r.is_derived = true;
  }

  void indexed(Expr read) {
    const auto type = types_.find(std::string(read.name().str()));
    for (size_t k = 0; k < read.args().size(); ++k) {
      const Expr i = strip_casts(read[k]);
      if (i.op() == Op::Read) limit(i, ir::evaluate_size(type->second.dims[k], env_) - 1);
    }
  }

  void compared(Expr e, const expr::Facts& facts) {
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const Expr tensor = strip_casts(e[side]);
      const Expr other = e[1 - side];
      if (tensor.op() != Op::Read || other.dtype() != DType::I64 || !is_int(tensor.dtype()) ||
          expr::has_reduce(other))
        continue;
      const auto poly = Poly::of(other);
      const auto high = poly ? facts.upper(*poly) : std::nullopt;
      if (!high || other.is_const()) continue;
      const Expr bound = expr::to_expr(pool_, *high);
      if (!expr::tensors_read(bound).empty()) continue;
      if (!only_known(bound)) continue;
      limit(tensor, std::max<int64_t>(0, ir::evaluate(bound, env_).i + 1));
    }
  }

  bool only_known(Expr e) const {
    const auto vars = expr::free_vars(e);
    return std::all_of(vars.begin(), vars.end(), [&](Expr v) {
      return env_.sizes.contains(v.name().str()) || env_.scalars.contains(v.name().str());
    });
  }

  const ir::Environment& env_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, IntRange> ranges_;
};

}  // namespace

bool add_random_inputs(const ir::Program& program, InputKind kind, uint64_t seed,
                       ir::Environment& env, expr::ExprPool& pool, diag::Sink& sink) {
  const IntRanges ranges(program, env, pool);
  uint64_t stream = 0;
  for (const ir::Op& op : program.body) {
    const auto* input = op.get<Input>();
    if (!input) continue;
    ++stream;
    const std::string name(input->name.str());
    if (env.tensors.contains(name)) continue;
    const auto shape = ir::evaluate_shape(input->type.dims, env);
    if (!shape) {
      sink.report(diag::Code::BadInput, op.span(),
                  fmt::format("input `{}` is too large to evaluate", name));
      return false;
    }
    base::Random random(seed * 1000003 + stream);
    const DType dtype = input->type.dtype;
    expr::Tensor t = expr::Tensor::zeros(dtype, *shape);
    const IntRange r = ranges.of(name);
    // An empty dimension leaves no valid index; the reads that would need one do not happen either.
    const int64_t low = std::max(
        r.low, expr::int_min(dtype == DType::Bool || is_float(dtype) ? DType::I64 : dtype));
    const int64_t high =
        std::max(low, std::min(r.high, is_int(dtype) ? expr::int_max(dtype) : r.high));
    for (expr::Value& v : t.data) {
      if (is_float(dtype)) {
        v.f = kind == InputKind::Exact ? static_cast<double>(random.integer(-2, 2))
                                       : expr::round_to(dtype, random.normal());
      } else {
        v.i = dtype == DType::Bool ? random.integer(0, 1) : random.integer(low, high);
      }
    }
    env.tensors.emplace(name, std::move(t));
  }
  return true;
}

void set_exact_scalars(const ir::Program& program, ir::Environment& env) {
  constexpr double kLn2 = 0.6931471805599453;
  for (const ir::Op& op : program.body) {
    const auto* p = op.get<Param>();
    if (!p || !is_float(p->dtype) || env.scalars.contains(p->name.str())) continue;
    ir::Environment trial = env;
    trial.scalars.emplace(p->name.str(), expr::float_value(expr::round_to(p->dtype, kLn2)));
    bool holds = true;
    for (const ir::Op& other : program.body) {
      const auto* fact = other.get<Fact>();
      if (!fact) continue;
      const auto vars = expr::free_vars(fact->condition);
      const bool is_closed = std::all_of(vars.begin(), vars.end(), [&](Expr v) {
        return trial.sizes.contains(v.name().str()) || trial.scalars.contains(v.name().str());
      });
      if (is_closed && !ir::evaluate(fact->condition, trial).i) holds = false;
    }
    if (holds) env.scalars = trial.scalars;
  }
}

}  // namespace nautilus::spec
