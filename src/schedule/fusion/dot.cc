// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/dot.h"

#include <algorithm>
#include <compare>
#include <numeric>

#include "algebra/contraction.h"
#include "algebra/inside_guard.h"
#include "expr/scalar_ops.h"
#include "ir/environment.h"
#include "ir/operand_width.h"
#include "scalar/ops.h"
#include "schedule/fusion/row_block.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;

namespace {

bool has(Expr e, Expr axis) { return expr::depends_on(e, axis); }

class DotFinder {
 public:
  DotFinder(Fusion& fusion, const ir::Program& program, expr::ExprPool& pool)
      : fusion_(fusion),
        is_exact_(ir::numerics_of(program).rounding == ir::Rounding::Exact),
        pool_(pool),
        facts_(ir::facts_of(program, pool)) {
    for (const ir::Op& op : program.body) {
      const auto* d = op.get<ir::Dim>();
      if (d && d->hint) hints_.sizes.emplace(d->name.str(), *d->hint);
      if (d && d->hint && d->kind == ir::HintKind::Asked) asked_.insert(d->name);
      if (const auto* b = op.get<scalar::Buffer>()) dims_.emplace(b->name, b->type.dims);
    }
  }

  std::vector<int> run(Expr wanted) {
    find_asked_extents();
    std::vector<Expr> candidates;
    for (Expr a : fusion_.axis_order) {
      if (a == fusion_.stream || fusion_.is_inner(a)) continue;
      if (!wanted || a == wanted) candidates.push_back(a);
    }
    for (Expr row : candidates) consider(row, {});
    // Rows that share operands in blocks, `row / 4`: only where no axis itself is a row.
    for (Expr row : candidates) {
      const Expr block = row_block(fusion_, row, facts_, pool_);
      if (!has_rows() && block) consider(row, block);
    }
    // A product with one row only, one for every place of a batch axis: a tile is a block of one.
    const bool has_block = has_rows();
    for (Expr row : candidates) {
      if (!has_block) consider(row, pool_.integer(1));
    }
    fusion_.dots = std::move(best_);
    return to_memory_;
  }

 private:
  // How good a row axis is. Of several with as many products, those that an operand in memory would
  // allow included, in this order: one that does not leave most rows of several products empty, one
  // with neighbouring results in its tiles, the one before the columns, one that fills more of a
  // tile, and the innermost.
  struct RowRank {
    size_t count = 0;
    bool is_filling = false;
    bool is_along = false;
    size_t ordered = 0;
    int64_t filled = 0;
    auto operator<=>(const RowRank&) const = default;
  };

  bool has_rows() const { return best_rank_.count > 0; }

  void find_asked_extents() {
    for (const auto& [axis, extent] : fusion_.extents) {
      const auto sizes = expr::free_vars(extent);
      const bool is_asked = std::all_of(sizes.begin(), sizes.end(),
                                        [&](Expr v) { return asked_.contains(v.name()); });
      if (is_asked) fusion_.asked.insert_or_assign(axis, ir::evaluate_size(extent, hints_));
    }
  }

  // The products along a row axis.
  std::vector<Dot> dots_along(Expr row) {
    const bool is_single = block_ && block_.is_int(1);
    std::vector<Dot> dots;
    for (size_t k = 0; k < fusion_.members.size(); ++k) {
      if (is_single) {
        if (auto d = single_row_dot(k, row)) dots.push_back(std::move(*d));
      } else {
        for (Dot& d : products(k, row)) dots.push_back(std::move(d));
      }
    }
    return dots;
  }

  // Takes the row axis if it is as good as the best so far. `block`: the rows of a block, or null.
  void consider(Expr row, Expr block) {
    block_ = block;
    computed_.clear();
    ordered_ = 0;
    std::vector<Dot> dots = dots_along(row);
    for (const Dot& d : dots) ordered_ += is_ordered(d, row) ? 1 : 0;
    const RowRank rank{dots.size() + computed_.size(), fills_rows(dots, row),
                       is_along_results(dots, row), ordered_, filled_rows(row)};
    if (rank.count == 0 || rank < best_rank_) return;
    best_rank_ = rank;
    best_ = std::move(dots);
    to_memory_ = computed_;
    fusion_.row = row;
    fusion_.block_rows = block;
    fusion_.row_block = !block                       ? 0
                        : block.op() == Op::IntConst ? block.integer()
                                                     : fusion_.target->matrix.rows;
  }

  // Whether a tile of rows is not mostly empty at the sizes that were asked for: otherwise the
  // columns are the short axis. Empty rows of a product alone take room in its ring, from the
  // operand that it waits for; a gathered one cannot be the operand of rows, which boxes bring.
  // Sums of several products need a contiguous depth of their rows.
  bool fills_rows(const std::vector<Dot>& dots, Expr row) const {
    const target::Tiles& tiles = fusion_.target->tiles;
    const auto known = fusion_.asked.find(row);
    int64_t least = tiles.least_filled;
    for (const Dot& d : dots) {
      if (!is_of_several(d, dots)) {
        const bool is_gathered = expr::tensors_read(d.column_element).size() > 1;
        if (!d.is_plain() || !are_products_alone(dots) || is_gathered) return true;
        least = tiles.least_filled_alone;
      } else if (!is_ordered(d, row) &&
                 (!d.row_element || !has(d.row_element.args().back(), d.depth))) {
        return false;
      }
    }
    return known == fusion_.asked.end() || least * known->second > fusion_.target->matrix.rows;
  }

  // Whether the fusion reduces nothing else: another reduction may need a row of results whole.
  bool are_products_alone(const std::vector<Dot>& dots) const {
    for (size_t k = 0; k < fusion_.members.size(); ++k) {
      const bool is_product =
          std::any_of(dots.begin(), dots.end(), [&](const Dot& d) { return d.member == k; });
      if (fusion_.members[k].is_reduction() && !is_product) return false;
    }
    return true;
  }

  // Whether rows or columns are the last axis of results that are stored from registers, those of
  // sums of several products: a tile of images and filters has no two neighbouring elements.
  bool is_along_results(const std::vector<Dot>& dots, Expr row) const {
    return std::all_of(dots.begin(), dots.end(), [&](const Dot& d) {
      const Expr last = fusion_.members[d.member].axes.back();
      return !is_of_several(d, dots) || row == last || d.column == last;
    });
  }

  static bool is_of_several(const Dot& d, const std::vector<Dot>& dots) {
    return std::count_if(dots.begin(), dots.end(),
                         [&](const Dot& other) { return other.member == d.member; }) > 1;
  }

  // Rows of a tile that there are at the program's hints; all of them where those say nothing.
  int64_t filled_rows(Expr row) const {
    const Expr extent = fusion_.extents.at(row);
    for (Expr v : expr::free_vars(extent)) {
      if (!hints_.sizes.contains(v.name().str())) return fusion_.target->matrix.rows;
    }
    return std::min<int64_t>(ir::evaluate_size(extent, hints_), fusion_.target->matrix.rows);
  }

  // Whether the value changes from row to row of a tile.
  bool varies(Expr e, Expr row) {
    if (!block_) return has(e, row);
    const Expr number = pool_.binary(Op::FloorDiv, row, block_);
    return has(expr::substitute(pool_, e, {{number, pool_.integer(0)}}), row);
  }

  // A possible product of matrices along the rows, whatever its factors are.
  static bool is_sum_of_rows(const Member& m, Expr row) {
    return m.is_reduction() && !m.is_closing && m.reducer == expr::Reducer::Sum && m.has(row) &&
           (m.dtype == DType::F32 || m.dtype == DType::I32);
  }

  // The products that a member sums, if all of its terms are products along the row. Several have
  // one column and one depth, and operands of 16 bits that come from memory, those of the rows,
  // too.
  std::vector<Dot> products(size_t k, Expr row) {
    const Member& m = fusion_.members[k];
    if (!is_sum_of_rows(m, row)) return {};
    const std::vector<Expr> terms = algebra::terms(m.value);
    if (terms.size() == 1) {
      const auto d = product(k, m.value, row);
      return d ? std::vector<Dot>{*d} : std::vector<Dot>();
    }
    std::vector<Dot> out;
    const size_t computed = computed_.size();
    for (Expr term : terms) {
      const size_t before = computed_.size();
      const auto d = product(k, term, row);
      const bool is_alike =
          d && d->is_plain() && d->scales.empty() && (out.empty() || d->column == out[0].column);
      if (!is_alike && computed_.size() == before) {
        computed_.resize(computed);
        return {};
      }
      if (!is_alike) continue;
      if (const Member* made = fusion_.by_name(d->row_element.name()))
        computed_.push_back(made->statement);
      out.push_back(*d);
    }
    if (computed_.size() == computed) return out;
    const auto first = computed_.begin() + static_cast<std::ptrdiff_t>(computed);
    std::sort(first, computed_.end());
    computed_.erase(std::unique(first, computed_.end()), computed_.end());
    return {};
  }

  std::optional<Dot> product(size_t k, Expr value, Expr row) {
    const Member& m = fusion_.members[k];
    Dot d;
    d.member = k;
    d.depth = m.is_rolled ? fusion_.stream : m.inner[0];
    const std::vector<Expr> factors = algebra::factors(value);
    const auto is_shared = [&](Expr axis) { return is_shared_by(factors, axis, row); };
    std::vector<Expr> b;
    for (Expr f : factors) {
      if (m.is_rolled && expr::is_float(m.dtype) && is_scale(f, d)) continue;
      bool is_other = false;
      for (Expr a : m.axes) is_other |= a != row && has(f, a) && !is_shared(a);
      if (varies(f, row) || !is_other) {
        d.a.push_back(f);
      } else {
        b.push_back(f);
      }
    }
    if (b.size() != 1) return std::nullopt;
    d.b = b[0];
    set_elements(d);
    if (!are_taken(d, m.dtype)) return std::nullopt;
    bool is_row = false;
    bool is_depth = false;
    for (Expr f : d.a) {
      is_row |= varies(f, row);
      is_depth |= has(f, d.depth);
    }
    if (!is_row || !is_depth || !has(d.b, d.depth)) return std::nullopt;
    // Of several axes that only the second operand has one is inside the tile, the streamed one
    // or the last that is not short; the tiles have one place of each other.
    for (Expr a : m.axes) {
      if (a == row || !has(d.b, a) || is_shared(a)) continue;
      const Expr extent = fusion_.extents.at(a);
      const bool is_short =
          extent.op() == Op::IntConst && extent.integer() < fusion_.target->matrix.depth;
      if (!d.column || a == fusion_.stream || (d.column != fusion_.stream && !is_short))
        d.column = a;
    }
    if (!d.column) return std::nullopt;
    for (Expr f : d.scales)
      d.column_block =
          std::gcd(d.column_block, algebra::equal_neighbours(pool_, f, d.column).value_or(0));
    for (Expr f : d.a) {
      if (has(f, d.column)) return std::nullopt;
    }
    // An operand that is computed is rounded: a licence of the numerics contract.
    if (!d.is_plain() && is_exact_) return std::nullopt;
    const Member* column = fusion_.by_name(d.column_element.name());
    // First operands in registers have 16 bits.
    const bool has_stored = !expr::is_half(d.column_element.dtype());
    const Member* rows = has_stored ? fusion_.by_name(d.row_element.name()) : nullptr;
    for (const Member* made : {column, rows}) {
      if (made) computed_.push_back(made->statement);
    }
    if (!column && !rows) return d;
    if (is_ordered(d, row)) ++ordered_;
    return std::nullopt;
  }

  // Takes a factor that is the same for whole steps along the depth.
  bool is_scale(Expr factor, Dot& d) {
    const auto block = algebra::equal_neighbours(pool_, factor, d.depth);
    if (!block || *block == 0 || *block % fusion_.target->matrix.depth != 0) return false;
    d.scales.push_back(factor);
    d.block = std::gcd(d.block, *block);
    return true;
  }

  // The tensor element that boxes can load for the factor; null if there is none.
  Expr copied_element(Expr factor) const {
    const algebra::GuardedElement e = algebra::guarded_element(factor);
    if (!e.read || !e.condition) return e.read;
    const auto dims = dims_.find(e.read.name());
    return dims != dims_.end() && algebra::keeps_inside(e, dims->second) ? e.read : Expr();
  }

  void set_elements(Dot& d) const {
    d.row_element = d.a.size() == 1 ? copied_element(d.a[0]) : Expr();
    d.column_element = copied_element(d.b);
  }

  // Whether the matrix unit takes the second operand, as it lies in memory, and a first one with
  // it: one that is computed is rounded to 16 bits. The sums of the unit are those of the member.
  bool are_taken(const Dot& d, DType sum) const {
    if (!d.column_element || expr::compute_dtype(d.operand_dtype()) != sum) return false;
    const target::OperandWidth* width =
        ir::operand_width(fusion_.target->matrix, d.operand_dtype());
    if (!width || (is_exact_ && width->apart_depth > 0)) return false;
    if (expr::is_half(d.column_element.dtype())) return true;
    const auto is_along_depth = [&](Expr element) { return has(element.args().back(), d.depth); };
    return d.is_plain() && (width->is_any_major ||
                            (is_along_depth(d.column_element) && is_along_depth(d.row_element)));
  }

  bool is_ordered(const Dot& d, Expr row) const {
    const auto& axes = fusion_.members[d.member].axes;
    return std::find(axes.begin(), axes.end(), row) < std::find(axes.begin(), axes.end(), d.column);
  }

  // As `product`, where operands that differ from row to row are not shared by rows: the column
  // operand is that of the tile's one row, written `row / 1`.
  std::optional<Dot> single_row_dot(size_t k, Expr row) {
    const Member& m = fusion_.members[k];
    if (!is_sum_of_rows(m, row)) return std::nullopt;
    const Expr depth = m.is_rolled ? fusion_.stream : m.inner[0];
    const std::vector<Expr> factors = algebra::factors(m.value);
    for (Expr column : m.axes) {
      if (column == row) continue;
      Dot d;
      d.member = k;
      d.column = column;
      d.depth = depth;
      bool is_row = false;
      bool is_depth = false;
      bool is_clear = true;
      for (Expr f : factors) {
        if (!has(f, column)) {
          d.a.push_back(f);
          is_row |= has(f, row);
          is_depth |= has(f, depth);
          continue;
        }
        is_clear &= !d.b;
        d.b = f;
      }
      if (!is_clear || !d.b || !is_row || !is_depth || !has(d.b, depth)) continue;
      set_elements(d);
      if (!are_taken(d, m.dtype) || fusion_.by_name(d.column_element.name())) continue;
      if (!expr::is_half(d.column_element.dtype()) && fusion_.by_name(d.row_element.name()))
        continue;
      // Other axes of the column operand: one place of each per tile.
      for (Expr a : m.axes) {
        if (a == row || a == column || !has(d.b, a)) continue;
        is_clear &= a != fusion_.stream &&
                    std::any_of(d.a.begin(), d.a.end(), [&](Expr f) { return has(f, a); });
      }
      if (!is_clear || (!d.is_plain() && is_exact_)) continue;
      d.b =
          expr::substitute(pool_, d.b, {{row, pool_.binary(Op::FloorDiv, row, pool_.integer(1))}});
      return d;
    }
    return std::nullopt;
  }

  // An axis that both sides have, or that only the row's side has: one value of it per tile.
  bool is_shared_by(const std::vector<Expr>& factors, Expr axis, Expr row) {
    if (axis == fusion_.stream) return false;
    return std::any_of(factors.begin(), factors.end(),
                       [&](Expr f) { return varies(f, row) && has(f, axis); });
  }

  Fusion& fusion_;
  bool is_exact_;
  expr::ExprPool& pool_;
  expr::Facts facts_;
  ir::Environment hints_;
  std::unordered_set<ir::Name> asked_;            // sizes that kernels are chosen for
  std::unordered_map<ir::Name, ir::Exprs> dims_;  // of tensors
  Expr block_;
  std::vector<int> computed_;   // second operands that members compute, for the current row
  std::vector<int> to_memory_;  // for the row chosen
  std::vector<Dot> best_;       // of the row chosen
  RowRank best_rank_;
  size_t ordered_ = 0;  // contractions with rows before the columns
};

}  // namespace

std::vector<int> find_dots(Fusion& fusion, const ir::Program& program, Expr row,
                           expr::ExprPool& pool) {
  return DotFinder(fusion, program, pool).run(row);
}

}  // namespace nautilus::schedule
