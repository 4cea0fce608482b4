// SPDX-License-Identifier: Apache-2.0
#include "emit/points.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "emit/launch_order.h"
#include "emit/params.h"
#include "emit/typed_expression.h"
#include "emit/writer.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/decl.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

// A subexpression of so many nodes is worth a name if it occurs twice; a read always is.
constexpr uint32_t kWorthNaming = 4;
constexpr int64_t kWarp = 32;
constexpr int64_t kPartsAhead = 8;

class PointsEmitter {
 public:
  PointsEmitter(const ir::Program& program, const matile::Kernel& kernel, expr::ExprPool& pool)
      : program_(program), kernel_(kernel), pool_(pool) {}

  KernelText run() {
    KernelText text;
    text.name = kernel_identifier(kernel_.name.str());
    text.threads = kPointThreads;
    globals_ = collect_params(program_, kernel_, text);
    for (const Op& op : program_.body) {
      if (const auto* dim = op.get<ir::Dim>()) facts_.add_size(pool_.index(dim->name));
      if (const auto* fact = op.get<ir::Fact>()) facts_.assume(fact->condition);
      if (const auto* let = op.get<matile::Let>()) plan_sizes_.emplace(let->name.str());
    }
    const auto& points = kernel_.body[0].as<matile::Points>();
    lanes_ = points.by.value_or(1);
    const std::string each = lanes_ == 1       ? "one"
                             : lanes_ == kWarp ? "a warp"
                                               : fmt::format("{} of a warp", lanes_);
    out_.line("// {} threads, {} for each point", kPointThreads, each);
    out_.open("KERNEL({}, {}) {{", text.name, kPointThreads);
    out_.line("ROLE(\"points\");");
    const LaunchOrder order = launch_order(program_, kernel_);
    text.may_begin_early = order.is_behind;
    if (order.is_followed) out_.line("let_next_kernel_begin();");
    decode(points.axes, order.is_behind);
    block(points.body);
    out_.close();
    text.body = params_struct(text, globals_) + out_.take();
    return text;
  }

 private:
  // Which point it is does not take memory: it is found out while kernels in front still run. Who
  // has none waits too, because the kernel behind waits for this one alone.
  void decode(const ir::Axes& axes, bool is_behind) {
    if (lanes_ == 1) {
      out_.line("u64 points = (u64)block_index() * {} + (u64)thread_index();", kPointThreads);
    } else if (lanes_ == kWarp) {
      out_.line("u64 points = (u64)block_index() * {} + (u64)(thread_index() / {});",
                kPointThreads / kWarp, kWarp);
      out_.line("const int lane = thread_index() % {};", kWarp);
    } else {
      const int64_t beside = kWarp / lanes_;
      out_.line(
          "u64 points = (u64)block_index() * {0} + (u64)(thread_index() / {1} * {2} + "
          "thread_index() % {2});",
          kPointThreads / lanes_, kWarp, beside);
      out_.line("const int lane = thread_index() % {} / {};", kWarp, beside);
    }
    std::string count;
    for (const ir::Axis& a : axes)
      count += fmt::format("{}(u64){}", count.empty() ? "" : " * ", text(a.extent));
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
      if (k == 0)
        out_.line("const long long {} = (long long)points;", name);
      else
        out_.line("const long long {} = take_axis(points, {});", name, text(axes[k].extent));
    }
    if (is_behind) out_.line("wait_for_kernels_in_front();");
    if (is_mixed) {
      out_.line("if ({} == 0) return;", count);
    } else if (is_behind) {
      out_.line("if (!has_point) return;");
    }
    // The point exists, so no extent is 0.
    for (const ir::Axis& a : axes) facts_.add_axis(pool_.index(a.name), a.extent);
  }

  static bool is_reserved(std::string_view name) {
    constexpr std::string_view kOwn[] = {"points", "lane", "has_point", "other",
                                         "first",  "more", "left"};
    return std::find(std::begin(kOwn), std::end(kOwn), name) != std::end(kOwn);
  }

  std::string fresh(std::string_view stem) {
    std::string name;
    do name = fmt::format("{}_{}", stem, numbers_++);
    while (!taken_.insert(name).second);
    return name;
  }

  // A name of the program as one of the text; `a.b` and `a_b` stay apart.
  std::string define(ir::Name name) {
    const std::string stem = identifier(name.str());
    std::string text = stem;
    for (int n = 2; is_reserved(text) || !taken_.insert(text).second; ++n)
      text = fmt::format("{}_{}", stem, n);
    locals_[std::string(name.str())] = text;
    return text;
  }

  std::string variable(Expr v) const {
    const auto it = locals_.find(v.name().str());
    if (it != locals_.end()) return it->second;
    const std::string name = "p." + identifier(v.name().str());
    if (v.dtype() == DType::Bool) return "(" + name + " != 0)";
    return v.dtype() != DType::I64 && expr::is_int(v.dtype()) ? "(int)" + name : name;
  }

  std::string offset(std::string_view tensor, std::span<const Expr> indices) {
    std::string out;
    for (size_t k = 0; k < indices.size(); ++k)
      out += (k ? " + " : "") + globals_.find(tensor)->second.step(text(indices[k]), k);
    return out.empty() ? "0" : out;
  }

  std::string text(Expr e) {
    ExpressionNames names;
    names.facts = &facts_;
    names.variable = [this](Expr v) { return variable(v); };
    names.read = [this](Expr r) {
      const auto walked = walked_.find(r);
      return fmt::format(
          "load_{}(p.{}, {})", expr::name(r.dtype()), identifier(r.name().str()),
          walked == walked_.end() ? offset(r.name().str(), r.args()) : walked->second);
    };
    names.instead = [this](Expr x) -> std::string {
      const auto it = named_.find(x);
      return it == named_.end() ? "" : it->second;
    };
    return typed_expression(e, names);
  }

  // Subexpressions that occur more than once get a name. What may be evaluated only under a
  // condition (a read in a branch of `where`) stays where it is: it may be outside of its tensor.
  void name_shared(std::initializer_list<Expr> roots) {
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
  static void reach(Expr e, std::set<const expr::Node*>& always) {
    if (!always.insert(e.node()).second) return;
    const bool is_lazy =
        e.op() == expr::Op::Select || e.op() == expr::Op::And || e.op() == expr::Op::Or;
    for (size_t i = 0; i < e.args().size() && !(is_lazy && i > 0); ++i) reach(e[i], always);
  }

  void block(const ir::Block& ops) {
    const auto locals = locals_;
    const expr::Facts facts = facts_;
    for (const Op& op : ops) statement(op);
    locals_ = locals;
    facts_ = facts;
  }

  void statement(const Op& op) {
    named_.clear();
    if (const auto* v = op.get<matile::Value>()) {
      name_shared({v->init});
      const std::string init = text(v->init);
      dtypes_[std::string(v->name.str())] = v->dtype;
      out_.line("{} {} = {};", carrier(v->dtype), define(v->name), init);
    } else if (const auto* l = op.get<matile::Let>()) {
      name_shared({l->value});
      const std::string value = text(l->value);
      out_.line("const {} {} = {};", carrier(l->value.dtype()), define(l->name), value);
    } else if (const auto* a = op.get<matile::Assign>()) {
      name_shared({a->value});
      out_.line("{} = {};", locals_.find(a->name.str())->second, text(a->value));
    } else if (const auto* w = op.get<matile::Write>()) {
      name_shared({w->value});
      out_.line("{}store_{}(p.{}, {}, {});",
                lanes_ == 1       ? ""
                : lanes_ == kWarp ? "if (lane == 0) "
                                  : "if (lane == 0 && has_point) ",
                expr::name(w->value.dtype()), identifier(w->target.str()),
                offset(w->target.str(), w->indices), text(w->value));
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
    } else {
      loop(op.as<matile::Loop>());
    }
  }

  // Lane k of n takes the turns k, k + n, ...
  void share(const matile::SharedLoop& s) {
    const std::string to = text(s.to);
    const auto locals = locals_;
    const expr::Facts facts = facts_;
    const std::string var = define(s.var);
    facts_.add_axis(pool_.index(s.var), s.to);
    if (is_over_parts(s.to)) {
      over_parts(s.var, "lane", to, s.body);
    } else {
      out_.open("for (long long {0} = lane; {0} < {1}; {0} += {2}) {{", var, to, lanes_);
      block(s.body);
      out_.close();
    }
    locals_ = locals;
    facts_ = facts;
  }

  void join(const matile::Join& j) {
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

  bool is_over_parts(Expr to) const {
    return to.op() == expr::Op::Var && plan_sizes_.contains(to.name().str());
  }

  // The parts of an axis are few, and all of them are wanted at once: the loads of 8 turns are
  // under way together, the last turns too, which a loop unrolled by the compiler would take one by
  // one.
  void over_parts(ir::Name name, std::string_view from, const std::string& to,
                  const ir::Block& body) {
    const int64_t ahead = kPartsAhead * lanes_;
    const std::string var = locals_.find(name.str())->second;
    out_.open("for (long long first = {0}; first < {1}; first += {2}) {{", from, to, ahead);
    walk_reads(name, body);
    out_.line("const int left = (int)({0} - first < {1} ? {0} - first : {1});", to, ahead);
    out_.open("UNROLL for (int more = 0; more < {}; more += {}) {{", ahead, lanes_);
    out_.open("if (more < left) {{");
    out_.line("const long long {} = first + more;", var);
    block(body);
    out_.close();
    out_.close();
    out_.close();
    walked_.clear();
  }

  // Places of elements that a loop over parts walks over in equal steps: the place in its first
  // turn and the step are computed once, in place of products of 64 bits in every turn.
  void walk_reads(ir::Name var, const ir::Block& body) {
    std::vector<Expr> reads;
    std::set<std::string, std::less<>> defined;
    for (const Op& op : body) {
      Expr value;
      if (const auto* a = op.get<matile::Assign>()) value = a->value;
      if (const auto* l = op.get<matile::Let>()) {
        value = l->value;
        defined.emplace(l->name.str());
      }
      if (!value) continue;
      expr::for_each(value, [&](Expr e) {
        if (e.op() == expr::Op::Read && std::find(reads.begin(), reads.end(), e) == reads.end())
          reads.push_back(e);
      });
    }
    for (Expr r : reads) {
      const std::string step = step_of(r, pool_.index(var), defined);
      if (step.empty()) continue;
      const std::string at = fresh("at");
      const auto old = std::exchange(locals_[std::string(var.str())], "first");
      out_.line("const u64 {} = {};", at, offset(r.name().str(), r.args()));
      locals_[std::string(var.str())] = old;
      const std::string by = fresh("step");
      out_.line("const u64 {} = {};", by, step);
      walked_.emplace(r, fmt::format("{} + (u64)more * {}", at, by));
    }
  }

  // Text of what a turn of the loop adds to the place of an element, if the variable is an index
  // of its own and the others are known in front of the loop; empty otherwise.
  std::string step_of(Expr read, Expr var,
                      const std::set<std::string, std::less<>>& defined) const {
    std::string step;
    for (size_t k = 0; k < read.args().size(); ++k) {
      const Expr index = read.args()[k];
      if (!expr::depends_on(index, var)) {
        if (!is_settled(index, defined)) return "";
        continue;
      }
      if (index != var || !step.empty()) return "";
      step = globals_.find(read.name().str())->second.step("1", k);
    }
    return step;
  }

  // Whether an index is made of what a loop's body neither defines nor changes.
  bool is_settled(Expr index, const std::set<std::string, std::less<>>& defined) const {
    bool is_known = expr::tensors_read(index).empty();
    expr::for_each(index, [&](Expr e) {
      if (e.op() != expr::Op::Var) return;
      is_known &= !defined.contains(e.name().str()) && !dtypes_.contains(e.name().str());
    });
    return is_known;
  }

  void loop(const matile::Loop& l) {
    const std::string from = text(l.from);
    const std::string to = text(l.to);
    const auto locals = locals_;
    const expr::Facts facts = facts_;
    const std::string var = define(l.var);
    const bool is_up = l.direction == matile::Direction::Up;
    if (is_up && l.from.is_int(0)) facts_.add_axis(pool_.index(l.var), l.to);
    if (is_up && is_over_parts(l.to) && lanes_ == 1) {
      over_parts(l.var, from, to, l.body);
    } else {
      out_.open("for (long long {0} = {1}; {0} {2} {3}; {4}{0}) {{", var, from,
                is_up ? "<" : ">=", to, is_up ? "++" : "--");
      block(l.body);
      out_.close();
    }
    locals_ = locals;
    facts_ = facts;
  }

  const ir::Program& program_;
  const matile::Kernel& kernel_;
  expr::ExprPool& pool_;
  Writer out_;
  GlobalTensors globals_;
  std::set<std::string, std::less<>> plan_sizes_;
  expr::Facts facts_;
  std::map<std::string, std::string, std::less<>> locals_;
  std::map<std::string, DType, std::less<>> dtypes_;  // of values
  int64_t lanes_ = 1;                                 // of each point
  std::set<std::string> taken_;
  std::map<Expr, std::string, expr::ByContent> named_;   // of the statement being printed
  std::map<Expr, std::string, expr::ByContent> walked_;  // places of elements in a loop over parts
  int numbers_ = 0;                                      // of fresh names
};

}  // namespace

KernelText emit_points(const ir::Program& program, const matile::Kernel& kernel,
                       expr::ExprPool& pool) {
  return PointsEmitter(program, kernel, pool).run();
}

}  // namespace nautilus::emit
