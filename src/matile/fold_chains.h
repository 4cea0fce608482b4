// SPDX-License-Identifier: Apache-2.0
// Where the registers of a thread's part of a reduction go: into one partial result each of the
// fold's target, or into several chains of it, which wait less for each other.
#pragma once

#include <functional>

#include "matile/access.h"
#include "matile/ops.h"

namespace nautilus::matile {

// The layout of a register tile; null for other names.
using LayoutOf = std::function<const layout::Layout*(std::string_view tile)>;

// The tile that the value reads with exactly these axes, as a domain; nothing if there is none.
std::optional<Domain> domain_of(ir::Expr value, const std::vector<expr::Name>& axes,
                                const LayoutOf& layout_of);

// The reduction inside the value of a fold.
ir::Expr reduction_of(const Fold& fold);

struct FoldSlots {
  Domain domain;    // of the terms
  DigitSum reg;     // of the target, by the register of the domain
  int targets = 1;  // registers of the target
  int longest = 1;  // chains of a target at most: its neighbouring terms

  // Chains that the fold has if `count` are asked for: as many as its neighbouring terms divide
  // into.
  int chains(int64_t count) const;
  // By the register of the domain: the chain of the partial result, for so many chains each.
  DigitSum slot(int chains) const;
};
// `unrolled` gives the extents of the unroll variables in scope; `least_terms`: of a thread for a
// result, fewer have one chain (the target's `chained_terms`).
FoldSlots fold_slots(const Fold& fold, const LayoutOf& layout_of,
                     const std::map<std::string, int>& unrolled, int64_t least_terms,
                     expr::ExprPool& pool);

}  // namespace nautilus::matile
