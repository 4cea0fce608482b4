// SPDX-License-Identifier: Apache-2.0
// Everything that the server knows about a document: its errors, the meaning and definition of its
// names, its outline. Places are bytes of its text; lsp/replies.h translates them to the protocol.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nautilus::lsp {

struct Range {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct Remark {
  Range range;
  std::string text;
};

struct Finding {
  std::string code;  // "E0301"
  bool is_error = true;
  Range range;
  std::string message;          // with what its place contributes, and the help
  std::vector<Remark> related;  // other places
};

// What a name stands for, once for all its uses.
struct Meaning {
  std::string text;  // Markdown
  std::optional<Range> definition;
};

struct Use {
  Range range;
  uint32_t meaning = 0;
};

enum class EntryKind : uint8_t { Size, Scalar, Input, Equation, Output, Function };

struct Entry {
  std::string name;
  std::string detail;  // "bf16[M, K]"
  EntryKind kind = EntryKind::Size;
  Range range;  // of the name
};

struct Analysis {
  std::vector<Finding> findings;
  std::vector<Meaning> meanings;
  std::vector<Use> uses;
  std::vector<Entry> outline;
};

// Of a text of any level; names are looked at in programs of the math language only.
Analysis analyse(const std::string& path, const std::string& text);

// As text, to leave the process that computes it (lsp/isolated.h).
nlohmann::json to_json(const Analysis& analysis);
std::optional<Analysis> analysis_from_json(const nlohmann::json& json);

}  // namespace nautilus::lsp
