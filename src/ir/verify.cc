// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/machine.h"
#include "target/target.h"

namespace nautilus::ir {

using diag::Code;
using Kind = expr::Op;

void Verifier::fail(std::string message) {
  sink_.report(Code::NotVerified, span_, std::move(message));
}

bool Verifier::declare_var(Name name, DType dtype, bool is_axis) {
  if (tensors_.contains(std::string(name.str())) ||
      !vars_.emplace(name.str(), Var{dtype, is_axis}).second) {
    fail(fmt::format("`{}` is defined twice", name.str()));
    return false;
  }
  return true;
}

bool Verifier::declare_tensor(Name name, const TensorType& type) {
  if (vars_.contains(std::string(name.str())) || !tensors_.emplace(name.str(), type).second) {
    fail(fmt::format("`{}` is defined twice", name.str()));
    return false;
  }
  return true;
}

const TensorType* Verifier::tensor(Name name) const {
  const auto it = tensors_.find(name.str());
  return it == tensors_.end() ? nullptr : &it->second;
}

void Verifier::check(Expr e, std::string_view what) {
  switch (e.op()) {
    case Kind::Var: {
      const auto it = vars_.find(e.name().str());
      if (it == vars_.end()) {
        fail(fmt::format("{} uses `{}`, which is not in scope", what, e.name().str()));
      } else if (it->second.dtype != e.dtype()) {
        fail(fmt::format("{} uses `{}` as {}, it is {}", what, e.name().str(), name(e.dtype()),
                         name(it->second.dtype)));
      }
      return;
    }
    case Kind::Read: {
      const TensorType* type = tensor(e.name());
      if (!type) {
        fail(fmt::format("{} reads `{}`, which is not defined before", what, e.name().str()));
      } else if (type->dtype != e.dtype()) {
        fail(fmt::format("{} reads `{}` as {}, it is {}", what, e.name().str(), name(e.dtype()),
                         name(type->dtype)));
      } else if (type->dims.size() != e.args().size()) {
        fail(fmt::format("{} reads `{}` with {} indices, it has {} dimensions", what,
                         e.name().str(), e.args().size(), type->dims.size()));
      }
      for (Expr index : e.args()) {
        if (index.dtype() != DType::I64)
          fail(fmt::format("{} reads `{}` at an index of {}, expected i64", what, e.name().str(),
                           name(index.dtype())));
      }
      break;
    }
    case Kind::Reduce: {
      Axes axes;
      for (size_t k = 0; k < e.axis_count(); ++k) axes.push_back({e.axis(k).name(), e.extent(k)});
      const size_t mark = enter_axes(axes);
      check(e.body(), what);
      leave_axes(mark);
      if (e.init()) check(e.init(), what);
      return;
    }
    default:
      break;
  }
  for (Expr a : e.args()) check(a, what);
}

void Verifier::check_dtype(Expr e, DType dtype, std::string_view what) {
  if (e.dtype() != dtype)
    fail(fmt::format("{} is {}, expected {}", what, name(e.dtype()), name(dtype)));
}

bool Verifier::check_decl(const ir::Op& op) {
  if (const auto* dim = op.get<Dim>()) {
    declare_var(dim->name, DType::I64);
    if (dim->hint && *dim->hint < 0)
      fail(fmt::format("the hint for `{}` is negative", dim->name.str()));
  } else if (const auto* param = op.get<Param>()) {
    if (param->init) {
      check_closed(param->init, param->dtype, "the default");
    }
    declare_var(param->name, param->dtype);
  } else if (const auto* fact = op.get<Fact>()) {
    check_closed(fact->condition, DType::Bool, "the fact");
  } else if (const auto* s = op.get<Static>()) {
    if (s->value.value_or(0) < 1) fail(fmt::format("static `{}` is below 1", s->name.str()));
    if (vars_.contains(std::string(s->name.str())) || !statics_.emplace(s->name.str()).second) {
      fail(fmt::format("`{}` is defined twice", s->name.str()));
    }
  } else if (const auto* machine = op.get<Machine>()) {
    if (!is_machine_name(machine->name.str()))
      fail(fmt::format("a machine has no `{}`; known is `sms`", machine->name.str()));
    declare_var(machine->name, DType::I64);
  } else if (const auto* size = op.get<Size>()) {
    check_closed(size->value, DType::I64, "the size");
    declare_var(size->name, DType::I64);
  } else if (op.is<Numerics>()) {
    if (has_numerics_) fail("`numerics` stands twice");
    has_numerics_ = true;
  } else if (const auto* t = op.get<Target>()) {
    std::string known;
    for (const target::Target* k : target::targets())
      known += fmt::format("{}`{}`", known.empty() ? "" : ", ", k->name);
    if (!target::find_target(t->name.str()))
      fail(fmt::format("there is no target `{}`; known are {}", t->name.str(), known));
    if (has_target_) fail("`target` stands twice");
    has_target_ = true;
  } else {
    return false;
  }
  return true;
}

void Verifier::check_closed(Expr e, DType dtype, std::string_view what) {
  check(e, what);
  check_dtype(e, dtype, what);
  bool is_closed = !expr::has_reduce(e) && expr::tensors_read(e).empty();
  for (Expr v : expr::free_vars(e)) {
    const auto it = vars_.find(v.name().str());
    is_closed &= it == vars_.end() || !it->second.is_axis;
  }
  if (!is_closed) fail(fmt::format("{} is not an expression of sizes and scalars", what));
}

void Verifier::check_type(const TensorType& type) {
  for (Expr d : type.dims) check_closed(d, DType::I64, "a dimension");
}

size_t Verifier::enter_axes(const Axes& axes) {
  const size_t mark = axes_.size();
  for (const Axis& a : axes) check_closed(a.extent, DType::I64, "the extent of an axis");
  for (const Axis& a : axes) {
    if (declare_var(a.name, DType::I64, true)) axes_.emplace_back(a.name.str());
  }
  return mark;
}

bool Verifier::declare_local(Name name, DType dtype) {
  if (!declare_var(name, dtype, true)) return false;
  axes_.emplace_back(name.str());
  return true;
}

void Verifier::leave_axes(size_t mark) {
  for (size_t k = mark; k < axes_.size(); ++k) vars_.erase(axes_[k]);
  axes_.resize(mark);
}

}  // namespace nautilus::ir
