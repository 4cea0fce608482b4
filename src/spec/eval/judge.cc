// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "expr/error_bound.h"
#include "expr/walk.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

using expr::Tensor;
using Names = std::unordered_set<ir::Name>;

// Samples that give the bounds, and samples that the bounds are then checked with.
constexpr uint64_t kMeasured = 4;
constexpr uint64_t kHeldOut = 4;
// A kernel's errors are of the size of the sampled ones, not the same.
constexpr double kMargin = 2;

// The median of the sizes that are neither 0 nor infinite: a few large elements do not hide what is
// usual. Zeros alone have the scale of the inputs, which is 1.
double scale_of(const Tensor& t) {
  std::vector<double> sizes;
  for (int64_t i = 0; i < t.size(); ++i) {
    const double size = std::fabs(t.number(i));
    if (size > 0 && std::isfinite(size)) sizes.push_back(size);
  }
  if (sizes.empty()) return 1;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

bool has_tolerance(const Tensor& t, const ir::Numerics& numerics) {
  return is_float(t.dtype) && (numerics.rel || numerics.abs);
}

// A declared tolerance is what counts. Infinite values must be met: a relative tolerance of them
// would accept everything.
double allowed_at(const Result& want, int64_t i, const ir::Numerics& numerics) {
  const double w = want.value.number(i);
  if (!has_tolerance(want.value, numerics)) return want.bound[static_cast<size_t>(i)];
  if (!std::isfinite(w)) return want.bound[static_cast<size_t>(i)] == expr::kInf ? expr::kInf : 0;
  return numerics.abs.value_or(0) + numerics.rel.value_or(0) * std::fabs(w);
}

bool is_element_judged(double allowed, double value, double scale) {
  if (!std::isfinite(value)) return allowed != expr::kInf;
  return allowed <= kWidestAllowed * std::max(std::fabs(value), scale);
}

int64_t count_unjudged(const Result& want, const ir::Numerics& numerics) {
  if (has_tolerance(want.value, numerics)) return 0;
  const double scale = scale_of(want.value);
  int64_t count = 0;
  for (int64_t i = 0; i < want.value.size(); ++i)
    count += !is_element_judged(want.bound[static_cast<size_t>(i)], want.value.number(i), scale);
  return count;
}

bool is_too_much(int64_t unjudged, const Result& want) {
  return static_cast<double>(unjudged) > kMostUnjudged * static_cast<double>(want.value.size());
}

// Tensors that depend on which of two computed numbers is larger, or whether they are equal.
// Rounded numbers of kernels may be equal where the exact ones are not; random errors never make a
// tie.
Names with_steps(const ir::Program& program) {
  Names computed;
  Names stepped;
  const auto reads = [](ir::Expr e, const Names& names) {
    const auto read = expr::tensors_read(e);
    return std::any_of(read.begin(), read.end(), [&](ir::Name n) { return names.contains(n); });
  };
  const auto is_computed = [&](ir::Expr e) {
    return is_float(e.dtype()) && (expr::has_reduce(e) || reads(e, computed));
  };
  // A scan reads its own tensors, so it is visited again.
  for (const ir::Op& op : program.body) {
    if (const auto* state = op.get<State>()) computed.insert(state->name);
  }
  for (int round = has_scans(program) ? 2 : 1; round > 0; --round) {
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      if (!let) continue;
      bool has_step = reads(let->body, stepped);
      expr::for_each(let->body, [&](ir::Expr e) {
        if (is_comparison(e.op())) has_step |= is_computed(e[0]) && is_computed(e[1]);
        if (e.op() == expr::Op::Reduce && is_arg(e.reducer())) has_step |= is_computed(e.body());
      });
      computed.insert(let->name);
      if (has_step) stepped.insert(let->name);
    }
  }
  return stepped;
}

// Replaces the bounds of one output by what the samples say, where that is less.
void take_samples(Result& want, const std::vector<const Tensor*>& samples) {
  const int64_t count = want.value.size();
  const auto difference = [&](const Tensor* sample, int64_t i) {
    return std::fabs(sample->number(i) - want.value.number(i));
  };
  // A sample that is not finite says that nothing can be promised here.
  const auto is_finite_everywhere = [&](int64_t i) {
    if (!std::isfinite(want.value.number(i))) return false;
    return std::all_of(samples.begin(), samples.end(),
                       [&](const Tensor* sample) { return std::isfinite(sample->number(i)); });
  };
  std::vector<double> spread(static_cast<size_t>(count), expr::kInf);
  double squares = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!is_finite_everywhere(i)) continue;
    double largest = 0;
    for (uint64_t k = 0; k < kMeasured; ++k) {
      const double d = difference(samples[k], i);
      largest = std::max(largest, d);
      squares += d * d;
    }
    spread[static_cast<size_t>(i)] = largest;
    ++finite;
  }
  if (finite == 0) return;
  // Few samples may all be near the value by chance: at least what is usual in the output.
  const double usual = std::sqrt(squares / static_cast<double>(finite * int64_t{kMeasured}));
  double factor = 1;
  for (int64_t i = 0; i < count; ++i) {
    double& s = spread[static_cast<size_t>(i)];
    if (s == expr::kInf) continue;
    s = std::max(s, usual);
    for (uint64_t k = kMeasured; k < kMeasured + kHeldOut; ++k) {
      const double d = difference(samples[k], i);
      if (d > 0) factor = std::max(factor, s > 0 ? d / s : expr::kInf);
    }
  }
  for (size_t i = 0; i < spread.size(); ++i)
    want.bound[i] = std::min(want.bound[i], kMargin * factor * spread[i]);
  want.is_sampled = true;
}

}  // namespace

bool is_judged(const Result& want, const ir::Numerics& numerics) {
  return !is_too_much(count_unjudged(want, numerics), want);
}

std::optional<Results> evaluate_to_judge(const ir::Program& program, const ir::Environment& env,
                                         const EvalOptions& options, expr::ExprPool& pool,
                                         diag::Sink& sink) {
  auto results = evaluate(program, env, options, pool, sink);
  if (!results) return std::nullopt;
  const ir::Numerics numerics = ir::numerics_of(program);
  const Names stepped = with_steps(program);
  std::vector<std::string> wide;
  for (const auto& result : *results) {
    const Result& want = result.second;
    const bool has_step = std::any_of(stepped.begin(), stepped.end(),
                                      [&](ir::Name n) { return n.str() == result.first; });
    if (is_float(want.value.dtype) && !has_step && !is_judged(want, numerics))
      wide.push_back(result.first);
  }
  if (wide.empty()) return results;
  std::vector<Results> samples;
  for (uint64_t seed = 1; seed <= kMeasured + kHeldOut; ++seed) {
    EvalOptions sampled = options;
    sampled.noise_seed = seed;
    // A computed index with an error may leave its tensor, which is not an error of the program.
    diag::Sink unheard(sink.sources());
    auto sample = evaluate(program, env, sampled, pool, unheard);
    if (!sample) return results;
    samples.push_back(std::move(*sample));
  }
  for (const std::string& name : wide) {
    std::vector<const Tensor*> values;
    for (const Results& sample : samples) values.push_back(&sample.at(name).value);
    take_samples(results->at(name), values);
  }
  return results;
}

Comparison compare(const Tensor& got, const Result& want, const ir::Numerics& numerics) {
  Comparison c;
  for (int64_t i = 0; i < want.value.size(); ++i) {
    const double g = got.number(i);
    const double w = want.value.number(i);
    // A factor that is infinite may be multiplied to a sum instead of to its terms, where those of
    // both signs would have made NaN.
    if (std::isnan(w) && !std::isfinite(g)) continue;
    const double error = g == w ? 0 : std::fabs(g - w);
    const double allowed = allowed_at(want, i, numerics);
    const double ratio = error == 0 || allowed == expr::kInf ? 0
                         : std::isnan(error) || allowed == 0 ? expr::kInf
                                                             : error / allowed;
    if (!std::isnan(error)) c.max_abs_error = std::max(c.max_abs_error, error);
    if (!(ratio <= 1)) {
      c.verdict = Verdict::Wrong;
      ++c.mismatches;
    }
    if (c.worst_index < 0 || ratio > c.worst_ratio) {
      c.worst_ratio = ratio;
      c.worst_allowed = allowed;
      c.worst_index = i;
    }
  }
  c.unjudged = count_unjudged(want, numerics);
  if (c.verdict == Verdict::Accepted && is_too_much(c.unjudged, want))
    c.verdict = Verdict::NotJudged;
  return c;
}

std::string objection(const Comparison& c, const Tensor& got, const Result& want) {
  switch (c.verdict) {
    case Verdict::Accepted:
      return "";
    case Verdict::Wrong:
      return fmt::format("element {} is {}, the oracle's {} +- {}{}; {} of {} elements differ",
                         c.worst_index, got.number(c.worst_index), want.value.number(c.worst_index),
                         c.worst_allowed, want.is_sampled ? " (sampled)" : "", c.mismatches,
                         want.value.size());
    case Verdict::NotJudged:
      return fmt::format(
          "not judged: the error that is possible by rounding alone is too large to tell right "
          "from wrong at {} of {} elements; {}",
          c.unjudged, want.value.size(),
          is_float(want.value.dtype)
              ? "declare a tolerance, as `numerics rel 1e-2 abs 1e-3`, or cast intermediate tensors"
              : "make what is compared an output of 16 bits, so that it is rounded first");
  }
  NAUT_CHECK(false, "no such verdict");
}

}  // namespace nautilus::spec
