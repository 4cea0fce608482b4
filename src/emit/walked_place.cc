// SPDX-License-Identifier: Apache-2.0
#include "emit/walked_place.h"

namespace nautilus::emit {

using expr::Expr;
using EK = expr::Op;

std::optional<WalkedPlace> walked_place(std::span<const Expr> indices) {
  if (indices.size() < 2 || indices.back().op() != EK::Mod) return std::nullopt;
  const Expr column = indices.back();
  if (column[1].op() == EK::IntConst) return std::nullopt;  // a shift and a mask, or a product
  const Expr row = indices[indices.size() - 2];
  const auto is_row = [&](Expr e) {
    return e.op() == EK::FloorDiv && e[0] == column[0] && e[1] == column[1];
  };
  if (is_row(row)) return WalkedPlace{{}, column[0], column[1]};
  if (row.op() != EK::Add) return std::nullopt;
  if (is_row(row[1])) return WalkedPlace{row[0], column[0], column[1]};
  if (is_row(row[0])) return WalkedPlace{row[1], column[0], column[1]};
  return std::nullopt;
}

}  // namespace nautilus::emit
