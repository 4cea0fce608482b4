// SPDX-License-Identifier: Apache-2.0
#include "bundle/c_code.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

namespace nautilus::bundle {
namespace {

using expr::DType;
using Op = expr::Op;
using StepKind = plan::Code::Kind;

// The last part of the operator's name in C.
std::string_view word(Op op) {
  switch (op) {
    case Op::Add:
      return "add";
    case Op::Sub:
      return "sub";
    case Op::Mul:
      return "mul";
    case Op::Div:
      return "div";
    case Op::FloorDiv:
      return "floor_div";
    case Op::Mod:
      return "mod";
    case Op::Eq:
      return "eq";
    case Op::Ne:
      return "ne";
    case Op::Lt:
      return "lt";
    case Op::Le:
      return "le";
    case Op::Gt:
      return "gt";
    case Op::Ge:
      return "ge";
    case Op::And:
      return "and";
    case Op::Or:
      return "or";
    case Op::Neg:
      return "neg";
    case Op::Not:
      return "not";
    case Op::Select:
      return "select";
    case Op::Exp:
    case Op::Exp2:
    case Op::Log:
    case Op::Log2:
    case Op::Log1p:
    case Op::Expm1:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Tanh:
    case Op::Erf:
    case Op::Sigmoid:
    case Op::Sin:
    case Op::Cos:
    case Op::Abs:
    case Op::Floor:
    case Op::Round:
    case Op::Pow:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::Min:
    case Op::Max:
      return expr::info(op).text;
    case Op::Cast:
    case Op::Reduce:
    case Op::Read:
    case Op::Var:
    case Op::BoolConst:
    case Op::FloatConst:
    case Op::IntConst:
      break;
  }
  NAUT_CHECK(false, "{} is no operator of a plan", expr::info(op).name);
}

Op operator_of(const plan::Code::Step& step) {
  switch (step.kind) {
    case StepKind::Add:
      return Op::Add;
    case StepKind::Sub:
      return Op::Sub;
    case StepKind::Mul:
      return Op::Mul;
    case StepKind::FloorDiv:
      return Op::FloorDiv;
    case StepKind::Mod:
      return Op::Mod;
    case StepKind::Min:
      return Op::Min;
    case StepKind::Max:
      return Op::Max;
    case StepKind::Apply:
    case StepKind::Constant:
    case StepKind::Slot:
      break;
  }
  return step.op;
}

std::string integer_text(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  if (value > std::numeric_limits<int32_t>::max() || value < std::numeric_limits<int32_t>::min())
    return fmt::format("INT64_C({})", value);
  return fmt::format("{}", value);
}

std::string float_text(double value) {
  if (std::isnan(value)) return "(double)NAN";
  if (std::isinf(value)) return value > 0 ? "HUGE_VAL" : "-HUGE_VAL";
  std::string text = fmt::format("{:.17g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string constant_text(const plan::Code::Step& step) {
  return expr::is_float(step.result) ? float_text(step.constant.f) : integer_text(step.constant.i);
}

std::string wrapped(DType dtype, const std::string& text) {
  return dtype == DType::I64 ? text : fmt::format("to_{}({})", expr::name(dtype), text);
}

// expr::cast_value.
std::string cast_text(DType to, DType from, const std::string& x) {
  if (!expr::is_float(from)) {
    if (!expr::is_float(to)) return wrapped(to, x);
    return c_rounded(to, fmt::format("i_to_f({})", x));
  }
  if (expr::is_float(to)) return expr::holds_every_value(to, from) ? x : c_rounded(to, x);
  if (to == DType::Bool) return fmt::format("f_ne({}, 0)", x);
  const int64_t most = expr::int_max(to);
  int bits = 0;
  while (bits < 63 && most >> bits != 0) ++bits;
  return fmt::format("f_to_i({}, {}, {}, {})", x, bits, integer_text(expr::int_min(to)),
                     integer_text(most));
}

// What expr::apply does.
std::string applied(const plan::Code::Step& step, const std::vector<std::string>& operands) {
  const Op op = operator_of(step);
  if (op == Op::Cast) return cast_text(step.result, step.operand, operands[0]);
  const bool is_float = expr::is_float(step.operand);
  std::string text = fmt::format("{}_{}({})", is_float && op != Op::Not ? "f" : "i", word(op),
                                 fmt::join(operands, ", "));
  const bool is_wrapped =
      !is_float && op != Op::Select && op != Op::Not && !expr::is_comparison(op);
  return is_wrapped ? wrapped(step.result, text) : text;
}

int operand_count(const plan::Code::Step& step) {
  switch (step.kind) {
    case StepKind::Constant:
    case StepKind::Slot:
      return 0;
    case StepKind::Apply:
      return step.index;
    case StepKind::Add:
    case StepKind::Sub:
    case StepKind::Mul:
    case StepKind::FloorDiv:
    case StepKind::Mod:
    case StepKind::Min:
    case StepKind::Max:
      break;
  }
  return 2;
}

}  // namespace

std::string c_expression(const plan::Code& code, const std::vector<SlotText>& slots) {
  std::vector<std::string> stack;
  for (const plan::Code::Step& step : code.steps()) {
    if (step.kind == StepKind::Constant) {
      stack.push_back(constant_text(step));
      continue;
    }
    if (step.kind == StepKind::Slot) {
      stack.push_back(slots[static_cast<size_t>(step.index)].text);
      continue;
    }
    const auto first = stack.end() - operand_count(step);
    std::string text = applied(step, {first, stack.end()});
    stack.erase(first, stack.end());
    stack.push_back(std::move(text));
  }
  NAUT_CHECK(stack.size() == 1, "a code of {} values", stack.size());
  return stack[0];
}

std::string c_rounded(DType dtype, const std::string& text) {
  return dtype == DType::F64 ? text : fmt::format("to_{}({})", expr::name(dtype), text);
}

std::string c_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Three octal digits end the escape, whatever follows; `?` could begin a trigraph.
    if (byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\' || c == '?')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string c_name(std::string_view name) {
  static const std::set<std::string, std::less<>> kWords = {
      "alignas",   "alignof",   "and",      "asm",      "auto",     "bool",     "break",
      "case",      "catch",     "char",     "class",    "concept",  "const",    "constexpr",
      "continue",  "decltype",  "default",  "delete",   "do",       "double",   "else",
      "enum",      "explicit",  "export",   "extern",   "false",    "float",    "for",
      "friend",    "goto",      "if",       "inline",   "int",      "long",     "mutable",
      "namespace", "new",       "noexcept", "not",      "nullptr",  "operator", "or",
      "private",   "protected", "public",   "register", "requires", "restrict", "return",
      "short",     "signed",    "sizeof",   "static",   "struct",   "switch",   "template",
      "this",      "throw",     "true",     "try",      "typedef",  "typeid",   "typename",
      "union",     "unsigned",  "using",    "virtual",  "void",     "volatile", "while",
      "xor",       "bitand",    "bitor",    "compl",    "and_eq",   "or_eq",    "xor_eq",
      "not_eq",    "typeof",    "linux",    "unix"};
  std::string out;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9' && !out.empty()) || c == '_';
    out += is_plain ? c : '_';
    if (!is_plain && c >= '0' && c <= '9') out += c;
  }
  if (out.empty() || kWords.contains(out)) out += '_';
  return out;
}

}  // namespace nautilus::bundle
