// SPDX-License-Identifier: Apache-2.0
// What --json prints: one JSON value on standard output, whatever happened; but nothing after a
// wrong use of the command line (exit status 2), which standard error explains.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"

namespace nautilus::tool {

// What --json says in every command that prints one object.
inline constexpr const char* kJsonHelp = "as JSON on standard output (docs/command_line.md)";

// Bytes that are no UTF-8, of program text in a message, are replaced, not refused.
inline void write_json(const nlohmann::json& j) {
  fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

// A value of a command that prints several, each on a line.
inline void write_json_line(const nlohmann::json& j) {
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// A failure that is not about the text of a program. Returns the exit status.
inline int report_failure(bool is_json, const std::string& error) {
  if (is_json)
    write_json_line({{"ok", false}, {"error", error}});
  else
    fmt::print(stderr, "nautilus: {}\n", error);
  return kProgramError;
}

// `ok` and the messages, with which the object of every command about a program begins.
inline nlohmann::json report_json(bool ok, const driver::Unit& unit,
                                  const std::string& error = "") {
  nlohmann::json j = {{"ok", ok}, {"messages", nlohmann::json::parse(messages_json(unit))}};
  if (!error.empty()) j["error"] = error;
  return j;
}

}  // namespace nautilus::tool
