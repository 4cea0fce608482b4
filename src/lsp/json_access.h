// SPDX-License-Identifier: Apache-2.0
// Members of untrusted JSON: a member that is missing or of another type is nothing. The library's
// own accessors would end the process.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace nautilus::lsp {

inline const nlohmann::json* member(const nlohmann::json& j, const char* key) {
  if (!j.is_object()) return nullptr;
  const auto it = j.find(key);
  return it == j.end() ? nullptr : &*it;
}

inline std::optional<std::string> maybe_text(const nlohmann::json& j, const char* key) {
  const nlohmann::json* m = member(j, key);
  return m && m->is_string() ? std::optional(m->get<std::string>()) : std::nullopt;
}

inline std::string text_in(const nlohmann::json& j, const char* key) {
  return maybe_text(j, key).value_or("");
}

inline bool flag_in(const nlohmann::json& j, const char* key) {
  const nlohmann::json* m = member(j, key);
  return m && m->is_boolean() && m->get<bool>();
}

inline std::optional<int64_t> integer_in(const nlohmann::json& j, const char* key) {
  const nlohmann::json* m = member(j, key);
  return m && m->is_number_integer() ? std::optional(m->get<int64_t>()) : std::nullopt;
}

}  // namespace nautilus::lsp
