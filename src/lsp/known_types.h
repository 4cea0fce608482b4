// SPDX-License-Identifier: Apache-2.0
// The results of elaboration for the names of a program, as text: types of tensors, extents of
// axes, values of sizes and scalars. Empty for a program with errors.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/op.h"

namespace nautilus::lsp {

class KnownTypes {
 public:
  explicit KnownTypes(const std::optional<ir::Program>& program);

  // "bf16[M, 64]"
  std::optional<std::string> tensor(std::string_view name) const { return find(tensors_, name); }
  // What a tensor is with all sizes at their hints: "[72, 64], 9216 bytes".
  std::optional<std::string> at_hints(std::string_view name) const { return find(hints_, name); }
  // Of a size that is fixed when compiling, or of a scalar's default.
  std::optional<std::string> value(std::string_view name) const { return find(values_, name); }
  // The extent of an axis, "N", of an equation or of a reduction in it; nothing if the equation has
  // two axes of that name with different ones.
  std::optional<std::string> extent(std::string_view equation, std::string_view axis) const;
  bool is_output(std::string_view tensor) const;

 private:
  using Table = std::map<std::string, std::string, std::less<>>;
  static std::optional<std::string> find(const Table& table, std::string_view name);
  void add_extent(std::string_view equation, std::string_view axis, ir::Expr extent);

  Table tensors_;
  Table hints_;
  Table values_;
  Table extents_;  // "equation axis"; an empty text: several
  Table outputs_;
};

}  // namespace nautilus::lsp
