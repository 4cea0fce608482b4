// SPDX-License-Identifier: Apache-2.0
// Products of the decays of a scan within a chunk of its steps, as exponentials of sums:
//
//   let S.log2[h, c, i] = sum[j < 64] where(j <= i, max(log2(abs(a[h, c * 64 + j])), -150.0), 0.0)
//   decay(j, i] = exp2(S.log2[h, c, i] - S.log2[h, c, j])
//
// 2^-150 is 0 in f32, so that a decay of 0 has a logarithm, too. Signs are a tensor of their own,
// where a decay may be negative. Sums stay within a chunk: their differences are as exact as 64
// additions. For a decay that is the same in every step the sums are multiples, the same for all
// chunks: S.log2[h, i] = (i + 1) l[h].
#pragma once

#include "algebra/sign.h"
#include "spec/equations.h"

namespace nautilus::spec {

// The steps of a scan in chunks.
struct Chunks {
  ir::Axis steps;       // t
  int64_t length = 0;   // C
  ir::Expr chunk = {};  // the axis of chunks, c
  ir::Expr row = {};    // a place in a chunk: i of a reader,
  ir::Expr key = {};    // j of a term
  ir::Expr count = {};  // how many chunks there are

  ir::Expr place(ir::Expr at, expr::ExprPool& pool) const;      // c * C + at
  ir::Expr is_inside(ir::Expr at, expr::ExprPool& pool) const;  // c * C + at < T
};

class ChunkDecays {
 public:
  // `decay`: null: 1. `axes`: of the state.
  ChunkDecays(ir::Expr decay, const ir::Axes& axes, const Chunks& chunks,
              const algebra::Signs& signs, expr::ExprPool& pool)
      : decay_(decay), axes_(axes), chunks_(chunks), signs_(signs), pool_(pool) {}

  // The equations that the others read.
  void add(std::string_view stem, TensorNames& names, std::vector<Let>& out);

  // Products of decays; null: 1. `at`: places of the state's axes. In order: after step j of a
  // chunk up to i; to the end of the chunk; from its beginning up to i (up to the step before i,
  // with `is_before`); of the whole chunk.
  ir::Expr between(const expr::Substitution& at, bool is_before);
  ir::Expr to_end(const expr::Substitution& at);
  ir::Expr up_to(const expr::Substitution& at, bool is_before);
  ir::Expr whole(const expr::Substitution& at);
  // Of the chunk before; 1 before the first.
  ir::Expr whole_before(const expr::Substitution& at);

 private:
  bool is_steady() const;
  ir::Expr log2_of(ir::Expr e);
  ir::Expr sums(const Let& let, const expr::Substitution& at, ir::Expr place);
  // The power for the sum up to one place minus the sum up to another (null: 0).
  ir::Expr power(const expr::Substitution& at, ir::Expr upto, ir::Expr from, ir::Expr has_steps);
  // The last place of a chunk that counts.
  ir::Expr last();

  ir::Expr decay_;
  const ir::Axes& axes_;
  const Chunks& chunks_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  std::optional<Let> log2_;
  std::optional<Let> sign_;
};

}  // namespace nautilus::spec
