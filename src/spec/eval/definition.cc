// SPDX-License-Identifier: Apache-2.0
// The living definition of a spec program: every element computed on its own, exactly as the
// equations say.
#include <fmt/format.h>

#include <algorithm>

#include "spec/eval/eval.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;
using expr::Tensor;
using expr::Value;

class Definition {
 public:
  Definition(const ir::Environment& env, diag::Sink& sink)
      : env_(env), tensors_(env.tensors), sink_(sink) {}

  bool define(const Let& let, diag::Span span) {
    return open(let, span) && elements(let, -1, 0, span);
  }

  bool define_scan(const EquationGroup& scan) {
    int64_t steps = 0;
    for (size_t m = 0; m < scan.equations.size(); ++m) {
      const Let& let = scan.equations[m]->as<Let>();
      if (!open(let, scan.equations[m]->span())) return false;
      steps = std::max(steps, tensor(let).shape[scan.along[m]]);
    }
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t at = scan.direction == Direction::Up ? k : steps - 1 - k;
      for (size_t m = 0; m < scan.equations.size(); ++m) {
        const Let& let = scan.equations[m]->as<Let>();
        if (!elements(let, static_cast<int>(scan.along[m]), at, scan.equations[m]->span()))
          return false;
      }
    }
    return true;
  }

  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

 private:
  Tensor& tensor(const Let& let) { return tensors_.find(let.name.str())->second; }

  // A tensor without values.
  bool open(const Let& let, diag::Span span) {
    span_ = span;
    ir::Exprs dims;
    for (const ir::Axis& a : let.axes) dims.push_back(a.extent);
    const auto shape = ir::evaluate_shape(dims, env_);
    if (!shape) return too_large(let);
    tensors_.insert_or_assign(std::string(let.name.str()), Tensor::zeros(let.dtype, *shape));
    return true;
  }

  // All elements, or those at one index of an axis.
  bool elements(const Let& let, int axis, int64_t at, diag::Span span) {
    span_ = span;
    Tensor& t = tensor(let);
    std::vector<int64_t> point(let.axes.size(), 0);
    for (int64_t flat = 0; flat < t.size(); ++flat) {
      int64_t rest = flat;
      for (size_t k = point.size(); k-- > 0;) {
        point[k] = rest % t.shape[k];
        rest /= t.shape[k];
      }
      if (axis >= 0 && point[static_cast<size_t>(axis)] != at) continue;
      for (size_t k = 0; k < point.size(); ++k)
        axes_[std::string(let.axes[k].name.str())] = point[k];
      t.data[static_cast<size_t>(flat)] = value(let.body);
      if (has_failed_) return false;
    }
    for (const ir::Axis& a : let.axes) axes_.erase(std::string(a.name.str()));
    return true;
  }

  bool too_large(const Let& let) {
    sink_.report(diag::Code::BadInput, span_,
                 fmt::format("`{}` has more elements than can be evaluated", let.name.str()));
    return false;
  }

  Value value(Expr e) {
    switch (e.op()) {
      case Op::Var: {
        const auto it = axes_.find(e.name().str());
        return it != axes_.end() ? expr::int_value(it->second) : ir::evaluate(e, env_);
      }
      case Op::IntConst:
      case Op::BoolConst:
      case Op::FloatConst:
        return ir::evaluate(e, env_);
      case Op::Read:
        return read(e);
      case Op::Reduce:
        return reduce(e);
      case Op::Select:
        return value(e[0]).i ? value(e[1]) : value(e[2]);
      default: {
        Value args[3];
        for (size_t i = 0; i < e.args().size(); ++i) args[i] = value(e[i]);
        return expr::apply(e.op(), e.dtype(), e.args().back().dtype(), args);
      }
    }
  }

  Value read(Expr e) {
    const Tensor& t = tensors_.find(e.name().str())->second;
    int64_t flat = 0;
    for (size_t k = 0; k < e.args().size(); ++k) {
      const int64_t i = value(e[k]).i;
      if (i < 0 || i >= t.shape[k]) {
        if (!has_failed_) {
          sink_.report(diag::Code::ReadOutside, span_,
                       fmt::format("index {} of `{}` is {}, the extent is {}", k + 1,
                                   e.name().str(), i, t.shape[k]));
        }
        has_failed_ = true;
        return expr::int_value(0);
      }
      flat = flat * t.shape[k] + i;
    }
    return t.data[static_cast<size_t>(flat)];
  }

  Value reduce(Expr e) {
    const DType dtype = e.body().dtype();
    Value acc = expr::identity(e.reducer(), dtype);
    if (e.init()) {
      const Value init = value(e.init());
      const Value pair[2] = {init, acc};
      const bool is_extreme =
          e.reducer() == expr::Reducer::Max || e.reducer() == expr::Reducer::Min;
      // An operand like the others: an extreme ignores it where it is NaN.
      acc = is_extreme ? expr::apply(expr::combiner(e.reducer()), dtype, dtype, pair) : init;
    }
    int64_t position = -1;
    auto loop = [&](auto& self, size_t k) -> void {
      if (k == e.axis_count()) {
        const Value x = value(e.body());
        if (!is_arg(e.reducer())) {
          const Value pair[2] = {acc, x};
          acc = expr::apply(expr::combiner(e.reducer()), dtype, dtype, pair);
        } else if (expr::is_better(e.reducer(), dtype, x, acc, position < 0)) {
          acc = x;
          position = axes_[std::string(e.axis(0).name().str())];
        }
        return;
      }
      const int64_t extent = value(e.extent(k)).i;
      const std::string name(e.axis(k).name().str());
      for (int64_t i = 0; i < extent && !has_failed_; ++i) {
        axes_[name] = i;
        self(self, k + 1);
      }
      axes_.erase(name);
    };
    loop(loop, 0);
    return is_arg(e.reducer()) ? expr::int_value(position) : acc;
  }

  using DType = expr::DType;
  const ir::Environment& env_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, int64_t, std::less<>> axes_;
  diag::Sink& sink_;
  diag::Span span_;
  bool has_failed_ = false;
};

}  // namespace

std::optional<std::map<std::string, Tensor>> evaluate_by_definition(const ir::Program& program,
                                                                    const ir::Environment& env,
                                                                    diag::Sink& sink) {
  Definition definition(env, sink);
  for (const EquationGroup& g : computing_order(program)) {
    const bool ok = g.is_scan()
                        ? definition.define_scan(g)
                        : definition.define(g.equations[0]->as<Let>(), g.equations[0]->span());
    if (!ok) return std::nullopt;
  }
  std::map<std::string, Tensor> out;
  for (ir::Name n : outputs(program))
    out.emplace(n.str(), definition.tensors().find(n.str())->second);
  return out;
}

}  // namespace nautilus::spec
