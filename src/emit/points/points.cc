// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "emit/launch_order.h"
#include "emit/params.h"
#include "emit/points/points_emitter.h"
#include "emit/typed_expression.h"
#include "emit/writer.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/walk.h"
#include "matile/loop_loads.h"
#include "matile/windows.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

// A subexpression of so many nodes is worth a name if it occurs twice; a read always is.
constexpr uint32_t kWorthNaming = 4;
constexpr int64_t kWarp = 32;

}  // namespace

KernelText PointsEmitter::run() {
  KernelText text;
  text.name = kernel_identifier(kernel_.name.str());
  text.threads = static_cast<int>(threads_);
  globals_ = collect_params(program_, kernel_, text);
  for (const Op& op : program_.body) {
    if (const auto* dim = op.get<ir::Dim>()) facts_.add_size(pool_.index(dim->name));
    if (const auto* fact = op.get<ir::Fact>()) facts_.assume(fact->condition);
    if (const auto* let = op.get<matile::Let>()) plan_sizes_.emplace(let->name.str());
  }
  const auto& points = kernel_.body[0].as<matile::Points>();
  lanes_ = points.lanes_per_point.value_or(1);
  is_line_ = points.points_of_line.has_value();
  points_per_thread_ = points.points_of_line.value_or(points.points_per_thread.value_or(1));
  last_ = pool_.index(points.axes.back().name);
  if (points.across) {
    across_ = pool_.index(points.across);
    points_across_ = *points.points_across;
    lines_across_ = points.lines_across.value_or(1);
  }
  held_ = points.held.value_or(0);
  unroll_ = points.unroll.value_or(1);
  windows_ = points.windows.value_or(0);
  if (points.spread) {
    spread_ = *points.spread;
    if (!is_line_) points_per_thread_ = points.points_apart.value_or(1);
    points_across_ = points.points_down.value_or(1);
    if (points.axes.size() > 1) across_ = pool_.index(points.axes[points.axes.size() - 2].name);
  }
  if (points.patch) {
    is_patch_ = true;
    across_ = pool_.index(points.patch);
    points_across_ = points.patch_high.value_or(1);
    last_ = pool_.index(points.patch_over);
    points_per_thread_ = points.patch_wide.value_or(1);
    spread_ = 1;
  }
  const std::string each =
      across_ ? fmt::format("one for {} by {} points", points_across_, points_per_thread_)
      : points_per_thread_ > 1 ? fmt::format("one for {} points", points_per_thread_)
      : lanes_ == 1            ? "one for each point"
      : lanes_ == kWarp        ? "a warp for each point"
      : lanes_ > kWarp         ? "all for one point"
                               : fmt::format("{} of a warp for each point", lanes_);
  out_.line("// {} threads, {}", threads_, each);
  if (points.resident)
    out_.open("KERNEL_MIN_CTAS({}, {}, {}) {{", text.name, threads_, *points.resident);
  else
    out_.open("KERNEL({}, {}) {{", text.name, threads_);
  out_.line("ROLE(\"points\");");
  const LaunchOrder order = launch_order(program_, kernel_);
  text.may_begin_early = order.is_behind;
  if (order.is_followed) out_.line("let_next_kernel_begin();");
  const bool has_tile = across_ || spread_ > 0;
  if (is_patch_)
    decode_patch(points.axes, order.is_behind);
  else
    has_tile ? decode_tile(points.axes, order.is_behind) : decode(points.axes, order.is_behind);
  ir::for_each_op(points.body, [&](const Op& op) {
    if (const auto* w = op.get<matile::Write>()) written_.emplace(w->target.str());
  });
  is_patch_ ? patch_body(points.body) : body(points.body);
  out_.close();
  text.shared_bytes = static_cast<int>(shared_bytes_);
  text.body = params_struct(text, globals_) + out_.take();
  return text;
}

// Which point it is does not take memory: it is found out while kernels in front still run. Who
// has none waits too, because the kernel behind waits for this one alone.
void PointsEmitter::decode(const ir::Axes& axes, bool is_behind) {
  if (lanes_ == 1) {
    out_.line("u64 points = (u64)block_index() * {} + (u64)thread_index();", threads_);
  } else if (lanes_ > kWarp) {
    out_.line("u64 points = (u64)block_index();");
    out_.line("const int lane = thread_index() % {};", kWarp);
  } else if (lanes_ == kWarp) {
    out_.line("u64 points = (u64)block_index() * {} + (u64)(thread_index() / {});",
              threads_ / kWarp, kWarp);
    out_.line("const int lane = thread_index() % {};", kWarp);
  } else {
    const int64_t points_per_warp = kWarp / lanes_;
    out_.line(
        "u64 points = (u64)block_index() * {0} + (u64)(thread_index() / {1} * {2} + "
        "thread_index() % {2});",
        threads_ / lanes_, kWarp, points_per_warp);
    out_.line("const int lane = thread_index() % {} / {};", kWarp, points_per_warp);
  }
  std::string count;
  for (size_t k = 0; k < axes.size(); ++k)
    count += fmt::format("{}(u64){}", k ? " * " : "", extent(axes, k));
  const bool is_mixed = lanes_ > 1 && lanes_ < kWarp;
  if (is_mixed) {
    out_.line("const bool has_point = points < {};", count);
    out_.line("if (!has_point) points = 0;  // lanes join as a whole warp");
  } else if (is_behind) {
    out_.line("const bool has_point = points < {};", count);
  } else {
    out_.line("if (points >= {}) return;", count);
  }
  for (size_t k = axes.size(); k-- > 0;) {
    const std::string name = define(axes[k].name);
    const std::string times = points_per_thread_ > 1 && k + 1 == axes.size()
                                  ? fmt::format("{} * ", points_per_thread_)
                                  : "";
    if (k == 0)
      out_.line("const long long {} = {}(long long)points;", name, times);
    else
      out_.line("const long long {} = {}take_axis(points, {});", name, times, extent(axes, k));
  }
  if (is_behind) out_.line("wait_for_kernels_in_front();");
  if (is_mixed) {
    out_.line("if ({} == 0) return;", count);
  } else if (is_behind) {
    out_.line("if (!has_point) return;");
  }
  if (is_line_) {
    const std::string at = locals_.at(std::string(last_.name().str()));
    const std::string all = text(axes.back().extent);
    out_.line("const int exist = (int)({0} - {1} < {2} ? {0} - {1} : {2});", all, at,
              points_per_thread_);
  }
  // The point exists, so no extent is 0.
  for (const ir::Axis& a : axes) facts_.add_axis(pool_.index(a.name), a.extent);
}

// A CTA has a tile of the last axis and the one across it. Threads beside each other are a few
// lines along the last axis, so that those of a warp also load neighbours; where points are spread,
// neighbours have neighbouring points.
void PointsEmitter::decode_tile(const ir::Axes& axes, bool is_behind) {
  const int64_t lines = spread_ > 0 ? spread_ : lines_across_;
  out_.line("u64 tiles = block_index();");
  for (size_t k = axes.size(); k-- > 0;) {
    const bool is_last = k + 1 == axes.size();
    const bool is_across = across_ && axes[k].name == across_.name();
    const int64_t own = is_last ? points_per_thread_ : is_across ? points_across_ : 1;
    const int64_t threads = is_last ? lines : is_across ? threads_ / lines : 1;
    const std::string all = text(axes[k].extent);
    const int64_t side = own * threads;
    const std::string count =
        side == 1 ? all : fmt::format("(({} + {}) / {})", all, side - 1, side);
    const std::string taken =
        k == 0 ? "(long long)tiles" : fmt::format("take_axis(tiles, {})", count);
    const std::string thread = is_last     ? fmt::format("thread_index() % {}", lines)
                               : is_across ? fmt::format("thread_index() / {}", lines)
                                           : "";
    const std::string name = define(axes[k].name);
    if (thread.empty())
      out_.line("const long long {} = {};", name, taken);
    else if (is_last && spread_ > 0 && !is_line_)
      out_.line("const long long {} = {} * {} + {};", name, side, taken, thread);
    else
      out_.line("const long long {} = {} * ({} * {} + {});", name, own, threads, taken, thread);
  }
  if (is_behind) out_.line("wait_for_kernels_in_front();");
  const auto exist = [&](const ir::Axis& axis, std::string_view name, int64_t most, int64_t apart) {
    const std::string at = locals_.at(std::string(axis.name.str()));
    const std::string all = text(axis.extent);
    out_.line("if ({} >= {}) return;", at, all);
    if (apart == 1)
      out_.line("const int {0} = (int)({1} - {2} < {3} ? {1} - {2} : {3});", name, all, at, most);
    else
      out_.line("const int {0} = (int)({1} - {2} < {3} ? ({1} - {2} + {4}) / {5} : {6});", name,
                all, at, most * apart, apart - 1, apart, most);
  };
  for (const ir::Axis& a : axes) {
    if (across_ && a.name == across_.name()) exist(a, "exist_across", points_across_, 1);
  }
  exist(axes.back(), "exist", points_per_thread_, is_line_ ? 1 : std::max<int64_t>(spread_, 1));
  for (const ir::Axis& a : axes) facts_.add_axis(pool_.index(a.name), a.extent);
}

// Of an axis, in points of a thread.
std::string PointsEmitter::extent(const ir::Axes& axes, size_t k) {
  const std::string all = text(axes[k].extent);
  if (points_per_thread_ == 1 || k + 1 < axes.size()) return all;
  return is_line_ ? fmt::format("(({} + {}) / {})", all, points_per_thread_ - 1, points_per_thread_)
                  : fmt::format("({} / {})", all, points_per_thread_);
}

// What follows is done for each of the points that a thread has.
void PointsEmitter::open_points() {
  if (!has_several()) return;
  open_across();
  out_.open("UNROLL for (int beside = 0; beside < {}; ++beside) {{", points_per_thread_);
  if (!turn_.empty()) out_.open("if ({}) {{", turn_);
  if ((is_line_ || spread_ > 0) && !are_whole_) out_.open("if (beside < exist) {{");
  saved_last_ = locals_.at(std::string(last_.name().str()));
  locals_[std::string(last_.name().str())] =
      spread_ > 0 && !is_line_ ? fmt::format("({} + {} * beside)", saved_last_, spread_)
                               : fmt::format("({} + beside)", saved_last_);
}

void PointsEmitter::close_points() {
  if (!has_several()) return;
  locals_[std::string(last_.name().str())] = saved_last_;
  if ((is_line_ || spread_ > 0) && !are_whole_) out_.close();
  if (!turn_.empty()) out_.close();
  out_.close();
  close_across();
}

// The same for each of its lines.
void PointsEmitter::open_across() {
  if (!across_) return;
  out_.open("UNROLL for (int over = 0; over < {}; ++over) {{", points_across_);
  if (!are_whole_) out_.open("if (over < exist_across) {{");
  saved_across_ = locals_.at(std::string(across_.name().str()));
  locals_[std::string(across_.name().str())] = fmt::format("({} + over)", saved_across_);
}

void PointsEmitter::close_across() {
  if (!across_) return;
  locals_[std::string(across_.name().str())] = saved_across_;
  if (!are_whole_) out_.close();
  out_.close();
}

// Declares a number of each point, and gives its text there.
std::string PointsEmitter::declare(ir::Name name, DType dtype) {
  const std::string text = define(name);
  if (across_)
    out_.line("{} {}[{}][{}];", carrier(dtype), text, points_across_, points_per_thread_);
  else
    out_.line("{} {}[{}];", carrier(dtype), text, points_per_thread_);
  return locals_[std::string(name.str())] = text + (across_ ? "[over][beside]" : "[beside]");
}

bool PointsEmitter::is_reserved(std::string_view name) {
  constexpr std::string_view kOwn[] = {"points", "lane",   "has_point", "other", "first",
                                       "more",   "left",   "exist",     "tiles", "exist_across",
                                       "over",   "beside", "turn",      "again", "again_across"};
  return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
}

std::string PointsEmitter::fresh(std::string_view stem) {
  std::string name;
  do name = fmt::format("{}_{}", stem, numbers_++);
  while (!taken_.insert(name).second);
  return name;
}

// A name of the program as one of the text; `a.b` and `a_b` stay apart.
std::string PointsEmitter::define(ir::Name name) {
  const std::string stem = identifier(name.str());
  std::string text = stem;
  for (int n = 2; is_reserved(text) || !taken_.insert(text).second; ++n)
    text = fmt::format("{}_{}", stem, n);
  locals_[std::string(name.str())] = text;
  return text;
}

std::string PointsEmitter::variable(Expr v) const {
  const auto it = locals_.find(v.name().str());
  if (it != locals_.end()) return it->second;
  const std::string name = "p." + identifier(v.name().str());
  if (v.dtype() == DType::Bool) return "(" + name + " != 0)";
  return v.dtype() != DType::I64 && expr::is_int(v.dtype()) ? "(int)" + name : name;
}

std::string PointsEmitter::offset(std::string_view tensor, std::span<const Expr> indices) {
  std::string out;
  for (size_t k = 0; k < indices.size(); ++k)
    out += (k ? " + " : "") + globals_.find(tensor)->second.step(text(indices[k]), k);
  return out.empty() ? "0" : out;
}

std::string PointsEmitter::text(Expr e) {
  ExpressionNames names;
  names.facts = &facts_;
  names.is_coarse = ir::allows_coarse_functions(program_, matile::output_dtypes(program_));
  names.variable = [this](Expr v) { return variable(v); };
  names.read = [this](Expr r) {
    const auto walked = walked_.find(r);
    return fmt::format("load_{}{}(p.{}, {})", written_.contains(r.name().str()) ? "own_" : "",
                       expr::name(r.dtype()), identifier(r.name().str()),
                       walked == walked_.end() ? offset(r.name().str(), r.args()) : walked->second);
  };
  names.instead = [this](Expr x) -> std::string {
    const auto it = named_.find(x);
    if (it != named_.end()) return it->second;
    const auto held = held_names_.find(x);
    if (held != held_names_.end()) return held->second;
    const bool holds = is_inside_ && x.op() == expr::Op::Select && inside_.contains(x[0]);
    const bool is_load = is_near_ || is_ahead_ || (is_inside_ && spread_ > 0);
    return holds ? text(inside(x)) : is_load && matile::is_load_where(x) ? load_where(x) : "";
  };
  return typed_expression(e, names);
}

// Subexpressions that occur more than once get a name. What may be evaluated only under a
// condition (a read in a branch of `where`) stays where it is: it may be outside its tensor.
void PointsEmitter::name_shared(std::initializer_list<Expr> roots) {
  std::map<Expr, int, expr::ByContent> uses;
  std::vector<Expr> order;
  std::set<const expr::Node*> always;
  for (Expr r : roots) {
    reach(r, always);
    expr::for_each(r, [&](Expr e) {
      if (!uses.contains(e)) order.push_back(e);
      uses[e] += 0;
      for (Expr a : e.args()) ++uses[a];
    });
    ++uses[r];
  }
  for (Expr e : order) {
    const bool is_worth = e.op() == expr::Op::Read || e.tree_size() >= kWorthNaming;
    if (uses[e] < 2 || !is_worth || named_.contains(e)) continue;
    if (!always.contains(e.node()) && !expr::tensors_read(e).empty()) continue;
    const std::string name = fresh("shared");
    out_.line("const {} {} = {};", carrier(e.dtype()), name, text(e));
    named_.emplace(e, name);
  }
}

// Nodes that are evaluated whenever the expression is.
void PointsEmitter::reach(Expr e, std::set<const expr::Node*>& always) {
  if (!always.insert(e.node()).second) return;
  const bool is_lazy =
      e.op() == expr::Op::Select || e.op() == expr::Op::And || e.op() == expr::Op::Or;
  for (size_t i = 0; i < e.args().size() && !(is_lazy && i > 0); ++i) reach(e[i], always);
}

void PointsEmitter::block(const ir::Block& ops) {
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  for (const Op& op : ops) statement(op);
  locals_ = locals;
  facts_ = facts;
}

void PointsEmitter::statement(const Op& op) {
  named_.clear();
  if (const auto* v = op.get<matile::Value>()) {
    dtypes_[std::string(v->name.str())] = v->dtype;
    define_number(v->name, v->dtype, v->init, "");
  } else if (const auto* l = op.get<matile::Let>()) {
    define_number(l->name, l->value.dtype(), l->value, "const ");
  } else if (const auto* a = op.get<matile::Assign>()) {
    load_lines(a->value);
    are_whole_ = is_inside_ || (is_near_ && is_guarded_always(a->value));
    open_points();
    name_shared({a->value});
    out_.line("{} = {};", locals_.find(a->name.str())->second, text(a->value));
    close_points();
    are_whole_ = is_inside_;
  } else if (const auto* w = op.get<matile::Write>(); w && has_line(w->target, w->indices)) {
    load_lines(w->value);
    store_line(*w);
  } else if (w && is_patch_) {
    write_patch(*w);
  } else if (w) {
    load_lines(w->value);
    open_points();
    name_shared({w->value});
    out_.line("{}store_{}(p.{}, {}, {});",
              lanes_ == 1       ? ""
              : lanes_ == kWarp ? "if (lane == 0) "
                                : "if (lane == 0 && has_point) ",
              expr::name(w->value.dtype()), identifier(w->target.str()),
              offset(w->target.str(), w->indices), text(w->value));
    close_points();
  } else if (const auto* i = op.get<matile::If>()) {
    name_shared({i->condition});
    out_.open("if ({}) {{", text(i->condition));
    facts_.assume(i->condition);
    block(i->body);
    out_.close();
  } else if (const auto* j = op.get<matile::Join>()) {
    join(*j);
  } else if (const auto* s = op.get<matile::SharedLoop>()) {
    share(*s);
  } else if (const auto* k = op.get<matile::LaneLoop>()) {
    walk(*k);
  } else {
    loop(op.as<matile::Loop>());
  }
}

void PointsEmitter::define_number(ir::Name name, DType dtype, Expr value,
                                  std::string_view constant) {
  if (has_several()) {
    load_lines(value);
    const std::string own = declare(name, dtype);
    const auto elements = elements_of(value);
    if (!elements.empty()) return define_each(own, value, elements);
    are_whole_ = is_inside_ || (is_near_ && is_guarded_always(value));
    open_points();
    name_shared({value});
    out_.line("{} = {};", own, text(value));
    close_points();
    are_whole_ = is_inside_;
    return;
  }
  name_shared({value});
  const std::string init = text(value);  // what has the name until now may stand in it
  out_.line("{}{} {} = {};", constant, carrier(dtype), define(name), init);
}

// Lane k of n takes the turns k, k + n, ...
void PointsEmitter::share(const matile::SharedLoop& s) {
  const std::string to = text(s.to);
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  const std::string var = define(s.var);
  facts_.add_axis(pool_.index(s.var), s.to);
  if (unroll_ > 1 && is_over_parts(s.to)) {
    over_parts(s.var, "lane", to, s.body);
  } else {
    out_.open("for (long long {0} = lane; {0} < {1}; {0} += {2}) {{", var, to, lanes_);
    block(s.body);
    out_.close();
  }
  locals_ = locals;
  facts_ = facts;
}

void PointsEmitter::join(const matile::Join& j) {
  const DType dtype = dtypes_.at(std::string(j.name.str()));
  const std::string own = locals_.find(j.name.str())->second;
  const ir::Name name = pool_.name("other");
  const auto locals = locals_;
  locals_["other"] = "other";
  const Expr both =
      pool_.binary(expr::combiner(j.reducer), pool_.var(j.name, dtype), pool_.var(name, dtype));
  out_.open("UNROLL for (int mask = {}; mask > {}; mask /= 2) {{", kWarp / 2,
            lanes_ == kWarp ? 0 : kWarp / lanes_ / 2);
  out_.line("const {} other = lane_xor({}, mask);", carrier(dtype), own);
  out_.line("{} = {};", own, text(both));
  out_.close();
  locals_ = locals;
}

void PointsEmitter::loop(const matile::Loop& l) {
  if (is_patch_ && is_inside_ && patch_loop(l)) return;
  if (spread_ > 0 && is_inside_ && are_written_out_ && is_window(l)) return window(l);
  if (held_loop(l)) return;
  const std::string from = text(l.from);
  const std::string to = text(l.to);
  const auto locals = locals_;
  const expr::Facts facts = facts_;
  const std::string var = define(l.var);
  const bool is_up = l.direction == matile::Direction::Up;
  if (is_up && l.from.is_int(0)) facts_.add_axis(pool_.index(l.var), l.to);
  if (unroll_ > 1 && is_up && is_over_parts(l.to) && lanes_ == 1) {
    over_parts(l.var, from, to, l.body);
  } else if (unroll_ > 1 && lanes_ == 1 && !has_several() &&
             !matile::loads_ahead(l, pool_).empty()) {
    loop_behind_loads(l, to, var);
  } else if (unroll_ > 1 && lanes_ == 1 && !has_several() && matile::loads_of_turn(l, pool_) > 0) {
    // The loads of so many turns are under way together; what is left is as the compiler has it.
    const std::string first = fresh("first");
    out_.line("long long {} = 0;", first);
    out_.open("for (; {0} + {1} <= {2}; {0} += {1}) {{", first, unroll_, to);
    out_.open("UNROLL for (int more = 0; more < {}; ++more) {{", unroll_);
    out_.line("const long long {} = {} + more;", var, first);
    is_ahead_ = true;
    block(l.body);
    is_ahead_ = false;
    out_.close();
    out_.close();
    const std::string rest = define(l.var);
    out_.open("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", rest, first, to);
    block(l.body);
    out_.close();
  } else {
    const bool is_unrolled =
        (is_inside_ || is_near_) && are_written_out_ && matile::all_turns(l) > 0;
    out_.open("{5}for (long long {0} = {1}; {0} {2} {3}; {4}{0}) {{", var, from,
              is_up ? "<" : ">=", to, is_up ? "++" : "--", is_unrolled ? "UNROLL " : "");
    block(l.body);
    out_.close();
  }
  locals_ = locals;
  facts_ = facts;
}

// Turns that write: what so many of them load is loaded before the first.
void PointsEmitter::loop_behind_loads(const matile::Loop& l, const std::string& to,
                                      const std::string& var) {
  const std::string first = fresh("first");
  out_.line("long long {} = 0;", first);
  out_.open("for (; {0} + {1} <= {2}; {0} += {1}) {{", first, unroll_, to);
  std::map<Expr, std::string, expr::ByContent> ahead;
  for (Expr e : matile::loads_ahead(l, pool_)) {
    const std::string name = fresh("ahead");
    out_.line("{} {}[{}];", carrier(e.dtype()), name, unroll_);
    ahead.emplace(e, name);
  }
  const auto open_turn = [&] {
    out_.open("UNROLL for (int more = 0; more < {}; ++more) {{", unroll_);
    out_.line("const long long {} = {} + more;", var, first);
  };
  open_turn();
  is_ahead_ = true;
  for (const auto& [e, name] : ahead) out_.line("{}[more] = {};", name, text(e));
  is_ahead_ = false;
  out_.close();
  open_turn();
  for (const auto& [e, name] : ahead) held_names_.emplace(e, name + "[more]");
  block(l.body);
  held_names_.clear();
  out_.close();
  out_.close();
  const std::string rest = define(l.var);
  out_.open("for (long long {0} = {1}; {0} < {2}; ++{0}) {{", rest, first, to);
  block(l.body);
  out_.close();
}

KernelText emit_points(const ir::Program& program, const matile::Kernel& kernel,
                       expr::ExprPool& pool) {
  return PointsEmitter(program, kernel, pool).run();
}

}  // namespace nautilus::emit
