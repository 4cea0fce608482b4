// SPDX-License-Identifier: Apache-2.0
#include "expr/print.h"

#include <fmt/format.h>

#include <cmath>

namespace nautilus::expr {
namespace {

// Binding strengths, as in the grammar: or < and < not < comparison < sum < product < unary <
// primary.
enum Strength { kOr = 1, kAnd, kNot, kComparison, kSum, kProduct, kUnary, kPrimary };

Strength strength(Op op) {
  if (is_comparison(op)) return kComparison;
  switch (op) {
    case Op::Or:
      return kOr;
    case Op::And:
      return kAnd;
    case Op::Not:
      return kNot;
    case Op::Add:
    case Op::Sub:
      return kSum;
    case Op::Mul:
    case Op::Div:
    case Op::FloorDiv:
    case Op::Mod:
      return kProduct;
    case Op::Neg:
      return kUnary;
    default:
      return kPrimary;
  }
}

std::string number_text(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

class Printer {
 public:
  explicit Printer(std::string& out) : out_(out) {}

  void print(Expr e, int context) {
    switch (e.op()) {
      case Op::IntConst:
        return integer(e, context);
      case Op::FloatConst:
        return typed(e, DType::F32, number_text(e.number()), std::signbit(e.number()), context);
      case Op::BoolConst:
        out_ += e.integer() ? "true" : "false";
        return;
      case Op::Var:
        out_ += e.name().str();
        return;
      case Op::Read:
        out_ += e.name().str();
        list(e.args(), '[', ']');
        return;
      case Op::Cast:
        out_ += name(e.dtype());
        list(e.args(), '(', ')');
        return;
      case Op::Reduce:
        return reduction(e, context);
      default:
        break;
    }
    const OpInfo& op = info(e.op());
    if (op.form == Form::Function) {
      out_ += op.text;
      list(e.args(), '(', ')');
      return;
    }
    const Strength own = strength(e.op());
    if (own < context) out_ += '(';
    if (op.form == Form::Prefix) {
      out_ += op.text;
      if (e.op() == Op::Not) out_ += ' ';
      print(e[0], own);
    } else {
      // Left-associative; a comparison takes no comparison as operand. A reduction as left operand
      // would swallow the rest of a product, so it is printed as a unary operand there.
      print(e[0], own == kComparison                           ? kSum
                  : own == kProduct && e[0].op() == Op::Reduce ? kPrimary
                                                               : own);
      const bool is_subtraction = e.op() == Op::Add && e[1].op() == Op::IntConst &&
                                  e.dtype() == DType::I64 && e[1].integer() < 0 &&
                                  e[1].integer() != INT64_MIN;
      if (is_subtraction) {
        out_ += fmt::format(" - {}", -e[1].integer());
      } else {
        out_ += ' ';
        out_ += op.text;
        out_ += ' ';
        print(e[1], own + 1);
      }
    }
    if (own < context) out_ += ')';
  }

 private:
  void integer(Expr e, int context) {
    // The extreme values are written as saturating casts: the least one has no literal.
    if (e.integer() == int_min(e.dtype()) && e.integer() < 0) {
      out_ += fmt::format("{}(-inf)", name(e.dtype()));
    } else if (e.integer() == int_max(e.dtype())) {
      out_ += fmt::format("{}(inf)", name(e.dtype()));
    } else {
      typed(e, DType::I64, fmt::format("{}", e.integer()), e.integer() < 0, context);
    }
  }

  void typed(Expr e, DType plain, const std::string& text, bool is_negative, int context) {
    if (e.dtype() != plain) {
      out_ += fmt::format("{}({})", name(e.dtype()), text);
    } else if (is_negative && context > kUnary) {
      out_ += fmt::format("({})", text);
    } else {
      out_ += text;
    }
  }

  void reduction(Expr e, int context) {
    // A reduction extends over the product after it, so as an operand of a product it needs
    // parentheses.
    const bool needs_parens = context > kProduct;
    if (needs_parens) out_ += '(';
    out_ += name(e.reducer());
    out_ += '[';
    for (size_t k = 0; k < e.axis_count(); ++k) {
      if (k) out_ += ", ";
      out_ += e.axis(k).name().str();
      out_ += " < ";
      print(e.extent(k), kSum);
    }
    if (e.init()) {
      out_ += " from ";
      print(e.init(), kSum);
    }
    out_ += "] ";
    print(e.body(), kProduct);
    if (needs_parens) out_ += ')';
  }

  void list(std::span<const Expr> args, char open, char close) {
    out_ += open;
    for (size_t i = 0; i < args.size(); ++i) {
      if (i) out_ += ", ";
      print(args[i], kOr);
    }
    out_ += close;
  }

  std::string& out_;
};

}  // namespace

void print(std::string& out, Expr e) {
  if (!e) {
    out += "<none>";
    return;
  }
  Printer(out).print(e, kOr);
}

std::string to_string(Expr e) {
  std::string out;
  print(out, e);
  return out;
}

}  // namespace nautilus::expr
