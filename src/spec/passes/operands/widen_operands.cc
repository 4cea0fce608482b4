// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/widen_operands.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "algebra/contraction.h"
#include "spec/equations.h"
#include "spec/passes/operands/store_lines.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

bool is_byte_float(DType dtype) { return expr::is_float(dtype) && expr::bytes(dtype) == 1; }

class Widening {
 public:
  Widening(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        pool_(context.pool),
        types_(tensor_types(program)),
        names_(program, pool_),
        lines_(program, context) {}

  std::optional<ir::Program> run() {
    for (const ir::Op& op : program_.body) {
      if (const auto* input = op.get<Input>()) inputs_.emplace(input->name.str(), input->type);
      if (const auto* let = op.get<Let>()) look(*let);
    }
    bool are_copied = false;
    return lines_.finish(map_equations(program_, [&](const Let& let, std::vector<Let>& before) {
      if (!std::exchange(are_copied, true)) {
        for (const auto& [name, dtype] : wide_) copy(name, dtype, before);
      }
      const Let wide = map_reads(let, pool_, [&](Expr read) {
        const auto it = copies_.find(std::string(read.name().str()));
        if (it == copies_.end()) return read;
        const Copy& made = it->second;
        std::vector<Expr> at;
        for (size_t dim : made.dims) at.push_back(read[dim]);
        return pool_.cast(read.dtype(), pool_.read(made.name, made.dtype, at));
      });
      // f32(f8(f32(x))) of the copy is x.
      return map_body(wide, pool_, [&](Expr e) {
        const bool is_round_trip = e.op() == Op::Cast && e[0].op() == Op::Cast &&
                                   is_byte_float(e[0].dtype()) && e[0][0].op() == Op::Read &&
                                   is_copy(e[0][0]);
        return is_round_trip ? pool_.cast(e.dtype(), e[0][0]) : e;
      });
    }));
  }

 private:
  // Operands of a contraction.
  void look(const Let& let) {
    const Expr r = let.body.op() == Op::Cast ? let.body[0] : let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2) return;
    const std::vector<Expr> list = algebra::factors(r.body());
    if (!algebra::is_contraction(list, result_axes(let, pool_))) return;
    DType other = DType::BF16;
    for (Expr f : list) {
      const Expr e = algebra::element_of(f);
      if (e && e.dtype() == DType::F16) other = DType::F16;
    }
    for (Expr f : list) {
      const Expr e = algebra::element_of(f);
      if (!e || !is_byte_float(e.dtype()) || e.args().size() < 2) continue;
      const std::string name(e.name().str());
      if (inputs_.contains(name)) wide_.emplace(name, other);
    }
  }

  struct Copy {
    ir::Name name;
    DType dtype;
    std::vector<size_t> dims;  // of the input, in the order of the copy
  };

  void copy(const std::string& name, DType dtype, std::vector<Let>& before) {
    const ir::TensorType& type = inputs_.at(name);
    Let let{names_.fresh(fmt::format("{}.{}", name, expr::name(dtype))), {}, dtype, {}};
    std::vector<Expr> indices;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      std::string axis = fmt::format("x{}", k);
      while (is_taken(axis)) axis += "_";
      let.axes.push_back({pool_.name(axis), type.dims[k]});
      indices.push_back(pool_.index(axis));
    }
    const Expr read = pool_.read(pool_.name(name), type.dtype, indices);
    const Expr value = pool_.cast(DType::F32, read);
    const decision::Store store = lines_.choose({.tensors = {let.name},
                                                 .dtype = dtype,
                                                 .axes = names_of(let.axes),
                                                 .others = held_dtypes(value)});
    if (store.as == decision::StoredAs::Off) return;
    let.dtype = dtype_of(store.as);
    let.body = pool_.cast(let.dtype, value);
    copies_.emplace(name, Copy{let.name, let.dtype, places(store.axes, names_of(let.axes))});
    let.axes = in_order(let.axes, store.axes);
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
  std::map<std::string, DType> wide_;
  std::map<std::string, Copy> copies_;
  StoreLines lines_;
};

}  // namespace

std::optional<ir::Program> widen_operands(const ir::Program& program, ir::PassContext& context) {
  return Widening(program, context).run();
}

}  // namespace nautilus::spec
