// SPDX-License-Identifier: Apache-2.0
// The decisions that the step from VR-tile to MA-tile reads: who works on the tiles, how they are
// numbered, and how operands arrive.
#pragma once

#include "decision/choice.h"

namespace nautilus::lower {

class NestChoices {
 public:
  // `usual_path`: how boxes of tensors arrive that only element-wise work uses, where no line says
  // it.
  NestChoices(ir::PassContext& context, decision::OperandPath usual_path)
      : groups(context),
        order(context),
        source(context),
        promote(context),
        fetch_(context),
        bring_(context),
        usual_path_(usual_path) {}

  void begin(ir::Block& body);
  bool end();

  // Whether the copy engine brings what element-wise work reads of a tensor.
  bool is_copied(ir::Name tensor);
  // It does: not everything that could be copied is.
  void took_copied(ir::Name tensor) { bring_.took({tensor, decision::OperandPath::Copied, {}}); }
  // Of a loop with one product, of a computed operand: whether it fetches everything first.
  bool is_fetched_early();

  decision::Choice<decision::Groups> groups;
  decision::Choice<decision::TileOrder> order;
  decision::Choice<decision::TileSource> source;
  decision::OperandChoice<decision::Promote> promote;

 private:
  decision::Choice<decision::Fetch> fetch_;
  decision::OperandChoice<decision::Bring> bring_;
  decision::OperandPath usual_path_;
};

}  // namespace nautilus::lower
