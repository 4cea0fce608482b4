// SPDX-License-Identifier: Apache-2.0
#include "compile/plain_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "expr/walk.h"
#include "ir/decl.h"
#include "scalar/ops.h"

namespace nautilus::compile {
namespace {

using ir::FieldKind;

class Renamer {
 public:
  Renamer(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
    for (const ir::Op& op : program.body) {
      if (const auto* d = op.get<ir::Dim>()) kept_.insert(d->name);
      if (const auto* s = op.get<ir::Static>()) kept_.insert(s->name);
      if (const auto* p = op.get<ir::Param>()) kept_.insert(p->name);
      if (const auto* m = op.get<ir::Machine>()) kept_.insert(m->name);
      if (const auto* t = op.get<ir::Target>()) kept_.insert(t->name);
    }
  }

  ir::Op op(const ir::Op& from) {
    auto data = ir::copy_data(from);
    for (const ir::Field& f : from.info().fields) {
      switch (f.kind) {
        case FieldKind::Name:
          change(ir::field_value<ir::Name>(data.get(), f));
          break;
        case FieldKind::NameList:
          for (ir::Name& n : ir::field_value<ir::Names>(data.get(), f)) change(n);
          break;
        case FieldKind::Expr:
          change(ir::field_value<ir::Expr>(data.get(), f));
          break;
        case FieldKind::ExprList:
          for (ir::Expr& e : ir::field_value<ir::Exprs>(data.get(), f)) change(e);
          break;
        case FieldKind::Type:
          for (ir::Expr& e : ir::field_value<ir::TensorType>(data.get(), f).dims) change(e);
          break;
        case FieldKind::AxisList:
          for (ir::Axis& a : ir::field_value<ir::Axes>(data.get(), f)) {
            change(a.name);
            change(a.extent);
          }
          break;
        case FieldKind::Body:
          for (ir::Op& inner : ir::field_value<ir::Block>(data.get(), f)) inner = op(inner);
          break;
        case FieldKind::Int:
        case FieldKind::Number:
        case FieldKind::DType:
        case FieldKind::Enum:
        case FieldKind::Text:
          break;
      }
    }
    return ir::Op(from.info(), {}, std::move(data));
  }

  // In the order of first naming; names that were not met come last.
  size_t place(ir::Name from) const {
    const auto it = places_.find(from);
    return it == places_.end() ? places_.size() : it->second;
  }

 private:
  void change(ir::Name& name) {
    if (name) name = plain(name);
  }

  void change(ir::Expr& e) {
    if (!e) return;
    e = expr::rebuild(pool_, e, [&](ir::Expr x) {
      if (x.op() == expr::Op::Var) return pool_.var(plain(x.name()), x.dtype());
      if (x.op() == expr::Op::Read) return pool_.read(plain(x.name()), x.dtype(), x.args());
      return x;
    });
  }

  ir::Name plain(ir::Name name) {
    if (kept_.contains(name)) return name;
    const auto [it, is_new] = plain_.try_emplace(name);
    if (!is_new) return it->second;
    places_.emplace(name, places_.size());
    std::string text = fmt::format("v{}", places_.size());
    while (kept_.contains(pool_.name(text))) text += "_";
    return it->second = pool_.name(text);
  }

  expr::ExprPool& pool_;
  std::unordered_set<ir::Name> kept_;
  std::unordered_map<ir::Name, ir::Name> plain_;
  std::unordered_map<ir::Name, size_t> places_;
};

}  // namespace

ir::Program with_plain_names(const ir::Program& program, expr::ExprPool& pool) {
  Renamer renamer(program, pool);
  const ir::Op nest = renamer.op(program.body.back());
  ir::Program out{program.level, program.name, {}};
  std::vector<const ir::Op*> buffers;
  for (size_t k = 0; k + 1 < program.body.size(); ++k) {
    const ir::Op& op = program.body[k];
    if (op.is<scalar::Buffer>())
      buffers.push_back(&op);
    else
      out.body.push_back(renamer.op(op));
  }
  std::stable_sort(buffers.begin(), buffers.end(), [&](const ir::Op* a, const ir::Op* b) {
    return renamer.place(a->as<scalar::Buffer>().name) <
           renamer.place(b->as<scalar::Buffer>().name);
  });
  for (const ir::Op* op : buffers) out.body.push_back(renamer.op(*op));
  out.body.push_back(nest);
  return out;
}

}  // namespace nautilus::compile
