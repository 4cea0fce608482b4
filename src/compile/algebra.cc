// SPDX-License-Identifier: Apache-2.0
#include "compile/algebra.h"

namespace nautilus::compile {

std::vector<Rewrite> rewrites() {
  std::vector<Rewrite> out;
  for (size_t k = 0; k < words(Rewrite{}).size(); ++k) out.push_back(static_cast<Rewrite>(k));
  return out;
}

std::string_view pass_of(Rewrite rewrite) {
  switch (rewrite) {
    case Rewrite::DistributeRowShift:
      return "distribute_row_shift";
    case Rewrite::Gather:
      return "gather_operands";
    case Rewrite::Limbs:
      return "split_operands";
    case Rewrite::Residues:
      return "split_residues";
    case Rewrite::Groups:
      return "split_groups";
    case Rewrite::Narrow:
      return "narrow_operands";
    case Rewrite::Chunks:
      return "chunk_scans";
    case Rewrite::Sums:
      return "unroll_sums";
    case Rewrite::Extremes:
      return "argmax_by_extremes";
    case Rewrite::Pieces:
      return "reduce_pieces";
    case Rewrite::Tables:
      return "tabulate";
    case Rewrite::Masks:
      return "hoist_operand_masks";
    case Rewrite::Ranks:
      return "rank_pieces";
  }
  return {};
}

std::vector<Algebra> forms_of_algebra() {
  // Doubled by one rewrite after the other: those in front differ from the usual form in the first
  // rewrites alone.
  std::vector<Algebra> out = {Algebra()};
  for (const Rewrite rewrite : rewrites()) {
    const size_t count = out.size();
    for (size_t k = 0; k < count; ++k) out.push_back(out[k].with(rewrite, !out[k].has(rewrite)));
  }
  return out;
}

Algebra every_rewrite() {
  Algebra out;
  for (const Rewrite rewrite : rewrites()) out = out.with(rewrite);
  return out;
}

}  // namespace nautilus::compile
