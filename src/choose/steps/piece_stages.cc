// SPDX-License-Identifier: Apache-2.0
#include "choose/steps/piece_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "algebra/attained.h"
#include "algebra/repair.h"
#include "choose/steps/along_axis.h"
#include "choose/steps/moving_stages.h"
#include "choose/steps/stages.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/points/split_reduction.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::DType;
using expr::Expr;
using lower::MapNest;
using EK = expr::Op;

bool is_extreme(expr::Reducer r) { return r == expr::Reducer::Max || r == expr::Reducer::Min; }

class Pieces {
 public:
  Pieces(std::span<const MapNest> nests, size_t place, const PieceLine& line,
         const algebra::Signs& signs, const StepScope& scope)
      : nests_(nests.first(place)),
        nest_(nests[place]),
        line_(line),
        length_(line.length),
        buffers_(scope.buffers),
        names_(scope.names),
        signs_(signs),
        pool_(scope.pool) {
    for (size_t k = 0; k < place; ++k) {
      for (const std::string& w : lower::written_by(nests[k])) place_of_.emplace(w, k);
    }
  }

  std::optional<PieceStages> run() {
    const auto own = along_axis(nest_);
    if (!own || !lower::splittable_axis(nest_, buffers_, pool_)) return std::nullopt;
    reducer_ = own->update->reducer;
    if (reducer_ != expr::Reducer::Sum && !is_extreme(reducer_)) return std::nullopt;
    const Expr n = own->axis.extent;
    if (own->update->value.dtype() != DType::F32 || length_ < 2) return std::nullopt;
    if (n.op() == EK::IntConst && n.integer() <= length_) return std::nullopt;
    // The places of a row's pieces are counted in 32 bits.
    if (n.op() == EK::IntConst && n.integer() > INT32_MAX - length_) return std::nullopt;
    for (const ir::Axis& a : nest_.axes) row_.push_back(pool_.index(a.name));
    if (!is_at(own->init->indices, row_) || !is_at(own->update->indices, row_)) return std::nullopt;
    column_ = pool_.index(own->axis.name);
    all_ = n;
    cut();
    const Expr value = written_out(own->update->value);
    auto made = of_term(*own, expr::substitute(pool_, value, {{column_, at()}}));
    if (!made) return std::nullopt;
    for (const size_t k : computed_) made->elements.push_back(element_of(nests_[k])->target);
    return made;
  }

 private:
  std::optional<PieceStages> of_term(const AlongAxis& own, Expr term) {
    if (!line_.may_move || !is_running(term)) return plain(own, term);
    if (auto attained = where_attained(own, term)) return attained;
    if (reducer_ != expr::Reducer::Sum) return std::nullopt;
    if (auto moved = polynomial(own, term)) return moved;
    return by_factor(own, term);
  }

  // Whether elements of the statement are computed where they are read.
  bool may_compute(ir::Name element) const {
    return !line_.elements || std::find(line_.elements->begin(), line_.elements->end(), element) !=
                                  line_.elements->end();
  }

  static bool is_at(std::span<const Expr> indices, const ir::Exprs& point) {
    return std::equal(indices.begin(), indices.end(), point.begin(), point.end());
  }

  void cut() {
    const Expr length = pool_.integer(length_);
    const Expr more = pool_.integer(length_ - 1);
    const Expr pieces = all_.op() == EK::IntConst
                            ? pool_.integer((all_.integer() + length_ - 1) / length_)
                            : pool_.binary(EK::FloorDiv, pool_.binary(EK::Add, all_, more), length);
    // Axes are a nest's own: all pieces have the same names, whatever is made before.
    lower::FreshNames scratch = names_;
    piece_ = {scratch.make("piece"), pieces};
    turn_ = {column_.name(), length};
    const bool is_whole = all_.op() == EK::IntConst && all_.integer() % length_ == 0;
    if (!is_whole) exists_ = pool_.binary(EK::Lt, at(), all_);
  }

  // The place in the row.
  Expr at() const {
    return pool_.binary(EK::Add,
                        pool_.binary(EK::Mul, pool_.index(piece_.name), pool_.integer(length_)),
                        pool_.index(turn_.name));
  }

  Expr identity() const {
    return pool_.constant(expr::identity(reducer_, DType::F32).f, DType::F32);
  }
  Expr guarded(Expr term) const { return exists_ ? pool_.select(exists_, term, identity()) : term; }

  // The nest's axes in place of another's that has the same extents, the column last.
  std::optional<expr::Substitution> names_of(const ir::Axes& axes) const {
    if (axes.size() != nest_.axes.size() && axes.size() != nest_.axes.size() + 1)
      return std::nullopt;
    expr::Substitution out;
    for (size_t k = 0; k < axes.size(); ++k) {
      const bool is_row = k < nest_.axes.size();
      if (axes[k].extent != (is_row ? nest_.axes[k].extent : all_)) return std::nullopt;
      out.emplace(pool_.index(axes[k].name), is_row ? row_[k] : column_);
    }
    return out;
  }

  // The axes of the point at which a read replaces the axes of the storing nest: each axis of the
  // row once, and the column, at any position in memory.
  std::optional<expr::Substitution> names_at(const MapNest& nest, const scalar::Store& store,
                                             Expr read) const {
    if (nest.axes.size() != read.args().size() || store.indices.size() != read.args().size())
      return std::nullopt;
    expr::Substitution out;
    std::set<Expr, expr::ByContent> places;
    for (const ir::Axis& a : nest.axes) {
      const auto stored =
          std::find(store.indices.begin(), store.indices.end(), pool_.index(a.name));
      if (stored == store.indices.end()) return std::nullopt;
      const Expr place = read[static_cast<size_t>(stored - store.indices.begin())];
      const auto row = std::find(row_.begin(), row_.end(), place);
      if (row == row_.end() && place != column_) return std::nullopt;
      const Expr extent =
          place == column_ ? all_ : nest_.axes[static_cast<size_t>(row - row_.begin())].extent;
      if (a.extent != extent || !places.insert(place).second) return std::nullopt;
      out.emplace(pool_.index(a.name), place);
    }
    return out;
  }

  // With elements of the same row, and numbers that follow from pieces, in place of their reads.
  Expr written_out(Expr value) {
    return expr::rebuild(pool_, value, [&](Expr e) {
      if (e.op() != EK::Read) return e;
      const auto it = place_of_.find(std::string(e.name().str()));
      const MapNest* nest = it == place_of_.end() ? nullptr : &nests_[it->second];
      const scalar::Store* store = nest ? element_of(*nest) : nullptr;
      const auto map = store ? names_at(*nest, *store, e) : std::nullopt;
      if (!map) return e;
      const bool is_element = expr::depends_on(e, column_);
      if (is_element && !may_compute(e.name())) return e;
      const Expr inner = written_out(expr::substitute(pool_, store->value, *map));
      if (is_element) computed_.insert(it->second);
      const bool is_moved = line_.may_move && is_running(inner);
      return is_element || is_moved ? pool_.cast(e.dtype(), inner) : e;
    });
  }

  // Of a reduction of the row that has pieces of the same length: what it is in a piece; null for
  // others.
  Expr part_of(Expr read) {
    if (read.op() != EK::Read || !is_at(read.args(), row_)) return {};
    const auto it = place_of_.find(std::string(read.name().str()));
    if (it == place_of_.end()) return {};
    const MapNest& nest = nests_[it->second];
    const auto rest = along_axis(nest);
    if (!rest || rest->axis.extent != piece_.extent) return {};
    const auto map = names_of(nest.axes);
    const Expr part = part_read(*rest);
    if (!map || !part) return {};
    const auto of = place_of_.find(std::string(part.name().str()));
    const auto first = of == place_of_.end() ? std::nullopt : along_axis(nests_[of->second]);
    if (!first || first->axis.extent != turn_.extent) return {};
    expr::Substitution here = *map;
    here.emplace(pool_.index(rest->axis.name), pool_.index(piece_.name));
    return expr::substitute(pool_, part, here);
  }

  bool is_running(Expr value) {
    bool found = false;
    expr::for_each(value, [&](Expr e) { found |= part_of(e) ? true : false; });
    return found;
  }

  // The reduction over pieces and over the terms of each.
  MapNest two_axes(const AlongAxis& own, Expr term) const {
    MapNest out{nest_.axes, {nest_.body[0]}};
    scalar::For loop{{piece_, turn_}, scalar::LoopKind::Reduce, {}};
    loop.body.push_back(
        ir::make(scalar::Update{own.init->target, own.update->indices, reducer_, term}));
    out.body.push_back(ir::make(std::move(loop)));
    return out;
  }

  std::optional<PieceStages> plain(const AlongAxis& own, Expr term) {
    const MapNest nest = two_axes(own, guarded(term));
    const auto made = stages(nest, {turn_.name}, buffers_, names_, pool_);
    if (!made) return std::nullopt;
    return PieceStages{{{made->buffer, made->type}}, {}, {}, {made->first}, made->rest};
  }

  std::optional<PieceStages> polynomial(const AlongAxis& own, Expr term) {
    std::vector<MapNest> list(nests_.begin(), nests_.end());
    list.push_back(two_axes(own, term));
    const Expr left = pool_.binary(
        EK::Sub, all_, pool_.binary(EK::Mul, pool_.index(piece_.name), pool_.integer(length_)));
    const PresentTerms present{exists_, pool_.binary(EK::Min, pool_.integer(length_), left), all_};
    const auto made = moving_stages(list, list.size() - 1, {turn_.name}, {buffers_, names_, pool_},
                                    exists_ ? &present : nullptr);
    if (!made) return std::nullopt;
    return PieceStages{made->buffers, made->against, {}, made->first, made->rest};
  }

  // A number of the row that a term needs, and what it is in the piece.
  struct Running {
    Expr number;
    Expr part;
    expr::Reducer reducer;
    double identity() const { return expr::identity(reducer, DType::F32).f; }
  };

  std::vector<Running> running_in(Expr term) {
    std::vector<Running> out;
    expr::for_each(term, [&](Expr e) {
      const Expr part = part_of(e);
      if (!part) return;
      const MapNest& nest = nests_[place_of_.at(std::string(e.name().str()))];
      out.push_back({e, part, along_axis(nest)->update->reducer});
    });
    return out;
  }

  // Terms that only count where an extreme is attained: those of a piece count if its extreme is
  // that of the row.
  std::optional<PieceStages> where_attained(const AlongAxis& own, Expr term) {
    const std::vector<Running> running = running_in(term);
    const auto stripped =
        algebra::without_attained(pool_, term, reducer_, [&](Expr m, Expr x, bool is_maximum) {
          const auto wanted = is_maximum ? expr::Reducer::Max : expr::Reducer::Min;
          return std::any_of(running.begin(), running.end(), [&](const Running& r) {
            return r.number == m && r.reducer == wanted && terms_of(r.part) == x;
          });
        });
    if (stripped.extremes.empty() || is_running(stripped.term)) return std::nullopt;
    expr::Substitution to_parts;
    for (const Running& r : running) to_parts.emplace(r.number, r.part);
    auto out = plain(own, expr::substitute(pool_, term, to_parts));
    if (!out) return std::nullopt;
    out->against = running[0].number.name();
    change_rest(*out, [&](Expr part) {
      Expr counts;
      for (Expr m : stripped.extremes) {
        const Expr is_attained = pool_.binary(EK::Eq, to_parts.at(m), m);
        counts = counts ? pool_.binary(EK::And, counts, is_attained) : is_attained;
      }
      return pool_.select(counts, part, identity());
    });
    return out;
  }

  // The terms of a part's own reduction, in the names of this one.
  Expr terms_of(Expr part) {
    const MapNest& nest = nests_[place_of_.at(std::string(part.name().str()))];
    const auto first = along_axis(nest);
    expr::Substitution map;
    for (size_t k = 0; k < nest.axes.size(); ++k)
      map.emplace(pool_.index(nest.axes[k].name), part[k]);
    map.emplace(pool_.index(first->axis.name), pool_.index(turn_.name));
    const Expr value = expr::substitute(pool_, first->update->value, map);
    return exists_ && value.op() == EK::Select && value[0] == exists_ ? value[1] : value;
  }

  // Exponentials of extremes.
  std::optional<PieceStages> by_factor(const AlongAxis& own, Expr term) {
    const std::vector<Running> running = running_in(term);
    std::vector<algebra::Moved> moved;
    std::unordered_set<Expr> parts;
    expr::Substitution to_parts;
    expr::Substitution to_guarded;
    for (const Running& r : running) {
      if (!is_extreme(r.reducer)) return std::nullopt;
      moved.push_back({r.part, r.number, r.identity()});
      parts.insert(r.part);
      to_parts.emplace(r.number, r.part);
      // A piece without live terms has no reference: its terms are relative to 0.
      to_guarded.emplace(r.number, algebra::guarded_reference(pool_, r.part, r.identity()));
      expr::for_each(term, [&](Expr e) {
        if (algebra::unguarded(e, r.identity()) == r.number)
          to_guarded.emplace(e, expr::substitute(pool_, e, {{r.number, r.part}}));
      });
    }
    algebra::Separator separator(pool_, parts, {pool_.index(turn_.name)}, signs_);
    const auto separated = separator.separate(expr::substitute(pool_, term, to_parts));
    if (!separated || separated->terms.size() != 1) return std::nullopt;
    const algebra::RunningPart& part = separated->terms[0].running;
    const auto is_safe = [&](const algebra::ExpTerm& t) {
      return std::any_of(running.begin(), running.end(), [&](const Running& r) {
        return t.core == r.part || algebra::unguarded(t.core, r.identity()) == r.part;
      });
    };
    if (!part.powers.empty() || !std::all_of(part.exponents.begin(), part.exponents.end(), is_safe))
      return std::nullopt;
    auto out = plain(own, expr::substitute(pool_, term, to_guarded));
    if (!out) return std::nullopt;
    out->against = running[0].number.name();
    const Expr factor = algebra::repair_factor(pool_, part, moved, signs_);
    if (factor) change_rest(*out, [&](Expr value) { return pool_.binary(EK::Mul, value, factor); });
    return out;
  }

  // The contribution of each piece when they are combined.
  template <class F>
  void change_rest(PieceStages& made, F&& change) const {
    auto loop = made.rest.body[1].as<scalar::For>();
    auto update = loop.body[0].as<scalar::Update>();
    update.value = change(update.value);
    loop.body[0] = ir::make(std::move(update));
    made.rest.body[1] = ir::make(std::move(loop));
  }

  std::span<const MapNest> nests_;  // before it
  const MapNest& nest_;
  const PieceLine& line_;
  int64_t length_;
  const std::map<std::string, ir::TensorType>& buffers_;
  lower::FreshNames& names_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  std::map<std::string, size_t> place_of_;  // by what nests before it write
  std::set<size_t> computed_;               // those of them that the terms compute
  expr::Reducer reducer_ = expr::Reducer::Sum;
  ir::Exprs row_;
  Expr column_;
  Expr all_;  // the terms of a row
  ir::Axis piece_;
  ir::Axis turn_;
  Expr exists_;  // whether a piece has the term; null if all are full
};

}  // namespace

std::optional<PieceStages> piece_stages(std::span<const MapNest> nests, size_t place,
                                        const PieceLine& line, const algebra::Signs& signs,
                                        const StepScope& scope) {
  return Pieces(nests, place, line, signs, scope).run();
}

}  // namespace nautilus::choose
