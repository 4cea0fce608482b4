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

class PointsVerifier {
 public:
  PointsVerifier(const target::Target& target,
                 const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v)
      : target_(target), roles_(roles), v_(v) {}

  void run(const Kernel& kernel) {
    const Points& points = points_of(kernel);
    check_place(kernel);
    const size_t mark = v_.enter_axes(points.axes);
    if (points.axes.empty()) v_.fail("`points` needs an axis");
    verify_point_layout(kernel, target_, v_);
    read_layout(point_layout(kernel), points.axes);
    is_alone_ = points.body.size() == 1 && points.body[0].is<Sort>();
    block(points.body);
    v_.leave_axes(mark);
  }

 private:
  // Lines of the schedule at most, a layout at most, and the points, in this order.
  void check_place(const Kernel& kernel) {
    size_t at = 0;
    const auto& body = kernel.body;
    if (body[at].is<decision::Decisions>()) ++at;
    if (body[at].is<LayoutLines>()) ++at;
    const auto it =
        std::find_if(body.begin(), body.end(), [](const Op& op) { return op.is<Points>(); });
    v_.set_op(*it);
    if (!body[at].is<Points>() || body.size() != at + 1)
      v_.fail("`points` stands alone in its kernel but for a `layout` before it");
  }
  // Who computes a point, and what differs between the points of a thread. These walk the same
  // loops, so nothing that differs between them may decide.
  void read_layout(const PointLayout& layout, const ir::Axes& axes) {
    has_lanes_ = layout.lanes.has_value();
    has_warp_ = layout.lanes == target_.limits.warp_threads;
    has_cta_ = are_of_cta(layout, target_);
    has_several_ = layout.each || layout.spread || layout.patch;
    const size_t along = layout.spread ? 2 : layout.each ? 1 : 0;
    for (size_t k = axes.size() - std::min(along, axes.size()); k < axes.size(); ++k)
      apart_of_points_.emplace(axes[k].name.str());
    if (!layout.patch) return;
    apart_of_points_.emplace(layout.patch->rows.str());
    apart_of_points_.emplace(layout.patch->columns.str());
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
      case Kind::Value:
        return value(op.as<Value>());
      case Kind::Let:
        return let(op.as<Let>());
      case Kind::Assign:
        return assign(op.as<Assign>());
      case Kind::Write:
        return write(op.as<Write>());
      case Kind::Scatter:
        return scatter(op.as<Scatter>());
      case Kind::If:
        if (has_several_) v_.fail("neighbouring points of a thread do not branch");
        number(op.as<If>().condition, DType::Bool, "the condition");
        return block(op.as<If>().body);
      case Kind::Loop:
        return loop(op.as<Loop>());
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
      case Kind::Join:
        return join(op.as<Join>());
      default:
        v_.fail(fmt::format("`{}` does not stand in scalar code", op.info().mnemonic()));
    }
  }

  void value(const Value& v) {
    number(v.init, v.dtype, "the value");
    apart_of_points_.emplace(v.name.str());
    if (v_.declare_local(v.name, v.dtype)) values_.emplace(v.name.str(), v.dtype);
  }

  void let(const Let& l) {
    number(l.value, l.value.dtype(), "the value");
    apart_of_points_.emplace(l.name.str());
    v_.declare_local(l.name, l.value.dtype());
  }

  void assign(const Assign& a) {
    const auto it = values_.find(std::string(a.name.str()));
    if (it == values_.end()) return v_.fail(fmt::format("`{}` is no value", a.name.str()));
    if (is_shared_) apart_.emplace(a.name.str());
    number(a.value, it->second, "the value");
  }

  void loop(const Loop& l) {
    number(l.from, DType::I64, "the first value");
    number(l.to, DType::I64, "the last value");
    if (has_several_ && (differs(l.from) || differs(l.to)))
      v_.fail("neighbouring points of a thread would walk the loop differently");
    const size_t mark = v_.mark();
    v_.declare_local(l.var, DType::I64);
    block(l.body);
    v_.leave_axes(mark);
  }

  void join(const Join& j) {
    if (!has_lanes_ || has_cta_ || is_shared_)
      return v_.fail("only whole points of several lanes of a warp join");
    if (!values_.contains(std::string(j.name.str())))
      return v_.fail(fmt::format("`{}` is no value", j.name.str()));
    if (!is_joined(j.reducer)) v_.fail("lanes join by sum, max or min");
    apart_.erase(std::string(j.name.str()));
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

void verify_points(const Kernel& kernel, const target::Target& target,
                   const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v) {
  PointsVerifier(target, roles, v).run(kernel);
}

}  // namespace nautilus::matile
