// SPDX-License-Identifier: Apache-2.0
#include "spec/language/symbols.h"

#include <fmt/format.h>

#include "expr/build.h"

namespace nautilus::spec {

using diag::Code;

std::string_view describe(Symbol::Kind kind) {
  switch (kind) {
    case Symbol::Kind::Size:
      return "a size";
    case Symbol::Kind::Scalar:
      return "a scalar";
    case Symbol::Kind::Tensor:
      return "a tensor";
    case Symbol::Kind::Function:
      return "a function";
  }
  return "";
}

Symbol* Symbols::add(const NameSyntax& name, Symbol symbol, diag::Sink& sink) {
  symbol.span = name.span;
  if (expr::function_op(name.text)) {
    sink.report(Code::Duplicate, name.span, fmt::format("`{}` is a built-in function", name.text));
    return nullptr;
  }
  if (name.span.is_known() && name.text.find('.') != std::string_view::npos) {
    sink.report(Code::BadStatement, name.span,
                fmt::format("the name `{}` contains a `.`", name.text))
        .with_help("such names are the compiler's; use `_`");
    return nullptr;
  }
  const auto [it, is_new] = table_.emplace(std::string(name.text), std::move(symbol));
  if (is_new) return &it->second;
  sink.report(Code::Duplicate, name.span, fmt::format("`{}` is defined twice", name.text))
      .label("the second definition")
      .also(it->second.span, "the first one");
  return nullptr;
}

Symbol* Symbols::find(std::string_view name) {
  const auto it = table_.find(name);
  return it == table_.end() ? nullptr : &it->second;
}

const Symbol* Symbols::find(std::string_view name) const {
  return const_cast<Symbols*>(this)->find(name);
}

std::vector<std::string> Symbols::names() const {
  std::vector<std::string> out;
  for (const auto& [name, symbol] : table_) out.push_back(name);
  return out;
}

}  // namespace nautilus::spec
