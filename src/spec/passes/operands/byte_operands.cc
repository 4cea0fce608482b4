// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/byte_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "algebra/contraction.h"
#include "expr/bounds/affine.h"
#include "ir/operand_width.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/passes/operands/store_lines.h"
#include "target/target.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

bool is_byte(DType dtype) { return expr::is_operand(dtype) && expr::bytes(dtype) == 1; }
bool is_byte_float(DType dtype) { return is_byte(dtype) && expr::is_float(dtype); }

// What the products that read an input need of it.
struct Need {
  DType wide = DType::BF16;  // the floats of 16 bits that hold it beside the other operands
  bool has_byte_products = true;
  std::vector<size_t> depth = {};  // dimensions along which products sum it, each once
};

class Placing {
 public:
  Placing(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        pool_(context.pool),
        types_(tensor_types(program)),
        names_(program, pool_),
        lines_(program, context),
        matrix_(ir::target_of(program).matrix) {
    is_exact_ = ir::numerics_of(program).rounding == ir::Rounding::Exact;
    whole_depth_ = ir::target_of(program).tiles.whole_depth;
    for (size_t k = program.body.size(); k-- > 0;) {
      const auto* let = program.body[k].get<Let>();
      if (!let || (!expr::has_reduce(let->body) && !reduced_.contains(let->name))) continue;
      for (ir::Name name : expr::tensors_read(let->body)) reduced_.insert(name);
    }
  }

  std::optional<ir::Program> run() {
    for (const ir::Op& op : program_.body) {
      if (const auto* input = op.get<Input>()) inputs_.emplace(input->name.str(), input->type);
      if (const auto* let = op.get<Let>()) look(*let);
    }
    widen_partners();
    bool are_copied = false;
    return lines_.finish(map_equations(program_, [&](const Let& let, std::vector<Let>& before) {
      if (!std::exchange(are_copied, true)) {
        for (const auto& [name, need] : needs_) {
          const bool has_copy = is_byte_float(inputs_.at(name).dtype) || need.has_byte_products;
          if (has_copy) copy(name, need, before);
        }
      }
      const Let placed = map_reads(let, pool_, [&](Expr read) {
        const auto it = copies_.find(std::string(read.name().str()));
        if (it == copies_.end()) return read;
        const Copy& made = it->second;
        std::vector<Expr> at;
        for (size_t dim : made.dims) at.push_back(read[dim]);
        const Expr element = pool_.read(made.name, made.dtype, at);
        return made.dtype == read.dtype() ? element : pool_.cast(read.dtype(), element);
      });
      // f32(f8(f32(x))) of the copy is x.
      return map_body(placed, pool_, [&](Expr e) {
        const bool is_round_trip = e.op() == Op::Cast && e[0].op() == Op::Cast &&
                                   is_byte_float(e[0].dtype()) && e[0][0].op() == Op::Read &&
                                   is_copy(e[0][0]);
        return is_round_trip ? pool_.cast(e.dtype(), e[0][0]) : e;
      });
    }));
  }

 private:
  bool is_byte_input(Expr e) const {
    return e && is_byte(e.dtype()) && e.args().size() >= 2 &&
           inputs_.contains(std::string(e.name().str()));
  }

  // What the matrix unit does with products of both; null if it has none that are allowed.
  const target::OperandWidth* products_of(Expr a, Expr b) const {
    const target::OperandWidth* width = ir::operand_width(matrix_, a.dtype());
    const bool is_allowed = width && !(is_exact_ && width->apart_depth > 0);
    return is_allowed && expr::are_operands_together(a.dtype(), b.dtype()) ? width : nullptr;
  }

  // Operands of a contraction.
  void look(const Let& let) {
    const Expr r = let.body.op() == Op::Cast ? let.body[0] : let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2) return;
    const std::vector<Expr> list = algebra::factors(r.body());
    if (!algebra::is_contraction(list, result_axes(let, pool_))) return;
    DType wide = DType::BF16;
    std::vector<Expr> elements;
    for (Expr f : list) {
      const Expr e = algebra::element_of(f);
      if (e && e.dtype() == DType::F16) wide = DType::F16;
      // Products of other elements of the sum's dtype are no products of 8 bits.
      if (is_byte_input(e) && expr::compute_dtype(e.dtype()) == r.dtype()) elements.push_back(e);
    }
    const target::OperandWidth* width =
        elements.size() == 2 ? products_of(elements[0], elements[1]) : nullptr;
    const bool is_pair = width && r.axis_count() == 1 && elements[0].name() != elements[1].name() &&
                         !is_inner(let, r, *width) && are_scales_beside(list, r.axis(0), *width);
    for (Expr e : elements) {
      Need& need = needs_.try_emplace(std::string(e.name().str()), Need{wide}).first->second;
      need.has_byte_products &= is_pair;
      if (!is_pair) continue;
      note_depth(e, r.axis(0), need);
      const Expr other = elements[e == elements[0] ? 1 : 0];
      for (Expr index : e.args()) need.has_byte_products &= is_box_index(index, other);
    }
    if (is_pair) partners_.emplace_back(elements[0].name().str(), elements[1].name().str());
  }

  // Whether all factors but two have the same value for as many neighbours along the axis as the
  // matrix unit sums: scales of blocks, of floats.
  bool are_scales_beside(const std::vector<Expr>& factors, Expr axis,
                         const target::OperandWidth& width) {
    if (width.apart_depth == 0) return factors.size() == 2;
    return std::ranges::count_if(factors, [&](Expr f) {
             const auto block = algebra::equal_neighbours(pool_, f, axis);
             return !block || *block == 0 || *block % width.apart_depth != 0;
           }) == 2;
  }

  // Whether a tile may hold the axis of the sum as a whole, although the matrix unit sums no so
  // many products: the result is reduced again, perhaps by the same kernel.
  bool is_inner(const Let& let, Expr sum, const target::OperandWidth& width) const {
    const Expr n = sum.extent(0);
    return width.apart_depth > 0 && n.op() == Op::IntConst && n.integer() > width.apart_depth &&
           n.integer() <= whole_depth_ && reduced_.contains(let.name);
  }

  // Whether boxes can bring tiles along the axes of an index: those that the other operand has,
  // too, are none of a tile.
  bool is_box_index(Expr index, Expr other) {
    const auto vars = expr::free_vars(index);
    return std::ranges::all_of(vars, [&](Expr v) {
      if (expr::depends_on(other, v) && index != v) return true;
      const auto p = expr::Poly::of(index);
      const auto parts = p ? p->split(v) : std::nullopt;
      return parts && parts->first.constant().value_or(0) >= 1 &&
             !expr::depends_on(expr::to_expr(pool_, parts->second), v);
    });
  }

  // The dimension that the sum runs along, at plain places.
  static void note_depth(Expr element, Expr axis, Need& need) {
    std::vector<size_t> along;
    for (size_t k = 0; k < element.args().size(); ++k) {
      need.has_byte_products &= expr::tensors_read(element[k]).empty();
      if (expr::depends_on(element[k], axis)) along.push_back(k);
    }
    need.has_byte_products &= along.size() == 1 && element[along[0]] == axis;
    for (size_t k : along) {
      if (std::find(need.depth.begin(), need.depth.end(), k) == need.depth.end())
        need.depth.push_back(k);
    }
    need.has_byte_products &= need.depth.size() == 1;
  }

  // Both operands of a product have 8 bits, or neither.
  void widen_partners() {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (const auto& [a, b] : partners_) {
        Need& first = needs_.at(a);
        Need& second = needs_.at(b);
        is_changed |= first.has_byte_products != second.has_byte_products;
        first.has_byte_products = second.has_byte_products =
            first.has_byte_products && second.has_byte_products;
      }
    }
  }

  struct Copy {
    ir::Name name;
    DType dtype;
    std::vector<size_t> dims;  // of the input, in the order of the copy
  };

  // How the input is stored by rule: in its own floats if products take them, with the depth last.
  StoreRule rule_of(const std::string& name, const Need& need, ir::Axes& axes) {
    const ir::TensorType& type = inputs_.at(name);
    std::vector<Expr> indices;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      std::string axis = fmt::format("x{}", k);
      while (is_taken(axis)) axis += "_";
      axes.push_back({pool_.name(axis), type.dims[k]});
      indices.push_back(pool_.index(axis));
    }
    const DType dtype = need.has_byte_products ? type.dtype : need.wide;
    StoreRule rule{.tensors = {names_.fresh(fmt::format("{}.{}", name, expr::name(dtype)))},
                   .dtype = dtype,
                   .axes = names_of(axes)};
    const Expr read = pool_.read(pool_.name(name), type.dtype, indices);
    // Sums of integers have operands of integers.
    if (is_byte_float(type.dtype)) rule.others = held_dtypes(pool_.cast(DType::F32, read));
    rule.others.push_back(type.dtype);
    if (!need.has_byte_products) return rule;
    const size_t last = type.dims.size() - 1;
    rule.is_stored = need.depth[0] != last;
    std::stable_partition(rule.axes.begin(), rule.axes.end(),
                          [&](ir::Name axis) { return axis != axes[need.depth[0]].name; });
    return rule;
  }

  void copy(const std::string& name, const Need& need, std::vector<Let>& before) {
    ir::Axes axes;
    const StoreRule rule = rule_of(name, need, axes);
    const decision::Store store = lines_.choose(rule);
    if (store.as == decision::StoredAs::Off) return;
    const ir::TensorType& type = inputs_.at(name);
    Let let{rule.tensors[0], in_order(axes, store.axes), dtype_of(store.as), {}};
    std::vector<Expr> indices;
    for (const ir::Axis& a : axes) indices.push_back(pool_.index(a.name));
    const Expr read = pool_.read(pool_.name(name), type.dtype, indices);
    let.body = let.dtype == type.dtype ? read : pool_.cast(let.dtype, pool_.cast(DType::F32, read));
    copies_.emplace(name, Copy{let.name, let.dtype, places(store.axes, names_of(axes))});
    before.push_back(std::move(let));
  }

  // An axis may not have the name of a size, a scalar or a tensor.
  bool is_taken(const std::string& name) const {
    for (const ir::Op& op : program_.body) {
      if (const auto* d = op.get<ir::Dim>(); d && d->name.str() == name) return true;
      if (const auto* s = op.get<ir::Static>(); s && s->name.str() == name) return true;
      if (const auto* p = op.get<ir::Param>(); p && p->name.str() == name) return true;
    }
    return types_.contains(name);
  }

  bool is_copy(Expr read) const {
    for (const auto& [name, copy] : copies_) {
      if (copy.name == read.name()) return true;
    }
    return false;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, ir::TensorType> inputs_;
  TensorNames names_;
  std::map<std::string, Need> needs_;
  std::vector<std::pair<std::string, std::string>> partners_;  // operands of one product
  std::map<std::string, Copy> copies_;
  StoreLines lines_;
  const target::Matrix& matrix_;
  bool is_exact_ = false;
  int64_t whole_depth_ = 0;
  std::unordered_set<ir::Name> reduced_;  // tensors whose values reductions need
};

}  // namespace

std::optional<ir::Program> byte_operands(const ir::Program& program, ir::PassContext& context) {
  return Placing(program, context).run();
}

}  // namespace nautilus::spec
