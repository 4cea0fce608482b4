// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"
#include "spec/ops.h"

namespace nautilus::fuzz {
namespace {

constexpr int64_t kLongAxis = 16;

using ir::Expr;

// Operations the definition performs, shared parts counted as often as they are evaluated.
class Work {
 public:
  explicit Work(const ir::Environment& env) : env_(env) {}

  double of(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    double sum = 1;
    for (Expr a : e.args()) sum += of(a);
    if (e.op() == expr::Op::Reduce) {
      for (size_t k = 0; k < e.axis_count(); ++k) sum *= extent(e.extent(k));
    }
    memo_.emplace(e, sum);
    return sum;
  }

  double of(const ir::Exprs& dims) const {
    double product = 1;
    for (Expr d : dims) product *= extent(d);
    return product;
  }

  double of(const ir::Axes& axes) const {
    double product = 1;
    for (const ir::Axis& a : axes) product *= extent(a.extent);
    return product;
  }

  double of(const ir::Block& block) {
    double sum = 0;
    for (const ir::Op& op : block) {
      double inner = 1;
      if (const auto* loop = op.get<scalar::For>()) {
        inner = of(loop->axes) * of(loop->body);
      } else if (const auto* counted = op.get<scalar::Loop>()) {
        inner = turns(*counted) * of(counted->body);
      } else if (const auto* f = op.get<scalar::If>()) {
        inner = of(f->condition) + of(f->body);
      } else {
        ir::for_each_expr(op, [&](Expr e) { inner += e ? of(e) : 0; });
      }
      if (const auto* let = op.get<spec::Let>()) inner = of(let->axes) * of(let->body);
      if (const auto* input = op.get<spec::Input>()) inner = of(input->type.dims);
      if (const auto* buffer = op.get<scalar::Buffer>()) inner = of(buffer->type.dims);
      sum += inner;
    }
    return sum;
  }

 private:
  // At most, over the axes around it that it depends on: it is long at their beginning or their
  // end.
  double turns(const scalar::Loop& loop) const {
    double most = 1;
    for (const int64_t outer : {int64_t{0}, kLongAxis}) {
      ir::Environment env = env_;
      for (Expr bound : {loop.from, loop.to}) {
        for (Expr v : expr::free_vars(bound)) env.sizes.emplace(v.name().str(), outer);
      }
      const auto at = [&](Expr e) {
        const bool is_known = expr::tensors_read(e).empty();
        return is_known ? static_cast<double>(ir::evaluate_size(e, env)) : 0.0;
      };
      most = std::max(most, std::abs(at(loop.to) - at(loop.from)) + 1);
    }
    return most;
  }

  // At least 1: an empty axis must not hide a huge one.
  double extent(Expr e) const {
    return std::max(1.0, static_cast<double>(ir::evaluate_size(e, env_)));
  }

  const ir::Environment& env_;
  std::unordered_map<Expr, double> memo_;
};

}  // namespace

double work_of(const ir::Program& program, const ir::Environment& sized) {
  return Work(sized).of(program.body);
}

double work_at(const ir::Program& program, const ir::Environment& given) {
  const diag::SourceMap no_sources;
  diag::Sink sink(no_sources);
  ir::Environment env = given;
  if (!ir::complete(program, {}, env, sink)) return 0;
  ir::compute_sizes(program, env);
  return work_of(program, env);
}

}  // namespace nautilus::fuzz
