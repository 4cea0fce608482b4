// SPDX-License-Identifier: Apache-2.0
#include "lower/points/points_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/hoist_reads.h"
#include "lower/points/point_parts.h"
#include "lower/points/points_loops.h"
#include "lower/points/scan_elements.h"
#include "lower/points/scan_kernel.h"
#include "matile/ops.h"
#include "scalar/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;

// Which axis of a nest is two of another one's, whose groups and places it counts through; nothing
// if their axes differ otherwise.
std::optional<size_t> joined_axis(const ir::Axes& apart, const ir::Axes& axes,
                                  expr::ExprPool& pool) {
  if (axes.size() + 1 != apart.size()) return std::nullopt;
  size_t k = 0;
  while (k < axes.size() && axes[k].extent == apart[k].extent) ++k;
  if (k == axes.size()) return std::nullopt;
  const Expr both = pool.binary(EK::Mul, apart[k].extent, apart[k + 1].extent);
  const auto rest = expr::difference(both, axes[k].extent);
  bool ok = rest && rest->is_zero();
  for (size_t n = k + 1; n < axes.size(); ++n) ok &= axes[n].extent == apart[n + 1].extent;
  return ok ? std::optional(k) : std::nullopt;
}

bool occurs(Expr part, Expr in) {
  bool found = false;
  expr::for_each(in, [&](Expr e) { found |= e == part; });
  return found;
}

class PointsLowering {
 public:
  PointsLowering(const std::set<std::string>& kept,
                 const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
                 const target::Points& choice, ir::PassContext& context)
      : kept_(kept),
        buffers_(buffers),
        kernels_(names),
        names_(names),
        threads_(choice.threads),
        pool_(context.pool),
        sink_(context.sink) {}

  std::optional<LoweredKernel> run(const std::vector<MapNest>& nests) {
    axes_ = nests[0].axes;
    for (const MapNest& nest : nests) {
      if (nest.axes.size() > axes_.size()) axes_ = nest.axes;
    }
    for (const ir::Axis& a : axes_) names_.take(a.name.str());
    const std::string target = named_after(nests, kept_);
    ir::Block body;
    for (const MapNest& nest : nests) {
      bindings_.clear();
      first_point_ = {};
      const auto joined = joined_axis(axes_, nest.axes, pool_);
      for (size_t k = nest.axes.size(); k < axes_.size() && !joined; ++k) {
        const Expr is_zero = pool_.binary(EK::Eq, pool_.index(axes_[k].name), pool_.integer(0));
        first_point_ = first_point_ ? pool_.binary(EK::And, first_point_, is_zero) : is_zero;
      }
      for (size_t k = 0; k < nest.axes.size(); ++k) {
        const size_t own = joined && k > *joined ? k + 1 : k;
        Expr place = pool_.index(axes_[own].name);
        if (joined == k)
          place = pool_.binary(EK::Add, pool_.binary(EK::Mul, place, axes_[k + 1].extent),
                               pool_.index(axes_[k + 1].name));
        bindings_[pool_.index(nest.axes[k].name)] = place;
      }
      pending_.clear();
      if (!block(nest.body, body)) return std::nullopt;
      for (const auto& [name, indices] : pending_) write(name, indices, known_.at(name), body);
    }
    body = hoist_reads(join_loops(body, pool_), axes_, buffers_, names_, pool_);
    return kernel_of_points(kernels_.make(target + "_kernel"), axes_, std::move(body), threads_,
                            names_, pool_);
  }

 private:
  bool block(const ir::Block& ops, ir::Block& out) {
    return std::all_of(ops.begin(), ops.end(), [&](const Op& op) { return statement(op, out); });
  }

  bool statement(const Op& op, ir::Block& out) {
    if (const auto* s = op.get<scalar::Store>()) return store(*s, out);
    if (const auto* i = op.get<scalar::Init>()) return init(*i, out);
    if (const auto* u = op.get<scalar::Update>()) return update(*u, out);
    if (const auto* u = op.get<scalar::UpdateArg>()) return update_arg(*u, out);
    if (const auto* s = op.get<scalar::Scatter>()) return scatter(*s, out);
    if (const auto* b = op.get<scalar::If>()) {
      matile::If branch{rewrite(b->condition), {}};
      if (!block(b->body, branch.body)) return false;
      out.push_back(ir::make(std::move(branch), op.span()));
      return true;
    }
    const auto* f = op.get<scalar::For>();
    if (!f || f->kind != scalar::LoopKind::Reduce) {
      sink_.report(
          diag::Code::BadPass, op.span(),
          fmt::format("`{}` cannot stand in a kernel of scalar code", op.info().mnemonic()));
      return false;
    }
    return loops(*f, 0, out);
  }

  bool loops(const scalar::For& f, size_t k, ir::Block& out) {
    if (k == f.axes.size()) return block(f.body, out);
    const ir::Name var = names_.make(f.axes[k].name.str());
    bindings_[pool_.index(f.axes[k].name)] = pool_.index(var);
    matile::Loop loop{var, pool_.integer(0), matile::Direction::Up, rewrite(f.axes[k].extent), {}};
    if (!loops(f, k + 1, loop.body)) return false;
    out.push_back(ir::make(std::move(loop)));
    return true;
  }

  // The thread's own elements instead of reads, and the names of this kernel.
  Expr rewrite(Expr e) {
    const Expr renamed = expr::substitute(pool_, e, bindings_);
    return expr::rebuild(pool_, renamed, [&](Expr x) {
      if (x.op() != EK::Read) return x;
      const auto it = known_.find(std::string(x.name().str()));
      return it == known_.end() ? x : pool_.cast(x.dtype(), it->second);
    });
  }

  ir::Exprs rewrite(const ir::Exprs& list) {
    ir::Exprs out;
    for (Expr e : list) out.push_back(rewrite(e));
    return out;
  }

  DType dtype(ir::Name buffer) const { return buffers_.at(std::string(buffer.str())).dtype; }

  void write(const std::string& name, const ir::Exprs& indices, Expr value, ir::Block& out) {
    if (!kept_.contains(name)) return;
    const ir::Name target = pool_.name(name);
    Op op = ir::make(matile::Write{target, indices, pool_.cast(dtype(target), value)});
    if (first_point_) op = ir::make(matile::If{first_point_, {op}});
    out.push_back(std::move(op));
  }

  bool store(const scalar::Store& s, ir::Block& out) {
    const ir::Name name = names_.make(fmt::format("{}_value", s.target.str()));
    const Expr value = rewrite(s.value);
    out.push_back(ir::make(matile::Let{name, value}));
    const Expr var = pool_.var(name, value.dtype());
    known_[std::string(s.target.str())] = var;
    write(std::string(s.target.str()), rewrite(s.indices), var, out);
    return true;
  }

  // A reduction runs in the dtype that arithmetic has, and is rounded once at its end.
  bool init(const scalar::Init& i, ir::Block& out) {
    const ir::Name name = names_.make(fmt::format("{}_acc", i.target.str()));
    const DType wide = expr::compute_dtype(dtype(i.target));
    out.push_back(ir::make(matile::Value{name, wide, pool_.cast(wide, rewrite(i.value))}));
    const std::string target(i.target.str());
    known_[target] = pool_.var(name, wide);
    pending_.emplace_back(target, rewrite(i.indices));
    return true;
  }

  bool update(const scalar::Update& u, ir::Block& out) {
    const auto it = known_.find(std::string(u.target.str()));
    NAUT_CHECK(it != known_.end(), "an update of `{}` without an init", u.target.str());
    out.push_back(combined(it->second, u.reducer, rewrite(u.value), pool_));
    return true;
  }

  // A place that is always read has a name.
  bool scatter(const scalar::Scatter& s, ir::Block& out) {
    matile::Scatter made{s.target, rewrite(s.indices), s.reducer, rewrite(s.value),
                         s.condition ? rewrite(s.condition) : Expr()};
    expr::Substitution named;
    for (Expr place : made.indices) {
      const bool is_asked_first =
          made.condition && occurs(place, expr::conjuncts(made.condition)[0]);
      if (!is_asked_first || expr::tensors_read(place).empty() || named.contains(place)) continue;
      const ir::Name name = names_.make(fmt::format("{}_place", s.target.str()));
      out.push_back(ir::make(matile::Let{name, place}));
      named.emplace(place, pool_.var(name, place.dtype()));
    }
    for (Expr& place : made.indices) place = expr::substitute(pool_, place, named);
    made.value = expr::substitute(pool_, made.value, named);
    if (made.condition) made.condition = expr::substitute(pool_, made.condition, named);
    out.push_back(ir::make(std::move(made)));
    return true;
  }

  bool update_arg(const scalar::UpdateArg& u, ir::Block& out) {
    const Candidate candidate = {rewrite(u.value), rewrite(u.position),
                                 names_.make(fmt::format("{}_candidate", u.target.str()))};
    take_position(known_.at(std::string(u.target.str())), known_.at(std::string(u.best.str())),
                  u.reducer, candidate, pool_, out);
    return true;
  }

  const std::set<std::string>& kept_;
  const std::map<std::string, ir::TensorType>& buffers_;
  FreshNames& kernels_;
  FreshNames names_;  // of this kernel
  int64_t threads_;   // of a CTA
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  ir::Axes axes_;
  Expr first_point_;                   // of a nest that has fewer axes, one point writes; or null
  expr::Substitution bindings_;        // axes of the nest -> names of the kernel
  std::map<std::string, Expr> known_;  // the thread's element of a buffer
  std::vector<std::pair<std::string, ir::Exprs>> pending_;  // accumulators of the nest
};

}  // namespace

MapNest map_nest(const Op& op) {
  const auto* f = op.get<scalar::For>();
  if (f && f->kind == scalar::LoopKind::Map) return {f->axes, f->body};
  return {{}, {op}};
}

std::set<std::string> written_by(const MapNest& nest) {
  std::set<std::string> out;
  ir::for_each_op(nest.body, [&](const Op& op) {
    if (const auto* s = op.get<scalar::Store>()) out.emplace(s->target.str());
    if (const auto* i = op.get<scalar::Init>()) out.emplace(i->target.str());
    if (const auto* s = op.get<scalar::Scatter>()) out.emplace(s->target.str());
  });
  return out;
}

std::string named_after(const std::vector<MapNest>& nests, const std::set<std::string>& kept) {
  std::string name;
  for (const MapNest& nest : nests) {
    for (const std::string& w : written_by(nest)) {
      if (name.empty() || kept.contains(w)) name = w;
    }
  }
  return name;
}

bool can_join(const MapNest& first, const MapNest& next, const std::set<std::string>& written,
              expr::ExprPool& pool) {
  if (is_scan(first)) return can_follow(first, next, written, pool);
  if (is_scan(next)) return false;
  const auto joined = joined_axis(first.axes, next.axes, pool);
  if (first.axes.size() != next.axes.size() && !joined) return false;
  ir::Exprs own;
  for (size_t k = 0; k < next.axes.size(); ++k) {
    const Expr axis = pool.index(next.axes[k].name);
    if (joined == k) {
      const Expr places = first.axes[k + 1].extent;
      own.push_back(pool.binary(EK::FloorDiv, axis, places));
      own.push_back(pool.binary(EK::Mod, axis, places));
      continue;
    }
    if (!joined && first.axes[k].extent != next.axes[k].extent) return false;
    own.push_back(axis);
  }
  bool ok = true;
  for (const Op& op : next.body) {
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() == EK::Read && written.contains(std::string(e.name().str())))
          ok &= std::equal(own.begin(), own.end(), e.args().begin(), e.args().end());
      });
    });
  }
  return ok;
}

std::optional<LoweredKernel> lower_points(const std::vector<MapNest>& nests,
                                          const std::set<std::string>& kept,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          FreshNames& names, const target::Points& choice,
                                          ir::PassContext& context) {
  if (is_scan(nests[0]))
    return lower_scan(with_elements(nests, context.pool), kept, buffers, names, choice, context);
  return PointsLowering(kept, buffers, names, choice, context).run(nests);
}

}  // namespace nautilus::lower
