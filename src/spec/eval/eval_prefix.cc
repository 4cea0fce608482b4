// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_prefix.h"

#include <algorithm>

namespace nautilus::spec {
namespace {

using expr::Bounded;
using expr::Reducer;

class PrefixWalk {
 public:
  PrefixWalk(const PrefixTask& task, int64_t row)
      : t_(task),
        machine_(task.code, task.noise, task.let.body.reducer() == Reducer::Sum),
        terms_(task.extents.back()),
        results_(task.extents[task.prefix.axis]),
        point_(task.extents.size(), 0) {
    if (task.parts) parts_.emplace(*task.parts);
    // A row is a point of the axes before and after that of the prefixes.
    for (size_t k = task.extents.size() - 1; k-- > 0;) {
      if (k == task.prefix.axis) continue;
      point_[k] = row % task.extents[k];
      row /= task.extents[k];
    }
    for (size_t k = 0; k + 1 < task.extents.size(); ++k) {
      base_ = base_ * task.extents[k] + point_[k];
      stride_ = k > task.prefix.axis ? stride_ * task.extents[k] : 1;
    }
  }

  std::optional<OutsideRead> run() {
    const ir::Expr body = t_.let.body;
    Bounded first{expr::identity(body.reducer(), body.body().dtype()), 0};
    if (t_.init) {
      BlockMachine init(*t_.init, t_.noise);
      if (!init.run(point_, 1)) return init.outside();
      first = init.result()[0];
    }
    acc_ = t_.reduction.start(first);
    return t_.prefix.is_up ? up() : down();
  }

 private:
  // Terms that some prefix uses; others need not have a value.
  std::optional<OutsideRead> up() {
    const int64_t end = std::min(terms_, results_ + t_.prefix.offset);
    int64_t next = 0;  // result
    const auto emit_before = [&](int64_t term) {
      for (; next < results_ && next + t_.prefix.offset < term; ++next) store(next, term);
    };
    for (int64_t begin = 0; begin < end; begin += kRun) {
      const int64_t count = std::min(kRun, end - begin);
      if (!load(begin, count)) return outside();
      for (int64_t lane = 0; lane < count; ++lane) {
        emit_before(begin + lane);
        add(lane, begin + lane);
      }
    }
    for (; next < results_; ++next) store(next, std::max<int64_t>(end, 0));
    return std::nullopt;
  }

  std::optional<OutsideRead> down() {
    const int64_t first = std::max<int64_t>(0, t_.prefix.offset);
    int64_t next = results_ - 1;
    const auto emit_behind = [&](int64_t term) {
      for (; next >= 0 && next + t_.prefix.offset > term; --next) store(next, term + 1);
    };
    for (int64_t end = terms_; end > first; end -= kRun) {
      const int64_t begin = std::max(first, end - kRun);
      if (!load(begin, end - begin)) return outside();
      for (int64_t lane = end - begin; lane-- > 0;) {
        emit_behind(begin + lane);
        add(lane, begin + lane);
      }
    }
    for (; next >= 0; --next) store(next, std::min(first, terms_));
    return std::nullopt;
  }

  bool load(int64_t begin, int64_t count) {
    point_.back() = begin;
    return machine_.run(point_, count) && (!parts_ || parts_->run(point_, count));
  }

  OutsideRead outside() const { return machine_.outside(); }

  void add(int64_t lane, int64_t position) {
    const Bounded x = machine_.result()[lane];
    ++added_;
    if (parts_)
      t_.reduction.add_term(acc_, x, parts_->result()[lane].v.f);
    else if (t_.prefix.is_up)
      t_.reduction.add(acc_, x, position);
    else
      t_.reduction.add_before(acc_, x, position);
  }

  // `border`: the first term that was not added yet, or the last one that was.
  void store(int64_t result, int64_t border) {
    Accumulator acc = acc_;
    const ir::Expr masked = t_.prefix.masked;
    if (is_arg(t_.let.body.reducer()) && masked.is_const()) {
      // The first of the terms that are left out may be the position, too.
      const Bounded x{is_float(masked.dtype()) ? expr::float_value(masked.number())
                                               : expr::int_value(masked.integer()),
                      0};
      if (t_.prefix.is_up && border < terms_) t_.reduction.add(acc, x, border);
      if (!t_.prefix.is_up && border > 0) t_.reduction.add_before(acc, x, 0);
    }
    Bounded x = t_.reduction.finish(acc, added_);
    if (t_.noise) {
      x.e = 0;
      if (is_float(t_.let.body.dtype()))
        x.v.f += t_.reduction.typical_error(acc, added_) * t_.noise.at(point_).error(0, result);
    }
    const auto at = static_cast<size_t>(base_ + result * stride_);
    t_.out.value.data[at] = x.v;
    t_.out.bound[at] = x.e;
  }

  const PrefixTask& t_;
  BlockMachine machine_;
  std::optional<BlockMachine> parts_;
  int64_t terms_;
  int64_t results_;
  std::vector<int64_t> point_;
  int64_t base_ = 0;    // of the row's first result
  int64_t stride_ = 1;  // from one result to the next
  int64_t added_ = 0;
  Accumulator acc_{};
};

}  // namespace

bool is_walked(const Prefix& prefix, const Let& let, int64_t length) {
  const Reducer r = let.body.reducer();
  const bool has_order = is_float(let.body.dtype()) && (r == Reducer::Sum || r == Reducer::Prod);
  return prefix.is_up || !has_order || length > kRun;
}

std::optional<OutsideRead> walk_prefixes(const PrefixTask& task, int64_t row) {
  return PrefixWalk(task, row).run();
}

}  // namespace nautilus::spec
