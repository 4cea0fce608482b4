// SPDX-License-Identifier: Apache-2.0
#include "emit/params.h"

#include <set>

#include "emit/expression.h"
#include "emit/writer.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/point_layout.h"

namespace nautilus::emit {
namespace {

using expr::Expr;
using ir::Op;
using ParamKind = KernelParam::Kind;

struct Used {
  std::set<std::string> maps;
  std::set<std::string> tensors;
  std::set<std::string> counters;  // tensors addressed without strides
  std::set<std::string> put;       // tensors that elements are put into
  std::set<std::string> scalars;
};

// Names that the kernel's ops define themselves.
void add_own(const Op& op, std::set<std::string>& own) {
  const auto add = [&](ir::Name name) {
    if (name) own.emplace(name.str());
  };
  const auto axes = [&](const ir::Axes& list) {
    for (const ir::Axis& a : list) add(a.name);
  };
  if (const auto* x = op.get<matile::Let>()) add(x->name);
  if (const auto* x = op.get<matile::Loop>()) add(x->var);
  if (const auto* x = op.get<matile::Each>()) add(x->var);
  if (const auto* x = op.get<matile::Vote>()) add(x->name);
  if (const auto* x = op.get<matile::Ticket>()) add(x->name);
  if (const auto* x = op.get<matile::Role>()) add(x->index);
  if (const auto* x = op.get<matile::Fill>()) add(x->group);
  if (const auto* x = op.get<matile::Set>()) axes(x->axes);
  if (const auto* x = op.get<matile::Fold>()) axes(x->axes);
  if (const auto* x = op.get<matile::Put>()) axes(x->axes);
  if (const auto* x = op.get<matile::Load>()) axes(x->axes);
  if (const auto* x = op.get<matile::Cta>()) {
    add(x->index);
    add(x->count);
  }
  if (const auto* x = op.get<matile::Unroll>()) axes(x->axes);
  if (const auto* x = op.get<matile::Points>()) axes(x->axes);
  if (const auto* x = op.get<matile::Value>()) add(x->name);
  if (const auto* x = op.get<matile::SharedLoop>()) add(x->var);
  if (const auto* x = op.get<matile::LaneLoop>()) add(x->var);
  if (const auto* x = op.get<matile::Search>()) axes(x->axes);
  if (const auto* x = op.get<matile::Sort>()) {
    axes(x->axes);
    add(x->place);
  }
}

Used used_by(const matile::Kernel& kernel,
             const std::map<std::string, const matile::Tensor*>& tensors) {
  Used used;
  std::set<std::string> own;
  if (kernel.rank) own.emplace(kernel.rank.str());
  ir::for_each_op(kernel.body, [&](const Op& op) {
    add_own(op, own);
    if (const auto* x = op.get<matile::Copy>()) used.maps.emplace(x->map.str());
    if (const auto* x = op.get<matile::Store>()) used.maps.emplace(x->map.str());
    if (const auto* x = op.get<matile::Tiles>(); x && x->counter)
      used.counters.emplace(x->counter.str());
    if (const auto* x = op.get<matile::Ticket>()) used.counters.emplace(x->counter.str());
    if (const auto* x = op.get<matile::Put>()) {
      used.tensors.emplace(x->target.str());
      used.put.emplace(x->target.str());
    }
    if (const auto* x = op.get<matile::Write>()) used.tensors.emplace(x->target.str());
    if (const auto* x = op.get<matile::Scatter>()) used.tensors.emplace(x->target.str());
  });
  for (const Op& op : kernel.body) {
    ir::for_each_expr(op, [&](Expr e) {
      for (Expr v : expr::free_vars(e)) {
        if (!own.contains(std::string(v.name().str()))) used.scalars.emplace(v.name().str());
      }
      for (ir::Name t : expr::tensors_read(e)) {
        if (tensors.contains(std::string(t.str()))) used.tensors.emplace(t.str());
      }
    });
  }
  used.tensors.insert(used.counters.begin(), used.counters.end());
  return used;
}

expr::DType scalar_dtype(const ir::Program& program, const std::string& name) {
  for (const Op& op : program.body) {
    if (const auto* p = op.get<ir::Param>(); p && p->name.str() == name) return p->dtype;
    if (const auto* l = op.get<matile::Let>(); l && l->name.str() == name) return l->value.dtype();
  }
  return expr::DType::I64;
}

// Scalar code has numbers of every dtype, tiles count in 32 bits and compute in f32.
ParamKind scalar_kind(expr::DType dtype, bool is_scalar_code) {
  if (!expr::is_float(dtype)) return is_scalar_code ? ParamKind::Long : ParamKind::Int;
  return is_scalar_code && dtype == expr::DType::F64 ? ParamKind::Double : ParamKind::Float;
}

std::string_view pointer_type(expr::DType dtype) {
  switch (expr::bytes(dtype)) {
    case 2:
      return "u16";
    case 4:
      return expr::is_float(dtype) ? "float" : "int";
    case 8:
      return expr::is_float(dtype) ? "double" : "long long";
    default:
      return "unsigned char";
  }
}

// Empty where a stride comes with the binding.
std::vector<std::string> known_strides(const matile::Tensor& tensor) {
  std::vector<std::string> strides(tensor.type.dims.size());
  if (tensor.role != matile::TensorRole::Scratch && tensor.role != matile::TensorRole::Temp)
    return strides;
  int64_t elements = 1;
  for (size_t k = strides.size(); k-- > 0;) {
    strides[k] = std::to_string(elements);
    if (tensor.type.dims[k].op() != expr::Op::IntConst) break;
    elements *= tensor.type.dims[k].integer();
  }
  return strides;
}

}  // namespace

std::string GlobalTensor::step(const std::string& index, size_t dimension) const {
  const std::string& stride = strides[dimension];
  return stride == "1" ? fmt::format("(u64)({})", index)
                       : fmt::format("(u64)({}) * {}", index, stride);
}

GlobalTensors collect_params(const ir::Program& program, const matile::Kernel& kernel,
                             KernelText& text) {
  std::map<std::string, const matile::Tensor*> tensors;
  for (const Op& op : program.body) {
    if (const auto* t = op.get<matile::Tensor>()) tensors.emplace(t->name.str(), t);
  }
  const Used used = used_by(kernel, tensors);
  const auto round_up = [&](int alignment) {
    text.param_bytes = (text.param_bytes + alignment - 1) / alignment * alignment;
  };
  const auto add = [&](ParamKind kind, std::string name, std::string source, int dimension = 0) {
    const bool is_wide = kind == ParamKind::Pointer || kind == ParamKind::Stride ||
                         kind == ParamKind::Long || kind == ParamKind::Double;
    const int size = kind == ParamKind::Map ? 128 : is_wide ? 8 : 4;
    round_up(kind == ParamKind::Map ? 64 : size);
    text.params.push_back({kind, std::move(name), std::move(source), dimension, text.param_bytes});
    text.param_bytes += size;
  };
  GlobalTensors globals;
  for (const std::string& m : used.maps) add(ParamKind::Map, identifier(m), m);
  for (const std::string& t : used.tensors) {
    const matile::Tensor& tensor = *tensors.at(t);
    // A tensor that the kernel itself writes is read after a ticket: other CTAs have written it.
    const bool is_shared = tensor.role == matile::TensorRole::Scratch ||
                           (tensor.role == matile::TensorRole::Temp && used.put.contains(t));
    GlobalTensor global{tensor.type, is_shared};
    add(ParamKind::Pointer, identifier(t), t);
    if (!used.counters.contains(t)) global.strides = known_strides(tensor);
    for (size_t k = 0; k < global.strides.size(); ++k) {
      if (!global.strides[k].empty()) continue;
      const std::string name = fmt::format("{}_stride{}", identifier(t), k);
      add(ParamKind::Stride, name, t, static_cast<int>(k));
      global.strides[k] = "p." + name;
    }
    globals.emplace(t, std::move(global));
  }
  const bool is_scalar_code = matile::find_points(kernel) != nullptr;
  for (const std::string& s : used.scalars)
    add(scalar_kind(scalar_dtype(program, s), is_scalar_code), identifier(s), s);
  round_up(used.maps.empty() ? 8 : 64);
  return globals;
}

std::string params_struct(const KernelText& text, const GlobalTensors& globals) {
  Writer w;
  w.open("struct Params {{");
  for (const KernelParam& p : text.params) {
    switch (p.kind) {
      case ParamKind::Map:
        w.line("TensorMap {};", p.name);
        break;
      case ParamKind::Pointer:
        w.line("{}* {};", pointer_type(globals.find(p.source)->second.type.dtype), p.name);
        break;
      case ParamKind::Stride:
        w.line("u64 {};", p.name);
        break;
      case ParamKind::Int:
        w.line("int {};", p.name);
        break;
      case ParamKind::Float:
        w.line("float {};", p.name);
        break;
      case ParamKind::Long:
        w.line("long long {};", p.name);
        break;
      case ParamKind::Double:
        w.line("double {};", p.name);
        break;
    }
  }
  w.close("};");
  w.blank();
  return w.take();
}

}  // namespace nautilus::emit
