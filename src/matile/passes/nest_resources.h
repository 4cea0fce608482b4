// SPDX-License-Identifier: Apache-2.0
// Ring slots, staging buffers and register budgets of a nest, by structure and capacity.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "matile/passes/rewrite.h"
#include "matile/passes/ring_sequence.h"

namespace nautilus::matile {

struct NestRing {
  std::vector<std::string> parts;
  std::vector<Part> ops;
  bool is_per_group = false;
  ir::Name name;
  int loader = 0;
  RingSequence sequence;
};

struct NestResources {
  ir::Block declarations;                    // rings and stages
  std::map<std::string, ir::Name> stage_of;  // by stored tile
  int64_t loader_registers = 24;
  int64_t compute_registers = 240;
};

// Rings of loops that do nothing but products get as many slots as fit; other loops have register
// work between their products, two slots are enough for them, a few more where one product is all
// the time there is for a copy; what is fetched once a tile has one. What is only taken to
// registers has one slot where products would have less than three, and small slots are no matter.
// Registers: the compute groups take what the pool leaves them beside loaders of at least 24, or 40
// with two groups and tiles that come from a counter or for a cluster.
// Nothing (and reported) if it does not fit.
std::optional<NestResources> choose_resources(const Kernel& kernel, const Role& role,
                                              const std::vector<NestRing>& rings, Names& taken,
                                              expr::ExprPool& pool, diag::Sink& sink);

}  // namespace nautilus::matile
