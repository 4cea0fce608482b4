// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/reduce_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algebra/contraction.h"
#include "decision/length_line.h"
#include "decision/lines.h"
#include "expr/rules/simplify.h"
#include "expr/scalar_ops.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using PieceOp = expr::Op;

// A product with all that is computed of its elements, and the axis that everything reduces.
struct Reduced {
  const Let* product = nullptr;
  std::vector<const Let*> elements;    // the product first; all have its axes
  std::vector<const Let*> reductions;  // of these elements
  ir::Axis axis;
};

struct Pieces {
  ir::Axis axis;  // that is divided
  Expr piece;     // number of a piece
  Expr at;        // place in it
  Expr count;
  int64_t length = 0;

  Expr place(expr::ExprPool& pool) const {
    return pool.binary(PieceOp::Add, pool.binary(PieceOp::Mul, piece, pool.integer(length)), at);
  }
  Expr is_inside(expr::ExprPool& pool) const {
    return pool.binary(PieceOp::Lt, place(pool), axis.extent);
  }
};

// Which reductions can be taken in pieces.
class ReducedProducts {
 public:
  ReducedProducts(const ir::Program& program, expr::ExprPool& pool)
      : program_(program),
        target_(ir::target_of(program)),
        pool_(pool),
        outputs_(output_set(program)) {
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      if (!let) continue;
      for (ir::Name t : expr::tensors_read(let->body)) readers_[t].push_back(let);
    }
  }

  std::vector<Reduced> find() const {
    std::vector<Reduced> out;
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (!let || !is_product(*let)) continue;
      for (const ir::Axis& axis : let->axes) {
        const auto reduced = reductions_along(*let, axis);
        if (!reduced || meets(*reduced, out)) continue;
        out.push_back(*reduced);
        break;
      }
    }
    return out;
  }

 private:
  // Whether an equation is to be taken in pieces already, for another product that it reads.
  static bool meets(const Reduced& reduced, const std::vector<Reduced>& before) {
    const auto is_in = [&](const Let* let) {
      return std::any_of(before.begin(), before.end(), [&](const Reduced& b) {
        return std::find(b.elements.begin(), b.elements.end(), let) != b.elements.end() ||
               std::find(b.reductions.begin(), b.reductions.end(), let) != b.reductions.end();
      });
    };
    return std::any_of(reduced.elements.begin(), reduced.elements.end(), is_in) ||
           std::any_of(reduced.reductions.begin(), reduced.reductions.end(), is_in);
  }

  // Whether a tile, or a step along it, holds the whole axis.
  static bool is_short(Expr extent, int64_t whole) {
    return extent.op() == PieceOp::IntConst && extent.integer() <= whole;
  }

  bool is_product(const Let& let) const {
    const Expr r = let.body;
    if (r.op() != PieceOp::Reduce || r.reducer() != expr::Reducer::Sum || r.init() ||
        r.axis_count() != 1 || expr::has_reduce(r.body()) || let.dtype != expr::DType::F32 ||
        is_short(r.extent(0), target_.tiles.whole_depth))
      return false;
    return algebra::is_contraction(algebra::factors(r.body()), result_axes(let, pool_));
  }

  // Whether one factor of the product has the axis, as an index by itself.
  bool is_operand_axis(const Let& product, Expr axis) const {
    int operands = 0;
    for (Expr factor : algebra::factors(product.body.body())) {
      if (!expr::depends_on(factor, axis)) continue;
      const Expr element = algebra::element_of(factor);
      if (!element || ++operands > 1) return false;
      for (Expr index : element.args()) {
        if (expr::depends_on(index, axis) && index != axis) return false;
      }
    }
    return operands == 1;
  }

  // Whether all reads of the tensor are of the element at its own axes.
  bool reads_own_element(const Let& reader, const Let& tensor) const {
    bool is_own = true;
    expr::for_each(reader.body, [&](Expr e) {
      if (e.op() != PieceOp::Read || e.name() != tensor.name) return;
      for (size_t k = 0; k < e.args().size(); ++k)
        is_own &= e[k] == pool_.index(tensor.axes[k].name);
    });
    return is_own;
  }

  static bool has_axes(const Let& let, const ir::Axes& axes, const ir::Axis* without) {
    const size_t count = axes.size() - (without ? 1 : 0);
    return let.axes.size() == count &&
           std::all_of(let.axes.begin(), let.axes.end(), [&](const ir::Axis& a) {
             return (!without || a.name != without->name) &&
                    std::any_of(axes.begin(), axes.end(), [&](const ir::Axis& b) {
                      return a.name == b.name && a.extent == b.extent;
                    });
           });
  }

  bool is_reduction(const Let& let, const Let& product, const ir::Axis& axis) const {
    const Expr r = let.body;
    if (r.op() != PieceOp::Reduce || r.init() || r.axis_count() != 1 ||
        r.axis(0).name() != axis.name || r.extent(0) != axis.extent || expr::has_reduce(r.body()) ||
        r.body().dtype() != expr::DType::F32)
      return false;
    const expr::Reducer by = r.reducer();
    return (by == expr::Reducer::Sum || by == expr::Reducer::Max || by == expr::Reducer::Min) &&
           has_axes(let, product.axes, &axis);
  }

  std::optional<Reduced> reductions_along(const Let& product, const ir::Axis& axis) const {
    if (is_short(axis.extent, target_.tiles.whole_extent) ||
        !is_operand_axis(product, pool_.index(axis.name)))
      return std::nullopt;
    Reduced out{&product, {&product}, {}, axis};
    std::unordered_set<ir::Name> given;  // what reductions give
    for (size_t k = 0; k < out.elements.size(); ++k) {
      const Let& tensor = *out.elements[k];
      const auto readers = readers_.find(tensor.name);
      if (outputs_.contains(tensor.name) || readers == readers_.end()) return std::nullopt;
      for (const Let* reader : readers->second) {
        if (!reads_own_element(*reader, tensor)) return std::nullopt;
        if (is_reduction(*reader, product, axis)) {
          if (given.insert(reader->name).second) out.reductions.push_back(reader);
        } else if (!expr::has_reduce(reader->body) && expr::is_float(reader->body.dtype()) &&
                   has_axes(*reader, product.axes, nullptr)) {
          const bool is_new =
              std::find(out.elements.begin(), out.elements.end(), reader) == out.elements.end();
          if (is_new) out.elements.push_back(reader);
        } else {
          return std::nullopt;
        }
      }
    }
    const auto needs_one = [&](const Let* let) {
      return std::ranges::any_of(expr::tensors_read(let->body),
                                 [&](ir::Name t) { return depends_on(t, given); });
    };
    if (std::ranges::any_of(out.elements, needs_one) ||
        std::ranges::any_of(out.reductions, needs_one))
      return std::nullopt;
    out.elements = in_order(out.elements);
    return out;
  }

  // As they stand in the program: each behind those that it reads.
  std::vector<const Let*> in_order(const std::vector<const Let*>& lets) const {
    std::vector<const Let*> out;
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (let && std::find(lets.begin(), lets.end(), let) != lets.end()) out.push_back(let);
    }
    return out;
  }

  bool depends_on(ir::Name tensor, const std::unordered_set<ir::Name>& given) const {
    if (given.contains(tensor)) return true;
    const Let* let = find_equation(program_, tensor);
    return let && std::ranges::any_of(expr::tensors_read(let->body),
                                      [&](ir::Name t) { return depends_on(t, given); });
  }

  const ir::Program& program_;
  const target::Target& target_;
  expr::ExprPool& pool_;
  std::unordered_set<ir::Name> outputs_;
  std::unordered_map<ir::Name, std::vector<const Let*>> readers_;
};

class PieceMaker {
 public:
  PieceMaker(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        target_(ir::target_of(program)),
        context_(context),
        lines_(decision::lines(program.body)),
        pool_(context.pool),
        simplifier_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        names_(program, context.pool) {}

  // Nothing if a line was refused.
  std::optional<ir::Program> run() {
    for (const Reduced& r : ReducedProducts(program_, pool_).find()) divide(r);
    if (is_refused_) return std::nullopt;
    if (instead_.empty()) return program_;
    ir::Program out{program_.level, program_.name, {}};
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      const auto it = let ? instead_.find(let->name) : instead_.end();
      if (it == instead_.end()) {
        out.body.push_back(op);
        continue;
      }
      for (const Let& made : it->second) out.body.push_back(ir::make(made, op.span()));
    }
    out.body = decision::with_lines(std::move(out.body), lines_);
    return out;
  }

 private:
  void divide(const Reduced& r) {
    const auto length = length_of(r.product->name);
    is_refused_ |= !length;
    if (!length) return;
    Pieces pieces{r.axis, {}, {}, {}, *length};
    const std::string stem(r.axis.name.str());
    pieces.piece = pool_.index(stem + ".piece");
    pieces.at = pool_.index(stem + ".at");
    pieces.count = simplifier_.simplify(
        pool_.binary(PieceOp::FloorDiv,
                     pool_.binary(PieceOp::Add, r.axis.extent, pool_.integer(pieces.length - 1)),
                     pool_.integer(pieces.length)),
        &facts_);
    std::unordered_map<ir::Name, Let> made;
    for (const Let* let : r.elements) {
      Let out = *let;
      out.name = names_.fresh(fmt::format("{}.pieces", let->name.str()));
      out.axes = with_piece(let->axes, pieces);
      out.axes.push_back({pieces.at.name(), pool_.integer(pieces.length)});
      out.body = let == r.product ? product(*let, pieces)
                                  : guarded(at_place(let->body, pieces, made), pieces,
                                            pool_.floating(0, let->body.dtype()));
      made.emplace(let->name, finished(out));
      instead_[let->name] = {made.at(let->name)};
    }
    for (const Let* let : r.reductions) {
      const Expr all = let->body;
      const Expr none = pool_.floating(expr::identity(all.reducer(), expr::DType::F32).f);
      Let part{
          names_.fresh(fmt::format("{}.pieces", let->name.str())),
          with_piece(r.product->axes, pieces), expr::DType::F32,
          pool_.reduce(all.reducer(), guarded(at_place(all.body(), pieces, made), pieces, none),
                       std::array{pieces.at}, std::array{pool_.integer(pieces.length)})};
      part = finished(part);
      Let out = *let;
      out.body = pool_.reduce(all.reducer(), element(part, pool_), std::array{pieces.piece},
                              std::array{pieces.count});
      instead_[let->name] = {part, out};
    }
  }

  // As the line about the product says, else by rule. Nothing if the line is refused.
  std::optional<int64_t> length_of(ir::Name product) {
    const decision::Lengths lengths{target_.algebra.piece_columns, target_.matrix.column_step,
                                    target_.tiles.whole_extent, "a piece", "elements"};
    return decision::read_length<decision::Piece>(lines_, product, lengths, context_);
  }

  // The axes with the number of a piece in place of the divided one.
  ir::Axes with_piece(ir::Axes axes, const Pieces& pieces) {
    for (ir::Axis& a : axes) {
      if (a.name == pieces.axis.name) a = {pieces.piece.name(), pieces.count};
    }
    return axes;
  }

  Expr guarded(Expr value, const Pieces& pieces, Expr other) {
    return pool_.select(pieces.is_inside(pool_), value, other);
  }

  // The operand that has the axis is 0 behind its end.
  Expr product(const Let& let, const Pieces& pieces) {
    const Expr axis = pool_.index(pieces.axis.name);
    Expr out;
    for (Expr factor : algebra::factors(let.body.body())) {
      Expr f = factor;
      if (expr::depends_on(f, axis))
        f = guarded(expr::substitute(pool_, f, {{axis, pieces.place(pool_)}}), pieces,
                    pool_.floating(0, f.dtype()));
      out = out ? pool_.binary(PieceOp::Mul, out, f) : f;
    }
    return pool_.reduce(expr::Reducer::Sum, out, std::array{let.body.axis(0)},
                        std::array{let.body.extent(0)});
  }

  // A value at a place of a piece, of elements in pieces.
  Expr at_place(Expr value, const Pieces& pieces, const std::unordered_map<ir::Name, Let>& made) {
    const Expr moved =
        expr::substitute(pool_, value, {{pool_.index(pieces.axis.name), pieces.place(pool_)}});
    return expr::rebuild(pool_, moved, [&](Expr e) {
      const auto it = e.op() == PieceOp::Read ? made.find(e.name()) : made.end();
      return it == made.end() ? e : element(it->second, pool_);
    });
  }

  Let finished(Let let) {
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    let.body = simplifier_.simplify(let.body, &facts);
    return let;
  }

  const ir::Program& program_;
  const target::Target& target_;
  ir::PassContext& context_;
  ir::Block lines_;  // that are not read yet
  bool is_refused_ = false;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  TensorNames names_;
  std::unordered_map<ir::Name, std::vector<Let>> instead_;
};

}  // namespace

std::optional<ir::Program> reduce_pieces(const ir::Program& program, ir::PassContext& context) {
  return PieceMaker(program, context).run();
}

}  // namespace nautilus::spec
