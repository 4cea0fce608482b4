// SPDX-License-Identifier: Apache-2.0
// Lines `store` and `depth` of a program, for the passes that store operands as tensors of their
// own.
//
//   StoreLines lines(program, context);
//   const decision::Store store = lines.choose({.tensors = {name}, .dtype = BF16, .axes = ...});
//   ...                                       store.as and store.axes are followed
//   return lines.finish(std::move(out));      nothing if a line was refused
//
// They are in the program's `decisions` block. The pass that makes the tensors of a line removes
// the line; lowering refuses lines that are left after all passes. Test: test/spec/store_lines.spec
#pragma once

#include "decision/lines.h"

namespace nautilus::spec {

// How a rule stores an operand, and what a line may say instead.
struct StoreRule {
  ir::Names tensors;  // that are stored in the same way
  ir::DType dtype = ir::DType::BF16;
  ir::Names axes = {};   // in the rule's order; none: the equation gives it
  ir::Names units = {};  // axes of one element, which are left out unless a line names them
  std::vector<ir::DType> others = {};  // that hold its numbers, too
  bool is_stored = true;
};

class StoreLines {
 public:
  StoreLines(const ir::Program& program, ir::PassContext& context);

  // The decision of the line about the tensors, or of the rule; noted. A line that cannot be
  // followed is refused, and the rule applies.
  decision::Store choose(const StoreRule& rule);

  // The axes that the line about a product's depth names, or the rule's. `axes`: of its sum. A line
  // that cannot be followed is refused, and the rule applies.
  decision::Depth choose_depth(const decision::Depth& rule, const ir::Names& axes);
  // The product has limbs with this depth; noted. Without it the line counts as not read.
  void took(const decision::Depth& depth);

  // The program without the lines that were read.
  std::optional<ir::Program> finish(ir::Program program);

 private:
  std::string why_not(const decision::Store& asked, const StoreRule& rule) const;

  ir::PassContext& context_;
  ir::Block lines_;
  std::vector<bool> is_read_;
  bool is_refused_ = false;
};

decision::StoredAs stored_as(ir::DType dtype);
// Of what is stored.
ir::DType dtype_of(decision::StoredAs as);

// 16-bit floats that hold every value of it exactly.
std::vector<ir::DType> held_dtypes(ir::Expr value);

ir::Names names_of(const ir::Axes& axes);
// The axes of these names, in their order.
ir::Axes in_order(const ir::Axes& axes, const ir::Names& order);
// Their positions among `axes`.
std::vector<size_t> places(const ir::Names& order, const ir::Names& axes);

}  // namespace nautilus::spec
