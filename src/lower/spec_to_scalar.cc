// SPDX-License-Identifier: Apache-2.0
#include "lower/spec_to_scalar.h"

#include <fmt/format.h>

#include <set>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/machine.h"
#include "scalar/ops.h"
#include "spec/ops.h"

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
    for (const ir::Op& op : program.body) {
      if (!declaration(op, outputs)) return std::nullopt;
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

  bool declaration(const ir::Op& op, const std::set<std::string_view>& outputs) {
    switch (spec::kind(op)) {
      case spec::Kind::Dim:
      case spec::Kind::Static:
      case spec::Kind::Param:
      case spec::Kind::Fact:
      case spec::Kind::Numerics:
      case spec::Kind::Target:
        out_.body.push_back(op);
        return true;
      case spec::Kind::Input: {
        const auto& input = op.as<spec::Input>();
        out_.body.push_back(
            ir::make(scalar::Buffer{input.name, input.type, scalar::Role::Input}, op.span()));
        return true;
      }
      case spec::Kind::Let: {
        const auto& let = op.as<spec::Let>();
        const auto role =
            outputs.contains(let.name.str()) ? scalar::Role::Output : scalar::Role::Temp;
        out_.body.push_back(ir::make(scalar::Buffer{let.name, let.type(), role}, op.span()));
        return equation(let, op.span());
      }
      case spec::Kind::Output:
        return true;
    }
    return true;
  }

  bool equation(const spec::Let& let, diag::Span span) {
    ir::Exprs indices;
    for (const ir::Axis& a : let.axes) indices.push_back(pool_.index(a.name));
    ir::Block body;
    if (let.body.op() != EK::Reduce) {
      if (expr::has_reduce(let.body)) return not_split(let, span);
      body.push_back(ir::make(scalar::Store{let.name, indices, let.body}, span));
    } else {
      if (expr::has_reduce(let.body.body()) ||
          (let.body.init() && expr::has_reduce(let.body.init()))) {
        return not_split(let, span);
      }
      reduction(let, indices, span, body);
    }
    if (let.axes.empty()) {
      for (ir::Op& op : body) nests_.push_back(std::move(op));
    } else {
      nests_.push_back(
          ir::make(scalar::For{let.axes, scalar::LoopKind::Map, std::move(body)}, span));
    }
    return true;
  }

  void reduction(const spec::Let& let, const ir::Exprs& indices, diag::Span span, ir::Block& body) {
    const Expr r = let.body;
    const Expr value = r.body();
    scalar::For loop{{}, scalar::LoopKind::Reduce, {}};
    for (size_t k = 0; k < r.axis_count(); ++k)
      loop.axes.push_back({r.axis(k).name(), r.extent(k)});
    if (is_arg(r.reducer())) {
      const ir::Name best = unique(fmt::format("{}.best", let.name.str()));
      out_.body.push_back(ir::make(
          scalar::Buffer{best, {value.dtype(), let.type().dims}, scalar::Role::Temp}, span));
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
};

}  // namespace

std::optional<ir::Program> spec_to_scalar(const ir::Program& program, ir::PassContext& context) {
  return Lowering(context).run(program);
}

}  // namespace nautilus::lower
