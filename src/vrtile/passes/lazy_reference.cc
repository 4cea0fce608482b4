// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/lazy_reference.h"

#include <fmt/format.h>

#include <unordered_set>

#include "decision/lines.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "vrtile/names.h"
#include "vrtile/references.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using ir::Block;
using ir::Name;
using ir::Op;
using EK = expr::Op;

// Weights grow by the lag: f32 has room for their sums up to this.
constexpr int64_t kMostLag = 60;

class LazyReference {
 public:
  LazyReference(const ir::Program& program, ir::PassContext& context)
      : context_(context),
        target_(ir::target_of(program)),
        rows_(target_.matrix.warp_rows),
        pool_(context.pool),
        names_(program.body, context.pool),
        references_(program, context.pool) {}

  bool is_refused() const { return is_refused_; }

  Block block(const Block& ops, bool is_in_loop) {
    Block out;
    for (size_t k = 0; k < ops.size(); ++k) {
      Op op = ops[k];
      references_.add(op);
      if (const auto* p = op.get<Par>())
        op = p->kind == ParKind::Grid ? kernel(op) : with_body(op, block(p->body, false));
      if (op.is<For>() && !is_in_loop) {
        const Block after(ops.begin() + static_cast<long>(k) + 1, ops.end());
        for (const Op& inner : op.as<For>().body) {
          if (!inner.is<Carry>()) continue;
          const auto r = references_.reference(op.as<For>(), inner.as<Carry>());
          if (r && r->carry.type.dims[0].integer() % rows_ == 0)
            op = followed_lazily(op, *r, after);
        }
      }
      out.push_back(op);
    }
    return out;
  }

 private:
  // A speculative reference is a lazy one here. The line stays: a pass of MA-tile reads it, too.
  Op kernel(const Op& op) {
    using decision::ReferenceKind;
    const auto& grid = op.as<Par>();
    const Op* line = decision::find<decision::Reference>(grid.body);
    const auto asked = line ? line->as<decision::Reference>() : decision::Reference{};
    lag_ = asked.lag.value_or(target_.tiles.reference_lag);
    is_lazy_ = !line || asked.kind != ReferenceKind::Follow;
    has_choice_ = false;
    takes_narrow_ = false;
    why_ = "it has no running maximum or minimum";
    Op out = with_body(op, block(grid.body, false));
    if (line && !has_choice_) {
      takes_narrow_ = true;
      out = with_body(op, block(grid.body, false));
    }
    if (line && !has_choice_)
      return refused(op, *line, "no reference of this kernel may lag: " + why_);
    if (line && (lag_ < 1 || lag_ > kMostLag || (asked.lag && !is_lazy_)))
      return refused(
          op, *line,
          fmt::format("a reference lags by 1 to {} powers of two, or follows", kMostLag));
    if (!has_choice_) return out;
    decision::Reference taken{is_lazy_ ? ReferenceKind::Lazy : ReferenceKind::Follow, {}, asked.by};
    if (is_lazy_) taken.lag = lag_;
    decision::note(ir::make(taken), context_);
    return out;
  }

  Op refused(const Op& op, const Op& line, std::string_view why) {
    decision::refuse(line, why, context_);
    is_refused_ = true;
    return op;
  }

  Op followed_lazily(const Op& op, Reference r, const Block& after) {
    const auto& loop = op.as<For>();
    if (!references_.has_any_gauge(loop, r, after, &why_)) return op;
    // Only work on tiles is saved; a single value per row is rescaled as fast as it is tested. So
    // the line of a kernel with both is about references of tiles, whoever wrote it.
    if (!r.has_wide_accumulator && !takes_narrow_) return op;
    has_choice_ = true;
    if (!is_lazy_) return op;
    Block body;
    std::unordered_set<Name> factors;
    Name moves;
    for (const Op& inner : loop.body) {
      const auto* s = inner.get<Set>();
      if (s && s->name == r.next.name) {
        body.push_back(vote(r, moves));
        body.push_back(chosen(*s, moves, s->axes[0].name, old_value(r, s->axes[0].name)));
      } else if (s && moves && references_.is_factor(*s, r)) {
        factors.insert(s->name);
        body.push_back(chosen(*s, moves, s->axes[0].name, pool_.floating(1, s->value.dtype())));
      } else if (s && moves && s->axes.size() > 1 && s->value.op() == EK::Mul) {
        body.push_back(rescaled(inner, *s, moves, factors));
      } else {
        body.push_back(inner);
      }
    }
    return with_body(op, std::move(body));
  }

  // any of 16 rows moves by more than the lag
  Op vote(const Reference& r, Name& moves) {
    moves = names_.fresh(std::string(r.next.name.str()) + "_moves");
    const Expr group = pool_.index(names_.fresh("g"));
    const Expr inside = pool_.index(names_.fresh("y"));
    const ir::DType dtype = r.carry.type.dtype;
    const Expr rows = pool_.integer(rows_);
    const Expr at[] = {pool_.binary(EK::Add, pool_.binary(EK::Mul, rows, group), inside)};
    const Expr growth = pool_.binary(EK::Sub, pool_.read(r.local.name(), dtype, at),
                                     pool_.read(r.carry.name, dtype, at));
    const Expr test = pool_.binary(EK::Gt, pool_.binary(EK::Mul, growth, r.scale),
                                   pool_.floating(static_cast<double>(lag_), dtype));
    const Expr axes[] = {inside};
    const Expr extents[] = {rows};
    const Expr groups = pool_.integer(r.carry.type.dims[0].integer() / rows_);
    return ir::make(Reduce{
        moves, {{group.name(), groups}}, pool_.reduce(expr::Reducer::Any, test, axes, extents)});
  }

  Expr moved(Name moves, Expr row) {
    const Expr at[] = {pool_.binary(EK::FloorDiv, row, pool_.integer(rows_))};
    return pool_.read(moves, ir::DType::Bool, at);
  }

  Op chosen(const Set& s, Name moves, Name row, Expr other) {
    return ir::make(
        Set{s.name, s.axes, pool_.select(moved(moves, pool_.index(row)), s.value, other)});
  }

  Expr old_value(const Reference& r, Name row) {
    const Expr at[] = {pool_.index(row)};
    return pool_.read(r.carry.name, r.carry.type.dtype, at);
  }

  // u * factor[row] is u where the reference stays.
  Op rescaled(const Op& op, const Set& s, Name moves, const std::unordered_set<Name>& factors) {
    for (size_t k = 0; k < 2; ++k) {
      const Expr f = s.value[k];
      if (f.op() != EK::Read || !factors.contains(f.name())) continue;
      return ir::make(
          Set{s.name, s.axes, pool_.select(moved(moves, f[0]), s.value, s.value[1 - k])},
          op.span());
    }
    return op;
  }

  ir::PassContext& context_;
  const target::Target& target_;
  int64_t rows_;  // that can branch for themselves
  expr::ExprPool& pool_;
  Names names_;
  References references_;
  int64_t lag_ = 0;  // powers of two
  bool is_lazy_ = true;
  bool takes_narrow_ = false;  // references of single values of rows may lag
  std::string why_;            // why the last reference may not lag
  bool has_choice_ = false;    // of the kernel at hand
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> lazy_reference(const ir::Program& program, ir::PassContext& context) {
  LazyReference lazy(program, context);
  Block body = lazy.block(program.body, false);
  if (lazy.is_refused()) return std::nullopt;
  return ir::Program{program.level, program.name, std::move(body)};
}

}  // namespace nautilus::vrtile
