// SPDX-License-Identifier: Apache-2.0
// Register work: set, fold, lanes, vote and put as one unrolled loop each.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "emit/params.h"
#include "emit/writer.h"
#include "expr/bounds/bounds.h"
#include "expr/bounds/divisors.h"
#include "layout/digits.h"
#include "matile/fold_chains.h"
#include "matile/ops.h"

namespace nautilus::emit {

struct TileText {
  const matile::Tile* op = nullptr;
  layout::Layout layout;
};

// Arrays of elements that were read early, and the extent of their axis of the tile.
using EarlyReads = std::map<expr::Expr, std::pair<std::string, int>, expr::ByContent>;

// The surroundings of register work.
struct RegisterScope {
  std::map<std::string, TileText, std::less<>> tiles;
  std::map<std::string, int> unrolled;  // variables of enclosing unrolls and their extents
  const GlobalTensors* globals = nullptr;
  const expr::Facts* facts = nullptr;
  expr::ExprPool* pool = nullptr;
  std::function<std::string(expr::Expr)> variable;  // text of a scalar
  bool has_coarse_functions = false;                // ir::allows_coarse_functions
  int64_t many_positions = 0;                       // of the target: such are computed anew
  int64_t chains = 1;                               // of a fold, at most
  int64_t chained_terms = 0;                        // of the target: fewer have one chain
  expr::Divisors divisors;
  // Receives tensors that are moved in pieces.
  std::set<std::string, std::less<>>* vectors = nullptr;
  EarlyReads early;

  matile::LayoutOf layouts() const {
    return [this](std::string_view name) {
      const auto tile = tiles.find(name);
      return tile == tiles.end() ? nullptr : &tile->second.layout;
    };
  }
};

// Text of expressions at a register of a domain, which must outlive it: `prepare` writes values
// that are the same for all registers, once before the loop.
struct ElementPrinter {
  std::function<void(expr::Expr)> prepare;
  std::function<std::string(expr::Expr, const std::string& reg)> at;
  // Declarations of what the text of a long expression would repeat, for the loop in which `at`
  // stands behind them.
  std::function<std::vector<std::string>(expr::Expr, const std::string& reg)> name_parts;
  // Of an index as 64 bits: what unrolling makes a constant stands apart from the thread's summand.
  std::function<std::string(expr::Expr, const std::string& reg)> index;
  // Of an element of a tensor in memory.
  std::function<std::string(std::string_view tensor, std::span<const expr::Expr> indices,
                            const std::string& reg)>
      offset;
  // Integers along one axis, before anything else of the expression. Adds their arrays.
  std::function<void(expr::Expr, EarlyReads& arrays)> read_early;
};
// `first_limit` separates the names of two printers that write into one block.
ElementPrinter element_printer(const matile::Domain& domain, const RegisterScope& scope,
                               Writer& out, size_t first_limit = 0);

// The value without a cast to `dtype`, if the store rounds it anyway.
expr::Expr without_cast(expr::Expr e, expr::DType dtype);

// Two values of a reduction as one.
std::string combined(expr::Reducer reducer, const std::string& a, const std::string& b);

// 16-bit elements, two in a register, and the function that makes such a register.
bool is_packed(const TileText& tile);
std::string pack_name(expr::DType dtype);

// The type of a register of the tile.
std::string_view register_type(const TileText& tile);

// Registers that an array of the tile has: packed pairs for 16-bit types.
int array_length(const TileText& tile);

// What a put stores of a register. Values that can be computed for elements that do not exist are
// computed for all registers first, into an array that `out` gets: conditions are then around
// stores alone, and both ways to store share the code of the values.
class PutValues {
 public:
  PutValues(expr::Expr value, const matile::Domain& domain, const RegisterScope& scope,
            const ElementPrinter& text, Writer& out);
  std::string at(const std::string& reg) const;

 private:
  expr::Expr value_;
  const ElementPrinter& text_;
  bool is_first_;
};

void emit_set(const matile::Set& op, const RegisterScope& scope, Writer& out);
// For a later `set`: reads integers of its rows and columns early, to hide their latency.
void emit_early_reads(const matile::Set& op, RegisterScope& scope, Writer& out);
void emit_fold(const matile::Fold& op, const RegisterScope& scope, Writer& out);
void emit_lanes(const matile::Lanes& op, const RegisterScope& scope, Writer& out);
void emit_shares(const matile::Shares& op, const RegisterScope& scope, Writer& out);
void emit_vote(const matile::Vote& op, const RegisterScope& scope, Writer& out);
void emit_put(const matile::Put& op, const RegisterScope& scope, Writer& out);

}  // namespace nautilus::emit
