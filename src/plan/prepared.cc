// SPDX-License-Identifier: Apache-2.0
#include "plan/prepared.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/target_of.h"
#include "matile/resources.h"

namespace nautilus::plan {
namespace {

using expr::DType;
using expr::Expr;
using expr::Poly;
using ir::Op;
using matile::TensorRole;

std::optional<runtime::MapElement> element_of(DType dtype) {
  switch (dtype) {
    case DType::BF16:
      return runtime::MapElement::BF16;
    case DType::F16:
      return runtime::MapElement::F16;
    case DType::F32:
    case DType::TF32:  // its bits are those of an F32
      return runtime::MapElement::F32;
    case DType::I32:
      return runtime::MapElement::U32;
    default:
      return expr::bytes(dtype) == 1 ? std::optional(runtime::MapElement::U8) : std::nullopt;
  }
}

class Preparer {
 public:
  Preparer(const ir::Program& program, const std::vector<emit::KernelText>& kernels, Prepared& out)
      : program_(program), kernels_(kernels), out_(out) {}

  void run() {
    names();
    for (const Op& op : program_.body) {
      if (const auto* t = op.get<matile::Tensor>()) tensor(*t);
      if (const auto* p = op.get<ir::Param>(); p && p->init) {
        Prepared::Value& v = out_.values[static_cast<size_t>(out_.value(p->name.str()))];
        v.has_default = true;
        v.default_value = code(p->init);
      }
      if (const auto* f = op.get<ir::Fact>())
        out_.facts.push_back({code(f->condition), f->condition});
      if (const auto* l = op.get<matile::Let>())
        out_.lets.push_back({slot(l->name), l->value.dtype(), code(l->value)});
      if (const auto* m = op.get<matile::Machine>()) out_.machine.push_back(slot(m->name));
    }
    for (size_t t = 0; t < out_.tensors.size(); ++t) {
      if (out_.tensors[t].role < TensorRole::Scratch) out_.by_name.push_back(static_cast<int>(t));
    }
    std::sort(out_.by_name.begin(), out_.by_name.end(), [this](int a, int b) {
      return out_.tensors[static_cast<size_t>(a)].name < out_.tensors[static_cast<size_t>(b)].name;
    });
    for (int t : out_.by_name) solves(t);
    for (const Op& op : program_.body) {
      if (const auto* m = op.get<matile::Map>()) map(*m);
    }
    size_t kernel = 0;
    std::map<std::string, size_t, std::less<>> numbers;
    for (const Op& op : program_.body) {
      if (const auto* k = op.get<matile::Kernel>()) numbers.emplace(k->name.str(), kernel++);
      if (const auto* l = op.get<matile::Launch>()) {
        const auto it = numbers.find(l->kernel.str());
        NAUT_CHECK(it != numbers.end(), "no kernel `{}`", l->kernel.str());
        launch(it->second, l->grid);
        if (!l->unaligned_fallback) continue;
        const auto other = numbers.find(l->unaligned_fallback.str());
        NAUT_CHECK(other != numbers.end(), "no kernel `{}`", l->unaligned_fallback.str());
        out_.launches.back().other = static_cast<int>(out_.launches.size());
        launch(other->second, l->grid);
        out_.launches.back().is_other = true;
      }
    }
  }

 private:
  void names() {
    for (const Op& op : program_.body) {
      if (const auto* d = op.get<ir::Dim>())
        out_.values.push_back({.name = std::string(d->name.str()),
                               .is_size = true,
                               .slot = add_slot(d->name),
                               .hint = d->hint,
                               .default_value = {}});
      if (const auto* p = op.get<ir::Param>())
        out_.values.push_back({.name = std::string(p->name.str()),
                               .dtype = p->dtype,
                               .slot = add_slot(p->name),
                               .hint = {},
                               .default_value = {}});
      if (const auto* m = op.get<matile::Machine>()) add_slot(m->name);
      if (const auto* l = op.get<matile::Let>()) add_slot(l->name);
    }
  }

  int add_slot(ir::Name name) {
    return slots_.emplace(name.str(), out_.slots).second ? out_.slots++ : slot(name);
  }
  int slot(ir::Name name) const { return slots_.find(name.str())->second; }

  template <class T>
  Code code(const T& what) {
    Code c = Code::of(what, slots_);
    out_.depth = std::max(out_.depth, c.depth());
    return c;
  }

  void tensor(const matile::Tensor& op) {
    Prepared::Tensor t{std::string(op.name.str()), op.type.dtype, op.role, op.type.dims, {}, 0};
    for (Expr d : op.type.dims) t.extents.push_back(code(d));
    t.first = out_.dimensions;
    out_.dimensions += t.rank();
    out_.tensors.push_back(std::move(t));
  }

  bool is_size(Expr var) const {
    const int v = out_.value(var.name().str());
    return v >= 0 && out_.values[static_cast<size_t>(v)].is_size;
  }

  void solves(int number) {
    const Prepared::Tensor& t = out_.tensors[static_cast<size_t>(number)];
    for (int k = 0; k < t.rank(); ++k) {
      const Expr dim = t.dims[static_cast<size_t>(k)];
      const auto poly = Poly::of(dim);
      const std::vector<Expr> vars = expr::free_vars(dim);
      if (!poly || !std::all_of(vars.begin(), vars.end(), [this](Expr v) { return is_size(v); }))
        continue;
      Prepared::Solve solve{number, k, {}, {}};
      for (Expr v : vars) {
        solve.sizes.push_back(slot(v.name()));
        const auto parts = poly->split(v);
        if (!parts || contains(parts->first, v) || contains(parts->second, v)) continue;
        solve.equations.push_back({slot(v.name()), code(parts->first), code(parts->second)});
      }
      if (!solve.equations.empty()) out_.solves.push_back(std::move(solve));
    }
  }

  // Within an atom, such as M / 2.
  static bool contains(const Poly& poly, Expr var) {
    const std::vector<Expr> atoms = poly.atoms();
    return std::any_of(atoms.begin(), atoms.end(),
                       [&](Expr a) { return expr::depends_on(a, var); });
  }

  void map(const matile::Map& m) {
    Prepared::Map out;
    out.name = m.name.str();
    out.tensor = out_.tensor(m.value.name().str());
    NAUT_CHECK(out.tensor >= 0, "no tensor `{}`", m.value.name().str());
    const auto element = element_of(m.value.dtype());
    NAUT_CHECK(element, "a map of {}", expr::name(m.value.dtype()));
    NAUT_CHECK(m.axes.size() <= runtime::kMaxMapRank, "map `{}` has {} axes", out.name,
               m.axes.size());
    out.bytes = expr::bytes(m.value.dtype());
    out.is_stored = matile::tensors(program_, matile::TensorRole::Output)
                        .contains(out_.tensors[static_cast<size_t>(out.tensor)].name);
    out.view.rank = static_cast<uint8_t>(m.axes.size());
    out.view.element = *element;
    out.view.step = static_cast<int8_t>(m.step.value_or(1));
    out.view.swizzle = matile::swizzle_of(m.swizzle);
    out.view.l2_promotion =
        static_cast<int16_t>(m.promote.value_or(ir::target_of(program_).memory.promote_bytes));
    for (size_t a = 0; a < m.axes.size(); ++a) {
      out.view.box[a] = static_cast<int32_t>(m.box[a].integer());
      out.extents.push_back(code(m.axes[a].extent));
    }
    for (size_t k = 0; k < m.value.args().size(); ++k) index(m, static_cast<int>(k), out);
    out_.maps.push_back(std::move(out));
  }

  // Index k of the tensor is a sum of multiples of the map's axes, plus what has none of them.
  void index(const matile::Map& m, int k, Prepared::Map& out) {
    const Expr e = m.value[static_cast<size_t>(k)];
    auto rest = Poly::of(e);
    for (Expr v : expr::free_vars(e)) {
      for (size_t a = 0; a < m.axes.size(); ++a) {
        if (m.axes[a].name != v.name()) continue;
        const auto parts = rest ? rest->split(v) : std::nullopt;
        NAUT_CHECK(parts && !contains(parts->first, v) && !contains(parts->second, v),
                   "index {} of map `{}` is not linear in `{}`", k + 1, out.name, v.name().str());
        out.terms.push_back({static_cast<int>(a), k, code(parts->first)});
        rest = parts->second;
      }
    }
    NAUT_CHECK(rest, "index {} of map `{}` is no polynomial", k + 1, out.name);
    if (!rest->is_zero()) out.origin.push_back({0, k, code(*rest)});
  }

  void launch(size_t kernel, Expr grid) {
    NAUT_CHECK(kernel < kernels_.size(), "{} kernels were emitted", kernels_.size());
    const emit::KernelText& text = kernels_[kernel];
    Prepared::Launch out{.kernel = kernel,
                         .grid = code(grid),
                         .params = {},
                         .vectors = {},
                         .param_bytes = text.param_bytes,
                         .cluster = text.cluster};
    for (const emit::KernelParam& p : text.params) {
      using Kind = emit::KernelParam::Kind;
      Prepared::Param param{p.kind, -1, p.dimension, p.offset, p.source};
      if (p.kind == Kind::Map) {
        for (size_t i = 0; i < out_.maps.size(); ++i) {
          if (out_.maps[i].name == p.source) param.source = static_cast<int>(i);
        }
        NAUT_CHECK(p.offset % static_cast<int>(alignof(runtime::EncodedMap)) == 0,
                   "map `{}` at byte {} of the parameters", p.source, p.offset);
      } else if (p.kind == Kind::Pointer || p.kind == Kind::Stride) {
        param.source = out_.tensor(p.source);
      } else if (const auto it = slots_.find(p.source); it != slots_.end()) {
        param.source = it->second;
      }
      NAUT_CHECK(param.source >= 0, "no `{}` for a kernel's parameter", p.source);
      out.params.push_back(std::move(param));
    }
    for (const std::string& name : kernels_[out.kernel].vectors)
      out.vectors.push_back(out_.tensor(name));
    out_.launches.push_back(std::move(out));
  }

  const ir::Program& program_;
  const std::vector<emit::KernelText>& kernels_;
  Prepared& out_;
  Slots slots_;
};

}  // namespace

Prepared::Prepared(const ir::Program& program, const std::vector<emit::KernelText>& kernels) {
  Preparer(program, kernels, *this).run();
}

// Programs have a handful of names: a walk is quicker than a table.
int Prepared::tensor(std::string_view name) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Prepared::value(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace nautilus::plan
