// SPDX-License-Identifier: Apache-2.0
// An op's format string, split once into what the printer writes and what the parser expects.
#pragma once

#include <string>
#include <vector>

#include "ir/op.h"

namespace nautilus::ir {

struct FormatItem {
  enum class Kind : uint8_t { Literal, Field, GroupBegin, GroupEnd };
  Kind kind;
  std::string_view text;            // Literal: as printed
  std::vector<std::string> tokens;  // Literal: as parsed
  const Field* field = nullptr;     // Field; GroupBegin: the field whose presence decides
};

// Cached per op. A format that names an unknown field is a compiler bug.
const std::vector<FormatItem>& format_of(const OpInfo& info);

bool is_present(const Field& field, const void* data);

}  // namespace nautilus::ir
