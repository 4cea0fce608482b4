// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/format.h>

#include "expr/walk.h"
#include "ir/decl.h"

namespace nautilus::ir {

using diag::Code;
using Kind = expr::Op;

void Verifier::fail(std::string message) {
  sink_.report(Code::NotVerified, span_, std::move(message));
}

bool Verifier::declare_var(Name name, DType dtype) {
  if (tensors_.contains(std::string(name.str())) || !vars_.emplace(name.str(), dtype).second) {
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
      } else if (it->second != e.dtype()) {
        fail(fmt::format("{} uses `{}` as {}, it is {}", what, e.name().str(), name(e.dtype()),
                         name(it->second)));
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
      break;
    }
    case Kind::Reduce: {
      for (size_t k = 0; k < e.axis_count(); ++k) {
        check(e.extent(k), what);
        declare_var(e.axis(k).name(), DType::I64);
      }
      check(e.body(), what);
      for (size_t k = 0; k < e.axis_count(); ++k) drop_var(e.axis(k).name());
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
      check(param->init, "the default");
      check_dtype(param->init, param->dtype, "the default");
    }
    declare_var(param->name, param->dtype);
  } else if (const auto* fact = op.get<Fact>()) {
    check(fact->condition, "the fact");
    check_dtype(fact->condition, DType::Bool, "the fact");
  } else {
    return op.is<Static>() || op.is<Numerics>();
  }
  return true;
}

void Verifier::check_type(const TensorType& type) {
  for (Expr d : type.dims) {
    check(d, "a dimension");
    check_dtype(d, DType::I64, "a dimension");
  }
}

void Verifier::enter_axes(const Axes& axes) {
  for (const Axis& a : axes) {
    check(a.extent, "the extent of an axis");
    check_dtype(a.extent, DType::I64, "the extent of an axis");
  }
  for (const Axis& a : axes) declare_var(a.name, DType::I64);
}

void Verifier::leave_axes(const Axes& axes) {
  for (const Axis& a : axes) drop_var(a.name);
}

}  // namespace nautilus::ir
