// SPDX-License-Identifier: Apache-2.0
#include "driver/load/signature.h"

#include <algorithm>
#include <set>

#include "expr/bounds/affine.h"
#include "expr/print.h"
#include "expr/walk.h"
#include "matile/ops.h"
#include "spec/ops.h"

namespace nautilus::driver {
namespace {

using Kind = Signature::Kind;

void add_tensor(Signature& out, std::string_view name, const ir::TensorType& type, bool is_output) {
  Signature::Tensor t{std::string(name), type, is_output, {}};
  for (ir::Expr d : type.dims) t.dims.push_back(expr::to_string(d));
  out.tensors.push_back(std::move(t));
}

void add_tensors(const ir::Program& program, Signature& out) {
  const auto types = spec::tensor_types(program);
  for (const bool is_output : {false, true}) {
    for (const ir::Op& op : program.body) {
      if (const auto* t = op.get<matile::Tensor>()) {
        if (t->role == (is_output ? matile::TensorRole::Output : matile::TensorRole::Input))
          add_tensor(out, t->name.str(), t->type, is_output);
      }
      const auto* input = op.get<spec::Input>();
      if (input && !is_output) add_tensor(out, input->name.str(), input->type, false);
      const auto* output = op.get<spec::Output>();
      if (output && is_output)
        add_tensor(out, output->name.str(), types.at(std::string(output->name.str())), true);
    }
  }
}

void add_values(const ir::Program& program, Signature& out) {
  for (const ir::Op& op : program.body) {
    Signature::Value v;
    if (const auto* d = op.get<ir::Dim>()) {
      v.name = d->name.str();
      v.hint = d->hint;
    } else if (const auto* s = op.get<ir::Static>()) {
      v.name = s->name.str();
      v.kind = Kind::Static;
      v.hint = s->value;
    } else if (const auto* p = op.get<ir::Param>()) {
      v.name = p->name.str();
      v.kind = Kind::Scalar;
      v.dtype = p->dtype;
      if (p->init) v.default_text = expr::to_string(p->init);
    } else {
      continue;
    }
    out.values.push_back(std::move(v));
  }
}

// The only unknown size of the dimension, if its extent determines it: it is in one product with
// known sizes. These may be 0 in a call, which is reported then.
int unknown_of(ir::Expr dim, const Signature& signature, const std::set<int>& known) {
  ir::Expr unknown;
  int found = -1;
  for (ir::Expr v : expr::free_vars(dim)) {
    const int value = signature.value(v.name().str());
    if (value < 0 || known.contains(value)) continue;
    if (found >= 0) return -1;
    found = value;
    unknown = v;
  }
  if (found < 0) return -1;
  const auto poly = expr::Poly::of(dim);
  const auto parts = poly ? poly->split(unknown) : std::nullopt;
  if (!parts || parts->first.is_zero()) return -1;
  const auto is_free = [&](const expr::Poly& p) {
    const std::vector<ir::Expr> atoms = p.atoms();
    return std::none_of(atoms.begin(), atoms.end(),
                        [&](ir::Expr a) { return expr::depends_on(a, unknown); });
  };
  return is_free(parts->first) && is_free(parts->second) ? found : -1;
}

void find_bindings(Signature& out) {
  std::set<int> known;
  for (bool is_progress = true; is_progress;) {
    is_progress = false;
    for (size_t t = 0; t < out.tensors.size(); ++t) {
      if (out.tensors[t].is_output) continue;
      for (size_t k = 0; k < out.tensors[t].type.dims.size(); ++k) {
        const int value = unknown_of(out.tensors[t].type.dims[k], out, known);
        if (value < 0) continue;
        known.insert(value);
        out.values[static_cast<size_t>(value)].tensor = static_cast<int>(t);
        out.values[static_cast<size_t>(value)].dimension = static_cast<int>(k);
        is_progress = true;
      }
    }
  }
}

}  // namespace

int Signature::tensor(std::string_view name) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Signature::value(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Signature signature_of(const ir::Program& program) {
  Signature out;
  add_tensors(program, out);
  add_values(program, out);
  find_bindings(out);
  return out;
}

}  // namespace nautilus::driver
