// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/split_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/operand_width.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"
#include "spec/facts/waits.h"
#include "spec/passes/operands/limb_dimensions.h"
#include "spec/passes/operands/limb_tensors.h"
#include "spec/passes/operands/merged_depth.h"
#include "spec/passes/operands/merged_limbs.h"
#include "spec/passes/operands/product_operands.h"
#include "spec/passes/operands/store_lines.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using SplitOp = expr::Op;

// Pairs of limbs whose products may count, small products first.
constexpr std::array<std::pair<size_t, size_t>, 6> kProducts = {
    {{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}}};

class Splitting {
 public:
  Splitting(const ir::Program& program, ir::PassContext& context)
      : target_(ir::target_of(program)),
        pool_(context.pool),
        facts_(ir::facts_of(program, pool_)),
        types_(tensor_types(program)),
        kind_(limb_kind(ir::numerics_of(program).rounding, target_.matrix)),
        waiting_(waiting_tensors(program)),
        limbs_(program, types_, pool_),
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
          transposed_.insert(read.name());
      }
    }
  }

  std::optional<ir::Program> finish(ir::Program out) { return lines_.finish(std::move(out)); }

  Let equation(const Let& let, std::vector<Let>& before) {
    const auto operands = enter(let);
    if (!operands) return let;
    const Expr r = let.body;
    const auto& [first, second] = *operands;
    // One 16-bit operand is enough: it licenses rounding the other, which may then stay in a kernel
    // with this product.
    const bool stays_second = is_left(second) && !is_left(first);
    const Limbs a = is_left(first) ? Limbs{first} : limbs_of(first, let, true, before);
    const Limbs b = a.empty()      ? Limbs()
                    : stays_second ? Limbs{second}
                                   : limbs_of(second, let, false, before);
    if (a.empty() || b.empty()) return let;
    if (depth_line_) lines_.took(*depth_line_);
    Expr sum;
    for (const auto& [i, j] : kProducts) {
      if (i >= a.size() || j >= b.size() || i + j >= kind_.count) continue;
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
    auto operands = product_operands(let, pool_);
    if (operands && is_taken(operands->first) && is_taken(operands->second)) return std::nullopt;
    if (operands) operands_ = *operands;
    merged_.reset();
    depth_line_.reset();
    if (operands) choose_depth(let, *operands);
    return operands;
  }

  // An element that the matrix unit takes as it is.
  bool is_taken(Expr operand) const {
    const Expr e = algebra::element_of(operand);
    return e && e.dtype() == DType::TF32 && ir::operand_width(target_.matrix, DType::TF32);
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
        {let.name, usual_depth(r, hints_, reuse_of(let, operands), kind_.count, target_), {}},
        axes);
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

  // With a licence for one limb: an operand that reductions give, at plain places.
  bool is_left(Expr operand) const {
    if (kind_.dtype != DType::BF16 || kind_.count > 1 || merged_ ||
        algebra::exact_halves(operand).any())
      return false;
    const auto read = expr::tensors_read(operand);
    return has_plain_places(operand) &&
           std::any_of(read.begin(), read.end(), [&](ir::Name n) { return waiting_.contains(n); });
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

  ir::Axis depth_axis() const {
    return *std::find_if(axes_.begin(), axes_.end(),
                         [&](const ir::Axis& a) { return a.name == depth_.name(); });
  }

  Limbs of_tensor(Expr read, bool is_row, std::vector<Let>& made) {
    const auto type = types_.find(std::string(read.name().str()));
    if (type == types_.end() || read.args().empty()) return {};
    const ir::Axis depth = depth_ ? depth_axis() : ir::Axis{};
    const LimbDimensions limbs = limb_dimensions(read, type->second, depth, target_, pool_);
    const std::vector<LimbDimension>& parts = limbs.parts;
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
    if (is_row || kind_.is_depth_last || transposed_.contains(read.name()))
      std::stable_partition(order.begin(), order.end(),
                            [&](size_t k) { return parts[k].at != depth_; });
    // Limbs are made for their first reader; a line uses its names of axes.
    auto [known, is_new] =
        known_.try_emplace({std::string(read.name().str()), dims_of(whole), order});
    if (is_new) {
      for (size_t k : order) rule.axes.push_back(whole[k].name);
      rule.tensors = limbs_.names(read.name().str(), limbs.value);
      rule.dtype = kind_.dtype;
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
        const Expr value = expr::substitute(pool_, limbs.value, left_out);
        limbs_.make(store.tensors, value, axes, made);
      }
    }
    if (!known->second.is_stored) return {};
    std::vector<Expr> at;
    for (size_t k : known->second.order) at.push_back(parts[k].at);
    return limbs_.elements(known->second.tensors, at);
  }

  static std::vector<const void*> dims_of(const ir::Axes& axes) {
    std::vector<const void*> out;
    for (const ir::Axis& a : axes) out.push_back(a.extent.node());
    return out;
  }

  // Of an element with axes of the sum that are one: a tensor with that one along memory.
  Limbs of_merged(Expr operand, std::vector<Let>& made) {
    const Expr read = operand.op() == SplitOp::Select ? operand[1] : operand;
    const auto type = types_.find(std::string(read.name().str()));
    if (type == types_.end()) return {};
    auto written_out = merged_limbs(operand, *merged_, axes_, type->second, pool_);
    if (!written_out) return {};
    auto& [limbs, kept, outside] = *written_out;
    const auto most_axes = static_cast<size_t>(target_.copies.box_axes);
    if (limbs.parts.size() > most_axes && kept > 0) join_batch(kept, operands_, limbs, pool_);
    if (limbs.parts.size() > most_axes) return {};
    const ir::Axes axes = limbs.axes();
    const decision::Store store =
        lines_.choose({.tensors = limbs_.names(read.name().str(), limbs.value),
                       .dtype = kind_.dtype,
                       .axes = names_of(axes)});
    if (store.as == decision::StoredAs::Off) return {};
    std::vector<Expr> places_read;
    for (size_t k : places(store.axes, names_of(axes))) places_read.push_back(limbs.parts[k].at);
    limbs_.make(store.tensors, limbs.value, in_order(axes, store.axes), made);
    Limbs out = limbs_.elements(store.tensors, places_read);
    for (Expr& limb : out) limb = outside ? pool_.select(outside, limb, operand[2]) : limb;
    return out;
  }

  Limbs of_value(Expr value, const Let& let, bool is_row, std::vector<Let>& made) {
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
    if (is_row || kind_.is_depth_last)
      std::stable_partition(own.begin(), own.end(),
                            [&](const ir::Axis& a) { return pool_.index(a.name) != depth_; });
    if (!has_plain_places(value) || !are_inside_without_axes(value, types_, fewer, all, pool_))
      return {};
    const decision::Store store =
        lines_.choose({.tensors = limbs_.names(fmt::format("{}.operand", let.name.str()), value),
                       .dtype = kind_.dtype,
                       .axes = names_of(own)});
    if (store.as == decision::StoredAs::Off) return {};
    own = in_order(own, store.axes);
    std::vector<Expr> indices;
    for (const ir::Axis& a : own) indices.push_back(pool_.index(a.name));
    limbs_.make(store.tensors, value, own, made);
    return limbs_.elements(store.tensors, indices);
  }

  const target::Target& target_;
  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::map<std::string, ir::TensorType> types_;
  LimbKind kind_;
  std::unordered_set<ir::Name> waiting_;  // tensors that reductions give
  LimbTensors limbs_;
  StoreLines lines_;
  ir::Axes axes_;              // of the equation and its sum
  std::vector<Expr> results_;  // axes of the equation alone
  Expr depth_;  // an axis of the sum that is as long as an instruction, if there is one
  std::optional<MergedDepth> merged_;          // of the equation's product
  std::optional<decision::Depth> depth_line_;  // of a product with operands that allow both
  std::pair<Expr, Expr> operands_;             // the same
  ir::Environment hints_;
  std::unordered_set<ir::Name> asked_;       // sizes that kernels are chosen for
  std::unordered_set<ir::Name> transposed_;  // tensors of which some product has limbs, depth last
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
