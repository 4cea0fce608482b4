// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/verify_elements.h"

#include <fmt/format.h>

#include <cstdint>
#include <unordered_set>

#include "expr/walk.h"

namespace nautilus::matile {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

namespace {

// Floats of 8 bits, and integers that a kernel can count with.
bool is_small(DType dtype) { return expr::bytes(dtype) == 1 || dtype == DType::I32; }

// Arithmetic that C++ does in 64 bits where an operand has as many.
bool has_wide_operands(Expr e) {
  switch (e.op()) {
    case EK::BitAnd:
    case EK::BitOr:
    case EK::BitXor:
    case EK::Add:
    case EK::Sub:
    case EK::Mul:
    case EK::ShiftLeft:
    case EK::ShiftRight:
      return e.dtype() == DType::I64;
    default:
      return false;
  }
}

bool has_part(Expr e, Expr part) {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= x == part; });
  return found;
}

std::vector<Expr> extents_of(const ir::Axes& axes) {
  std::vector<Expr> extents;
  for (const ir::Axis& a : axes) extents.push_back(a.extent);
  return extents;
}

std::vector<expr::Name> names_of(const ir::Axes& axes) {
  std::vector<expr::Name> names;
  for (const ir::Axis& a : axes) names.push_back(a.name);
  return names;
}

}  // namespace

const TileUse* ElementRules::find_tile(ir::Name name) {
  const auto it = tiles_.find(name.str());
  if (it != tiles_.end()) return &it->second;
  v_.fail(fmt::format("the role has no tile `{}`", name.str()));
  return nullptr;
}

// What device code can compute.
void ElementRules::functions(Expr e) {
  expr::for_each(e, [&](Expr x) { function(x); });
  expr::for_each(e, [&](Expr x) { narrow(x); });
}

// The same for a value of an element: its integers may have 64 bits, coordinates in it may not.
void ElementRules::value(Expr e) {
  expr::for_each(e, [&](Expr x) {
    function(x);
    if (x.op() != EK::Read && has_wide_operands(x)) return;
    for (Expr a : x.args())
      x.op() == EK::Read ? expr::for_each(a, [&](Expr y) { narrow(y); }) : narrow(a);
  });
}

void ElementRules::function(Expr e) {
  const bool is_division = e.op() == EK::FloorDiv || e.op() == EK::Mod;
  if (is_division && e[1].op() == EK::IntConst && e[1].integer() <= 0)
    v_.fail("device code divides by positive integers");
}

void ElementRules::narrow(Expr e) {
  if (e.op() == EK::IntConst && (e.integer() > INT32_MAX || e.integer() < INT32_MIN))
    v_.fail(fmt::format("{} does not fit the 32-bit integers of kernels", e.integer()));
}

bool ElementRules::is_foldable(expr::Reducer r) {
  return r == expr::Reducer::Sum || r == expr::Reducer::Max || r == expr::Reducer::Min;
}

// An element of global memory.
void ElementRules::global(Expr read) {
  const auto it = roles_.find(read.name().str());
  if (it == roles_.end()) return;  // reported as a name out of scope
  const DType dtype = read.dtype();
  // Other CTAs of the launch may write it.
  const bool is_temp = it->second == TensorRole::Temp && written_.contains(it->first);
  const bool is_scratch = it->second == TensorRole::Scratch || (is_temp && is_behind_ticket_);
  if (!is_scratch && written_.contains(it->first))
    v_.fail(fmt::format("`{}` is read by the kernel that writes it", read.name().str()));
  const bool is_loadable =
      dtype == DType::F32 || is_half(dtype) || is_small(dtype) || dtype == DType::I64;
  if (!is_loadable || (is_scratch && dtype != DType::F32))
    v_.fail(fmt::format("elements of {} cannot be loaded one by one", expr::name(dtype)));
}

// Every register tile that the expression reads must be in the thread and register that the domain
// needs.
void ElementRules::elements(Expr e, const Domain& domain) {
  value(e);
  expr::for_each(e, [&](Expr x) {
    if (x.op() == EK::Reduce) v_.fail("a reduction needs `fold`");
    if (x.op() != EK::Read) return;
    const auto it = tiles_.find(x.name().str());
    if (it == tiles_.end()) return global(x);
    if (!register_access(domain, it->second.layout, x.args(), unrolled_))
      v_.fail(
          fmt::format("the elements of `{}` lie with other threads or in registers that "
                      "differ from thread to thread",
                      x.name().str()));
  });
}

// The value around a fold's reduction.
void ElementRules::outside(Expr e, Expr reduce, const Domain& domain) {
  if (e == reduce) return;
  if (e.op() == EK::Read || !has_part(e, reduce)) return elements(e, domain);
  for (Expr a : e.args()) outside(a, reduce, domain);
}

bool ElementRules::fits(const TileUse& target, const ir::Axes& axes) {
  const auto shape = static_shape(target.op->type);
  bool ok = axes.size() == shape.size();
  for (size_t k = 0; ok && k < shape.size(); ++k) ok = axes[k].extent.is_int(shape[k]);
  if (!ok) v_.fail(fmt::format("the axes are not those of `{}`", target.op->name.str()));
  return ok;
}

void ElementRules::set(const Set& op) {
  const TileUse* target = find_tile(op.target);
  const size_t mark = v_.enter_axes(op.axes);
  v_.check(op.value, "the value");
  v_.leave_axes(mark);
  if (!target || !fits(*target, op.axes)) return;
  v_.check_dtype(op.value, target->op->type.dtype, "the value");
  elements(op.value, {target->layout, names_of(op.axes)});
}

// The domain of a reduction: a tile read with exactly its axes.
std::optional<Domain> ElementRules::domain_of(Expr value, const std::vector<expr::Name>& axes,
                                              const std::vector<Expr>& extents) {
  std::optional<Domain> found;
  expr::for_each(value, [&](Expr e) {
    if (found || e.op() != EK::Read || e.args().size() != axes.size()) return;
    const auto it = tiles_.find(e.name().str());
    if (it == tiles_.end()) return;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (e[k].op() != EK::Var || e[k].name() != axes[k] ||
          !extents[k].is_int(it->second.layout.shape()[k]))
        return;
    }
    found = Domain{it->second.layout, axes};
  });
  if (!found) v_.fail("no tile is read with exactly the axes of this op, over all its elements");
  return found;
}

void ElementRules::fold(const Fold& op) {
  const TileUse* target = find_tile(op.target);
  const size_t mark = v_.enter_axes(op.axes);
  v_.check(op.value, "the value");
  v_.leave_axes(mark);
  if (!target || !fits(*target, op.axes)) return;
  v_.check_dtype(op.value, target->op->type.dtype, "the value");
  Expr reduce;
  int count = 0;
  expr::for_each(op.value, [&](Expr e) {
    if (e.op() != EK::Reduce) return;
    reduce = e;
    ++count;
  });
  if (count != 1 || !is_foldable(reduce.reducer()) || reduce.init())
    return v_.fail("a fold has one reduction: sum, max or min, without an initial element");
  std::vector<expr::Name> axes = names_of(op.axes);
  std::vector<Expr> extents = extents_of(op.axes);
  for (size_t k = 0; k < reduce.axis_count(); ++k) {
    axes.push_back(reduce.axis(k).name());
    extents.push_back(reduce.extent(k));
  }
  const auto domain = domain_of(reduce.body(), axes, extents);
  if (!domain) return;
  elements(reduce.body(), *domain);
  outside(op.value, reduce, {target->layout, names_of(op.axes)});
  std::vector<Expr> target_indices;
  for (size_t k = 0; k < op.axes.size(); ++k) target_indices.push_back(pool_.index(axes[k].str()));
  if (!register_access(*domain, target->layout, target_indices, unrolled_))
    v_.fail(
        fmt::format("`{}` does not lie where the reduction leaves its values", op.target.str()));
}

void ElementRules::vote(const Vote& op) {
  v_.check(op.value, "the vote");
  if (op.value.op() != EK::Reduce || op.value.reducer() != expr::Reducer::Any)
    return v_.fail("a vote is `any[...] condition`");
  std::vector<expr::Name> axes;
  std::vector<Expr> extents;
  for (size_t k = 0; k < op.value.axis_count(); ++k) {
    axes.push_back(op.value.axis(k).name());
    extents.push_back(op.value.extent(k));
  }
  if (const auto domain = domain_of(op.value.body(), axes, extents))
    elements(op.value.body(), *domain);
}

void ElementRules::load(const Load& op) {
  const TileUse* target = find_tile(op.target);
  const size_t mark = v_.enter_axes(op.axes);
  v_.check(op.value, "the value");
  if (op.condition) v_.check(op.condition, "the condition");
  v_.leave_axes(mark);
  if (!target || !fits(*target, op.axes)) return;
  const auto role = op.value.op() == EK::Read ? roles_.find(op.value.name().str()) : roles_.end();
  if (role == roles_.end() || role->second == TensorRole::Scratch)
    return v_.fail("`load` takes elements of a tensor that earlier kernels or the caller filled");
  if (written_.contains(role->first))
    return v_.fail(fmt::format("`{}` is read by the kernel that writes it", role->first));
  v_.check_dtype(op.value, target->op->type.dtype, "the value");
  if (op.condition) v_.check_dtype(op.condition, DType::Bool, "the condition");
  if (op.other && !op.other.is_const()) v_.fail("what `else` gives is a number");
  const Domain domain{target->layout, names_of(op.axes)};
  for (Expr e : op.value.args()) elements(e, domain);
  if (op.condition) elements(op.condition, domain);
}

void ElementRules::prefetch(const Prefetch& op) {
  v_.check(op.value, "the value");
  v_.check(op.count, "the count");
  v_.check_dtype(op.count, DType::I64, "the count");
  if (op.condition) {
    v_.check(op.condition, "the condition");
    v_.check_dtype(op.condition, DType::Bool, "the condition");
  }
  const auto role = op.value.op() == EK::Read ? roles_.find(op.value.name().str()) : roles_.end();
  if (role == roles_.end() || role->second == TensorRole::Scratch)
    return v_.fail("`prefetch` asks for a tensor that earlier kernels or the caller filled");
  if (op.value.args().empty() || !op.value.args().back().is_int(0))
    return v_.fail("`prefetch` begins where a row does: the last index is 0");
  for (Expr e : {op.value, op.count, op.condition}) {
    if (!e) continue;
    for (ir::Name n : expr::tensors_read(e)) {
      if (!roles_.contains(n.str()))
        return v_.fail(fmt::format("`prefetch` depends on the tile `{}`", n.str()));
    }
  }
}

void ElementRules::put(const Put& op) {
  const ir::TensorType* type = v_.tensor(op.target);
  const size_t mark = v_.enter_axes(op.axes);
  v_.check(op.value, "the value");
  for (Expr e : op.indices) v_.check(e, "an index");
  if (op.condition) v_.check(op.condition, "the condition");
  v_.leave_axes(mark);
  const auto role = roles_.find(op.target.str());
  if (!type || role == roles_.end())
    return v_.fail(fmt::format("`{}` is no tensor", op.target.str()));
  if (role->second == TensorRole::Input)
    v_.fail(fmt::format("the input `{}` is written", op.target.str()));
  const bool is_stored = type->dtype == DType::F32 || is_half(type->dtype) ||
                         (is_small(type->dtype) && type->dtype != DType::Bool);
  if (!is_stored)
    v_.fail(fmt::format("elements of {} cannot be stored one by one", expr::name(type->dtype)));
  for (Expr e : op.indices) v_.check_dtype(e, DType::I64, "an index");
  if (op.condition) v_.check_dtype(op.condition, DType::Bool, "the condition");
  if (type->dims.size() != op.indices.size())
    v_.fail(fmt::format("`{}` has {}", op.target.str(),
                        diag::counted(type->dims.size(), "dimension", "dimensions")));
  v_.check_dtype(op.value, type->dtype, "the value");
  if (const auto domain = domain_of(op.value, names_of(op.axes), extents_of(op.axes))) {
    elements(op.value, *domain);
    for (Expr e : op.indices) elements(e, *domain);
    if (op.condition) elements(op.condition, *domain);
  }
}

}  // namespace nautilus::matile
