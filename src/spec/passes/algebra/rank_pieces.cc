// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/rank_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "decision/length_line.h"
#include "decision/lines.h"
#include "expr/rules/simplify.h"
#include "expr/scalar_ops.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "ir/usual_sizes.h"
#include "spec/equations.h"
#include "spec/facts/chosen_places.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

class RankPieces {
 public:
  RankPieces(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        target_(ir::target_of(program)),
        usual_(program),
        context_(context),
        lines_(decision::lines(program.body)),
        pool_(context.pool),
        simplifier_(context.pool),
        names_(program, context.pool) {}

  // Nothing if a line was refused. What is left of an axis may be divided again.
  std::optional<ir::Program> run() {
    bool is_changed = false;
    while (divide_one()) is_changed = true;
    if (is_refused_) return std::nullopt;
    if (!is_changed) return program_;
    program_.body = decision::with_lines(std::move(program_.body), lines_);
    return std::move(program_);
  }

 private:
  bool divide_one() {
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      const auto order = let ? counted_order(*let, pool_) : std::nullopt;
      if (!order) continue;
      const std::vector<PlaceReader> readers = place_readers(program_, *let, *order, pool_);
      if (readers.empty()) continue;
      int64_t most = 1;
      for (const PlaceReader& r : readers) most = std::max(most, r.limit);
      const auto length = length_of(*let, *order, most);
      if (is_refused_) return false;
      if (!length) continue;
      divide(Let(*let), *order, readers, {most, *length});
      return true;
    }
    return false;
  }

  struct Sizes {
    int64_t kept;    // of each piece
    int64_t length;  // of a piece
  };

  // As the line about the count says, else by rule; nothing where the axis is too short for pieces.
  // Lanes put powers of two in order.
  std::optional<int64_t> length_of(const Let& count, const TotalOrder& order, int64_t most) {
    if (most > target_.algebra.most_ranks) return std::nullopt;
    const int64_t least = std::max(target_.algebra.rank_step, power_of_two(2 * most));
    const decision::Lengths lengths{std::max(4 * least, target_.algebra.rank_piece), least,
                                    64 * least, "a piece", "elements"};
    const int64_t longer = std::max(target_.algebra.rank_row, 2 * lengths.usual);
    if (usual_.extent(order.axis.extent) <= static_cast<double>(longer)) return std::nullopt;
    const auto length =
        decision::read_length<decision::Piece>(lines_, count.name, lengths, context_);
    is_refused_ |= !length;
    return length;
  }

  static int64_t power_of_two(int64_t n) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  }

  // The axes of what is made, named after the one that the count orders.
  struct Division {
    const Let& count;
    const TotalOrder& order;
    ir::Axis pieces;  // of the axis
    ir::Axis inside;  // a piece, for its elements
    ir::Axis others;  // for those that they are compared with
    ir::Axis ranks;   // of the elements that stay
    ir::Axis kept;    // all elements that stay
    ir::Axis before;  // for those that they are compared with
  };

  Division division(const Let& count, const TotalOrder& order, Sizes sizes) {
    const auto name = [&](std::string_view part) {
      return pool_.name(fmt::format("{}.{}", order.axis.name.str(), part));
    };
    const Expr length = pool_.integer(sizes.length);
    const Expr ranks = pool_.integer(sizes.kept);
    const Expr pieces = pool_.binary(
        Op::FloorDiv, pool_.binary(Op::Add, order.axis.extent, pool_.integer(sizes.length - 1)),
        length);
    const Expr kept = simplifier_.simplify(pool_.binary(Op::Mul, pieces, ranks));
    return {count,
            order,
            {name("piece"), pieces},
            {name("at"), length},
            {name("other"), length},
            {name("rank"), ranks},
            {name("kept"), kept},
            {name("before"), kept}};
  }

  void divide(const Let& count, const TotalOrder& order, const std::vector<PlaceReader>& readers,
              Sizes sizes) {
    const Division d = division(count, order, sizes);
    const Let counts = count_in_pieces(d);
    const Let first = keep(d, counts);
    const Let places = places_of_kept(d, first);
    const Let elements = kept_elements(d, places);
    const Let last = count_kept(d, places, elements);
    std::unordered_map<ir::Name, Let> chosen;
    for (const PlaceReader& r : readers)
      chosen.emplace(r.let->name, read_kept(r, d, places, elements, last));
    replace(count.name, {counts, first, places, elements, last}, chosen);
  }

  // An element of a piece as one of the axis.
  Expr place(const Division& d, const ir::Axis& in_piece) {
    return pool_.binary(Op::Add, pool_.binary(Op::Mul, index(d.pieces), in_piece.extent),
                        index(in_piece));
  }
  Expr is_inside(const Division& d, const ir::Axis& in_piece) {
    return pool_.binary(Op::Lt, place(d, in_piece), d.order.axis.extent);
  }
  Expr at_place(const Division& d, Expr e, const ir::Axis& in_piece) {
    return expr::substitute(pool_, e, {{d.order.index, place(d, in_piece)}});
  }

  // Behind the end of the axis stand elements that come before none.
  Expr element_in_piece(const Division& d, const ir::Axis& in_piece) {
    const DType dtype = d.order.element.dtype();
    const expr::Value v =
        expr::identity(d.order.is_largest_first ? Reducer::Max : Reducer::Min, dtype);
    const Expr none = is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype);
    return pool_.select(is_inside(d, in_piece), at_place(d, d.order.element, in_piece), none);
  }

  Let count_in_pieces(const Division& d) {
    Let out = named(d, "piece", {d.pieces, d.inside}, d.count.dtype);
    Expr is_before = comes_before(d.order, element_in_piece(d, d.others),
                                  element_in_piece(d, d.inside), index(d.others), index(d.inside));
    for (Expr c : d.order.counts)
      is_before = both(is_before, pool_.select(is_inside(d, d.others), at_place(d, c, d.others),
                                               pool_.boolean(false)));
    out.body = sum_of_flags(is_before, d.others, out.dtype);
    return finished(out);
  }

  // The element with each of the ranks that stay; -1 where the piece has fewer.
  Let keep(const Division& d, const Let& counts) {
    Let out = named(d, "kept", {d.pieces, d.ranks}, DType::I64);
    Expr is_chosen =
        both(pool_.binary(Op::Eq, pool_.cast(DType::I64, element(counts, pool_)), index(d.ranks)),
             is_inside(d, d.inside));
    for (Expr c : d.order.has_place) is_chosen = both(is_chosen, at_place(d, c, d.inside));
    const Expr none = pool_.integer(-1);
    out.body = pool_.reduce(Reducer::Max, pool_.select(is_chosen, place(d, d.inside), none),
                            std::array{index(d.inside)}, std::array{d.inside.extent}, none);
    return finished(out);
  }

  Let places_of_kept(const Division& d, const Let& first) {
    Let out = named(d, "at", {d.kept}, DType::I64);
    const Expr c = index(d.kept);
    out.body = expr::substitute(pool_, element(first, pool_),
                                {{index(d.pieces), pool_.binary(Op::FloorDiv, c, d.ranks.extent)},
                                 {index(d.ranks), pool_.binary(Op::Mod, c, d.ranks.extent)}});
    return finished(out);
  }

  Expr is_kept(const Let& places) {
    return pool_.binary(Op::Ge, element(places, pool_), pool_.integer(0));
  }

  // NaN has no place; it is computed, because texts have no word for it.
  Let kept_elements(const Division& d, const Let& places) {
    const DType dtype = d.order.element.dtype();
    Let out = named(d, "of", {d.kept}, dtype);
    Expr none = pool_.constant(0, dtype);
    if (is_float(dtype)) {
      const Expr infinite = pool_.floating(std::numeric_limits<double>::infinity(), dtype);
      none = pool_.binary(Op::Sub, infinite, infinite);
    }
    const Expr there =
        expr::substitute(pool_, d.order.element, {{d.order.index, element(places, pool_)}});
    out.body = pool_.select(is_kept(places), there, none);
    return finished(out);
  }

  // The same order of kept elements, which are in the order of the axis.
  Let count_kept(const Division& d, const Let& places, const Let& elements) {
    Let out = named(d, "last", {d.kept}, d.count.dtype);
    const expr::Substitution earlier = {{index(d.kept), index(d.before)}};
    const Expr of = element(elements, pool_);
    Expr is_before = comes_before(d.order, expr::substitute(pool_, of, earlier), of,
                                  index(d.before), index(d.kept));
    if (!is_float(elements.dtype))
      is_before = both(expr::substitute(pool_, is_kept(places), earlier), is_before);
    out.body = sum_of_flags(is_before, d.before, out.dtype);
    return finished(out);
  }

  // The reduction over the kept elements.
  Let read_kept(const PlaceReader& reader, const Division& d, const Let& places,
                const Let& elements, const Let& last) {
    const Expr r = reader.let->body;
    const expr::Substitution own = indices_of(d.count, reader.read, pool_);
    const auto there = [&](Expr e) { return expr::substitute(pool_, e, own); };
    const expr::Substitution moved = {{reader.read, there(element(last, pool_))},
                                      {there(d.order.element), there(element(elements, pool_))},
                                      {r.axis(0), there(element(places, pool_))}};
    const Expr term = r.body();
    const Expr condition = both(there(is_kept(places)), expr::substitute(pool_, term[0], moved));
    Let out = *reader.let;
    out.body = pool_.reduce(
        r.reducer(), pool_.select(condition, expr::substitute(pool_, term[1], moved), term[2]),
        std::array{index(d.kept)}, std::array{d.kept.extent}, r.init());
    return finished(out);
  }

  Expr comes_before(const TotalOrder& order, Expr earlier, Expr own, Expr before, Expr at) {
    return pool_.binary(Op::Or,
                        pool_.binary(order.is_largest_first ? Op::Gt : Op::Lt, earlier, own),
                        pool_.binary(Op::And, pool_.binary(Op::Eq, earlier, own),
                                     pool_.binary(Op::Lt, before, at)));
  }

  Expr index(const ir::Axis& axis) { return pool_.index(axis.name); }

  Expr both(Expr a, Expr b) { return pool_.binary(Op::And, a, b); }

  Expr sum_of_flags(Expr condition, const ir::Axis& axis, DType dtype) {
    return pool_.reduce(Reducer::Sum,
                        pool_.select(condition, pool_.integer(1, dtype), pool_.integer(0, dtype)),
                        std::array{index(axis)}, std::array{axis.extent});
  }

  // A new tensor beside the count, with these axes in place of the one that it orders.
  Let named(const Division& d, std::string_view part, const ir::Axes& instead, DType dtype) {
    Let out{names_.fresh(fmt::format("{}.{}", d.count.name.str(), part)), {}, dtype, {}};
    for (const ir::Axis& a : d.count.axes) {
      if (a.name == d.order.axis.name)
        out.axes.insert(out.axes.end(), instead.begin(), instead.end());
      else
        out.axes.push_back(a);
    }
    return out;
  }

  void replace(ir::Name count, const std::vector<Let>& made,
               const std::unordered_map<ir::Name, Let>& chosen) {
    ir::Program out{program_.level, program_.name, {}};
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      const auto it = let ? chosen.find(let->name) : chosen.end();
      if (let && let->name == count) {
        for (const Let& m : made) out.body.push_back(ir::make(m, op.span()));
      } else if (it != chosen.end()) {
        out.body.push_back(ir::make(it->second, op.span()));
      } else {
        out.body.push_back(op);
      }
    }
    program_ = std::move(out);
  }

  Let finished(Let let) {
    expr::Facts facts = ir::facts_of(program_, pool_);
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    let.body = simplifier_.simplify(let.body, &facts);
    return let;
  }

  ir::Program program_;
  const target::Target& target_;
  ir::UsualSizes usual_;
  ir::PassContext& context_;
  ir::Block lines_;  // that are not read yet
  bool is_refused_ = false;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  TensorNames names_;
};

}  // namespace

std::optional<ir::Program> rank_pieces(const ir::Program& program, ir::PassContext& context) {
  return RankPieces(program, context).run();
}

}  // namespace nautilus::spec
