// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/moving_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "algebra/moments.h"
#include "choose/steps/stages.h"
#include "expr/walk.h"
#include "lower/points/nest_reduction.h"

namespace nautilus::choose {
namespace {

using expr::DType;
using expr::Expr;
using lower::MapNest;
using EK = expr::Op;

using lower::NestReduction;

// A plain sum of f32; empty for other nests.
std::optional<NestReduction> plain_sum_in(const MapNest& nest) {
  const auto out = lower::reduction_of(nest);
  const bool is_sum = out && out->update->reducer == expr::Reducer::Sum &&
                      out->init->value.op() == EK::FloatConst && out->init->value.number() == 0 &&
                      out->init->value.dtype() == DType::F32;
  return is_sum ? out : std::nullopt;
}

// How the axes of one nest are called in another that has the same.
bool name_alike(const ir::Axes& from, const ir::Axes& to, expr::Substitution& names,
                expr::ExprPool& pool) {
  if (from.size() != to.size()) return false;
  for (size_t k = 0; k < from.size(); ++k) {
    if (from[k].extent != to[k].extent) return false;
    names.emplace(pool.index(from[k].name), pool.index(to[k].name));
  }
  return true;
}

class MovingSteps {
 public:
  MovingSteps(std::span<const MapNest> nests, size_t place, const StepScope& scope,
              const PresentTerms* present)
      : nests_(nests),
        nest_(nests[place]),
        buffers_(scope.buffers),
        names_(scope.names),
        pool_(scope.pool),
        present_(present) {
    for (size_t k = 0; k < place; ++k) {
      for (const std::string& w : lower::written_by(nests[k])) place_of_.emplace(w, k);
    }
  }

  std::optional<MovingStages> run(const ir::Names& inner) {
    const auto own = plain_sum_in(nest_);
    if (!own || !find_axes(*own, inner)) return std::nullopt;
    target_ = own->init->target;
    for (const ir::Axis& a : nest_.axes) at_.push_back(pool_.index(a.name));
    if (!std::equal(at_.begin(), at_.end(), own->init->indices.begin(), own->init->indices.end()))
      return std::nullopt;
    const Expr term = with_symbols(written_out(own->update->value));
    if (references_.empty() || references_.size() > 2 || is_running(term)) return std::nullopt;
    for (Expr r : references_) {
      if (r.dtype() != DType::F32 || !is_arithmetic(r)) return std::nullopt;
    }
    const auto moments = algebra::moments_of(pool_, term, symbols_);
    if (!moments) return std::nullopt;
    return build(*own, *moments);
  }

 private:
  bool find_axes(const NestReduction& own, const ir::Names& inner) {
    const std::vector<ir::Name> order = axes_in_memory(nest_, buffers_, pool_);
    const auto is_inner = [&](ir::Name name) {
      return std::find(inner.begin(), inner.end(), name) != inner.end();
    };
    for (const ir::Name name : order) {
      for (const ir::Axes* axes : {&nest_.axes, &own.loop->axes}) {
        for (const ir::Axis& a : *axes) {
          if (a.name != name) continue;
          if (is_inner(name))
            inner_.push_back(a);
          else
            points_.push_back(a);
          if (!is_inner(name) && axes == &own.loop->axes) rest_.push_back(a);
        }
      }
    }
    return !inner_.empty() && !rest_.empty() && inner_.size() == inner.size();
  }

  // A sum over the same axes that has its steps: its part at a point of the first step, in this
  // nest's names. Null for others.
  Expr part_of(const std::string& name) {
    const auto known = parts_.find(name);
    if (known != parts_.end()) return known->second;
    Expr& out = parts_[name];
    const auto it = place_of_.find(name);
    const auto rest = it == place_of_.end() ? std::nullopt : plain_sum_in(nests_[it->second]);
    if (!rest || rest->update->value.op() != EK::Read) return out;
    const Expr read = rest->update->value;
    const auto of = place_of_.find(std::string(read.name().str()));
    const auto first = of == place_of_.end() ? std::nullopt : plain_sum_in(nests_[of->second]);
    expr::Substitution map;
    expr::Substitution ignored;
    if (!first || !name_alike(nests_[it->second].axes, nest_.axes, map, pool_) ||
        !name_alike(rest->loop->axes, rest_, map, pool_) ||
        !name_alike(first->loop->axes, inner_, ignored, pool_))
      return out;
    if (!against_) against_ = pool_.name(name);
    out = expr::substitute(pool_, read, map);
    return out;
  }

  bool is_own_point(Expr read) const {
    return std::equal(at_.begin(), at_.end(), read.args().begin(), read.args().end());
  }

  // Whether a value needs a sum that has its steps.
  bool is_running(Expr value) {
    bool found = false;
    expr::for_each(value, [&](Expr e) {
      found |= e.op() == EK::Read && is_own_point(e) && part_of(std::string(e.name().str()));
    });
    return found;
  }

  // With numbers that need such sums in place of their reads.
  Expr written_out(Expr value) {
    return expr::rebuild(pool_, value, [&](Expr e) {
      if (e.op() != EK::Read || !is_own_point(e)) return e;
      const auto it = place_of_.find(std::string(e.name().str()));
      if (it == place_of_.end()) return e;
      const MapNest& nest = nests_[it->second];
      const auto* store = nest.body.size() == 1 ? nest.body[0].get<scalar::Store>() : nullptr;
      expr::Substitution map;
      if (!store || !name_alike(nest.axes, nest_.axes, map, pool_)) return e;
      const Expr number = written_out(expr::substitute(pool_, store->value, map));
      return is_running(number) ? pool_.cast(e.dtype(), number) : e;
    });
  }

  bool is_streamed(Expr e) const {
    const auto moves = [&](const ir::Axis& a) { return expr::depends_on(e, pool_.index(a.name)); };
    return std::any_of(inner_.begin(), inner_.end(), moves) ||
           std::any_of(rest_.begin(), rest_.end(), moves);
  }

  Expr with_symbols(Expr e) {
    if (!is_running(e)) return e;
    if (!is_streamed(e)) {
      const auto it = std::find(references_.begin(), references_.end(), e);
      const auto k = static_cast<size_t>(it - references_.begin());
      if (it == references_.end()) {
        references_.push_back(e);
        symbols_.push_back(
            pool_.var(pool_.name(fmt::format("{}.ref{}", target_.str(), k)), e.dtype()));
      }
      return symbols_[k];
    }
    if (e.op() == EK::Read) return e;
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(with_symbols(a));
    return pool_.with_args(e, args);
  }

  // Made of sums by arithmetic: what is not finite then makes NaN of the definition, too.
  bool is_arithmetic(Expr e) {
    if (!is_running(e)) return true;
    if (e.op() == EK::Read) return true;
    const bool is_one = e.op() == EK::Add || e.op() == EK::Sub || e.op() == EK::Mul ||
                        e.op() == EK::Div || e.op() == EK::Neg || e.op() == EK::Cast;
    return is_one &&
           std::all_of(e.args().begin(), e.args().end(), [&](Expr a) { return is_arithmetic(a); });
  }

  Expr count(const ir::Axes& axes) const {
    Expr out;
    for (const ir::Axis& a : axes) {
      const Expr n = pool_.cast(DType::F32, a.extent);
      out = out ? pool_.binary(EK::Mul, out, n) : n;
    }
    return out;
  }

  // Of a part.
  Expr present_count() const {
    return present_ ? pool_.cast(DType::F32, present_->count) : count(inner_);
  }
  // The factor that extrapolates a part to all parts.
  Expr scale() const {
    return present_ ? pool_.binary(EK::Div, pool_.cast(DType::F32, present_->all), present_count())
                    : count(rest_);
  }

  Expr zero() const { return pool_.constant(0, DType::F32); }

  ir::Name declare(const std::string& stem, MovingStages& out) {
    ir::TensorType type{DType::F32, {}};
    for (const ir::Axis& a : points_) type.dims.push_back(a.extent);
    out.buffers.emplace_back(names_.make(stem), type);
    return out.buffers.back().first;
  }

  // How far the references of moments have moved from those of a part.
  struct Moved {
    expr::Substitution references;  // by symbol, of the part
    std::vector<Expr> steps;
    Expr is_known;
    Expr lost;  // 0, or NaN where a reference is not finite
  };

  MovingStages build(const NestReduction& own, const std::vector<algebra::Moment>& moments) {
    MovingStages out;
    out.against = against_;
    ir::Exprs point;
    for (const ir::Axis& a : points_) point.push_back(pool_.index(a.name));
    const Moved by = moved_references(point, out);
    std::vector<Expr> sums;
    for (size_t k = 0; k < moments.size(); ++k) {
      const Expr term = expr::substitute(pool_, moments[k].term, by.references);
      sums.push_back(is_streamed(moments[k].term) ? sum_of_part(k, term, point, out)
                                                  : pool_.binary(EK::Mul, term, present_count()));
    }
    const Expr moved = algebra::moved_sum(pool_, moments, 0, sums, by.steps);
    // An empty part has no number, and adds nothing.
    const Expr is_empty = pool_.binary(EK::Eq, count(inner_), zero());
    const Expr unknown = pool_.select(is_empty, sums[0], pool_.binary(EK::Add, sums[0], by.lost));
    scalar::For loop{rest_, scalar::LoopKind::Reduce, {}};
    loop.body.push_back(ir::make(scalar::Update{target_, own.update->indices, expr::Reducer::Sum,
                                                pool_.select(by.is_known, moved, unknown)}));
    out.rest.axes = nest_.axes;
    out.rest.body.push_back(nest_.body[0]);
    out.rest.body.push_back(ir::make(std::move(loop)));
    return out;
  }

  Moved moved_references(const ir::Exprs& point, MovingStages& out) {
    Moved by;
    for (size_t k = 0; k < references_.size(); ++k) {
      const ir::Name buffer = declare(fmt::format("{}_ref", target_.str()), out);
      // The number, if all parts were like this one.
      const Expr of_part = expr::rebuild(pool_, references_[k], [&](Expr e) {
        const Expr part =
            e.op() == EK::Read && is_own_point(e) ? part_of(std::string(e.name().str())) : Expr();
        return part ? pool_.binary(EK::Mul, part, scale()) : e;
      });
      MapNest nest{points_, {}};
      nest.body.push_back(ir::make(scalar::Store{buffer, point, of_part}));
      out.first.push_back(std::move(nest));
      const Expr own = pool_.read(buffer, DType::F32, point);
      by.references.emplace(symbols_[k], own);
      const Expr d = pool_.binary(EK::Sub, references_[k], own);
      const Expr is_finite =
          pool_.binary(EK::Lt, pool_.unary(EK::Abs, d),
                       pool_.constant(std::numeric_limits<double>::infinity(), DType::F32));
      by.steps.push_back(d);
      by.is_known = by.is_known ? pool_.binary(EK::And, by.is_known, is_finite) : is_finite;
      const Expr nothing = pool_.binary(EK::Mul, d, zero());
      by.lost = by.lost ? pool_.binary(EK::Add, by.lost, nothing) : nothing;
    }
    return by;
  }

  // The sum of a moment's terms in a part, which the first step computes.
  Expr sum_of_part(size_t moment, Expr term, const ir::Exprs& point, MovingStages& out) {
    const ir::Name buffer = declare(
        fmt::format("{}_parts{}", target_.str(), moment == 0 ? "" : fmt::format("_d{}", moment)),
        out);
    scalar::For loop{inner_, scalar::LoopKind::Reduce, {}};
    loop.body.push_back(
        ir::make(scalar::Update{buffer, point, expr::Reducer::Sum,
                                present_ ? pool_.select(present_->exists, term, zero()) : term}));
    MapNest nest{points_, {}};
    nest.body.push_back(ir::make(scalar::Init{buffer, point, zero()}));
    nest.body.push_back(ir::make(std::move(loop)));
    out.first.push_back(std::move(nest));
    return pool_.read(buffer, DType::F32, point);
  }

  std::span<const MapNest> nests_;
  const MapNest& nest_;
  const std::map<std::string, ir::TensorType>& buffers_;
  lower::FreshNames& names_;
  expr::ExprPool& pool_;
  const PresentTerms* present_;
  std::map<std::string, size_t> place_of_;  // by what nests in front write
  ir::Name target_;
  ir::Exprs at_;     // the nest's own point
  ir::Axes inner_;   // of the first step, in the order of memory
  ir::Axes rest_;    // that are left to reduce
  ir::Axes points_;  // of the first step
  std::map<std::string, Expr> parts_;
  ir::Name against_;
  std::vector<Expr> references_;
  std::vector<Expr> symbols_;
};

}  // namespace

std::optional<MovingStages> moving_stages(std::span<const MapNest> nests, size_t place,
                                          const ir::Names& inner, const StepScope& scope,
                                          const PresentTerms* present) {
  return MovingSteps(nests, place, scope, present).run(inner);
}

}  // namespace nautilus::choose
