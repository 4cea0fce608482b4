// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/memory/repack.h"

#include <fmt/format.h>

#include <map>

#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "matile/ops_points.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using EK = expr::Op;
using ir::Op;

class Repacker {
 public:
  Repacker(const ir::Program& program, const std::set<std::string>& tensors, expr::ExprPool& pool)
      : program_(program), pool_(pool) {
    for (const Op& op : program.body) {
      const auto* t = op.get<Tensor>();
      if (!t || !tensors.contains(std::string(t->name.str()))) continue;
      // The plan's own memory is padded where it is; it keeps its name.
      if (t->role == TensorRole::Temp)
        packed_.emplace(t->name.str(), t->name);
      else
        packed_.emplace(t->name.str(), unused(std::string(t->name.str()) + ".packed"));
    }
  }

  ir::Program run() {
    ir::Program out = program_;
    out.body.clear();
    ir::Block back;
    for (const Op& op : program_.body) {
      const auto* t = op.get<Tensor>();
      const auto it = t ? packed_.find(t->name.str()) : packed_.end();
      if (it == packed_.end()) {
        out.body.push_back(renamed(op));
        continue;
      }
      if (t->role == TensorRole::Temp) {
        out.body.push_back(ir::make(Tensor{t->name, padded(t->type), t->role}, op.span()));
        continue;
      }
      out.body.push_back(op);
      out.body.push_back(ir::make(Tensor{it->second, padded(t->type), TensorRole::Temp}));
      const bool is_input = t->role == TensorRole::Input;
      ir::Block& copies = is_input ? out.body : back;
      copy(t->type, is_input ? t->name : it->second, is_input ? it->second : t->name,
           fmt::format("{}_{}", is_input ? "pack" : "unpack", t->name.str()), copies);
    }
    out.body.insert(out.body.end(), back.begin(), back.end());
    return out;
  }

 private:
  ir::Name unused(std::string name) {
    bool is_taken = true;
    while (is_taken) {
      is_taken = false;
      ir::for_each_op(program_.body, [&](const Op& op) {
        for (const ir::Field& f : op.info().fields) {
          if (f.kind == ir::FieldKind::Name)
            is_taken |= ir::field_value<ir::Name>(op.data(), f).str() == name;
        }
      });
      if (is_taken) name += "_2";
    }
    return pool_.name(name);
  }

  ir::TensorType padded(ir::TensorType type) {
    const int64_t unit = ir::target_of(program_).copies.begin_bytes / expr::bytes(type.dtype);
    if (!type.dims.empty()) type.dims.back() = times(whole(type.dims.back(), unit), unit);
    return type;
  }

  // How many units of this many elements hold the extent.
  Expr whole(Expr extent, int64_t unit) {
    if (extent.op() == EK::IntConst) return pool_.integer((extent.integer() + unit - 1) / unit);
    return pool_.binary(EK::FloorDiv, pool_.binary(EK::Add, extent, pool_.integer(unit - 1)),
                        pool_.integer(unit));
  }
  Expr times(Expr a, int64_t b) {
    if (a.op() == EK::IntConst) return pool_.integer(a.integer() * b);
    return pool_.binary(EK::Mul, a, pool_.integer(b));
  }

  void copy(const ir::TensorType& type, ir::Name from, ir::Name to, std::string name,
            ir::Block& out) {
    ir::Axes axes;
    ir::Exprs indices;
    Expr count = pool_.integer(1);
    for (size_t k = 0; k < type.dims.size(); ++k) {
      const ir::Name axis = pool_.name(fmt::format("i{}", k));
      axes.push_back({axis, type.dims[k]});
      indices.push_back(pool_.index(axis));
      count = count.is_int(1) ? type.dims[k] : pool_.binary(EK::Mul, count, type.dims[k]);
    }
    const ir::Name kernel = unused(std::move(name));
    Write write{to, indices, pool_.read(from, type.dtype, indices)};
    Points points;
    points.axes = std::move(axes);
    points.body = {ir::make(std::move(write))};
    ir::Block body = {ir::make(std::move(points))};
    out.push_back(ir::make(Kernel{.name = kernel, .body = std::move(body)}));
    out.push_back(ir::make(Launch{kernel, whole(count, ir::target_of(program_).points.threads)}));
  }

  // Tensors have names of their own in the whole program, so a field with the name means it.
  Op renamed(const Op& op) {
    Op result = ir::map_exprs(op, [&](Expr e) {
      if (!e) return e;
      return expr::rebuild(pool_, e, [&](Expr x) {
        if (x.op() != EK::Read) return x;
        const auto it = packed_.find(x.name().str());
        return it == packed_.end() ? x : pool_.read(it->second, x.dtype(), x.args());
      });
    });
    return with_names(result);
  }

  Op with_names(const Op& op) {
    const auto data = ir::copy_data(op);
    bool is_changed = false;
    for (const ir::Field& f : op.info().fields) {
      if (f.kind == ir::FieldKind::Name) {
        ir::Name& name = ir::field_value<ir::Name>(data.get(), f);
        const auto it = packed_.find(name.str());
        if (it == packed_.end()) continue;
        name = it->second;
        is_changed = true;
      } else if (f.kind == ir::FieldKind::Body) {
        for (Op& inner : ir::field_value<ir::Block>(data.get(), f)) inner = with_names(inner);
        is_changed = true;
      }
    }
    return is_changed ? Op(op.info(), op.span(), data) : op;
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  std::map<std::string, ir::Name, std::less<>> packed_;
};

}  // namespace

ir::Program repack(const ir::Program& program, const std::set<std::string>& tensors,
                   expr::ExprPool& pool) {
  return Repacker(program, tensors, pool).run();
}

std::optional<ir::Program> repack_mapped(const ir::Program& program, ir::PassContext& context) {
  std::set<std::string> given;
  std::set<std::string> mapped;
  for (const Op& op : program.body) {
    const auto* t = op.get<Tensor>();
    if (t && t->role <= TensorRole::Output) given.emplace(t->name.str());
    const auto* m = op.get<Map>();
    if (!m) continue;
    for (expr::Name name : expr::tensors_read(m->value)) {
      if (given.contains(std::string(name.str()))) mapped.emplace(name.str());
    }
  }
  return repack(program, mapped, context.pool);
}

}  // namespace nautilus::matile
