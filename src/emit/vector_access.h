// SPDX-License-Identifier: Apache-2.0
// Which accesses of a tensor are pieces of 16 bytes (emit/vector.h), and where each piece lies.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "emit/elementwise.h"
#include "expr/walk.h"

namespace nautilus::emit {

// A tensor along a domain, in pieces of 16 bytes.
struct VectorAccess {
  int width = 0;  // elements
  // Where pieces lie in memory is only known in the kernel: those that are not aligned, or for
  // which a condition does not hold as a whole, are moved element by element.
  bool is_asked = false;
  matile::Domain pieces;  // its axis counts pieces
  expr::Substitution in_pieces;
  std::string thread;          // text of the offset of the thread's first piece
  matile::DigitSum register_;  // and what a piece adds
  std::string folded;          // instead of both: text of the offset of piece `vec`
};

// Nothing if the elements have to be moved one by one.
std::optional<VectorAccess> vector_access(const matile::Domain& domain, std::string_view tensor,
                                          std::span<const expr::Expr> indices, expr::Expr condition,
                                          const RegisterScope& scope);
// Text of the offset of piece `vec`; `at` is that of the thread's first one.
std::string piece_offset(const VectorAccess& access);

// The element of a piece for which a comparison must hold, so that it holds for all: 0 for the
// first, 1 for the last. Nothing if no single one decides.
std::optional<int> deciding_end(expr::Expr condition, expr::Expr axis);

}  // namespace nautilus::emit
