// SPDX-License-Identifier: Apache-2.0
#include "lower/spec_to_scalar.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

#include "decision/lines.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "scalar/ops.h"
#include "spec/ops.h"
#include "spec/scans.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using EK = expr::Op;

class Lowering {
 public:
  explicit Lowering(ir::PassContext& context) : pool_(context.pool), sink_(context.sink) {}

  std::optional<ir::Program> run(const ir::Program& program) {
    out_.level = &scalar::level();
    out_.name = program.name;
    std::set<std::string_view> outputs;
    for (ir::Name n : spec::outputs(program)) outputs.insert(n.str());
    for (const auto& [name, type] : spec::tensor_types(program)) names_.insert(name);
    for (const ir::Op& op : program.body) declaration(op, outputs);
    for (const spec::EquationGroup& g : spec::computing_order(program)) {
      if (!(g.is_scan() ? scan(g) : equation(*g.equations[0]))) return std::nullopt;
    }
    if (auto machine = ir::own_machine(names_of(program), pool_))
      out_.body.push_back(*std::move(machine));
    for (ir::Op& nest : nests_) out_.body.push_back(std::move(nest));
    return std::move(out_);
  }

 private:
  // Names of the text: sizes, scalars, tensors, axes.
  static std::set<std::string_view> names_of(const ir::Program& program) {
    std::set<std::string_view> names;
    for (const ir::Op& op : program.body) {
      for (const ir::Field& f : op.info().fields) {
        if (f.kind == ir::FieldKind::Name)
          names.insert(ir::field_value<ir::Name>(op.data(), f).str());
      }
      const auto* let = op.get<spec::Let>();
      if (!let) continue;
      for (const ir::Axis& a : let->axes) names.insert(a.name.str());
      expr::for_each(let->body, [&](Expr e) {
        for (size_t k = 0; e.op() == EK::Reduce && k < e.axis_count(); ++k)
          names.insert(e.axis(k).name().str());
      });
    }
    return names;
  }

  void declaration(const ir::Op& op, const std::set<std::string_view>& outputs) {
    switch (spec::kind(op)) {
      case spec::Kind::Dim:
      case spec::Kind::Static:
      case spec::Kind::Param:
      case spec::Kind::Fact:
      case spec::Kind::Numerics:
      case spec::Kind::Target:
        out_.body.push_back(op);
        return;
      case spec::Kind::Input: {
        const auto& input = op.as<spec::Input>();
        out_.body.push_back(
            ir::make(scalar::Buffer{input.name, input.type, scalar::Role::Input}, op.span()));
        return;
      }
      case spec::Kind::Let: {
        const auto& let = op.as<spec::Let>();
        const auto role =
            outputs.contains(let.name.str()) ? scalar::Role::Output : scalar::Role::Temp;
        out_.body.push_back(ir::make(scalar::Buffer{let.name, let.type(), role}, op.span()));
        if (let.body.op() == EK::Reduce && is_arg(let.body.reducer())) declare_best(let, op.span());
        return;
      }
      case spec::Kind::Decisions:
      case spec::Kind::State:
      case spec::Kind::Output:
        return;
    }
  }

  // The extremes whose positions are looked for.
  void declare_best(const spec::Let& let, diag::Span span) {
    const ir::Name best = unique(fmt::format("{}.best", let.name.str()));
    best_.emplace(let.name, best);
    const expr::DType dtype = let.body.body().dtype();
    out_.body.push_back(
        ir::make(scalar::Buffer{best, {dtype, let.type().dims}, scalar::Role::Temp}, span));
  }

  bool equation(const ir::Op& op) {
    const auto& let = op.as<spec::Let>();
    ir::Block body;
    if (!elements(let, op.span(), body)) return false;
    add_nest(let.axes, std::move(body), op.span(), nests_);
    return true;
  }

  // The steps of a scan, one after the other: in each the nests of its equations.
  bool scan(const spec::EquationGroup& g) {
    const auto& first = g.equations[0]->as<spec::Let>();
    const ir::Axis& steps = first.axes[g.along[0]];
    const bool is_up = g.direction == spec::Direction::Up;
    const Expr last = pool_.binary(EK::Add, steps.extent, pool_.integer(-1));
    scalar::Loop loop{step_name(g),
                      is_up ? pool_.integer(0) : last,
                      is_up ? scalar::Direction::Up : scalar::Direction::Down,
                      is_up ? steps.extent : pool_.integer(0),
                      {}};
    for (size_t m = 0; m < g.equations.size(); ++m) {
      spec::Let let = g.equations[m]->as<spec::Let>();
      ir::Name& own = let.axes[g.along[m]].name;
      let.body = expr::substitute(pool_, let.body, {{pool_.index(own), pool_.index(loop.var)}});
      own = loop.var;
      ir::Block body;
      if (!elements(let, g.equations[m]->span(), body)) return false;
      ir::Axes axes = let.axes;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(g.along[m]));
      add_nest(axes, std::move(body), g.equations[m]->span(), loop.body);
    }
    nests_.push_back(ir::make(std::move(loop), g.equations[0]->span()));
    return true;
  }

  // A name for the steps that no other axis of the equations has.
  ir::Name step_name(const spec::EquationGroup& g) {
    std::set<std::string_view> taken;
    for (size_t m = 0; m < g.equations.size(); ++m) {
      const auto& let = g.equations[m]->as<spec::Let>();
      for (size_t k = 0; k < let.axes.size(); ++k) {
        if (k != g.along[m]) taken.insert(let.axes[k].name.str());
      }
      expr::for_each(let.body, [&](Expr e) {
        for (size_t k = 0; e.op() == EK::Reduce && k < e.axis_count(); ++k)
          taken.insert(e.axis(k).name().str());
      });
    }
    const std::string stem(g.equations[0]->as<spec::Let>().axes[g.along[0]].name.str());
    std::string name = stem;
    for (int n = 2; taken.contains(name) || (n > 2 && names_.contains(name)); ++n)
      name = fmt::format("{}_{}", stem, n);
    return pool_.name(name);
  }

  static void add_nest(const ir::Axes& axes, ir::Block body, diag::Span span, ir::Block& out) {
    if (axes.empty()) {
      for (ir::Op& op : body) out.push_back(std::move(op));
    } else {
      out.push_back(ir::make(scalar::For{axes, scalar::LoopKind::Map, std::move(body)}, span));
    }
  }

  // What computes one element.
  bool elements(const spec::Let& let, diag::Span span, ir::Block& body) {
    ir::Exprs indices;
    for (const ir::Axis& a : let.axes) indices.push_back(pool_.index(a.name));
    if (let.body.op() != EK::Reduce) {
      if (expr::has_reduce(let.body)) return not_split(let, span);
      body.push_back(ir::make(scalar::Store{let.name, indices, let.body}, span));
      return true;
    }
    if (expr::has_reduce(let.body.body()) ||
        (let.body.init() && expr::has_reduce(let.body.init()))) {
      return not_split(let, span);
    }
    reduction(let, indices, span, body);
    return true;
  }

  void reduction(const spec::Let& let, const ir::Exprs& indices, diag::Span span, ir::Block& body) {
    const Expr r = let.body;
    const Expr value = r.body();
    scalar::For loop{{}, scalar::LoopKind::Reduce, {}};
    for (size_t k = 0; k < r.axis_count(); ++k)
      loop.axes.push_back({r.axis(k).name(), r.extent(k)});
    if (is_arg(r.reducer())) {
      const ir::Name best = best_.at(let.name);
      body.push_back(ir::make(scalar::Init{let.name, indices, pool_.integer(-1)}, span));
      body.push_back(
          ir::make(scalar::Init{best, indices, identity(r.reducer(), value.dtype())}, span));
      loop.body.push_back(ir::make(
          scalar::UpdateArg{let.name, indices, best, r.reducer(), value, r.axis(0)}, span));
    } else {
      const Expr start =
          r.init() ? first_operand(r, value.dtype()) : identity(r.reducer(), value.dtype());
      body.push_back(ir::make(scalar::Init{let.name, indices, start}, span));
      loop.body.push_back(ir::make(scalar::Update{let.name, indices, r.reducer(), value}, span));
    }
    body.push_back(ir::make(std::move(loop), span));
  }

  Expr identity(expr::Reducer reducer, expr::DType dtype) {
    const expr::Value v = expr::identity(reducer, dtype);
    if (is_float(dtype)) return pool_.floating(v.f, dtype);
    return dtype == expr::DType::Bool ? pool_.boolean(v.i != 0) : pool_.integer(v.i, dtype);
  }

  // An initial element is an operand like the others: an extreme ignores it where it is NaN.
  Expr first_operand(Expr reduce, expr::DType dtype) {
    const Expr init = reduce.init();
    const bool is_extreme =
        reduce.reducer() == expr::Reducer::Max || reduce.reducer() == expr::Reducer::Min;
    if (!is_extreme || !is_float(dtype) || init.op() == expr::Op::FloatConst) return init;
    return pool_.binary(expr::combiner(reduce.reducer()), init, identity(reduce.reducer(), dtype));
  }

  bool not_split(const spec::Let& let, diag::Span span) {
    sink_
        .report(diag::Code::BadPass, span,
                fmt::format("`{}` has a reduction inside an expression", let.name.str()))
        .with_help("run `split_reductions` first");
    return false;
  }

  ir::Name unique(std::string name) {
    const std::string stem = name;
    for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}_{}", stem, n);
    return pool_.name(name);
  }

  expr::ExprPool& pool_;
  diag::Sink& sink_;
  ir::Program out_;
  ir::Block nests_;
  std::set<std::string> names_;
  std::unordered_map<ir::Name, ir::Name> best_;  // of an argmax
};

}  // namespace

std::optional<ir::Program> spec_to_scalar(const ir::Program& program, ir::PassContext& context) {
  bool are_read = true;
  for (const ir::Op& line : decision::lines(program.body)) {
    const std::string_view none =
        line.is<decision::Chunk>()   ? "no scan of this name is computed in chunks"
        : line.is<decision::Piece>() ? "nothing of this name is taken in pieces"
                                     : "no operand of products has this name or depth";
    decision::refuse(line, fmt::format("{}, with the other lines as they are", none), context);
    are_read = false;
  }
  if (!are_read) return std::nullopt;
  return Lowering(context).run(program);
}

}  // namespace nautilus::lower
