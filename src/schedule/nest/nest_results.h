// SPDX-License-Identifier: Apache-2.0
// The results of a nest in memory: values of stored members, or the state of a rolled value in each
// part, and then the nests that combine the parts.
#pragma once

#include "schedule/nest/nest_translation.h"

namespace nautilus::schedule {

class NestResults {
 public:
  NestResults(NestFrame& frame, NestTranslation& translation)
      : f_(frame), translation_(translation) {}

  // At the end of the nest.
  void store(ir::Block& out);

  // The nests that combine parts; their buffers are added.
  ir::Block combined(std::vector<scalar::Buffer>& buffers);

 private:
  // Writes a member's value to memory.
  void store_member(size_t k, ir::Block& out);
  // Writes the state of a rolled value in a part.
  void store_part(size_t k, ir::Block& out);

  // A reduction that every part computes before its steps; the first part writes it.
  bool is_before(size_t k) const;
  // Of the tiles with the same value only one writes it: the condition, or null.
  Expr is_writer(const Member& m);

  NestFrame& f_;
  NestTranslation& translation_;
  std::vector<PartValue> part_values_;
};

}  // namespace nautilus::schedule
