// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/gather_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/inside_guard.h"
#include "expr/bounds/affine.h"
#include "expr/bounds/divisors.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/passes/operands/store_lines.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

constexpr int64_t kOperandBytes = 2;  // of an element of a product

class Gathering {
 public:
  Gathering(const ir::Program& program, ir::PassContext& context)
      : target_(ir::target_of(program)),
        pool_(context.pool),
        facts_(ir::facts_of(program, pool_)),
        types_(tensor_types(program)),
        names_(program, pool_),
        lines_(program, context) {
    const auto outputs = output_set(program);
    for (const ir::Op& op : program.body) {
      if (const auto* fact = op.get<ir::Fact>()) expr::assume_divisor(fact->condition, divisors_);
      const auto* let = op.get<Let>();
      const bool is_own = let && !outputs.contains(let->name) && !expr::has_reduce(let->body);
      if (is_own && let->body.op() == Op::Cast) own_.emplace(let->name, Own{*let, own_.size() + 1});
    }
  }

  std::optional<ir::Program> finish(ir::Program out) { return lines_.finish(std::move(out)); }

  Let equation(Let let, std::vector<Let>& copies) {
    const Expr r = let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2)
      return let;
    ir::Axes reduced;
    for (size_t k = 0; k < r.axis_count(); ++k) reduced.push_back({r.axis(k).name(), r.extent(k)});
    // The last axis of a copy is contiguous in memory: a short one would be bad there.
    std::stable_partition(reduced.begin(), reduced.end(),
                          [&](const ir::Axis& a) { return is_short(a); });
    expr::Substitution copied;
    for (Expr term : algebra::terms(r.body())) product(let, term, reduced, copied, copies);
    let.body = expr::substitute(pool_, r, copied);
    // Equal computations stay next to each other, as before.
    std::stable_sort(copies.begin(), copies.end(), [&](const Let& a, const Let& b) {
      return place_of_.at(a.name) < place_of_.at(b.name);
    });
    return let;
  }

 private:
  // Operands of one product of the sum.
  void product(const Let& let, Expr term, const ir::Axes& reduced, expr::Substitution& copied,
               std::vector<Let>& copies) {
    const std::vector<Expr> list = algebra::factors(term);
    // Axes that may be inside a tile: not those that all factors have.
    ir::Axes inside;
    for (const ir::Axis& a : let.axes) {
      const Expr axis = pool_.index(a.name);
      const bool is_batch =
          std::all_of(list.begin(), list.end(), [&](Expr f) { return expr::depends_on(f, axis); });
      if (!is_batch) inside.push_back(a);
    }
    for (const ir::Axis& a : reduced) inside.push_back(a);
    const expr::Facts all = with(let.axes, with(reduced, facts_));
    for (Expr f : list) {
      if (copied.contains(f)) continue;
      const Expr read = half_read(f);
      if (!read || (is_element(f) && is_box(read, inside))) continue;
      const bool is_reused = !std::all_of(let.axes.begin(), let.axes.end(), [&](const ir::Axis& a) {
        return expr::depends_on(f, pool_.index(a.name));
      });
      if (!is_reused) continue;
      if (const auto transposed = transposed_read(read, inside, reduced, copies)) {
        if (*transposed) copied.emplace(f, expr::substitute(pool_, f, {{read, *transposed}}));
        continue;
      }
      const Expr value = f.op() == Op::Select ? guarded(f, read) : read;
      ir::Axes axes;
      for (const ir::Axis& a : let.axes) add(a, value, axes);
      for (const ir::Axis& a : reduced) add(a, value, axes);
      if (axes.size() < 2 || axes.size() > static_cast<size_t>(target_.copies.box_axes)) continue;
      // The copy is also made if an axis that it lacks is empty.
      if (!are_inside_without_axes(value, types_, with(axes, facts_), all, pool_)) continue;
      const Expr other = copy(value, read.name(), std::move(axes), copies);
      if (!other) continue;
      copied.emplace(f, f.op() == Op::Read ? other : pool_.cast(f.dtype(), other));
    }
  }

  bool is_short(const ir::Axis& a) const {
    return a.extent.op() == Op::IntConst && a.extent.integer() < target_.matrix.depth;
  }

  // The 16-bit element of a factor that is an element: plain, widened, or under a condition (0
  // elsewhere). Null for other factors.
  static Expr half_read(Expr f) {
    if (f.op() == Op::Select) {
      const bool is_zero = f[2].op() == Op::FloatConst && f[2].number() == 0;
      return is_zero && f[1].op() != Op::Select ? half_read(f[1]) : Expr();
    }
    return algebra::is_half_element(f) ? algebra::element_of(f) : Expr();
  }

  // Whether the factor is an element wherever that exists, and 0 elsewhere: boxes load that.
  bool is_element(Expr f) const {
    const algebra::GuardedElement e = algebra::guarded_element(f);
    return e.read && (!e.condition || algebra::keeps_inside(e, type_of(e.read).dims));
  }

  Expr guarded(Expr select, Expr read) {
    return pool_.select(select[0], read, pool_.constant(0, read.dtype()));
  }

  const ir::TensorType& type_of(Expr read) const {
    return types_.find(std::string(read.name().str()))->second;
  }

  // Whether the copy engine can load tiles of the tensor from its place: no index is data, each has
  // axes in steps that a box allows, each axis is in one index, and an axis that may be in a tile
  // is contiguous.
  bool is_box(Expr read, const ir::Axes& inside) {
    return !has_data_index(read) &&
           is_box({read.args().begin(), read.args().end()}, type_of(read).dims, inside);
  }
  bool is_box(const std::vector<Expr>& indices, const ir::Exprs& dims, const ir::Axes& inside) {
    for (const ir::Axis& axis : inside) {
      const Expr a = pool_.index(axis.name);
      int uses = 0;
      for (const Expr& index : indices) {
        if (!expr::depends_on(index, a)) continue;
        ++uses;
        // A tile has one place of a short axis, however that moves it.
        if (is_short(axis)) continue;
        const auto p = expr::Poly::of(index);
        const auto parts = p ? p->split(a) : std::nullopt;
        const int64_t step = parts ? parts->first.constant().value_or(0) : 0;
        if (step < 1 || step > (&index == &indices.back() ? 1 : most_step())) return false;
      }
      if (uses > 1) return false;
    }
    return !indices.empty() && runs_along_memory(indices.back(), dims.back(), inside);
  }

  // Of the rows of a tile from one to the next.
  int64_t most_step() const {
    return std::min(target_.copies.box_step,
                    (target_.copies.box_extent - 1) / (target_.copies.panel_columns() - 1));
  }

  // Whether one axis, no short one, is in the last index, from a multiple of 16 bytes on, and to
  // the end of the tensor or in whole tiles: a box knows no other end there.
  bool runs_along_memory(Expr last, Expr dim, const ir::Axes& inside) {
    const ir::Axis* along = nullptr;
    Expr first = last;
    for (const ir::Axis& a : inside) {
      const Expr axis = pool_.index(a.name);
      if (!expr::depends_on(last, axis)) continue;
      if (along || is_short(a)) return false;
      along = &a;
      first = expr::substitute(pool_, first, {{axis, pool_.integer(0)}});
    }
    const auto begin = expr::Poly::of(first);
    return along && begin &&
           expr::is_multiple(*begin, target_.copies.begin_bytes / kOperandBytes, divisors_) &&
           is_whole(*along, first, dim);
  }

  bool is_whole(const ir::Axis& axis, Expr first, Expr dim) {
    if (axis.extent.op() == Op::IntConst &&
        axis.extent.integer() % target_.algebra.tile_elements == 0)
      return true;
    return expr::same_index(pool_.binary(Op::Add, first, axis.extent), dim);
  }

  // The read from a copy of the tensor with another contiguous dimension, which one axis of the
  // tile alone runs along: shifts and packing do no harm along rows. Nothing if boxes cannot load
  // that either; null if a line forbids it.
  std::optional<Expr> transposed_read(Expr read, const ir::Axes& inside, const ir::Axes& reduced,
                                      std::vector<Let>& copies) {
    const size_t rank = read.args().size();
    if (has_data_index(read) || rank < 2) return std::nullopt;
    const ir::TensorType& type = type_of(read);
    if (runs_along_memory(read.args().back(), type.dims.back(), inside)) return std::nullopt;
    ir::Axes axes = reduced;  // preferred
    axes.insert(axes.end(), inside.begin(), inside.end());
    for (const ir::Axis& a : axes) {
      if (is_short(a)) continue;
      for (size_t k = 0; k + 1 < rank; ++k) {
        if (read.args()[k] != pool_.index(a.name)) continue;
        std::vector<size_t> order;  // of dimensions, k the last
        for (size_t d = 0; d < rank; ++d) {
          if (d != k) order.push_back(d);
        }
        order.push_back(k);
        std::vector<Expr> at;
        ir::Exprs dims;
        for (size_t d : order) {
          at.push_back(read.args()[d]);
          dims.push_back(type.dims[d]);
        }
        if (is_box(at, dims, inside)) return transposed_copy(read, order, copies);
      }
    }
    return std::nullopt;
  }

  // The read of a copy of the tensor with its dimensions in another order; null if there is to be
  // none.
  Expr transposed_copy(Expr read, const std::vector<size_t>& order, std::vector<Let>& copies) {
    const auto key = std::make_pair(std::string(read.name().str()), order);
    const auto known = transposed_.find(key);
    const Transposed& transposed =
        known != transposed_.end()
            ? known->second
            : transposed_.emplace(key, transpose(read, order, copies)).first->second;
    expr::Substitution at;
    for (size_t d = 0; d < order.size(); ++d) at.emplace(transposed.from[d], read[d]);
    return transposed.element ? expr::substitute(pool_, transposed.element, at) : Expr();
  }

  // A copy of a tensor: its element at the indices of the tensor.
  struct Transposed {
    Expr element;
    std::vector<Expr> from;
  };

  Transposed transpose(Expr read, const std::vector<size_t>& order, std::vector<Let>& copies) {
    ir::Axes axes;
    std::vector<Expr> from(order.size());
    const auto own = own_.find(read.name());
    for (size_t d : order) {
      // Tensors that are computed alike keep their axes, so that one kernel can compute all of
      // them.
      const ir::Name name = own == own_.end()
                                ? names_.fresh(fmt::format("{}.d{}", read.name().str(), d))
                                : own->second.let.axes[d].name;
      axes.push_back({name, type_of(read).dims[d]});
      from[d] = pool_.index(name);
    }
    const Expr whole = pool_.read(read.name(), read.dtype(), from);
    return {copy(whole, read.name(), std::move(axes), copies), from};
  }

  // An index that is data.
  static bool has_data_index(Expr read) {
    return std::any_of(read.args().begin(), read.args().end(),
                       [](Expr index) { return !expr::tensors_read(index).empty(); });
  }

  expr::Facts with(const ir::Axes& axes, expr::Facts facts) {
    for (const ir::Axis& a : axes) facts.add_axis(pool_.index(a.name), a.extent);
    return facts;
  }

  void add(const ir::Axis& axis, Expr e, ir::Axes& axes) {
    if (expr::depends_on(e, pool_.index(axis.name))) axes.push_back(axis);
  }

  // The element of a copy over the axes; null if a line is against it.
  Expr copy(Expr value, ir::Name tensor, ir::Axes axes, std::vector<Let>& copies) {
    const ir::Name name = names_.fresh(fmt::format("{}.gathered", tensor.str()));
    const decision::Store store =
        lines_.choose({.tensors = {name}, .dtype = value.dtype(), .axes = names_of(axes)});
    if (store.as == decision::StoredAs::Off) return {};
    axes = in_order(axes, store.axes);
    const auto own = own_.find(tensor);
    place_of_.emplace(name, own == own_.end() ? 0 : own->second.place);
    copies.push_back({name, std::move(axes), value.dtype(), written_out(value, tensor)});
    return element(copies.back(), pool_);
  }

  // If only products read an element-wise tensor, the copy computes it.
  Expr written_out(Expr value, ir::Name tensor) {
    const auto own = own_.find(tensor);
    if (own == own_.end()) return value;
    return expr::rebuild(pool_, value, [&](Expr e) {
      return e.op() == Op::Read && e.name() == tensor ? body_at(own->second.let, e, pool_) : e;
    });
  }

  const target::Target& target_;
  expr::ExprPool& pool_;
  expr::Facts facts_;
  expr::Divisors divisors_;
  std::map<std::pair<std::string, std::vector<size_t>>, Transposed>
      transposed_;  // copies, by order
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  StoreLines lines_;
  struct Own {
    Let let;
    size_t place = 0;  // among them
  };
  std::unordered_map<ir::Name, Own> own_;          // rounded element by element, and no outputs
  std::unordered_map<ir::Name, size_t> place_of_;  // of copies, that of what is copied
};

}  // namespace

std::optional<ir::Program> gather_operands(const ir::Program& program, ir::PassContext& context) {
  Gathering gathering(program, context);
  return gathering.finish(map_equations(program, [&](const Let& let, std::vector<Let>& copies) {
    return gathering.equation(let, copies);
  }));
}

}  // namespace nautilus::spec
