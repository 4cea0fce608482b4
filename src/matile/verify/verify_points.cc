// SPDX-License-Identifier: Apache-2.0
// The rules of scalar code: names, dtypes, and that a kernel writes what it may.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "ir/verify.h"
#include "matile/verify/verify_point_layout.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

// The number of lanes of a point divides a warp.
bool are_lanes(int64_t n) { return n == 2 || n == 4 || n == 8 || n == 16 || n == 32; }

class PointsVerifier {
 public:
  PointsVerifier(const target::Target& target,
                 const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v)
      : target_(target), limits_(target.limits), roles_(roles), v_(v) {}

  void run(const Points& points) {
    const size_t mark = v_.enter_axes(points.axes);
    if (points.axes.empty()) v_.fail("`points` needs an axis");
    const int64_t lanes = points.lanes_per_point.value_or(1);
    has_cta_ = lanes > limits_.warp_threads && lanes % limits_.warp_threads == 0 &&
               lanes == points.threads.value_or(target_.points.threads);
    if (points.lanes_per_point && !are_lanes(lanes) && !has_cta_)
      v_.fail(fmt::format(
          "a point has one thread, or 2, 4, 8, 16 or 32, or all threads of its CTA, not {}",
          lanes));
    has_lanes_ = points.lanes_per_point.has_value();
    has_warp_ = lanes == limits_.warp_threads;
    if (points.points_per_thread && points.points_of_line)
      v_.fail("points of a thread are `beside` each other or a `line`");
    if (points.points_per_thread) check_points_of_thread(points, *points.points_per_thread);
    if (points.points_of_line) check_points_of_thread(points, *points.points_of_line);
    verify_point_layout(points, target_, v_);
    take_apart(points);
    if (points.held && (points.patch || points.lanes_per_point || points.across || points.spread ||
                        *points.held < 1 || *points.held > target_.points.held_registers))
      v_.fail(fmt::format("a point of one lane has 1 to {} turns of its loops `held`",
                          target_.points.held_registers));
    if (points.unroll && (*points.unroll < 2 || *points.unroll > target_.points.most_unrolled))
      v_.fail(fmt::format("2 to {} turns of a loop are written one after the other, not {}",
                          target_.points.most_unrolled, *points.unroll));
    if (points.windows && *points.windows < 1)
      v_.fail(fmt::format("windows of 1 turn or more are written out, not of {}", *points.windows));
    const int64_t threads = points.threads.value_or(limits_.warp_threads);
    if (threads < 1 || threads % limits_.warp_threads != 0 || threads > limits_.cta_threads)
      v_.fail(fmt::format("a CTA has a multiple of {} threads up to {}, not {}",
                          limits_.warp_threads, limits_.cta_threads, threads));
    const int64_t most = limits_.sm_threads / std::max<int64_t>(own_threads(points), 1);
    if (points.resident && (*points.resident < 2 || *points.resident > most))
      v_.fail(fmt::format("2 to {} CTAs of {} threads are `resident`, not {}", most,
                          own_threads(points), *points.resident));
    is_alone_ = points.body.size() == 1 && points.body[0].is<Sort>();
    block(points.body);
    v_.leave_axes(mark);
  }

 private:
  int64_t own_threads(const Points& points) const {
    return points.threads.value_or(target_.points.threads);
  }

  // Points of a thread walk the same loops, so nothing that differs between them may decide.
  void check_points_of_thread(const Points& points, int64_t n) {
    if (n != 2 && n != 4 && n != 8)
      v_.fail(fmt::format("a thread has 2, 4 or 8 points beside each other, not {}", n));
    if (points.lanes_per_point)
      v_.fail("points of several lanes do not lie beside each other in a thread");
    if (!points.axes.empty()) apart_of_points_.emplace(points.axes.back().name.str());
    has_several_ = true;
  }
  // What differs between the points of a thread that lie in a tile or a patch.
  void take_apart(const Points& points) {
    if (points.spread || points.points_apart || points.points_down) {
      const size_t from = points.axes.size() > 1 ? points.axes.size() - 2 : 0;
      for (size_t k = from; k < points.axes.size(); ++k)
        apart_of_points_.emplace(points.axes[k].name.str());
      has_several_ = true;
    }
    if (points.patch || points.patch_high || points.patch_over || points.patch_wide) {
      apart_of_points_.emplace(points.patch.str());
      apart_of_points_.emplace(points.patch_over.str());
      has_several_ = true;
    }
  }
  bool differs(Expr e) const {
    if (!expr::tensors_read(e).empty()) return true;
    const auto vars = expr::free_vars(e);
    return std::any_of(vars.begin(), vars.end(), [&](Expr x) {
      return apart_of_points_.contains(std::string(x.name().str()));
    });
  }

  void block(const ir::Block& ops) {
    const size_t mark = v_.mark();
    const auto values = values_;
    for (const Op& op : ops) {
      v_.set_op(op);
      statement(op);
    }
    values_ = values;
    v_.leave_axes(mark);
  }

  void number(Expr e, DType dtype, std::string_view what) {
    if (!is_shared_) {
      for (Expr x : expr::free_vars(e)) {
        if (apart_.contains(x.name().str()))
          v_.fail(fmt::format("the lanes have not joined `{}`", x.name().str()));
      }
    }
    v_.check(e, what);
    v_.check_dtype(e, dtype, what);
    if (expr::has_reduce(e)) v_.fail(fmt::format("{} has a reduction; scalar code loops", what));
  }

  void statement(const Op& op) {
    switch (kind(op)) {
      case Kind::Value: {
        const auto& v = op.as<Value>();
        number(v.init, v.dtype, "the value");
        apart_of_points_.emplace(v.name.str());
        if (v_.declare_local(v.name, v.dtype)) values_.emplace(v.name.str(), v.dtype);
        return;
      }
      case Kind::Let:
        number(op.as<Let>().value, op.as<Let>().value.dtype(), "the value");
        apart_of_points_.emplace(op.as<Let>().name.str());
        v_.declare_local(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Assign: {
        const auto& a = op.as<Assign>();
        const auto it = values_.find(std::string(a.name.str()));
        if (it == values_.end()) return v_.fail(fmt::format("`{}` is no value", a.name.str()));
        if (is_shared_) apart_.emplace(a.name.str());
        return number(a.value, it->second, "the value");
      }
      case Kind::Write:
        return write(op.as<Write>());
      case Kind::Scatter:
        return scatter(op.as<Scatter>());
      case Kind::If:
        if (has_several_) v_.fail("points beside each other in a thread do not branch");
        number(op.as<If>().condition, DType::Bool, "the condition");
        return block(op.as<If>().body);
      case Kind::Loop: {
        const auto& l = op.as<Loop>();
        number(l.from, DType::I64, "the first value");
        number(l.to, DType::I64, "the last value");
        if (has_several_ && (differs(l.from) || differs(l.to)))
          v_.fail("points beside each other in a thread would walk the loop differently");
        const size_t mark = v_.mark();
        v_.declare_local(l.var, DType::I64);
        block(l.body);
        v_.leave_axes(mark);
        return;
      }
      case Kind::SharedLoop:
        return share(op.as<SharedLoop>());
      case Kind::LaneLoop:
        return walk(op.as<LaneLoop>());
      case Kind::LaneScan:
        return scan(op.as<LaneScan>());
      case Kind::Sort:
        return sort(op.as<Sort>());
      case Kind::Search:
        return search(op.as<Search>());
      case Kind::Join: {
        const auto& j = op.as<Join>();
        if (!has_lanes_ || has_cta_ || is_shared_)
          return v_.fail("only whole points of several lanes of a warp join");
        if (!values_.contains(std::string(j.name.str())))
          return v_.fail(fmt::format("`{}` is no value", j.name.str()));
        if (!is_joined(j.reducer)) v_.fail("lanes join by sum, max or min");
        apart_.erase(std::string(j.name.str()));
        return;
      }
      default:
        v_.fail(fmt::format("`{}` does not stand in scalar code", op.info().mnemonic()));
    }
  }

  // The lanes' turns: what they assign is theirs until it is joined, and nothing is written.
  void share(const SharedLoop& s) {
    if (!has_lanes_ || has_cta_)
      return v_.fail("a point of one thread, or of a CTA, has no lanes that share a loop");
    number(s.to, DType::I64, "the last value");
    const size_t mark = v_.mark();
    v_.declare_local(s.var, DType::I64);
    is_shared_ = true;
    block(s.body);
    is_shared_ = false;
    v_.leave_axes(mark);
  }

  // All lanes are in every round, so that they can scan; each writes what is its own.
  void walk(const LaneLoop& w) {
    if (!(has_warp_ || has_cta_) || is_shared_ || is_walking_)
      return v_.fail("only the lanes of a point that has a warp or a CTA walk together");
    number(w.count, DType::I64, "the count");
    check_vectors(w);
    const size_t mark = v_.mark();
    v_.declare_local(w.var, DType::I64);
    is_walking_ = true;
    walked_ = &w.body;
    block(w.body);
    is_walking_ = false;
    v_.leave_axes(mark);
  }

  // Lanes that have several numbers of a round each.
  void check_vectors(const LaneLoop& w) {
    const int64_t vector = w.vector.value_or(0);
    const int64_t each = w.each.value_or(0);
    const auto is_power = [](int64_t n) { return n > 0 && (n & (n - 1)) == 0; };
    if (!is_power(vector) || !is_power(each) || each % vector != 0 ||
        each > target_.points.walk_each)
      v_.fail(fmt::format("lanes have a power of two of numbers up to {}, in vectors",
                          target_.points.walk_each));
    const auto part_of = [](const Op& op) {
      return op.is<Value>() || op.is<Let>() ? 0
             : op.is<LaneScan>()            ? 1
             : op.is<Write>()               ? 2
             : op.is<Assign>()              ? 3
                                            : 4;
    };
    int last = 0;
    for (const Op& op : w.body) {
      const int part = part_of(op);
      if (part < last || part > 3)
        v_.fail("a walk has values, then scans, then writes, then assignments");
      last = std::max(last, part);
    }
  }

  void scan(const LaneScan& s) {
    const bool is_there =
        is_walking_ && std::any_of(walked_->begin(), walked_->end(), [&](const Op& op) {
          return op.get<LaneScan>() && op.as<LaneScan>().name == s.name;
        });
    if (!is_there) return v_.fail("lanes scan in the rounds of a walk, under no condition");
    const auto own = values_.find(std::string(s.name.str()));
    const auto total = values_.find(std::string(s.total.str()));
    if (own == values_.end() || total == values_.end() || own->second != total->second)
      return v_.fail(
          fmt::format("`{}` and `{}` are no values of one dtype", s.name.str(), s.total.str()));
    if (!is_joined(s.reducer) && s.reducer != expr::Reducer::Prod)
      v_.fail("lanes scan by sum, prod, max or min");
  }

  // Each lane has places of its own, and writes what they say.
  void sort(const Sort& o) {
    if (!has_lanes_ || !is_alone_ || is_sorting_)
      return v_.fail("the lanes of a point put its row in order, alone");
    const int64_t each = o.each.value_or(0);
    if (each < 1 || (each & (each - 1)) != 0 || each > target_.points.sort_each)
      v_.fail(fmt::format("a lane puts a power of two of elements up to {} in order, not {}",
                          target_.points.sort_each, each));
    if (o.axes.size() != 1) v_.fail("a sort is of the elements of one axis");
    number(o.places, DType::I64, "the number of places");
    const size_t mark = v_.enter_axes(o.axes);
    number(o.key, o.key.dtype(), "the key");
    if (o.condition) number(o.condition, DType::Bool, "the condition");
    v_.declare_local(o.place, DType::I64);
    is_sorting_ = true;
    block(o.body);
    is_sorting_ = false;
    v_.leave_axes(mark);
  }

  // What is found stays a number of the thread.
  void search(const Search& s) {
    if (has_several_) v_.fail("several points of a thread would search differently");
    if (s.axes.size() != 1) return v_.fail("a search is along one axis");
    if (s.from) number(s.from, DType::I64, "the first value");
    number(s.axes[0].extent, DType::I64, "the extent");
    v_.declare_local(s.axes[0].name, DType::I64);
    number(s.condition, DType::Bool, "the condition");
  }

  static bool is_joined(expr::Reducer r) {
    return r == expr::Reducer::Sum || r == expr::Reducer::Max || r == expr::Reducer::Min;
  }

  void write(const Write& w) {
    if (has_cta_ && !is_walking_ && !is_sorting_)
      return v_.fail("the threads of a CTA write in their walk");
    if (is_shared_) return v_.fail("the lanes of a point write nothing of their own");
    element(w.target, w.indices, w.value);
  }

  void scatter(const Scatter& s) {
    if (has_lanes_) return v_.fail("only points of one thread scatter");
    if (expr::is_arg(s.reducer) || s.reducer == expr::Reducer::Prod)
      v_.fail(fmt::format("memory has no {} of its own", name(s.reducer)));
    if (s.condition) number(s.condition, DType::Bool, "the condition");
    element(s.target, s.indices, s.value);
    const ir::TensorType* type = v_.tensor(s.target);
    if (type && expr::compute_dtype(type->dtype) != type->dtype)
      v_.fail(fmt::format("memory combines no elements of {}", expr::name(type->dtype)));
  }

  // An element that is written, and its value.
  void element(ir::Name target, const ir::Exprs& indices, Expr value) {
    const ir::TensorType* type = v_.tensor(target);
    const auto role = roles_.find(target.str());
    if (!type || role == roles_.end())
      return v_.fail(fmt::format("there is no tensor `{}`", target.str()));
    if (role->second == TensorRole::Input)
      v_.fail(fmt::format("the input `{}` is written", target.str()));
    if (type->dims.size() != indices.size())
      v_.fail(fmt::format("`{}` has {} dimensions, {} given", target.str(), type->dims.size(),
                          diag::counted(indices.size(), "index is", "indices are")));
    for (Expr i : indices) number(i, DType::I64, "an index");
    number(value, type->dtype, "the value");
  }

  const target::Target& target_;
  const target::Limits& limits_;
  const std::map<std::string, TensorRole, std::less<>>& roles_;
  ir::Verifier& v_;
  std::map<std::string, DType> values_;
  std::set<std::string, std::less<>>
      apart_of_points_;  // what each point of a thread has separately
  bool has_several_ = false;
  bool has_lanes_ = false;
  bool has_warp_ = false;
  bool has_cta_ = false;                      // all its threads have one point
  bool is_walking_ = false;                   // inside a walk of all lanes
  bool is_alone_ = false;                     // a sort is all that the points do
  bool is_sorting_ = false;                   // for the places of a row in order
  const ir::Block* walked_ = nullptr;         // its body
  bool is_shared_ = false;                    // inside a loop that lanes share
  std::set<std::string, std::less<>> apart_;  // values that differ between lanes
};

}  // namespace

void verify_points(const Points& points, const target::Target& target,
                   const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v) {
  PointsVerifier(target, roles, v).run(points);
}

}  // namespace nautilus::matile
