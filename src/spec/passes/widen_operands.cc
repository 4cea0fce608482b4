// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/widen_operands.h"

#include <fmt/format.h>

#include <map>

#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

void factors(Expr e, std::vector<Expr>& out) {
  if (e.op() == Op::Mul) {
    factors(e[0], out);
    factors(e[1], out);
  } else {
    out.push_back(e);
  }
}

Expr element(Expr factor) {
  const Expr e = factor.op() == Op::Cast ? factor[0] : factor;
  return e.op() == Op::Read ? e : Expr();
}

bool is_byte_float(DType dtype) { return expr::is_float(dtype) && expr::bytes(dtype) == 1; }

class Widening {
 public:
  Widening(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), types_(tensor_types(program)) {}

  ir::Program run() {
    for (const ir::Op& op : program_.body) {
      if (const auto* input = op.get<Input>()) inputs_.emplace(input->name.str(), input->type);
      if (const auto* let = op.get<Let>()) look(*let);
    }
    ir::Program out{program_.level, program_.name, {}};
    bool are_copied = false;
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (let && !are_copied) {
        for (const auto& [name, dtype] : wide_) out.body.push_back(copy(name, dtype));
        are_copied = true;
      }
      if (!let) {
        out.body.push_back(op);
        continue;
      }
      Let changed = *let;
      changed.body = expr::rebuild(pool_, let->body, [&](Expr e) {
        if (e.op() != Op::Read) return e;
        const auto it = copies_.find(std::string(e.name().str()));
        if (it == copies_.end()) return e;
        return pool_.cast(e.dtype(), pool_.read(it->second, wide_.at(it->first), e.args()));
      });
      // f32(f8(f32(x))) of the copy is x.
      changed.body = expr::rebuild(pool_, changed.body, [&](Expr e) {
        const bool is_round_trip = e.op() == Op::Cast && e[0].op() == Op::Cast &&
                                   is_byte_float(e[0].dtype()) && e[0][0].op() == Op::Read &&
                                   is_copy(e[0][0]);
        return is_round_trip ? pool_.cast(e.dtype(), e[0][0]) : e;
      });
      out.body.push_back(ir::make(std::move(changed), op.span()));
    }
    return out;
  }

 private:
  // Operands of a sum of products, each with an axis of the result that the other has not.
  void look(const Let& let) {
    const Expr r = let.body.op() == Op::Cast ? let.body[0] : let.body;
    if (r.op() != Op::Reduce || r.reducer() != expr::Reducer::Sum || let.axes.size() < 2) return;
    std::vector<Expr> list;
    factors(r.body(), list);
    DType other = DType::BF16;
    int matrices = 0;
    for (Expr f : list) {
      int own = 0;
      for (const ir::Axis& a : let.axes) own += expr::depends_on(f, pool_.index(a.name)) ? 1 : 0;
      matrices += own > 0 && own < static_cast<int>(let.axes.size()) ? 1 : 0;
      const Expr e = element(f);
      if (e && e.dtype() == DType::F16) other = DType::F16;
    }
    if (matrices < 2) return;
    for (Expr f : list) {
      const Expr e = element(f);
      if (!e || !is_byte_float(e.dtype()) || e.args().size() < 2) continue;
      const std::string name(e.name().str());
      if (inputs_.contains(name)) wide_.emplace(name, other);
    }
  }

  ir::Op copy(const std::string& name, DType dtype) {
    const ir::TensorType& type = inputs_.at(name);
    std::string fresh = fmt::format("{}.{}", name, expr::name(dtype));
    while (types_.contains(fresh)) fresh += "_";
    Let let{pool_.name(fresh), {}, dtype, {}};
    std::vector<Expr> indices;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      std::string axis = fmt::format("x{}", k);
      while (is_taken(axis)) axis += "_";
      let.axes.push_back({pool_.name(axis), type.dims[k]});
      indices.push_back(pool_.index(axis));
    }
    const Expr read = pool_.read(pool_.name(name), type.dtype, indices);
    let.body = pool_.cast(dtype, pool_.cast(DType::F32, read));
    copies_.emplace(name, let.name);
    return ir::make(std::move(let));
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
      if (copy == read.name()) return true;
    }
    return false;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::TensorType> types_;
  std::map<std::string, ir::TensorType> inputs_;
  std::map<std::string, DType> wide_;
  std::map<std::string, ir::Name> copies_;
};

}  // namespace

std::optional<ir::Program> widen_operands(const ir::Program& program, ir::PassContext& context) {
  return Widening(program, context.pool).run();
}

}  // namespace nautilus::spec
