// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/parallel.h"
#include "expr/walk.h"
#include "spec/equations.h"
#include "spec/eval/eval_points.h"
#include "spec/eval/eval_prefix.h"
#include "spec/facts/factors.h"
#include "spec/facts/held_tensors.h"
#include "spec/facts/read_scan.h"
#include "spec/passes/equations/split_reductions.h"
#include "spec/passes/operands/store_narrow.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Op;
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
        contract_(ir::numerics_of(program).rounding),
        functions_(ir::allows_coarse_functions(program, output_dtypes(program))
                       ? expr::Functions::Coarse
                       : expr::Functions::FewUlp),
        sink_(sink) {
    for (const auto& [name, tensor] : env.tensors)
      tensors_.emplace(name, BoundedTensor{tensor, {}});
  }

  // `is_scan`: prefixes are reduced in the order of steps, also from the end.
  bool define(const Let& let, diag::Span span, bool is_scan = false) {
    const PointSpace space = point_space(let, env_);
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
    if (failure_.is_there()) {
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
    std::vector<PointSpace> spaces;
    std::vector<BoundedTensor*> out;
    for (size_t m = 0; m < scan.equations.size(); ++m) {
      const Let& let = scan.equations[m]->as<Let>();
      spaces.push_back(point_space(let, env_));
      PointSpace& space = spaces.back();
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
        PointSpace& space = spaces[m];
        const int64_t own = space.extents[scan.along[m]];
        space.at = scan.direction == Direction::Up ? k : steps - 1 - k;
        if (own == 0 || space.at >= own) continue;
        const auto count = static_cast<int64_t>(out[m]->bound.size()) / own;
        compute(scan.equations[m]->as<Let>(), space, count, *out[m]);
        if (!failure_.is_there()) continue;
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

  // Fills the `count` elements of the result, or leaves the first read that fails in `failure_`.
  void compute(const Let& let, const PointSpace& space, int64_t count, BoundedTensor& out) {
    const bool is_reduce = let.body.op() == Op::Reduce;
    const int run = space.run;
    const BlockProgram code(is_reduce ? let.body.body() : let.body, space.axes, run, tensors_, env_,
                            functions_);
    std::optional<BlockProgram> init;
    if (is_reduce && let.body.init())
      init.emplace(let.body.init(), space.axes, space.runs_inside ? -1 : run, tensors_, env_,
                   functions_);
    std::optional<Reduction> reduction;
    if (is_reduce) reduction.emplace(held_.marked(let.body), space.length, contract_);
    std::optional<BlockProgram> parts;
    if (reduction && reduction->is_licensed()) {
      if (const Expr magnitudes = magnitude_of_parts(let))
        parts.emplace(magnitudes, space.axes, run, tensors_, env_, functions_);
    }

    const int64_t run_extent =
        run >= 0 && !space.runs_inside ? space.extents[static_cast<size_t>(run)] : 1;
    const int64_t rows = run_extent == 0 ? 0 : count / run_extent;
    const PointsTask task{let,
                          space,
                          run_extent,
                          code,
                          init ? &*init : nullptr,
                          parts ? &*parts : nullptr,
                          reduction ? &*reduction : nullptr,
                          noise_seed_ ? Noise(noise_seed_, let.name.str()) : Noise(),
                          out};
    auto work = [&](int64_t begin, int64_t end) { evaluate_points(task, begin, end, failure_); };
    using Work = decltype(work);
    // A step of a scan may be little work.
    const bool is_small = space.step >= 0 && count * space.length < kWorthThreads;
    base::parallel_ranges(
        rows * runs_of(run_extent), is_small ? 1 : threads_,
        [](void* context, int64_t begin, int64_t end) {
          (*static_cast<Work*>(context))(begin, end);
        },
        &work);
  }

  // A reduction of all prefixes of an axis.
  void walk(const Let& let, const PointSpace& space, const Prefix& prefix, BoundedTensor& out) {
    const int run = static_cast<int>(space.outer);
    const auto program = [&](Expr e, int along) {
      return BlockProgram(e, space.axes, along, tensors_, env_, functions_);
    };
    const BlockProgram code = program(prefix.body, run);
    const Reduction reduction(held_.marked(let.body), space.length, contract_);
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
      if (!failure_.is_behind(row)) return;
      if (const auto outside = walk_prefixes(task, row)) failure_.add(row, *outside);
    });
  }

  void report_outside(diag::Span span) {
    const OutsideRead& outside = failure_.outside();
    sink_
        .report(diag::Code::ReadOutside, span,
                fmt::format("index {} of `{}` is {}, the extent is {}{}", outside.dimension + 1,
                            outside.tensor, outside.index, outside.extent,
                            outside.is_by_rounding
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

  const ir::Program& program_;
  const ir::Environment& env_;
  expr::ExprPool& pool_;
  HeldTensors held_;
  Equations equations_;
  Factors factors_;
  uint64_t noise_seed_;
  int threads_;
  ir::Rounding contract_;
  expr::Functions functions_;
  diag::Sink& sink_;
  BoundedTensors tensors_;
  FirstFailure failure_;
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
