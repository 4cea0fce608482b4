// SPDX-License-Identifier: Apache-2.0
// Ring slots, staging buffers and register budgets of a nest, by structure and capacity.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decision/choice.h"
#include "matile/passes/roles/ring_sequence.h"
#include "matile/rewrite.h"
#include "target/target.h"

namespace nautilus::matile {

struct NestRing {
  std::vector<std::string> slot_tiles;
  std::vector<SlotTile> ops;
  ir::Names operands;         // the slot tiles by their tensors, as schedules call them
  decision::Ring asked = {};  // the decision of the ring's line
  bool is_per_group = false;
  ir::Name name;
  int loader = 0;
  RingSequence sequence;
};

struct NestResources {
  ir::Block declarations;                    // rings and stages
  std::vector<int64_t> slots;                // of the rings
  std::map<std::string, ir::Name> stage_of;  // by stored tile
  int64_t loader_registers = 0;
  int64_t compute_registers = 0;
};

// Rings of loops with only products get as many slots as fit. Other loops have register work
// between their products: two slots are enough for them, or a few more where a copy has only the
// time of one product. Operands that are fetched once a tile have one slot. Tiles that are only
// taken to registers have one slot where products would have less than three; rings of small slots
// get a fixed few. Registers: the compute groups get what the loaders leave of the pool. Loaders
// have more with two groups and with tiles that come from a counter or for a cluster. Lines of the
// schedule are followed, or refused with what they need and what there is. Nothing (and reported)
// if it does not fit.
struct ResourceChoices {
  explicit ResourceChoices(ir::PassContext& context) : stages(context), registers(context) {}
  decision::OperandChoice<decision::Stages> stages;
  decision::Choice<decision::Registers> registers;
};
using Maps = std::map<std::string, Map, std::less<>>;
// A kernel in nest form, and what is known of it before anything has a place.
struct NestUses {
  const Kernel& kernel;
  const Role& role;
  const std::vector<NestRing>& rings;
  const Maps& maps;
  const target::Target& target;
};
std::optional<NestResources> choose_resources(const NestUses& nest, Names& taken,
                                              ResourceChoices& choices, ir::PassContext& context);

}  // namespace nautilus::matile
