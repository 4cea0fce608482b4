// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/point_reductions.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

class ReductionReader {
 public:
  ReductionReader(expr::ExprPool& pool, PointReductions& out, std::string* why)
      : pool_(pool), out_(out), why_(why) {}

  // Which loop over the parts a reduction belongs to: the first behind what it needs.
  bool run(const ir::Block& body) {
    for (const Op& op : body) {
      if (const auto* v = op.get<matile::Value>()) {
        if (v->dtype != DType::F32) return refuse(fmt::format("`{}` is no f32", v->name.str()));
        add({.var = pool_.var(v->name, v->dtype), .init = v->init, .level = ready(v->init)});
      } else if (const auto* let = op.get<matile::Let>()) {
        add({.var = pool_.var(let->name, let->value.dtype()),
             .init = let->value,
             .level = ready(let->value),
             .is_let = true});
      } else if (const auto* loop = op.get<matile::Loop>()) {
        if (!reduction(*loop)) return false;
      } else if (const auto* w = op.get<matile::Write>()) {
        out_.results.push_back({{}, *w});
      } else if (const auto* branch = op.get<matile::If>();
                 branch && branch->body.size() == 1 && branch->body[0].is<matile::Write>()) {
        out_.results.push_back({branch->condition, branch->body[0].as<matile::Write>()});
      } else {
        return refuse(fmt::format("`{}` behind the parts", op.info().mnemonic()));
      }
    }
    return true;
  }

 private:
  bool refuse(std::string reason) {
    if (why_->empty()) *why_ = std::move(reason);
    return false;
  }

  int ready(Expr e) const {
    int level = -1;
    if (!e) return level;
    for (Expr v : expr::free_vars(e)) {
      const auto it = out_.by_name.find(v);
      if (it != out_.by_name.end()) level = std::max(level, out_.numbers[it->second].level);
    }
    return level;
  }

  void add(PointNumber n) {
    out_.by_name.emplace(n.var, out_.numbers.size());
    out_.numbers.push_back(std::move(n));
  }

  bool reduction(const matile::Loop& loop) {
    if (out_.parts && loop.to != out_.parts) return refuse("reductions over different parts");
    out_.parts = loop.to;
    const Expr part = pool_.index(loop.var);
    for (const Op& op : loop.body) {
      const auto* assign = op.get<matile::Assign>();
      if (!assign) return refuse("parts come together by more than a reduction");
      const auto it = out_.by_name.find(pool_.var(assign->name, DType::F32));
      if (it == out_.by_name.end() || out_.numbers[it->second].update)
        return refuse(fmt::format("`{}` is no reduction over the parts", assign->name.str()));
      PointNumber& n = out_.numbers[it->second];
      int level = n.level;
      for (Expr v : expr::free_vars(assign->value)) {
        if (v != n.var) level = std::max(level, ready(v));
      }
      n.update = assign->value;
      n.part = part;
      n.level = level + 1;
    }
    return true;
  }

  expr::ExprPool& pool_;
  PointReductions& out_;
  std::string* why_;
};

}  // namespace

bool read_reductions(const ir::Block& body, expr::ExprPool& pool, PointReductions& out,
                     std::string* why) {
  return ReductionReader(pool, out, why).run(body);
}

}  // namespace nautilus::lower
