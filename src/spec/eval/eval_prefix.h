// SPDX-License-Identifier: Apache-2.0
// Reductions of all prefixes, or of all suffixes, of an axis in one walk along it: as many terms as
// the axis has elements, instead of their square.
//
// Terms are added in the order in which the reduction of each prefix adds them, so the values have
// the same bits. Suffixes are added from the end.
#pragma once

#include "spec/eval/eval_block.h"
#include "spec/eval/eval_reduction.h"
#include "spec/facts/prefix.h"

namespace nautilus::spec {

struct PrefixTask {
  const Let& let;
  const Prefix& prefix;
  const std::vector<int64_t>& extents;  // of the result, then of the reduced axis
  const BlockProgram& code;             // of the terms, lanes along the reduced axis
  const BlockProgram* init;
  const BlockProgram* parts;
  const Reduction& reduction;
  Noise noise;
  BoundedTensor& out;
};

// Whether the oracle walks. Sums of floats from the end differ in their last bits from sums in
// order; short sums are computed in order.
bool is_walked(const Prefix& prefix, const Let& let, int64_t length);

// The results of one row, a point of the other axes. Returns a read that left its tensor, if any.
std::optional<OutsideRead> walk_prefixes(const PrefixTask& task, int64_t row);

}  // namespace nautilus::spec
