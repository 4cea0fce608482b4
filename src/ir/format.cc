// SPDX-License-Identifier: Apache-2.0
#include "ir/format.h"

#include <mutex>
#include <unordered_map>

#include "diag/diagnostic.h"
#include "text/lexer.h"

namespace nautilus::ir {
namespace {

const Field& find_field(const OpInfo& info, std::string_view name) {
  for (const Field& f : info.fields) {
    if (f.name == name) return f;
  }
  NAUT_CHECK(false, "format of {} names the unknown field `{}`", info.name, name);
}

std::vector<std::string> tokens_of(std::string_view literal) {
  diag::SourceMap sources;
  diag::Sink sink(sources);
  const auto tokens = text::lex(sources.add("format", std::string(literal)), sink);
  NAUT_CHECK(tokens, "format literal `{}`", literal);
  std::vector<std::string> out;
  for (const auto& t : *tokens) {
    if (t.kind != text::Token::End) out.emplace_back(t.text);
  }
  return out;
}

std::vector<FormatItem> split(const OpInfo& info) {
  using Kind = FormatItem::Kind;
  std::vector<FormatItem> items;
  const std::string_view f = info.format;
  size_t group = SIZE_MAX;
  size_t i = 0;
  while (i < f.size()) {
    if (f[i] == '{' || f[i] == '}') {
      items.push_back({f[i] == '{' ? Kind::GroupBegin : Kind::GroupEnd, {}, {}, nullptr});
      group = f[i] == '{' ? items.size() - 1 : SIZE_MAX;
      ++i;
    } else if (f[i] == '$') {
      size_t end = ++i;
      while (end < f.size() && (std::isalnum(static_cast<unsigned char>(f[end])) || f[end] == '_'))
        ++end;
      const Field& field = find_field(info, f.substr(i, end - i));
      items.push_back({Kind::Field, {}, {}, &field});
      if (group != SIZE_MAX && !items[group].field) items[group].field = &field;
      i = end;
    } else {
      const size_t end = std::min(f.find_first_of("${}", i), f.size());
      items.push_back(
          {Kind::Literal, f.substr(i, end - i), tokens_of(f.substr(i, end - i)), nullptr});
      i = end;
    }
  }
  return items;
}

}  // namespace

const std::vector<FormatItem>& format_of(const OpInfo& info) {
  static std::mutex mutex;
  static std::unordered_map<const OpInfo*, std::vector<FormatItem>> cache;
  const std::lock_guard lock(mutex);
  const auto it = cache.find(&info);
  return it != cache.end() ? it->second : cache.emplace(&info, split(info)).first->second;
}

bool is_present(const Field& field, const void* data) {
  switch (field.kind) {
    case FieldKind::Int:
      return field_value<OptionalInt>(data, field).has_value();
    case FieldKind::Number:
      return field_value<OptionalNumber>(data, field).has_value();
    case FieldKind::Expr:
      return static_cast<bool>(field_value<Expr>(data, field));
    case FieldKind::Enum:
      return field_value<uint8_t>(data, field) != 0;
    case FieldKind::Name:
      return static_cast<bool>(field_value<Name>(data, field));
    case FieldKind::NameList:
      return !field_value<Names>(data, field).empty();
    case FieldKind::AxisList:
      return !field_value<Axes>(data, field).empty();
    case FieldKind::Text:
      return !field_value<std::string>(data, field).empty();
    default:
      return true;
  }
}

}  // namespace nautilus::ir
