// SPDX-License-Identifier: Apache-2.0
#include "spec/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "base/parallel.h"
#include "expr/walk.h"
#include "spec/eval_block.h"
#include "spec/passes/split_reductions.h"

namespace nautilus::spec {
namespace {

using expr::Bounded;
using expr::DType;
using expr::Op;
using expr::Reducer;
using expr::Tensor;
using expr::Value;
using ir::Expr;

// Roundoff of the coarsest operand rounding the contract licenses in a sum of products: some factor
// is stored in 16 or 8 bits and another one is not, so a kernel may round the other to that storage
// dtype.
double licensed_roundoff(Expr sum_body) {
  std::vector<Expr> factors;
  auto split = [&](auto& self, Expr e) -> void {
    if (e.op() == Op::Mul || e.op() == Op::Div) {
      for (Expr a : e.args()) self(self, a);
    } else {
      factors.push_back(e);
    }
  };
  split(split, sum_body);
  double stored = 0;
  bool has_other = false;
  for (Expr f : factors) {
    const bool is_narrow = f.op() == Op::Cast && f[0].op() == Op::Read &&
                           expr::bytes(f[0].dtype()) <= 2 && is_float(f[0].dtype());
    if (is_narrow) {
      stored = std::max(stored, expr::unit_roundoff(f[0].dtype()));
    } else {
      has_other |= is_float(f.dtype()) && !expr::tensors_read(f).empty();
    }
  }
  return has_other ? stored : 0;
}

// State of one output element while its reduction runs.
struct Accumulator {
  Value v;
  double e = 0;        // bounds brought by the terms
  double sum_abs = 0;  // sum: magnitudes of the terms
  int64_t position = -1;
  double rival =
      -expr::kInf;  // argmax, argmin: best that any other element could reach (sign-adjusted)
};

class Reduction {
 public:
  Reduction(Expr reduce, int64_t length, bool is_exact_contract)
      : reducer_(reduce.reducer()),
        dtype_(reduce.body().dtype()),
        length_(length),
        licensed_(reducer_ == Reducer::Sum && !is_exact_contract ? licensed_roundoff(reduce.body())
                                                                 : 0) {}

  Accumulator start(Bounded init) const {
    return {init.v, init.e, std::fabs(as_number(init.v)), -1, -expr::kInf};
  }

  void add(Accumulator& acc, Bounded x, int64_t position) const {
    switch (reducer_) {
      case Reducer::Sum:
        acc.e += x.e;
        if (is_float(dtype_)) {
          acc.sum_abs += std::fabs(x.v.f);
          acc.v.f += x.v.f;
          return;
        }
        break;
      case Reducer::Prod:
        acc.e = acc.e * (std::fabs(as_number(x.v)) + x.e) + std::fabs(as_number(acc.v)) * x.e;
        break;
      case Reducer::Max:
      case Reducer::Min:
        acc.e = std::max(acc.e, x.e);
        break;
      case Reducer::Any:  // one certain true decides
      case Reducer::All: {
        const auto decisive = static_cast<int64_t>(reducer_ == Reducer::Any);
        if (acc.v.i == decisive && acc.e == 0) return;
        if (x.v.i == decisive && x.e == 0) {
          acc = {x.v, 0, 0, -1, 0};
          return;
        }
        acc.e = std::max(acc.e, x.e);
        break;
      }
      case Reducer::ArgMax:
      case Reducer::ArgMin:
        return add_arg(acc, x, position);
    }
    const Value pair[2] = {acc.v, x.v};
    acc.v = expr::apply(expr::combiner(reducer_), dtype_, dtype_, pair);
  }

  Bounded finish(const Accumulator& acc) const {
    if (is_arg(reducer_)) {
      const double best = oriented(acc.v) - acc.e;
      const bool is_certain =
          acc.position < 0 || acc.rival < best || (acc.e == 0 && acc.rival == best);
      return {expr::int_value(acc.position), is_certain ? 0 : expr::kInf};
    }
    if (!is_float(dtype_)) return {acc.v, acc.e};
    double e = acc.e;
    const double steps = std::log2(static_cast<double>(std::max<int64_t>(length_, 1))) + 2;
    if (reducer_ == Reducer::Sum && acc.sum_abs > 0) {
      e += steps * expr::rounding(dtype_, acc.v.f, acc.sum_abs) + licensed_ * acc.sum_abs;
    } else if (reducer_ == Reducer::Prod) {
      e += static_cast<double>(length_) * expr::rounding(dtype_, acc.v.f, std::fabs(acc.v.f));
    }
    return {acc.v, expr::finite_bound(acc.v.f, std::isnan(e) ? expr::kInf : e)};
  }

 private:
  double as_number(Value v) const { return is_float(dtype_) ? v.f : static_cast<double>(v.i); }
  double oriented(Value v) const {
    return reducer_ == Reducer::ArgMin ? -as_number(v) : as_number(v);
  }

  void add_arg(Accumulator& acc, Bounded x, int64_t position) const {
    if (std::isnan(as_number(x.v))) return;
    // The first of equal exact values wins in every kernel, so an exact tie behind it is no rival.
    if (expr::is_better(reducer_, dtype_, x.v, acc.v, acc.position < 0)) {
      if (acc.position >= 0) acc.rival = std::max(acc.rival, oriented(acc.v) + acc.e);
      acc.v = x.v;
      acc.e = x.e;
      acc.position = position;
    } else {
      acc.rival = std::max(acc.rival, oriented(x.v) + x.e);
    }
  }

  Reducer reducer_;
  DType dtype_;
  int64_t length_;
  double licensed_;
};

class Evaluator {
 public:
  Evaluator(const ir::Program& program, const ir::Environment& env, const EvalOptions& options,
            diag::Sink& sink)
      : env_(env),
        threads_(options.threads > 0 ? options.threads : base::default_threads()),
        is_exact_contract_(ir::numerics_of(program).rounding == ir::Rounding::Exact),
        sink_(sink) {
    for (const auto& [name, tensor] : env.tensors)
      tensors_.emplace(name, BoundedTensor{tensor, {}});
  }

  bool define(const Let& let, diag::Span span) {
    const bool is_reduce = let.body.op() == Op::Reduce;
    ir::Axes axes = let.axes;
    std::vector<int64_t> extents;
    for (const ir::Axis& a : let.axes) extents.push_back(ir::evaluate_size(a.extent, env_));
    const size_t outer = extents.size();
    int64_t length = 1;
    if (is_reduce) {
      for (size_t k = 0; k < let.body.axis_count(); ++k) {
        axes.push_back({let.body.axis(k).name(), let.body.extent(k)});
        extents.push_back(ir::evaluate_size(let.body.extent(k), env_));
        length *= extents.back();
      }
    }
    const std::vector<int64_t> shape(extents.begin(), extents.begin() + static_cast<long>(outer));
    const auto count = expr::element_count(shape);
    if (!count) {
      sink_.report(diag::Code::BadInput, span,
                   fmt::format("`{}` of shape {} is too large to evaluate", let.name.str(),
                               expr::shape_text(shape)));
      return false;
    }
    BoundedTensor out{Tensor::zeros(let.dtype, shape),
                      std::vector<double>(static_cast<size_t>(*count), 0.0)};

    // Lanes run along the last axis of the result, or along the last reduced axis where that is
    // much longer.
    int run = outer ? static_cast<int>(outer) - 1 : -1;
    if (is_reduce &&
        (run < 0 || (extents[outer - 1] < 16 && extents.back() > extents[outer - 1]))) {
      run = static_cast<int>(extents.size()) - 1;
    }
    const bool runs_inside = is_reduce && run >= static_cast<int>(outer);
    const BlockProgram code(is_reduce ? let.body.body() : let.body, axes, run, tensors_, env_);
    std::optional<BlockProgram> init;
    if (is_reduce && let.body.init())
      init.emplace(let.body.init(), axes, runs_inside ? -1 : run, tensors_, env_);
    std::optional<Reduction> reduction;
    if (is_reduce) reduction.emplace(let.body, length, is_exact_contract_);

    const int64_t run_extent = run >= 0 && !runs_inside ? extents[static_cast<size_t>(run)] : 1;
    const int64_t rows = run_extent == 0 ? 0 : *count / run_extent;
    const int64_t runs_per_row = (run_extent + kRun - 1) / kRun;
    Task task{let,
              extents,
              outer,
              run,
              runs_inside,
              code,
              init ? &*init : nullptr,
              reduction ? &*reduction : nullptr,
              out};
    auto work = [&](int64_t begin, int64_t end) {
      run_range(task, run_extent, runs_per_row, begin, end, span);
    };
    using Work = decltype(work);
    base::parallel_ranges(
        rows * runs_per_row, threads_,
        [](void* context, int64_t begin, int64_t end) {
          (*static_cast<Work*>(context))(begin, end);
        },
        &work);
    if (has_failed_) return false;
    if (std::all_of(out.bound.begin(), out.bound.end(), [](double e) { return e == 0; }))
      out.bound.clear();
    tensors_.insert_or_assign(std::string(let.name.str()), std::move(out));
    return true;
  }

  Result take(std::string_view name) {
    BoundedTensor& t = tensors_.find(name)->second;
    if (t.bound.empty()) t.bound.assign(t.value.data.size(), 0.0);
    return {t.value, t.bound};
  }

 private:
  struct Task {
    const Let& let;
    const std::vector<int64_t>& extents;
    size_t outer;
    int run;
    bool runs_inside;
    const BlockProgram& code;
    const BlockProgram* init;
    const Reduction* reduction;
    BoundedTensor& out;
  };

  void run_range(const Task& t, int64_t run_extent, int64_t runs_per_row, int64_t begin,
                 int64_t end, diag::Span span) {
    BlockMachine machine(t.code);
    std::optional<BlockMachine> init;
    if (t.init) init.emplace(*t.init);
    std::vector<int64_t> point(t.extents.size(), 0);
    for (int64_t item = begin; item < end && !has_failed_; ++item) {
      const int64_t first = item % runs_per_row * kRun;
      const int64_t lanes = std::min(kRun, run_extent - first);
      int64_t rest = item / runs_per_row;
      for (size_t k = t.outer; k-- > 0;) {
        if (static_cast<int>(k) == t.run) {
          point[k] = first;
          continue;
        }
        point[k] = rest % t.extents[k];
        rest /= t.extents[k];
      }
      const int64_t base = item / runs_per_row * run_extent + first;
      if (const BlockMachine* failed =
              element_run(t, machine, init ? &*init : nullptr, point, base, lanes)) {
        report(failed->outside(), span);
        return;
      }
    }
  }

  // Fills `lanes` elements of the result from flat index `base` on. Returns the machine whose read
  // failed, or null.
  const BlockMachine* element_run(const Task& t, BlockMachine& machine, BlockMachine* init,
                                  std::vector<int64_t>& point, int64_t base, int64_t lanes) {
    auto store = [&](int64_t lane, Bounded x) {
      t.out.value.data[static_cast<size_t>(base + lane)] = x.v;
      t.out.bound[static_cast<size_t>(base + lane)] = x.e;
    };
    if (!t.reduction) {
      if (!machine.run(point, lanes)) return &machine;
      for (int64_t i = 0; i < lanes; ++i) store(i, machine.result()[i]);
      return nullptr;
    }
    const Expr body = t.let.body;
    Accumulator accumulators[kRun];
    if (init && !init->run(point, lanes)) return init;
    for (int64_t i = 0; i < lanes; ++i) {
      accumulators[i] = t.reduction->start(
          init ? init->result()[i]
               : Bounded{expr::identity(body.reducer(), body.body().dtype()), 0});
    }
    auto loop = [&](auto& self, size_t k) -> bool {
      if (k == t.extents.size()) {
        if (!machine.run(point, lanes)) return false;
        const auto terms = machine.result();
        for (int64_t i = 0; i < lanes; ++i)
          t.reduction->add(accumulators[i], terms[i], point.back());
        return true;
      }
      if (static_cast<int>(k) ==
          t.run) {  // lanes along the last reduced axis: added one after the other, in order
        for (int64_t i = 0; i < t.extents[k]; i += kRun) {
          const int64_t n = std::min(kRun, t.extents[k] - i);
          point[k] = i;
          if (!machine.run(point, n)) return false;
          const auto terms = machine.result();
          for (int64_t lane = 0; lane < n; ++lane)
            t.reduction->add(accumulators[0], terms[lane], i + lane);
        }
        return true;
      }
      for (int64_t i = 0; i < t.extents[k]; ++i) {
        point[k] = i;
        if (!self(self, k + 1)) return false;
      }
      return true;
    };
    if (!loop(loop, t.outer)) return &machine;
    for (int64_t i = 0; i < lanes; ++i) store(i, t.reduction->finish(accumulators[i]));
    return nullptr;
  }

  void report(const OutsideRead& o, diag::Span span) {
    const std::lock_guard lock(mutex_);
    if (has_failed_.exchange(true)) return;
    sink_
        .report(diag::Code::ReadOutside, span,
                fmt::format("index {} of `{}` is {}, the extent is {}", o.dimension + 1, o.tensor,
                            o.index, o.extent))
        .with_help(
            "a gathered index must lie inside the tensor, and a guard must keep every read inside");
  }

  const ir::Environment& env_;
  int threads_;
  bool is_exact_contract_;
  diag::Sink& sink_;
  BoundedTensors tensors_;
  std::mutex mutex_;
  std::atomic<bool> has_failed_ = false;
};

}  // namespace

std::optional<Results> evaluate(const ir::Program& program, const ir::Environment& env,
                                const EvalOptions& options, expr::ExprPool& pool,
                                diag::Sink& sink) {
  ir::PassContext context{pool, sink, {}};
  const auto flat = split_reductions(program, context);
  if (!flat) return std::nullopt;
  Evaluator evaluator(program, env, options, sink);
  Results results;
  for (const ir::Op& op : flat->body) {
    const auto* let = op.get<Let>();
    if (let && !evaluator.define(*let, op.span())) return std::nullopt;
  }
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (options.all && let) results.emplace(let->name.str(), evaluator.take(let->name.str()));
  }
  for (ir::Name n : outputs(program)) results.emplace(n.str(), evaluator.take(n.str()));
  return results;
}

Comparison compare(const Tensor& got, const Result& want, const ir::Numerics& numerics) {
  Comparison c;
  for (int64_t i = 0; i < want.value.size(); ++i) {
    const double g = got.number(i);
    const double w = want.value.number(i);
    if (std::isnan(w) && std::isnan(g)) continue;
    const double error = g == w ? 0 : std::fabs(g - w);
    const double declared = numerics.rel || numerics.abs
                                ? numerics.abs.value_or(0) + numerics.rel.value_or(0) * std::fabs(w)
                                : 0;
    const double allowed = std::max(declared, want.bound[static_cast<size_t>(i)]);
    const double ratio = error == 0                          ? 0
                         : std::isnan(error) || allowed == 0 ? expr::kInf
                                                             : error / allowed;
    if (!std::isnan(error)) c.max_abs_error = std::max(c.max_abs_error, error);
    if (!(ratio <= 1)) {
      c.is_accepted = false;
      ++c.mismatches;
    }
    if (c.worst_index < 0 || ratio > c.worst_ratio) {
      c.worst_ratio = ratio;
      c.worst_index = i;
    }
  }
  return c;
}

}  // namespace nautilus::spec
