// SPDX-License-Identifier: Apache-2.0
// The equations of a scan in chunks (chunk_scans.h): what a chunk adds to the state, the states
// that chunks begin with, and what a reader computes of both.
#pragma once

#include "expr/rules/simplify.h"
#include "spec/facts/read_scan.h"
#include "spec/passes/chunks/chunk_decays.h"

namespace nautilus::spec {

class ChunkEquations {
 public:
  // `names` gives the equations names that the program does not have.
  ChunkEquations(const ir::Program& program, TensorNames& names, expr::ExprPool& pool);

  ir::Expr simplified(ir::Expr e) { return simplifier_.simplify(e, &facts_); }

  // The factors of a term other than keys and values; an empty name if there are none. Like that of
  // weights, the equation is added to those that come `before`.
  Let scale_of(const ReadScan& scan, const Chunks& chunks, std::vector<Let>& before);
  Let added_in_chunks(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays,
                      std::vector<Let>& before);
  // The initial states of chunks: a scan over chunks.
  Let states_of(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays, const Let& added);
  // The same as the operand of products.
  Let starts_of(const ReadScan& scan, const Let& states);
  // The state after a chunk.
  ir::Expr behind_chunk(const ReadScan& scan, ChunkDecays& decays, const Let& states,
                        const Let& added);
  // Those in place of a reader; the last one has its name.
  std::vector<Let> of_reader(const ReadScan& scan, const ScanReader& reader, const Chunks& chunks,
                             ChunkDecays& decays, const Let& scale, const Let& starts);

 private:
  Let finished(Let let);
  ir::Expr times(ir::Expr a, ir::Expr b);
  // The factors at a step of a chunk, 0 after the last one.
  ir::Expr product(const std::vector<ir::Expr>& factors, const expr::Substitution& at,
                   ir::Expr step, const Chunks& chunks, ir::Expr place);
  // Axes of the scan's state, unchanged.
  expr::Substitution own_axes(const Let& let);
  // Those of the axes that the value has.
  ir::Axes used(const ir::Axes& axes, ir::Expr value);
  bool has_axes_of(const std::vector<ir::Expr>& factors, const ir::Axes& axes,
                   const Chunks& chunks);
  // A sum over the depth, padded with zeros to the length of a chunk: sums over axes of one length
  // are steps of one loop.
  ir::Expr padded_sum(const ScanReader& reader, ir::Expr q, ir::Expr start, ir::Expr depth,
                      ir::Expr extent);
  // The element at these places of the state's axes; those of a chunk are unchanged.
  ir::Expr at_places(const Let& let, const expr::Substitution& at);

  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  TensorNames& names_;
};

}  // namespace nautilus::spec
