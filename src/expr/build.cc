// SPDX-License-Identifier: Apache-2.0
#include "expr/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/nearest.h"

namespace nautilus::expr {

using diag::Code;
using Kind = Syntax::Kind;

void Scope::add_var(std::string_view name, DType dtype) { vars_.emplace_back(name, dtype); }

void Scope::add_tensor(std::string_view name, DType dtype, size_t rank) {
  tensors_.insert_or_assign(std::string(name), Tensor{dtype, rank});
}

std::optional<DType> Scope::var(std::string_view name) const {
  for (auto it = vars_.rbegin(); it != vars_.rend(); ++it) {
    if (it->first == name) return it->second;
  }
  return std::nullopt;
}

std::optional<Scope::Tensor> Scope::tensor(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return std::nullopt;
  return it->second;
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> out;
  for (const auto& [name, dtype] : vars_) out.push_back(name);
  for (const auto& [name, tensor] : tensors_) out.push_back(name);
  return out;
}

std::optional<Op> function_op(std::string_view name) {
  static const auto table = [] {
    std::map<std::string_view, Op> ops;
    for (size_t i = 0; i <= static_cast<size_t>(Op::IntConst); ++i) {
      const auto op = static_cast<Op>(i);
      if (info(op).form == Form::Function) ops.emplace(info(op).text, op);
    }
    return ops;
  }();
  const auto it = table.find(name);
  if (it == table.end()) return std::nullopt;
  return it->second;
}

std::vector<std::string_view> function_names() {
  std::vector<std::string_view> names;
  for (size_t i = 0; i <= static_cast<size_t>(Op::IntConst); ++i) {
    const auto op = static_cast<Op>(i);
    if (info(op).form == Form::Function) names.push_back(info(op).text);
  }
  return names;
}

std::optional<Op> infix_op(std::string_view text, DType operand) {
  if (text == "/") return is_float(operand) ? Op::Div : Op::FloorDiv;
  for (size_t i = 0; i <= static_cast<size_t>(Op::IntConst); ++i) {
    const auto op = static_cast<Op>(i);
    if (info(op).form == Form::Infix && info(op).text == text) return op;
  }
  return std::nullopt;
}

std::optional<Reducer> parse_reducer(std::string_view word) {
  const auto& names = reducer_names();
  const auto it = std::find(names.begin(), names.end(), word);
  if (it == names.end()) return std::nullopt;
  return static_cast<Reducer>(it - names.begin());
}

namespace {

class Builder {
 public:
  Builder(Scope& scope, ExprPool& pool, diag::Sink& sink)
      : scope_(scope), pool_(pool), sink_(sink) {}

  Expr build(const Syntax& s) {
    switch (s.kind) {
      case Kind::Integer:
        return pool_.integer(s.integer);
      case Kind::Float:
        return pool_.floating(s.number);
      case Kind::Inf:
        return pool_.floating(std::numeric_limits<double>::infinity());
      case Kind::Bool:
        return pool_.boolean(s.integer != 0);
      case Kind::Name:
        return name(s);
      case Kind::Index:
        return read(s);
      case Kind::Call:
        return call(s);
      case Kind::Prefix:
        return prefix(s);
      case Kind::Infix:
        return infix(s);
      case Kind::Reduce:
        return reduce(s);
      case Kind::Let:
      case Kind::Repeat:
      case Kind::Table:
        sink_.report(
            Code::BadOp, s.span,
            fmt::format("{} to the math language only",
                        s.kind == Kind::Table ? "tables in expressions belong" : "`let` belongs"));
        return {};
    }
    return {};
  }

 private:
  Expr undefined(const Syntax& s) {
    auto& d =
        sink_.report(Code::UndefinedName, s.name_span, fmt::format("`{}` is not defined", s.text));
    const auto near = base::nearest_name(s.text, scope_.names());
    if (!near.empty()) d.with_help(fmt::format("did you mean `{}`?", near));
    return {};
  }

  Expr name(const Syntax& s) {
    const auto dtype = scope_.var(s.text);
    return dtype ? pool_.var(pool_.name(s.text), *dtype) : undefined(s);
  }

  bool operands(const Syntax& s, std::vector<Expr>& out) {
    for (const Syntax* a : s.args) {
      const Expr e = build(*a);
      if (!e) return false;
      out.push_back(e);
    }
    return true;
  }

  Expr read(const Syntax& s) {
    const auto tensor = scope_.tensor(s.text);
    if (!tensor) return undefined(s);
    std::vector<Expr> indices;
    if (!operands(s, indices)) return {};
    if (indices.size() != tensor->rank) {
      sink_.report(Code::WrongRank, s.span,
                   fmt::format("`{}` has {}, {} given", s.text,
                               diag::counted(tensor->rank, "dimension", "dimensions"),
                               diag::counted(indices.size(), "index is", "indices are")));
      return {};
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!is_int(indices[i].dtype())) {
        sink_.report(Code::NonIntegerIndex, s.args[i]->span,
                     fmt::format("an index of dtype {}", expr::name(indices[i].dtype())));
        return {};
      }
    }
    return pool_.read(pool_.name(s.text), tensor->dtype, indices);
  }

  Expr call(const Syntax& s) {
    std::vector<Expr> args;
    if (!s.axes.empty()) {
      sink_.report(Code::BadOp, s.span, "functions over axes belong to the math language only");
      return {};
    }
    if (!operands(s, args)) return {};
    if (const auto dtype = parse_dtype(s.text)) {
      if (args.size() != 1) return arity(s, 1);
      return pool_.cast(*dtype, args[0]);
    }
    const auto op = function_op(s.text);
    if (!op) return undefined(s);
    const auto wanted = static_cast<size_t>(info(*op).arity);
    if (args.size() != wanted) return arity(s, wanted);
    if (*op == Op::Select) {
      if (args[0].dtype() != DType::Bool) return wrong(s, args[0].dtype());
      return args[1].dtype() == args[2].dtype() ? pool_.select(args[0], args[1], args[2])
                                                : mismatch(s, args[1].dtype(), args[2].dtype());
    }
    return wanted == 1 ? unary(s, *op, args[0]) : binary(s, *op, args[0], args[1]);
  }

  Expr prefix(const Syntax& s) {
    const Expr x = build(*s.args[0]);
    return x ? unary(s, s.text == "-" ? Op::Neg : Op::Not, x) : Expr();
  }

  Expr infix(const Syntax& s) {
    const Expr x = build(*s.args[0]);
    const Expr y = build(*s.args[1]);
    if (!x || !y) return {};
    return binary(s, *infix_op(s.text, x.dtype()), x, y);
  }

  Expr unary(const Syntax& s, Op op, Expr x) {
    const bool is_bool = x.dtype() == DType::Bool;
    const bool fits = op == Op::Not                    ? is_bool
                      : op == Op::Neg || op == Op::Abs ? !is_bool
                                                       : is_float(x.dtype());
    return fits ? pool_.unary(op, x) : wrong(s, x.dtype());
  }

  Expr binary(const Syntax& s, Op op, Expr x, Expr y) {
    if (x.dtype() != y.dtype()) return mismatch(s, x.dtype(), y.dtype());
    const DType d = x.dtype();
    const bool is_bool = d == DType::Bool;
    const bool is_logic = op == Op::And || op == Op::Or;
    const bool is_equality = op == Op::Eq || op == Op::Ne;
    bool fits = is_equality || is_bool == is_logic;
    if (op == Op::Pow) fits = is_float(d);
    if (op == Op::Mod || is_bitwise(op)) fits = is_int(d);
    return fits ? pool_.binary(op, x, y) : wrong(s, d);
  }

  Expr reduce(const Syntax& s) {
    const auto reducer = parse_reducer(s.text);
    if (!reducer || s.acc) {
      sink_.report(Code::BadOp, s.name_span, "`mean` and `acc` belong to the math language only");
      return {};
    }
    std::vector<Expr> axes;
    std::vector<Expr> extents;
    Expr init;
    if (s.init && !(init = build(*s.init))) return {};
    for (const SyntaxAxis& a : s.axes) {
      if (!a.extent) {
        sink_.report(Code::NotInferable, a.span,
                     fmt::format("the axis `{}` needs an extent here", a.name));
        return {};
      }
      if (a.relation != "<") {
        sink_
            .report(Code::BadOp, a.span,
                    fmt::format("a bound `{}` belongs to the math language only", a.relation))
            .with_help(fmt::format("here it is a condition, `where({} {} ..., ..., 0.0)`", a.name,
                                   a.relation));
        return {};
      }
      const Expr extent = build(*a.extent);
      if (!extent) return {};
      if (extent.dtype() != DType::I64) return wrong(s, extent.dtype());
      axes.push_back(pool_.index(a.name));
      extents.push_back(extent);
    }
    const size_t mark = scope_.mark();
    for (const SyntaxAxis& a : s.axes) {
      if (scope_.var(a.name)) {
        sink_.report(Code::AxisConflict, a.span, fmt::format("`{}` is bound already", a.name));
        scope_.release(mark);
        return {};
      }
      scope_.add_var(a.name, DType::I64);
    }
    const Expr body = build(*s.args[0]);
    scope_.release(mark);
    if (!body) return {};
    if (s.args.size() > 1) {
      sink_.report(Code::BadOp, s.args[1]->span, "ranks belong to the math language only");
      return {};
    }
    const bool is_logic = *reducer == Reducer::Any || *reducer == Reducer::All;
    if (is_logic != (body.dtype() == DType::Bool)) return wrong(s, body.dtype());
    if (init && (init.dtype() != body.dtype() || is_arg(*reducer)))
      return mismatch(s, init.dtype(), body.dtype());
    if (is_arg(*reducer) && axes.size() != 1) return arity(s, 1);
    return pool_.reduce(*reducer, body, axes, extents, init);
  }

  Expr arity(const Syntax& s, size_t wanted) {
    sink_.report(Code::WrongArguments, s.span, fmt::format("`{}` takes {} here", s.text, wanted));
    return {};
  }

  Expr mismatch(const Syntax& s, DType x, DType y) {
    sink_.report(Code::DTypeMismatch, s.name_span,
                 fmt::format("`{}` of {} and {}", s.text, expr::name(x), expr::name(y)));
    return {};
  }

  Expr wrong(const Syntax& s, DType x) {
    sink_.report(Code::WrongDType, s.name_span,
                 fmt::format("`{}` does not take {}", s.text, expr::name(x)));
    return {};
  }

  Scope& scope_;
  ExprPool& pool_;
  diag::Sink& sink_;
};

}  // namespace

Expr build(const Syntax& syntax, Scope& scope, ExprPool& pool, diag::Sink& sink) {
  return Builder(scope, pool, sink).build(syntax);
}

}  // namespace nautilus::expr
