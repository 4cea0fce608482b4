// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_points.h"

#include <algorithm>

namespace nautilus::spec {

using expr::Bounded;
using ir::Expr;

namespace {

// Results along one run. `run` returns the machine whose read failed, or null.
class ElementRun {
 public:
  explicit ElementRun(const PointsTask& task)
      : t_(task),
        // The rounding of products is counted with those of their sum.
        machine_(task.code, task.noise,
                 task.reduction && task.let.body.reducer() == expr::Reducer::Sum) {
    if (t_.init) init_.emplace(*t_.init, t_.noise);
    if (t_.parts) parts_.emplace(*t_.parts);
    for (size_t k = static_cast<size_t>(t_.space.run + 1); k < t_.space.outer; ++k)
      apart_ *= t_.space.extents[k];
  }

  // Fills `lanes` elements of the result along the run from flat index `base` on.
  const BlockMachine* run(std::vector<int64_t>& point, int64_t base, int64_t lanes) {
    if (!t_.reduction) {
      if (!machine_.run(point, lanes)) return &machine_;
      for (int64_t i = 0; i < lanes; ++i) store(base + i * apart_, machine_.result()[i]);
      return nullptr;
    }
    const Expr body = t_.let.body;
    if (init_ && !init_->run(point, lanes)) return &*init_;
    for (int64_t i = 0; i < lanes; ++i) {
      accumulators_[i] = t_.reduction->start(
          init_ ? init_->result()[i]
                : Bounded{expr::identity(body.reducer(), body.body().dtype()), 0});
    }
    if (!add_terms(point, t_.space.outer, lanes)) return &machine_;
    const Noise noise = t_.noise ? t_.noise.at(point) : t_.noise;
    for (int64_t i = 0; i < lanes; ++i) {
      Bounded x = t_.reduction->finish(accumulators_[i]);
      if (noise) {
        x.e = 0;
        if (is_float(body.dtype()))
          x.v.f += t_.reduction->typical_error(accumulators_[i]) * noise.error(0, i);
      }
      store(base + i * apart_, x);
    }
    return nullptr;
  }

 private:
  void store(int64_t at, Bounded x) {
    t_.out.value.data[static_cast<size_t>(at)] = x.v;
    t_.out.bound[static_cast<size_t>(at)] = x.e;
  }

  // The terms of all lanes, in loops over the reduced axes from the k-th on.
  bool add_terms(std::vector<int64_t>& point, size_t k, int64_t lanes) {
    if (k == t_.space.extents.size()) {
      if (!run_terms(point, lanes)) return false;
      const auto terms = machine_.result();
      for (int64_t i = 0; i < lanes; ++i) add(accumulators_[i], terms, i, point.back());
      return true;
    }
    if (static_cast<int>(k) == t_.space.run) return add_along_lanes(point, k);
    for (int64_t i = 0; i < t_.space.extents[k]; ++i) {
      point[k] = i;
      if (!add_terms(point, k + 1, lanes)) return false;
    }
    return true;
  }

  // Lanes along the last reduced axis: added one after the other, in order.
  bool add_along_lanes(std::vector<int64_t>& point, size_t k) {
    for (int64_t i = 0; i < t_.space.extents[k]; i += kRun) {
      const int64_t n = std::min(kRun, t_.space.extents[k] - i);
      point[k] = i;
      if (!run_terms(point, n)) return false;
      const auto terms = machine_.result();
      for (int64_t lane = 0; lane < n; ++lane) add(accumulators_[0], terms, lane, i + lane);
    }
    return true;
  }

  bool run_terms(const std::vector<int64_t>& point, int64_t lanes) {
    return machine_.run(point, lanes) && (!parts_ || parts_->run(point, lanes));
  }

  void add(Accumulator& to, const BlockMachine::Lanes& terms, int64_t lane, int64_t place) {
    if (parts_)
      t_.reduction->add_term(to, terms[lane], parts_->result()[lane].v.f);
    else
      t_.reduction->add(to, terms[lane], place);
  }

  const PointsTask& t_;
  BlockMachine machine_;
  std::optional<BlockMachine> init_;
  std::optional<BlockMachine> parts_;
  int64_t apart_ = 1;  // elements of neighbouring lanes
  Accumulator accumulators_[kRun];
};

}  // namespace

PointSpace point_space(const Let& let, const ir::Environment& env) {
  PointSpace s;
  const bool is_reduce = let.body.op() == expr::Op::Reduce;
  s.axes = let.axes;
  for (const ir::Axis& a : let.axes) s.extents.push_back(ir::evaluate_size(a.extent, env));
  s.outer = s.extents.size();
  if (is_reduce) {
    for (size_t k = 0; k < let.body.axis_count(); ++k) {
      s.axes.push_back({let.body.axis(k).name(), let.body.extent(k)});
      s.extents.push_back(ir::evaluate_size(let.body.extent(k), env));
      s.length *= s.extents.back();
    }
  }
  choose_run(s, is_reduce);
  return s;
}

void choose_run(PointSpace& s, bool is_reduce) {
  s.run = static_cast<int>(s.outer) - 1;
  if (s.run >= 0 && s.run == s.step) --s.run;
  const int64_t extent = s.run < 0 ? 0 : s.extents[static_cast<size_t>(s.run)];
  if (is_reduce && (s.run < 0 || (extent < 16 && s.extents.back() > extent)))
    s.run = static_cast<int>(s.extents.size()) - 1;
  s.runs_inside = is_reduce && s.run >= static_cast<int>(s.outer);
}

void evaluate_points(const PointsTask& t, int64_t begin, int64_t end, FirstFailure& failure) {
  ElementRun elements(t);
  const int64_t runs_per_row = runs_of(t.run_extent);
  std::vector<int64_t> point(t.space.extents.size(), 0);
  for (int64_t item = begin; item < end && failure.is_behind(item); ++item) {
    const int64_t first = item % runs_per_row * kRun;
    const int64_t lanes = std::min(kRun, t.run_extent - first);
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
    if (const BlockMachine* failed = elements.run(point, base, lanes))
      return failure.add(item, failed->outside());
  }
}

}  // namespace nautilus::spec
