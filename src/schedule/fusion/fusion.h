// SPDX-License-Identifier: Apache-2.0
// A fusion: the statements that become one kernel, over one set of axes.
//
// It grows from a reduction, the seed. The seed's reduced axis is streamed: the kernel walks along
// it in steps. Producers join if they are read only at plain axes: element-wise ones, small inner
// reductions, and reductions over the streamed axis (rolled: they run in the same loop). Consumers
// join as epilogue, as further rolled reductions, or as closing reductions along columns that a
// tile holds whole. Results of other statements are read from memory like inputs. Only index sets
// and dependences decide, never names.
#pragma once

#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "algebra/repair.h"
#include "schedule/fusion/statement.h"

namespace nautilus::target {
struct Target;
}

namespace nautilus::schedule {

using algebra::Outcome;
using algebra::Rejection;

using target::Target;

struct Member {
  int statement = 0;
  ir::Name target;
  expr::DType dtype = expr::DType::F32;
  std::vector<Expr> axes;   // axes of the fusion, in the order of the target's dimensions
  std::vector<Expr> place;  // the indices of its elements, by the axes; empty: the axes themselves
                            // (Statement::place)
  Expr in_place = {};       // the condition that the element exists; null: always
  std::vector<Expr> inner;  // reduced axes of an inner reduction
  bool is_rolled = false;   // a reduction over the streamed axis
  bool is_closing = false;  // an inner reduction after the loop, along the columns of its result
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr init;
  Expr value;
  Expr read;  // how other members read it

  bool is_reduction() const { return is_rolled || !inner.empty(); }
  bool has(Expr axis) const;
};

// A contraction: a[row, depth] * b[column, depth] summed over the depth. A member that sums several
// products, `a * b + c * d`, has one Dot for each, in the order of the terms; they have the same
// column and depth, and plain operands.
struct Dot {
  size_t member = 0;
  std::vector<Expr> a;            // factors with the row axis, and factors with only the depth
  Expr b;                         // one factor: a tensor of floats that the matrix unit takes
  std::vector<Expr> scales = {};  // factors that are the same for `block` neighbours of the depth
  int64_t block = 0;
  int64_t column_block = 0;  // the same of the columns, where scales differ along them
  Expr column;
  Expr depth;
  // The operands as elements of tensors, at most under conditions that keep them inside their
  // tensors; null: `a` is computed.
  Expr row_element;
  Expr column_element;

  // Of an element of the second operand.
  expr::DType operand_dtype() const { return column_element.dtype(); }
  int operand_bytes() const;
  // The first operand is one element of a tensor with elements as large as the second operand's,
  // which copies load unchanged.
  bool has_stored_rows() const;
  // Both operands are products of the matrix unit as they are stored: nothing is rounded.
  bool is_plain() const;
};

struct Fusion {
  const Target* target = nullptr;  // of the program
  int seed = 0;
  std::vector<Member> members;             // in order of dependence
  std::unordered_map<Expr, Expr> extents;  // of every axis
  std::vector<Expr> axis_order;            // as found
  // Extents of axes at the sizes that were asked for, where these give them.
  std::unordered_map<Expr, int64_t> asked;
  Expr stream;
  // Further axes that the seed sums over: the steps along the streamed axis are repeated at every
  // place of these axes. Slowest first.
  std::vector<Expr> outer;
  Expr row;
  int64_t row_block = 0;  // if not 0: a tile is one block with at most this many rows
  Expr block_rows;        // the rows of a block: n in the operands' `row / n`, a constant or a size
  std::vector<Dot> dots;
  bool is_cut = false;             // operands of the seed are computed in an earlier pass
  std::vector<std::string> notes;  // why statements stayed outside

  const Member* find(Expr read) const;
  const Member* by_name(expr::Name name) const;
  // The first contraction of a member; null if the member has none.
  const Dot* dot_of(size_t member) const;
  // All of them.
  std::span<const Dot> dots_of(size_t member) const;
  // Whether the member sums several products.
  bool has_several(const Dot& dot) const { return dots_of(dot.member).size() > 1; }
  // Whether the terms of a step are first added up separately and then added to the sum: true of
  // several products of floats, and of operands whose sums the matrix unit adds up too coarsely.
  bool is_added_apart(const Dot& dot) const;
  // Whether its tiles give results of this dtype of integers: sums of products of integers do.
  bool stores_integers(expr::DType dtype) const;
  // Sizes of tiles along a depth are multiples of this.
  int64_t depth_grain() const;
  // The same of tiles along columns.
  int64_t column_grain() const;
  // The longest step of the streamed axis that the sums of products allow; 0: any.
  int64_t apart_depth() const;
  // Steps of the streamed axis divide these blocks, in which factors of products are the same; 0:
  // there are none.
  int64_t step_block() const;
  // The same of the columns: scales are one number of a tile then.
  int64_t column_block() const;
  // Whether tiles hold the axis from its first to its last element.
  bool is_whole(Expr axis) const;
  bool is_tile_axis(Expr axis) const;
  bool is_outer(Expr axis) const;
  bool is_column(Expr axis) const;
  bool is_inner(Expr axis) const;
  // The member's axes that lie inside a tile.
  std::vector<Expr> tile_axes(const Member& m) const;
  bool depends_on_rolled(const Member& m) const;
  // Statements of all members that do.
  std::set<int> dependent_on_rolled() const;
  // Whether its loop would need a result of its closing reductions, which run after the loop.
  bool needs_closing_early() const;
  // The value with element-wise members written out.
  Expr inlined(expr::ExprPool& pool, Expr e) const;
};

// A fusion, and what its kernel is chosen and written with.
struct FusionScope {
  const Fusion& fusion;
  const ir::Program& program;  // of the fusion
  const algebra::Signs& signs;
  expr::ExprPool& pool;
};

struct FusionRequest {
  int seed = 0;
  std::set<int> outside;   // statements that must not join
  std::set<int> only;      // if not empty: no others may
  std::set<int> provided;  // members of other kernels: they do not join as consumers
  Expr row;                // if not null: the row axis, by its name in the seed
};

Outcome<Fusion> grow_fusion(const StatementList& list, const ir::Program& program,
                            const FusionRequest& request, expr::ExprPool& pool);
// `provided` receives the statements for which it mattered whether they belong to other kernels:
// the result is the same for all requests that agree about these statements.
Outcome<Fusion> grow_fusion(const StatementList& list, const ir::Program& program,
                            const FusionRequest& request, expr::ExprPool& pool,
                            std::map<int, bool>& provided);

// The fusion with every running extreme under an exponent guarded against its identity: a row
// without live terms must not give -inf - -inf.
Fusion with_guarded_references(Fusion fusion, expr::ExprPool& pool);

}  // namespace nautilus::schedule
