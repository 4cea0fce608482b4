// SPDX-License-Identifier: Apache-2.0
// What a nest leaves in memory: values of stored members, or what each part has of a rolled value,
// and then the nests that put the parts together.
#pragma once

#include "schedule/nest/nest_translation.h"

namespace nautilus::schedule {

class NestResults {
 public:
  NestResults(NestFrame& frame, NestTranslation& translation)
      : f_(frame), translation_(translation) {}

  // At the end of the nest.
  void store(ir::Block& out);

  // The nests that put parts together; their buffers are added.
  ir::Block combined(std::vector<scalar::Buffer>& buffers);

 private:
  // Writes a member's value to memory.
  void store_member(size_t k, ir::Block& out);
  // Writes what a part has of a rolled value.
  void store_part(size_t k, ir::Block& out);

  // A reduction that every part has before its steps; the first part hands it out.
  bool is_before(size_t k) const;
  // One of the tiles that have the same value writes it: the condition, or null.
  Expr is_writer(const Member& m);

  NestFrame& f_;
  NestTranslation& translation_;
  std::vector<PartValue> part_values_;
};

}  // namespace nautilus::schedule
