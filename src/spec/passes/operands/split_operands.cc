// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/split_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "expr/bounds/affine.h"
#include "expr/bounds/quotient.h"
#include "expr/conjuncts.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/passes/operands/merged_depth.h"
#include "spec/passes/operands/store_lines.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using SplitOp = expr::Op;

constexpr size_t kLimbs = 3;
constexpr std::array<std::string_view, kLimbs> kSuffix = {"high", "middle", "low"};
// Pairs of limbs with products that count, small products first.
constexpr std::array<std::pair<size_t, size_t>, 6> kProducts = {
    {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}}};
constexpr double kLargestBf16 = 0x1.FEp127;

// An operand as products of it are written: one 16-bit number, or three.
using Limbs = std::vector<Expr>;

class Splitting {
 public:
  Splitting(const ir::Program& program, ir::PassContext& context)
      : target_(ir::target_of(program)),
        pool_(context.pool),
        facts_(ir::facts_of(program, pool_)),
        types_(tensor_types(program)),
        names_(program, pool_),
        lines_(program, context) {
    for (const ir::Op& op : program.body) {
      const auto* dim = op.get<ir::Dim>();
      if (dim && dim->hint) hints_.sizes.emplace(dim->name.str(), *dim->hint);
      if (dim && dim->hint && dim->kind == ir::HintKind::Asked) asked_.insert(dim->name);
    }
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      const auto operands = let ? enter(*let) : std::nullopt;
      if (!operands || merged_) continue;
      // Few results of a row: the other operand's axes are the rows of tiles.
      const bool is_short =
          target_.tiles.least_filled * reuse_of(*let, *operands) <= target_.matrix.rows;
      for (const bool is_row : {true, false}) {
        const Expr operand = is_row ? operands->first : operands->second;
        const Expr read = operand.op() == SplitOp::Select ? operand[1] : operand;
        if (read.op() == SplitOp::Read && (is_row || !is_along_result(read) || is_short))
          turned_.insert(read.name());
      }
    }
  }

  std::optional<ir::Program> finish(ir::Program out) { return lines_.finish(std::move(out)); }

  Let equation(const Let& let, std::vector<Let>& before) {
    const auto operands = enter(let);
    if (!operands) return let;
    const Expr r = let.body;
    const Limbs a = limbs_of(operands->first, let, true, before);
    const Limbs b = a.empty() ? Limbs() : limbs_of(operands->second, let, false, before);
    if (a.empty() || b.empty()) return let;
    if (depth_line_) lines_.took(*depth_line_);
    Expr sum;
    for (const auto& [i, j] : kProducts) {
      if (i >= a.size() || j >= b.size()) continue;
      const Expr product = pool_.binary(SplitOp::Mul, a[i], b[j]);
      sum = sum ? pool_.binary(SplitOp::Add, sum, product) : product;
    }
    Let out = let;
    if (merged_) {
      std::vector<Expr> axes;
      std::vector<Expr> extents;
      merged_->steps.push_back(merged_->axis);
      for (const ir::Axis& step : merged_->steps) {
        axes.push_back(pool_.index(step.name));
        extents.push_back(step.extent);
      }
      out.body = pool_.reduce(expr::Reducer::Sum, sum, axes, extents);
      return out;
    }
    std::vector<Expr> args(r.args().begin(), r.args().end());
    args[0] = sum;
    out.body = pool_.with_args(r, args);
    return out;
  }

 private:
  // Begins with the operands of the equation's product and their axes.
  std::optional<std::pair<Expr, Expr>> enter(const Let& let) {
    const Expr r = let.body;
    if (r.op() != SplitOp::Reduce || r.reducer() != expr::Reducer::Sum || r.dtype() != DType::F32)
      return std::nullopt;
    results_ = result_axes(let, pool_);
    axes_ = let.axes;
    for (size_t k = 0; k < r.axis_count(); ++k) axes_.push_back({r.axis(k).name(), r.extent(k)});
    depth_ = {};
    for (size_t k = 0; k < r.axis_count() && !depth_; ++k) {
      const Expr n = r.extent(k);
      if (n.op() != SplitOp::IntConst || n.integer() >= target_.matrix.depth) depth_ = r.axis(k);
    }
    auto operands = operands_of(let, r);
    if (operands) operands_ = *operands;
    merged_.reset();
    depth_line_.reset();
    if (operands) choose_depth(let, *operands);
    return operands;
  }

  // Which axes of the sum are one, where the operands can be written out along it.
  void choose_depth(const Let& let, const std::pair<Expr, Expr>& operands) {
    const Expr r = let.body;
    if (r.init() || r.axis_count() < 2 || !is_merging(operands.first) ||
        !is_merging(operands.second))
      return;
    ir::Names axes;
    for (size_t k = 0; k < r.axis_count(); ++k) axes.push_back(r.axis(k).name());
    depth_line_ = lines_.choose_depth(
        {let.name, usual_depth(r, hints_, reuse_of(let, operands), target_), {}}, axes);
    if (!depth_line_->axes.empty())
      merged_ = merged_depth(r, depth_line_->axes,
                             pool_.name(fmt::format("{}.depth", let.name.str())), pool_);
  }

  // Of how many results an element of either operand is a term, the fewer, up to the rows of a
  // tile: at the sizes that kernels are asked for.
  int64_t reuse_of(const Let& let, const std::pair<Expr, Expr>& operands) {
    std::array<double, 2> results = {1, 1};
    for (const ir::Axis& a : let.axes) {
      const Expr axis = pool_.index(a.name);
      const auto sizes = expr::free_vars(a.extent);
      const bool is_known = std::all_of(sizes.begin(), sizes.end(),
                                        [&](Expr v) { return asked_.contains(v.name()); });
      const int64_t n = is_known ? ir::evaluate_size(a.extent, hints_) : target_.matrix.rows;
      for (const size_t k : {size_t{0}, size_t{1}}) {
        if (!expr::depends_on(k == 0 ? operands.first : operands.second, axis))
          results[k] *= static_cast<double>(std::max<int64_t>(n, 1));
      }
    }
    const auto most = static_cast<double>(target_.matrix.rows);
    return static_cast<int64_t>(std::min({results[0], results[1], most}));
  }

  // Whether limbs of the operand can have several axes of the sum as one.
  static bool is_merging(Expr operand) {
    const bool is_guarded = operand.op() == SplitOp::Select &&
                            operand[2].op() == SplitOp::FloatConst && operand[2].number() == 0;
    return (is_guarded ? operand[1] : operand).op() == SplitOp::Read;
  }

  // The two operands of an f32 product of matrices. Nothing for other equations, if 16 bits hold
  // both operands, or if they hold one so that the other may be rounded.
  std::optional<std::pair<Expr, Expr>> operands_of(const Let& let, Expr r) {
    const std::vector<Expr> list = algebra::factors(r.body());
    const std::vector<Expr> axes = result_axes(let, pool_);
    for (Expr f : list) {
      const bool is_summed = has_axis_of(r, f);
      if (!is_summed || algebra::exact_halves(f).is_stored_float) return std::nullopt;
    }
    for (size_t k = 0; k < list.size(); ++k) {
      for (size_t n = 0; n < k; ++n) {
        if (!algebra::are_operands(list[n], list[k], axes)) continue;
        std::vector<Expr> a = {list[n]};
        std::vector<Expr> b = {list[k]};
        for (size_t other = 0; other < list.size(); ++other) {
          if (other == n || other == k) continue;
          const Expr f = list[other];
          if (!algebra::has_own_axis({&f, 1}, a, axes)) {
            a.push_back(f);
          } else if (!algebra::has_own_axis({&f, 1}, b, axes)) {
            b.push_back(f);
          } else {
            return std::nullopt;
          }
        }
        // Rows of tiles come before columns, which are the last axis that only one operand has.
        const auto last = std::find_if(axes.rbegin(), axes.rend(), [&](Expr axis) {
          return expr::depends_on(product(a), axis) != expr::depends_on(product(b), axis);
        });
        if (last != axes.rend() && expr::depends_on(product(a), *last)) std::swap(a, b);
        const std::pair out(product(a), product(b));
        if (algebra::exact_halves(out.first).any() && algebra::exact_halves(out.second).any())
          return std::nullopt;
        return out;
      }
    }
    return std::nullopt;
  }

  static bool has_axis_of(Expr reduction, Expr f) {
    for (size_t k = 0; k < reduction.axis_count(); ++k) {
      if (expr::depends_on(f, reduction.axis(k))) return true;
    }
    return false;
  }

  Expr product(const std::vector<Expr>& list) {
    Expr out;
    for (Expr f : list) out = out ? pool_.binary(SplitOp::Mul, out, f) : f;
    return out;
  }

  // Whether an axis of the result runs along memory, alone.
  bool is_along_result(Expr read) const {
    const auto type = types_.find(std::string(read.name().str()));
    if (type == types_.end()) return false;
    for (size_t k = read.args().size(); k-- > 0;) {
      if (type->second.dims[k].is_int(1)) continue;
      return std::find(results_.begin(), results_.end(), read[k]) != results_.end();
    }
    return false;
  }

  // Empty if the operand cannot have limbs. `is_row`: the operand of the rows of a tile, which
  // matrix instructions need with a contiguous depth.
  Limbs limbs_of(Expr operand, const Let& let, bool is_row, std::vector<Let>& made) {
    if (operand.dtype() != DType::F32) return {};
    if (merged_) return of_merged(operand, made);
    if (operand.op() == SplitOp::Select && operand[2].op() == SplitOp::FloatConst &&
        operand[2].number() == 0) {
      Limbs inside = limbs_of(operand[1], let, is_row, made);
      for (Expr& limb : inside) limb = pool_.select(operand[0], limb, operand[2]);
      return inside;
    }
    if (operand.op() == SplitOp::Read) return of_tensor(operand, is_row, made);
    return of_value(operand, let, is_row, made);
  }

  // A dimension of the limbs of a tensor, and where a product reads it.
  struct Part {
    ir::Axis axis;
    Expr at;
  };

  // The dimensions of limbs for this read of a tensor, and the element at a place of them: those of
  // the tensor, but the depth has one of its own where it is `group * C + depth`, so that a box
  // ends with its group.
  std::pair<std::vector<Part>, Expr> parts_of(Expr read, const ir::TensorType& type) {
    std::vector<Part> parts;
    std::vector<Expr> indices;
    std::optional<Part> groups;
    for (size_t k = 0; k < read.args().size(); ++k) {
      const Expr index = read[k];
      const Expr own = pool_.index(fmt::format("x{}", k));
      if (const auto group = group_of(index, type.dims[k])) {
        groups = *group;
        groups->axis.name = own.name();
        parts.push_back({{depth_.name(), depth_extent()}, depth_});
        indices.push_back(
            pool_.binary(SplitOp::Add, pool_.binary(SplitOp::Mul, own, depth_extent()), depth_));
        continue;
      }
      const bool is_plain = index.op() == SplitOp::Var &&
                            std::find(indices.begin(), indices.end(), index) == indices.end();
      indices.push_back(is_plain ? index : own);
      parts.push_back({{indices.back().name(), type.dims[k]}, index});
    }
    Expr value = pool_.read(read.name(), read.dtype(), indices);
    if (groups) put_groups(*groups, parts, value);
    return {parts, value};
  }

  // `group` in `group * C + depth`, where the depth has C terms and the dimension whole groups.
  std::optional<Part> group_of(Expr index, Expr dim) {
    if (!depth_ || index == depth_ || !expr::depends_on(index, depth_)) return std::nullopt;
    const auto rest = expr::difference(index, depth_);
    const Expr group =
        rest ? expr::exact_quotient(pool_, expr::to_expr(pool_, *rest), depth_extent()) : Expr();
    const Expr count = expr::exact_quotient(pool_, dim, depth_extent());
    if (!group || !count || expr::depends_on(group, depth_)) return std::nullopt;
    return Part{{{}, count}, group};
  }

  // In front of the first dimension; as one with it where a box has no room for another one.
  void put_groups(const Part& groups, std::vector<Part>& parts, Expr& value) {
    const auto first =
        std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.at != depth_; });
    if (parts.size() < static_cast<size_t>(target_.copies.box_axes) || first == parts.end()) {
      parts.insert(parts.begin(), groups);
      return;
    }
    const Expr number = pool_.index(groups.axis.name);
    const Expr count = first->axis.extent;
    value = expr::substitute(
        pool_, value,
        {{pool_.index(first->axis.name), pool_.binary(SplitOp::Mod, number, count)},
         {number, pool_.binary(SplitOp::FloorDiv, number, count)}});
    first->at = pool_.binary(SplitOp::Add, pool_.binary(SplitOp::Mul, groups.at, count), first->at);
    first->axis = {groups.axis.name, pool_.binary(SplitOp::Mul, groups.axis.extent, count)};
  }

  Expr depth_extent() const {
    return std::find_if(axes_.begin(), axes_.end(),
                        [&](const ir::Axis& a) { return a.name == depth_.name(); })
        ->extent;
  }

  Limbs of_tensor(Expr read, bool is_row, std::vector<Let>& made) {
    const auto type = types_.find(std::string(read.name().str()));
    if (type == types_.end() || read.args().empty()) return {};
    auto dimensions = parts_of(read, type->second);
    std::vector<Part>& parts = dimensions.first;
    Expr value = dimensions.second;
    ir::Axes whole;
    // Dimensions of one element are left out.
    std::vector<size_t> order;
    StoreRule rule;
    for (size_t k = 0; k < parts.size(); ++k) {
      whole.push_back(parts[k].axis);
      if (parts[k].axis.extent.is_int(1)) {
        rule.units.push_back(whole.back().name);
      } else {
        order.push_back(k);
      }
    }
    // The depth is the last dimension for rows, and where no other axis that a tile has whole is
    // contiguous; and where other products have such limbs of the tensor.
    if (is_row || turned_.contains(read.name()))
      std::stable_partition(order.begin(), order.end(),
                            [&](size_t k) { return parts[k].at != depth_; });
    // Limbs are made for their first reader; a line uses its names of axes.
    auto [known, is_new] =
        known_.try_emplace({std::string(read.name().str()), dims_of(whole), order});
    if (is_new) {
      for (size_t k : order) rule.axes.push_back(whole[k].name);
      rule.tensors = limb_names(read.name().str(), value);
      const decision::Store store = lines_.choose(rule);
      known->second.tensors = store.tensors;
      known->second.is_stored = store.as != decision::StoredAs::Off;
      if (known->second.is_stored) {
        known->second.order = places(store.axes, names_of(whole));
        expr::Substitution left_out;
        ir::Axes axes;
        for (const ir::Axis& a : whole) left_out.emplace(pool_.index(a.name), pool_.integer(0));
        for (size_t k : known->second.order) {
          axes.push_back(whole[k]);
          left_out.erase(pool_.index(whole[k].name));
        }
        value = expr::substitute(pool_, value, left_out);
        make_limbs(store.tensors, value, axes, made);
      }
    }
    if (!known->second.is_stored) return {};
    std::vector<Expr> at;
    for (size_t k : known->second.order) at.push_back(parts[k].at);
    return elements(known->second.tensors, at);
  }

  static std::vector<const void*> dims_of(const ir::Axes& axes) {
    std::vector<const void*> out;
    for (const ir::Axis& a : axes) out.push_back(a.extent.node());
    return out;
  }

  Limbs elements(const ir::Names& limbs, const std::vector<Expr>& at) {
    Limbs out;
    for (const ir::Name name : limbs)
      out.push_back(pool_.cast(DType::F32, pool_.read(name, DType::BF16, at)));
    return out;
  }

  // Of an element with axes of the sum that are one: a tensor with that one along memory. Indices
  // with such axes are written out along the other axes that they have; the others stay.
  Limbs of_merged(Expr operand, std::vector<Let>& made) {
    const bool is_guarded = operand.op() == SplitOp::Select;
    const Expr read = is_guarded ? operand[1] : operand;
    const auto type = types_.find(std::string(read.name().str()));
    if (type == types_.end()) return {};
    const auto is_merged = [&](Expr e) {
      return std::any_of(merged_->merged.begin(), merged_->merged.end(),
                         [&](Expr axis) { return expr::depends_on(e, axis); });
    };
    ir::Axes kept;
    ir::Axes along;  // of the equation, in indices that are written out
    std::vector<Expr> from;
    std::vector<Expr> at;
    for (size_t k = 0; k < read.args().size(); ++k) {
      if (!is_merged(read[k])) {
        const Expr place = pool_.index(fmt::format("x{}", k));
        kept.push_back({place.name(), type->second.dims[k]});
        from.push_back(place);
        at.push_back(read[k]);
        continue;
      }
      from.push_back(expr::substitute(pool_, read[k], merged_->at));
      for (const ir::Axis& a : axes_) {
        const Expr axis = pool_.index(a.name);
        const bool is_known = std::any_of(along.begin(), along.end(),
                                          [&](const ir::Axis& b) { return a.name == b.name; });
        if (!is_known && !is_merged(axis) && expr::depends_on(read[k], axis)) along.push_back(a);
      }
    }
    Expr value = pool_.read(read.name(), read.dtype(), from);
    Expr outside;
    if (is_guarded) {
      Expr inside;
      for (Expr c : expr::conjuncts(operand[0])) {
        bool is_along = is_merged(c);
        for (Expr v : expr::free_vars(c)) {
          const bool is_own = std::any_of(along.begin(), along.end(),
                                          [&](const ir::Axis& a) { return a.name == v.name(); });
          const bool is_axis = std::any_of(axes_.begin(), axes_.end(),
                                           [&](const ir::Axis& a) { return a.name == v.name(); });
          // A test of both would need an axis that the tensor lacks.
          if (is_axis && !is_own && !is_merged(v) && is_along) return {};
          is_along |= is_own;
        }
        Expr& all = is_along ? inside : outside;
        const Expr test = is_along ? expr::substitute(pool_, c, merged_->at) : c;
        all = all ? pool_.binary(SplitOp::And, all, test) : test;
      }
      if (inside) value = pool_.select(inside, value, operand[2]);
    }
    ir::Axes axes = kept;
    for (const ir::Axis& a : along) {
      axes.push_back(a);
      at.push_back(pool_.index(a.name));
    }
    axes.push_back(merged_->axis);
    at.push_back(pool_.index(merged_->axis.name));
    const auto most_axes = static_cast<size_t>(target_.copies.box_axes);
    if (axes.size() > most_axes && !kept.empty()) join_batch(kept.size(), axes, at, value);
    if (axes.size() > most_axes) return {};
    const decision::Store store =
        lines_.choose({.tensors = limb_names(read.name().str(), value), .axes = names_of(axes)});
    if (store.as == decision::StoredAs::Off) return {};
    std::vector<Expr> places_read;
    for (size_t k : places(store.axes, names_of(axes))) places_read.push_back(at[k]);
    make_limbs(store.tensors, value, in_order(axes, store.axes), made);
    Limbs out = elements(store.tensors, places_read);
    for (Expr& limb : out) limb = outside ? pool_.select(outside, limb, operand[2]) : limb;
    return out;
  }

  // The first of the axes and one that both operands have, an axis of `axes` from `begin` on, as
  // one: a box has one place of both.
  void join_batch(size_t begin, ir::Axes& axes, std::vector<Expr>& at, Expr& value) {
    for (size_t k = begin; k + 1 < axes.size(); ++k) {
      const Expr batch = pool_.index(axes[k].name);
      if (!expr::depends_on(operands_.first, batch) || !expr::depends_on(operands_.second, batch))
        continue;
      const Expr count = axes[0].extent;
      const Expr first = pool_.index(axes[0].name);
      value = expr::substitute(pool_, value,
                               {{first, pool_.binary(SplitOp::Mod, first, count)},
                                {batch, pool_.binary(SplitOp::FloorDiv, first, count)}});
      axes[0].extent = pool_.binary(SplitOp::Mul, axes[k].extent, count);
      at[0] = pool_.binary(SplitOp::Add, pool_.binary(SplitOp::Mul, batch, count), at[0]);
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
      at.erase(at.begin() + static_cast<std::ptrdiff_t>(k));
      return;
    }
  }

  Limbs of_value(Expr value, const Let& let, bool is_row, std::vector<Let>& made) {
    bool is_plain = true;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != SplitOp::Read) return;
      for (Expr index : e.args()) is_plain &= index.is_const() || index.op() == SplitOp::Var;
    });
    ir::Axes own;
    expr::Facts fewer = facts_;
    expr::Facts all = facts_;
    for (const ir::Axis& a : axes_) {
      all.add_axis(pool_.index(a.name), a.extent);
      if (!expr::depends_on(value, pool_.index(a.name))) continue;
      own.push_back(a);
      fewer.add_axis(pool_.index(a.name), a.extent);
    }
    own = in_order_of_memory(value, std::move(own), pool_);
    if (is_row)
      std::stable_partition(own.begin(), own.end(),
                            [&](const ir::Axis& a) { return pool_.index(a.name) != depth_; });
    if (!is_plain || !are_inside_without_axes(value, types_, fewer, all, pool_)) return {};
    const decision::Store store =
        lines_.choose({.tensors = limb_names(fmt::format("{}.operand", let.name.str()), value),
                       .axes = names_of(own)});
    if (store.as == decision::StoredAs::Off) return {};
    own = in_order(own, store.axes);
    std::vector<Expr> indices;
    for (const ir::Axis& a : own) indices.push_back(pool_.index(a.name));
    make_limbs(store.tensors, value, own, made);
    return elements(store.tensors, indices);
  }

  // Of the tensors that hold the limbs of a value.
  ir::Names limb_names(std::string_view base, Expr value) {
    const size_t count = algebra::exact_halves(value).in_bf16 ? 1 : kLimbs;
    ir::Names out;
    for (size_t k = 0; k < count; ++k)
      out.push_back(names_.fresh(fmt::format("{}.{}", base, kSuffix[k])));
    return out;
  }

  // The limbs of `value` over the axes.
  void make_limbs(const ir::Names& names, Expr value, const ir::Axes& axes,
                  std::vector<Let>& made) {
    // Each is computed from the value itself, so that one kernel makes all of them, whatever order
    // of axes they get.
    size_t count = 0;
    const auto add = [&](Expr number) {
      const Let limb{names[count++], axes, DType::BF16, number};
      types_.emplace(std::string(limb.name.str()), limb.type());
      made.push_back(limb);
      return pool_.cast(DType::F32, number);
    };
    if (names.size() == 1) {
      add(pool_.cast(DType::BF16, value));
    } else {
      const auto f32 = [&](double x) { return pool_.floating(x, DType::F32); };
      const auto rounded = [&](Expr x) { return pool_.cast(DType::BF16, x); };
      const auto minus = [&](Expr x, Expr y) { return pool_.binary(SplitOp::Sub, x, y); };
      const Expr is_finite = pool_.binary(SplitOp::Lt, pool_.unary(SplitOp::Abs, value),
                                          f32(std::numeric_limits<double>::infinity()));
      const Expr sign = pool_.select(pool_.binary(SplitOp::Lt, value, f32(0)), f32(-1), f32(1));
      // The largest numbers would be rounded to infinity.
      const Expr inside = pool_.binary(
          SplitOp::Min, pool_.binary(SplitOp::Max, value, f32(-kLargestBf16)), f32(kLargestBf16));
      const Expr high = add(rounded(pool_.select(is_finite, inside, sign)));
      const Expr rest = minus(value, high);
      const Expr middle = add(rounded(pool_.select(is_finite, rest, f32(0))));
      add(rounded(pool_.select(is_finite, minus(rest, middle), value)));
    }
  }

  const target::Target& target_;
  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  TensorNames names_;
  StoreLines lines_;
  ir::Axes axes_;              // of the equation and its sum
  std::vector<Expr> results_;  // axes of the equation alone
  Expr depth_;  // an axis of the sum that is as long as an instruction, if there is one
  std::optional<MergedDepth> merged_;          // of the equation's product
  std::optional<decision::Depth> depth_line_;  // of a product with operands that allow both
  std::pair<Expr, Expr> operands_;             // the same
  ir::Environment hints_;
  std::unordered_set<ir::Name> asked_;   // sizes that kernels are chosen for
  std::unordered_set<ir::Name> turned_;  // tensors of which some product has limbs, depth last
  // Limbs of tensors, by their dimensions and the order that the rule has.
  struct Known {
    ir::Names tensors;
    bool is_stored = false;
    std::vector<size_t> order;  // of the tensor's dimensions
  };
  std::map<std::tuple<std::string, std::vector<const void*>, std::vector<size_t>>, Known> known_;
};

}  // namespace

std::optional<ir::Program> split_operands(const ir::Program& program, ir::PassContext& context) {
  if (ir::numerics_of(program).rounding == ir::Rounding::Exact) return program;
  Splitting splitting(program, context);
  return splitting.finish(map_equations(program, [&](const Let& let, std::vector<Let>& before) {
    return splitting.equation(let, before);
  }));
}

}  // namespace nautilus::spec
