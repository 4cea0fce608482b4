// SPDX-License-Identifier: Apache-2.0
#include "ir/print.h"

#include <fmt/format.h>

#include "expr/print.h"
#include "ir/format.h"

namespace nautilus::ir {
namespace {

void print_list(std::string& out, const Exprs& exprs) {
  for (size_t i = 0; i < exprs.size(); ++i) {
    if (i) out += ", ";
    expr::print(out, exprs[i]);
  }
}

void print_type(std::string& out, const TensorType& type) {
  out += name(type.dtype);
  out += '[';
  print_list(out, type.dims);
  out += ']';
}

void print_op(std::string& out, const Op& op, int indent);

void print_block(std::string& out, const Block& block, int indent) {
  for (const Op& op : block) {
    out += '\n';
    print_op(out, op, indent);
  }
}

void print_field(std::string& out, const Field& f, const void* data, int indent) {
  switch (f.kind) {
    case FieldKind::Name:
      out += field_value<Name>(data, f).str();
      return;
    case FieldKind::NameList: {
      const auto& names = field_value<Names>(data, f);
      for (size_t i = 0; i < names.size(); ++i) {
        out += i ? ", " : "";
        out += names[i].str();
      }
      return;
    }
    case FieldKind::Int:
      out += fmt::format("{}", field_value<OptionalInt>(data, f).value_or(0));
      return;
    case FieldKind::Number:
      out += fmt::format("{}", field_value<OptionalNumber>(data, f).value_or(0));
      return;
    case FieldKind::Expr:
      expr::print(out, field_value<Expr>(data, f));
      return;
    case FieldKind::ExprList:
      print_list(out, field_value<Exprs>(data, f));
      return;
    case FieldKind::DType:
      out += name(field_value<DType>(data, f));
      return;
    case FieldKind::Type:
      print_type(out, field_value<TensorType>(data, f));
      return;
    case FieldKind::AxisList: {
      const auto& axes = field_value<Axes>(data, f);
      for (size_t i = 0; i < axes.size(); ++i) {
        out += fmt::format("{}{} < ", i ? ", " : "", axes[i].name.str());
        expr::print(out, axes[i].extent);
      }
      return;
    }
    case FieldKind::Enum:
      out += (*f.words)[field_value<uint8_t>(data, f)];
      return;
    case FieldKind::Text:
      out += '"' + field_value<std::string>(data, f) + '"';
      return;
    case FieldKind::Body:
      print_block(out, field_value<Block>(data, f), indent + 2);
      return;
  }
}

void print_op(std::string& out, const Op& op, int indent) {
  out.append(static_cast<size_t>(indent), ' ');
  bool is_skipped = false;
  for (const FormatItem& item : format_of(op.info())) {
    switch (item.kind) {
      case FormatItem::Kind::GroupBegin:
        is_skipped = !is_present(*item.field, op.data());
        break;
      case FormatItem::Kind::GroupEnd:
        is_skipped = false;
        break;
      case FormatItem::Kind::Literal:
        if (!is_skipped) out += item.text;
        break;
      case FormatItem::Kind::Field:
        if (!is_skipped) print_field(out, *item.field, op.data(), indent);
        break;
    }
  }
}

}  // namespace

std::string print(const Op& op, int indent) {
  std::string out;
  print_op(out, op, indent);
  return out;
}

std::string print(const TensorType& type) {
  std::string out;
  print_type(out, type);
  return out;
}

std::string print(const Program& program) {
  std::string out = fmt::format("{}.program @{}", program.level->name, program.name);
  if (!program.after.empty()) out += " after " + program.after;
  print_block(out, program.body, 2);
  return out + "\n";
}

}  // namespace nautilus::ir
