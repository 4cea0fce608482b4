// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>

#include "base/parallel.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/eval/eval_block.h"
#include "spec/eval/eval_prefix.h"
#include "spec/eval/eval_reduction.h"
#include "spec/facts/factors.h"
#include "spec/facts/held_tensors.h"
#include "spec/facts/read_scan.h"
#include "spec/passes/equations/split_reductions.h"
#include "spec/passes/operands/store_narrow.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::Bounded;
using expr::DType;
using expr::Op;
using expr::Reducer;
using expr::Tensor;
using expr::Value;
using ir::Expr;

constexpr int64_t kWorthThreads = 1 << 14;  // terms of a step

class Evaluator {
 public:
  Evaluator(const ir::Program& program, const ir::Environment& env, const EvalOptions& options,
            expr::ExprPool& pool, diag::Sink& sink)
      : program_(program),
        env_(env),
        pool_(pool),
        held_(program, pool),
        factors_(program, pool, equations_),
        noise_seed_(options.noise_seed),
        threads_(options.threads > 0 ? options.threads : base::default_threads()),
        is_exact_contract_(ir::numerics_of(program).rounding == ir::Rounding::Exact),
        functions_(ir::allows_coarse_functions(program, output_dtypes(program))
                       ? expr::Functions::Coarse
                       : expr::Functions::FewUlp),
        sink_(sink) {
    for (const auto& [name, tensor] : env.tensors)
      tensors_.emplace(name, BoundedTensor{tensor, {}});
  }

  // `is_scan`: prefixes are reduced in the order of steps, also from the end.
  bool define(const Let& let, diag::Span span, bool is_scan = false) {
    const Space space = space_of(let);
    const std::vector<int64_t> shape(space.extents.begin(),
                                     space.extents.begin() + static_cast<long>(space.outer));
    const auto count = expr::element_count(shape);
    if (!count) return too_large(let, shape, span);
    BoundedTensor out{Tensor::zeros(let.dtype, shape),
                      std::vector<double>(static_cast<size_t>(*count), 0.0)};
    const auto prefix = prefix_of(let, pool_);
    if (prefix && (is_scan || is_walked(*prefix, let, space.length)))
      walk(let, space, *prefix, out);
    else
      compute(let, space, *count, out);
    if (failed_item_ != INT64_MAX) {
      report_outside(span);
      return false;
    }
    without_zeros(out);
    tensors_.insert_or_assign(std::string(let.name.str()), std::move(out));
    equations_.emplace(let.name, let);
    return true;
  }

  // Kernels may compute scans of matrices in chunks of their steps, by products with rounded
  // operands: a reader's weights, the weighted keys of a chunk and the state that it begins with.
  bool define_scan(const EquationGroup& scan) {
    if (!define_steps(scan)) return false;
    const auto read = read_scan(scan, program_, pool_);
    return !read || add_operand_roundings(*read);
  }

  // One step after the other. Bounds go from step to step with the elements, operator by operator;
  // steps that only combine terms are a reduction of each prefix, in any order of terms.
  bool define_steps(const EquationGroup& scan) {
    if (scan.equations.size() == 1) {
      const Let& let = scan.equations[0]->as<Let>();
      const auto prefixes = as_prefix(let, scan.along[0], scan.direction, pool_);
      if (prefixes) return define(*prefixes, scan.equations[0]->span(), true);
    }
    std::vector<Space> spaces;
    std::vector<BoundedTensor*> out;
    for (size_t m = 0; m < scan.equations.size(); ++m) {
      const Let& let = scan.equations[m]->as<Let>();
      spaces.push_back(space_of(let));
      Space& space = spaces.back();
      const std::vector<int64_t> shape(space.extents.begin(),
                                       space.extents.begin() + static_cast<long>(space.outer));
      const auto count = expr::element_count(shape);
      if (!count) return too_large(let, shape, scan.equations[m]->span());
      space.step = static_cast<int>(scan.along[m]);
      choose_run(space, let.body.op() == Op::Reduce);
      BoundedTensor all{Tensor::zeros(let.dtype, shape),
                        std::vector<double>(static_cast<size_t>(*count), 0.0)};
      out.push_back(
          &tensors_.insert_or_assign(std::string(let.name.str()), std::move(all)).first->second);
    }
    const int64_t steps = spaces[0].extents[scan.along[0]];
    for (int64_t k = 0; k < steps; ++k) {
      for (size_t m = 0; m < scan.equations.size(); ++m) {
        Space& space = spaces[m];
        const int64_t own = space.extents[scan.along[m]];
        space.at = scan.direction == Direction::Up ? k : steps - 1 - k;
        if (own == 0 || space.at >= own) continue;
        const auto count = static_cast<int64_t>(out[m]->bound.size()) / own;
        compute(scan.equations[m]->as<Let>(), space, count, *out[m]);
        if (failed_item_ == INT64_MAX) continue;
        report_outside(scan.equations[m]->span());
        return false;
      }
    }
    for (BoundedTensor* t : out) without_zeros(*t);
    return true;
  }

  Result take(std::string_view name) {
    BoundedTensor& t = tensors_.find(name)->second;
    if (t.bound.empty()) t.bound.assign(t.value.data.size(), 0.0);
    return {t.value, t.bound};
  }

 private:
  // Three roundings of the state's terms at their own magnitude, without cancellation: the same
  // scan of magnitudes, or of squares for independent errors.
  bool add_operand_roundings(const ReadScan& scan) {
    const auto magnitude = [&](Expr e) {
      return noise_seed_ ? pool_.binary(Op::Mul, e, e) : pool_.unary(Op::Abs, e);
    };
    Let let = *scan.let;
    let.name = pool_.name(fmt::format("{}.terms", scan.let->name.str()));
    std::vector<Expr> before = result_axes(let, pool_);
    Expr& step = before[scan.step.along];
    step = pool_.binary(Op::Add, step, pool_.integer(-1));
    Expr kept = pool_.select(scan.step.is_later, pool_.read(let.name, let.dtype, before),
                             magnitude(scan.step.initial));
    if (scan.step.decay) kept = pool_.binary(Op::Mul, magnitude(scan.step.decay), kept);
    let.body = pool_.binary(Op::Add, kept, magnitude(scan.step.term));
    const ir::Op op = ir::make(let);
    if (!define_steps({{&op}, {scan.step.along}, Direction::Up})) return false;
    const Tensor terms = std::move(tensors_.find(let.name.str())->second.value);
    tensors_.erase(std::string(let.name.str()));
    BoundedTensor& states = tensors_.find(scan.let->name.str())->second;
    if (states.bound.empty()) states.bound.assign(terms.data.size(), 0.0);
    const double roundoff = 3 * expr::unit_roundoff(scan.half);
    const Noise noise = Noise(noise_seed_, let.name.str()).at({});
    for (size_t k = 0; k < terms.data.size(); ++k) {
      if (noise_seed_)
        states.value.data[k].f += roundoff * std::sqrt(terms.data[k].f) *
                                  noise.error(k / kRun, static_cast<int64_t>(k % kRun));
      else
        states.bound[k] += roundoff * terms.data[k].f;
    }
    return true;
  }

  // The points of an equation, and how lanes run through them.
  struct Space {
    ir::Axes axes;  // of the result, then those that are reduced
    std::vector<int64_t> extents;
    size_t outer = 0;          // axes of the result
    int64_t length = 1;        // of the reduction
    int run = -1;              // the axis along which lanes run; -1: none
    bool runs_inside = false;  // it is a reduced one
    int step = -1;             // an axis of the result of which there is one element; -1: none
    int64_t at = 0;            // which
  };

  // No bounds means exact.
  static void without_zeros(BoundedTensor& t) {
    if (std::all_of(t.bound.begin(), t.bound.end(), [](double e) { return e == 0; }))
      t.bound.clear();
  }

  bool too_large(const Let& let, const std::vector<int64_t>& shape, diag::Span span) {
    sink_.report(diag::Code::BadInput, span,
                 fmt::format("`{}` of shape {} is too large to evaluate", let.name.str(),
                             expr::shape_text(shape)));
    return false;
  }

  Space space_of(const Let& let) const {
    Space s;
    const bool is_reduce = let.body.op() == Op::Reduce;
    s.axes = let.axes;
    for (const ir::Axis& a : let.axes) s.extents.push_back(ir::evaluate_size(a.extent, env_));
    s.outer = s.extents.size();
    if (is_reduce) {
      for (size_t k = 0; k < let.body.axis_count(); ++k) {
        s.axes.push_back({let.body.axis(k).name(), let.body.extent(k)});
        s.extents.push_back(ir::evaluate_size(let.body.extent(k), env_));
        s.length *= s.extents.back();
      }
    }
    choose_run(s, is_reduce);
    return s;
  }

  // Lanes run along the last axis of the result, or along the last reduced axis where that is much
  // longer.
  static void choose_run(Space& s, bool is_reduce) {
    s.run = static_cast<int>(s.outer) - 1;
    if (s.run >= 0 && s.run == s.step) --s.run;
    const int64_t extent = s.run < 0 ? 0 : s.extents[static_cast<size_t>(s.run)];
    if (is_reduce && (s.run < 0 || (extent < 16 && s.extents.back() > extent)))
      s.run = static_cast<int>(s.extents.size()) - 1;
    s.runs_inside = is_reduce && s.run >= static_cast<int>(s.outer);
  }

  // Fills the `count` elements of the result, or leaves the first read that fails in `outside_`.
  void compute(const Let& let, const Space& space, int64_t count, BoundedTensor& out) {
    const bool is_reduce = let.body.op() == Op::Reduce;
    const int run = space.run;
    const BlockProgram code(is_reduce ? let.body.body() : let.body, space.axes, run, tensors_, env_,
                            functions_);
    std::optional<BlockProgram> init;
    if (is_reduce && let.body.init())
      init.emplace(let.body.init(), space.axes, space.runs_inside ? -1 : run, tensors_, env_,
                   functions_);
    std::optional<Reduction> reduction;
    if (is_reduce) reduction.emplace(held_.marked(let.body), space.length, is_exact_contract_);
    std::optional<BlockProgram> parts;
    if (reduction && reduction->is_licensed()) {
      if (const Expr magnitudes = magnitude_of_parts(let))
        parts.emplace(magnitudes, space.axes, run, tensors_, env_, functions_);
    }

    const int64_t run_extent =
        run >= 0 && !space.runs_inside ? space.extents[static_cast<size_t>(run)] : 1;
    const int64_t rows = run_extent == 0 ? 0 : count / run_extent;
    const int64_t runs_per_row = (run_extent + kRun - 1) / kRun;
    Task task{let,
              space,
              code,
              init ? &*init : nullptr,
              parts ? &*parts : nullptr,
              reduction ? &*reduction : nullptr,
              noise_seed_ ? Noise(noise_seed_, let.name.str()) : Noise(),
              out};
    auto work = [&](int64_t begin, int64_t end) {
      run_range(task, run_extent, runs_per_row, begin, end);
    };
    using Work = decltype(work);
    // A step of a scan may be little work.
    const bool is_small = space.step >= 0 && count * space.length < kWorthThreads;
    base::parallel_ranges(
        rows * runs_per_row, is_small ? 1 : threads_,
        [](void* context, int64_t begin, int64_t end) {
          (*static_cast<Work*>(context))(begin, end);
        },
        &work);
  }

  // A reduction of all prefixes of an axis.
  void walk(const Let& let, const Space& space, const Prefix& prefix, BoundedTensor& out) {
    const int run = static_cast<int>(space.outer);
    const auto program = [&](Expr e, int along) {
      return BlockProgram(e, space.axes, along, tensors_, env_, functions_);
    };
    const BlockProgram code = program(prefix.body, run);
    const Reduction reduction(held_.marked(let.body), space.length, is_exact_contract_);
    std::optional<BlockProgram> init;
    if (let.body.init()) init.emplace(program(let.body.init(), -1));
    std::optional<BlockProgram> parts;
    if (reduction.is_licensed()) {
      Let plain = let;
      plain.body = pool_.reduce(let.body.reducer(), prefix.body, std::array{let.body.axis(0)},
                                std::array{let.body.extent(0)});
      if (const Expr magnitudes = magnitude_of_parts(plain))
        parts.emplace(program(magnitudes, run));
    }
    const PrefixTask task{let,
                          prefix,
                          space.extents,
                          code,
                          init ? &*init : nullptr,
                          parts ? &*parts : nullptr,
                          reduction,
                          noise_seed_ ? Noise(noise_seed_, let.name.str()) : Noise(),
                          out};
    const int64_t results = space.extents[prefix.axis];
    const int64_t rows = results == 0 ? 0 : static_cast<int64_t>(out.bound.size()) / results;
    base::parallel_for(rows, threads_, [&](int64_t row) {
      if (row >= failed_item_) return;
      if (const auto outside = walk_prefixes(task, row)) fail(row, *outside);
    });
  }

  void report_outside(diag::Span span) {
    sink_
        .report(diag::Code::ReadOutside, span,
                fmt::format("index {} of `{}` is {}, the extent is {}{}", outside_.dimension + 1,
                            outside_.tensor, outside_.index, outside_.extent,
                            outside_.is_by_rounding
                                ? ", and rounding decides whether the guard leaves it out"
                                : ""))
        .with_help(
            "a gathered index must lie inside the tensor, and a guard must keep every read "
            "inside");
  }

  // For a sum of products that kernels may compute separately: the sum of their magnitudes. Else
  // null.
  Expr magnitude_of_parts(const Let& let) {
    factors_.open(let);
    const auto parts = factors_.addends(let.body.body(), false);
    if (parts.size() < 2 || parts.size() > Factors::kMaxTerms) return {};
    Expr sum;
    for (const auto& [part, is_negative] : parts) {
      const Expr magnitude = pool_.unary(Op::Abs, part);
      sum = sum ? pool_.binary(Op::Add, sum, magnitude) : magnitude;
    }
    return sum;
  }

  struct Task {
    const Let& let;
    const Space& space;
    const BlockProgram& code;
    const BlockProgram* init;
    const BlockProgram* parts;
    const Reduction* reduction;
    Noise noise;
    BoundedTensor& out;
  };

  void run_range(const Task& t, int64_t run_extent, int64_t runs_per_row, int64_t begin,
                 int64_t end) {
    // The rounding of products is counted with those of their sum.
    const bool is_sum = t.reduction && t.let.body.reducer() == Reducer::Sum;
    BlockMachine machine(t.code, t.noise, is_sum);
    std::optional<BlockMachine> init;
    if (t.init) init.emplace(*t.init, t.noise);
    std::optional<BlockMachine> parts;
    if (t.parts) parts.emplace(*t.parts);
    std::vector<int64_t> point(t.space.extents.size(), 0);
    // Everything before the first failing item is still run, so that the message does not depend on
    // threads.
    for (int64_t item = begin; item < end && item < failed_item_; ++item) {
      const int64_t first = item % runs_per_row * kRun;
      const int64_t lanes = std::min(kRun, run_extent - first);
      int64_t rest = item / runs_per_row;
      for (size_t k = t.space.outer; k-- > 0;) {
        if (static_cast<int>(k) == t.space.run || static_cast<int>(k) == t.space.step) {
          point[k] = static_cast<int>(k) == t.space.step ? t.space.at : first;
          continue;
        }
        point[k] = rest % t.space.extents[k];
        rest /= t.space.extents[k];
      }
      int64_t base = 0;
      for (size_t k = 0; k < t.space.outer; ++k) base = base * t.space.extents[k] + point[k];
      if (const BlockMachine* failed = element_run(t, machine, init ? &*init : nullptr,
                                                   parts ? &*parts : nullptr, point, base, lanes)) {
        fail(item, failed->outside());
        return;
      }
    }
  }

  // Fills `lanes` elements of the result along the run from flat index `base` on. Returns the
  // machine with a failed read, or null.
  const BlockMachine* element_run(const Task& t, BlockMachine& machine, BlockMachine* init,
                                  BlockMachine* parts, std::vector<int64_t>& point, int64_t base,
                                  int64_t lanes) {
    int64_t apart = 1;
    for (size_t k = static_cast<size_t>(t.space.run + 1); k < t.space.outer; ++k)
      apart *= t.space.extents[k];
    auto store = [&](int64_t lane, Bounded x) {
      t.out.value.data[static_cast<size_t>(base + lane * apart)] = x.v;
      t.out.bound[static_cast<size_t>(base + lane * apart)] = x.e;
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
      if (k == t.space.extents.size()) {
        if (!machine.run(point, lanes) || (parts && !parts->run(point, lanes))) return false;
        const auto terms = machine.result();
        for (int64_t i = 0; i < lanes; ++i) {
          if (parts)
            t.reduction->add_term(accumulators[i], terms[i], parts->result()[i].v.f);
          else
            t.reduction->add(accumulators[i], terms[i], point.back());
        }
        return true;
      }
      if (static_cast<int>(k) ==
          t.space.run) {  // lanes along the last reduced axis: added one after the other, in order
        for (int64_t i = 0; i < t.space.extents[k]; i += kRun) {
          const int64_t n = std::min(kRun, t.space.extents[k] - i);
          point[k] = i;
          if (!machine.run(point, n) || (parts && !parts->run(point, n))) return false;
          const auto terms = machine.result();
          for (int64_t lane = 0; lane < n; ++lane) {
            if (parts)
              t.reduction->add_term(accumulators[0], terms[lane], parts->result()[lane].v.f);
            else
              t.reduction->add(accumulators[0], terms[lane], i + lane);
          }
        }
        return true;
      }
      for (int64_t i = 0; i < t.space.extents[k]; ++i) {
        point[k] = i;
        if (!self(self, k + 1)) return false;
      }
      return true;
    };
    if (!loop(loop, t.space.outer)) return &machine;
    const Noise noise = t.noise ? t.noise.at(point) : t.noise;
    for (int64_t i = 0; i < lanes; ++i) {
      Bounded x = t.reduction->finish(accumulators[i]);
      if (noise) {
        x.e = 0;
        if (is_float(body.dtype()))
          x.v.f += t.reduction->typical_error(accumulators[i]) * noise.error(0, i);
      }
      store(i, x);
    }
    return nullptr;
  }

  void fail(int64_t item, const OutsideRead& outside) {
    const std::lock_guard lock(mutex_);
    if (item >= failed_item_) return;
    failed_item_ = item;
    outside_ = outside;
  }

  const ir::Program& program_;
  const ir::Environment& env_;
  expr::ExprPool& pool_;
  HeldTensors held_;
  Equations equations_;
  Factors factors_;
  uint64_t noise_seed_;
  int threads_;
  bool is_exact_contract_;
  expr::Functions functions_;
  diag::Sink& sink_;
  BoundedTensors tensors_;
  std::mutex mutex_;
  std::atomic<int64_t> failed_item_ = INT64_MAX;
  OutsideRead outside_;
};

}  // namespace

std::optional<Results> evaluate(const ir::Program& program, const ir::Environment& env,
                                const EvalOptions& options, expr::ExprPool& pool,
                                diag::Sink& sink) {
  ir::PassContext context{pool, sink, {}};
  const auto split = split_reductions(program, context);
  if (!split) return std::nullopt;
  // A tensor of numbers that were cast to 16 bits is stored in 16 bits: what it licenses shows.
  const auto flat = store_narrow(*split, context);
  if (!flat) return std::nullopt;
  Evaluator evaluator(*flat, env, options, pool, sink);
  Results results;
  for (const EquationGroup& g : computing_order(*flat)) {
    const bool ok = g.is_scan()
                        ? evaluator.define_scan(g)
                        : evaluator.define(g.equations[0]->as<Let>(), g.equations[0]->span());
    if (!ok) return std::nullopt;
  }
  for (const ir::Op& op : program.body) {
    const auto* let = op.get<Let>();
    if (options.all && let) results.emplace(let->name.str(), evaluator.take(let->name.str()));
  }
  for (ir::Name n : outputs(program)) results.emplace(n.str(), evaluator.take(n.str()));
  return results;
}

}  // namespace nautilus::spec
