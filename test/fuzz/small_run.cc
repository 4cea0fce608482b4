// SPDX-License-Identifier: Apache-2.0
#include "small_run.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "driver/oracle/ladder.h"
#include "expr/walk.h"
#include "ir/environment.h"
#include "ir/walk.h"
#include "scalar/interp.h"
#include "scalar/ops.h"
#include "spec/ops.h"
#include "vrtile/interp.h"

namespace nautilus::fuzz {
namespace {

constexpr double kMaxWork = 300'000;
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

std::string run_small(const ir::Program& program, driver::Unit& unit) {
  if (program.level == &vrtile::level()) {
    return run_small(vrtile::to_scalar(program, unit.pool), unit);
  }
  if (program.level != &spec::level() && program.level != &scalar::level()) return "";
  driver::RunRequest request;
  request.must_judge = false;
  for (const ir::Op& op : program.body) {
    if (const auto* dim = op.get<ir::Dim>()) request.given.sizes.emplace(dim->name.str(), 3);
  }
  ir::Environment env = request.given;
  if (!ir::complete(program, {}, env, unit.sink)) return "";
  ir::Environment sized = env;
  ir::compute_sizes(program, sized);
  if (!(Work(sized).of(program.body) <= kMaxWork)) return "";
  if (program.level == &spec::level()) {
    return driver::check_ladder(program, request, unit).value_or("");
  }
  for (const auto& [name, type] : scalar::buffers(program, scalar::Role::Input)) {
    if (const auto shape = ir::evaluate_shape(type.dims, sized))
      env.tensors.emplace(name, expr::Tensor::zeros(type.dtype, *shape));
  }
  for (const auto arithmetic : {scalar::Arithmetic::Oracle, scalar::Arithmetic::Declared})
    scalar::interpret(program, env, arithmetic, unit.sink);
  return "";
}

}  // namespace nautilus::fuzz
