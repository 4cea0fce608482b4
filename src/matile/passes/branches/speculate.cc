// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/speculate.h"

#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/passes/branches/speculative_step.h"
#include "matile/passes/branches/weight_terms.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

// Which of the legal steps begin with the old reference.
enum class Will : uint8_t {
  ByRule,  // those that gain by it
  Cheap,   // those that repeat a product and have a sum to test, whatever registers are left
  Any,
};

class Speculator {
 public:
  Speculator(const Kernel& kernel, const Role& role, const target::Target& target, Will will,
             Names& taken, expr::ExprPool& pool)
      : role_(role),
        target_(target),
        will_(will),
        taken_(taken),
        pool_(pool),
        tiles_(declared_tiles(role)),
        steps_(kernel, role, target.matrix, pool) {}

  bool has_fired() const { return has_fired_; }
  // Why a step of the role cannot begin so; empty if it has none.
  const std::string& why() const { return why_; }

  Role run() {
    Role out = role_;
    out.body = map_blocks(role_.body, [&](ir::Block block) {
      for (size_t v = 0; v < block.size(); ++v) {
        if (!block[v].is<Vote>()) continue;
        std::string why;
        const auto step = steps_.at(block, v, &why);
        if (!step && why_.empty()) why_ = why;
        if (step && is_wanted(block, *step)) block = rewritten(block, *step);
      }
      return block;
    });
    if (!has_fired_) return role_;
    ir::Block body;
    for (const Tile& t : made_) body.push_back(ir::make(t));
    body.insert(body.end(), out.body.begin(), out.body.end());
    out.body = std::move(body);
    return out;
  }

 private:
  bool is_wanted(const ir::Block& block, const SpeculativeStep& step) const {
    if (will_ == Will::Any) return true;
    if (!step.is_cheap) return false;
    return will_ == Will::Cheap || (is_shallow(block, step) && has_registers_left(block));
  }

  // Little of a step is products: then the work in registers counts.
  bool is_shallow(const ir::Block& block, const SpeculativeStep& step) const {
    int64_t depth = 0;
    for (size_t k = 0; k < block.size(); ++k) {
      const auto* d = block[k].get<Dot>();
      if (!d) continue;
      depth += k == step.again[0] ? steps_.depth(d->a)
                                  : tiles_.at(std::string(d->acc.str())).type.dims[1].integer();
    }
    return depth <= target_.tiles.speculating_depth;
  }

  // Whether the tiles of the step's products leave registers free.
  bool has_registers_left(const ir::Block& block) const {
    // With more registers in tiles the repeated product spills.
    const int64_t all = role_.regs.value_or(target_.tiles.most_registers);
    return static_cast<double>(product_registers(role_, block)) <=
           target_.tiles.speculating_share * static_cast<double>(all);
  }

  ir::Name new_tile(const Tile& like, std::string_view suffix) {
    Tile tile = like;
    tile.name = fresh_name(std::string(like.name.str()) + std::string(suffix), taken_, pool_);
    made_.push_back(tile);
    return tile.name;
  }

  // A fold of one step's weights, and the tile that has it then.
  struct StepSum {
    Op fold;
    ir::Name tile;
    ir::Axes axes;
    Expr total = {};  // the tile that it is added to after the branch; or null
    double range = 0;
  };

  StepSum step_sum(const ir::Block& block, const SpeculativeStep& step, const WeightCheck& check) {
    if (check.sum) {
      const Fold& sum = block[*check.sum].as<Fold>();
      const auto span = block[*check.sum].span();
      if (sum.value.op() == EK::Reduce)
        return {block[*check.sum], sum.target, sum.axes, {}, check.range};
      const ir::Name name = new_tile(tiles_.at(std::string(sum.target.str())), "_step");
      return {ir::make(Fold{name, sum.axes, sum.value[1]}, span), name, sum.axes, sum.value[0],
              check.range};
    }
    const Fold& extreme = block[step.extreme[0]].as<Fold>();
    Tile tile = tiles_.at(std::string(extreme.target.str()));
    tile.name = check.tile;
    const ir::Name name = new_tile(tile, "_step");
    const Expr row = pool_.index(extreme.axes[0].name);
    const Expr column = extreme.value.axis(0);
    const Expr at[] = {row, column};
    const auto& type = tiles_.at(std::string(check.tile.str())).type;
    Expr weight = pool_.read(check.tile, type.dtype, at);
    if (type.dtype != tile.type.dtype) weight = pool_.cast(tile.type.dtype, weight);
    if (check.is_signed) weight = pool_.unary(EK::Abs, weight);
    const Expr axes[] = {column};
    const Expr extents[] = {type.dims[1]};
    const Expr sum = pool_.reduce(expr::Reducer::Sum, weight, axes, extents);
    return {ir::make(Fold{name, extreme.axes, sum}), name, extreme.axes, {}, check.range};
  }

  // Weights that are beyond the range, or of a row without a reference yet.
  Expr out_of_range(const StepSum& sum, const std::vector<Expr>& unset) {
    const Expr row = pool_.index(sum.axes[0].name);
    const Expr at[] = {row};
    const ir::DType dtype = tiles_of(sum.tile).type.dtype;
    const Expr value = pool_.read(sum.tile, dtype, at);
    Expr out = pool_.unary(EK::Not, pool_.binary(EK::Lt, value, pool_.floating(sum.range, dtype)));
    const Expr some = pool_.binary(EK::Gt, value, pool_.floating(0.0, dtype));
    for (Expr c : unset) {
      const Expr starts = expr::substitute(pool_, c, {{c[0][0], row}});
      out = pool_.binary(EK::Or, out, pool_.binary(EK::And, starts, some));
    }
    return out;
  }

  const Tile& tiles_of(ir::Name name) const {
    for (const Tile& t : made_) {
      if (t.name == name) return t;
    }
    return tiles_.at(std::string(name.str()));
  }

  Op vote(const ir::Block& block, const SpeculativeStep& step, const std::vector<StepSum>& sums) {
    Expr moves;
    const ir::Axis& rows = sums[0].axes[0];
    for (const StepSum& sum : sums) {
      Expr one = out_of_range(sum, step.unset);
      one = expr::substitute(pool_, one, {{pool_.index(sum.axes[0].name), pool_.index(rows.name)}});
      moves = moves ? pool_.binary(EK::Or, moves, one) : one;
    }
    const Expr axes[] = {pool_.index(rows.name)};
    const Expr extents[] = {rows.extent};
    return ir::make(Vote{block[step.vote].as<Vote>().name,
                         pool_.reduce(expr::Reducer::Any, moves, axes, extents)},
                    block[step.vote].span());
  }

  Op copied(ir::Name to, ir::Name from) {
    const Tile& tile = tiles_of(from);
    const ir::Axes axes = {{pool_.name("x0"), tile.type.dims[0]},
                           {pool_.name("x1"), tile.type.dims[1]}};
    const Expr at[] = {pool_.index(axes[0].name), pool_.index(axes[1].name)};
    return ir::make(Set{to, axes, pool_.read(from, tile.type.dtype, at)});
  }

  // The set or fold, for a reference that may not be there yet.
  Op guess(const Op& op, const SpeculativeStep& s) {
    if (const auto* set = op.get<Set>())
      return ir::make(Set{set->target, set->axes, with_far_guards(set->value, s.unset, pool_)},
                      op.span());
    const auto& fold = op.as<Fold>();
    return ir::make(Fold{fold.target, fold.axes, with_far_guards(fold.value, s.unset, pool_)},
                    op.span());
  }

  ir::Block rewritten(const ir::Block& block, const SpeculativeStep& s) {
    const auto has = [](const std::vector<size_t>& places, size_t k) {
      return std::find(places.begin(), places.end(), k) != places.end();
    };
    has_fired_ = true;
    std::vector<StepSum> sums;
    for (const WeightCheck& check : s.checks) sums.push_back(step_sum(block, s, check));
    std::vector<std::pair<ir::Name, ir::Name>> kept;
    for (ir::Name n : s.kept) kept.emplace_back(n, new_tile(tiles_of(n), "_kept"));

    ir::Block out;
    for (size_t k = 0; k <= s.end; ++k) {
      if (k == s.extreme[0]) {
        for (const auto& [tile, copy] : kept) out.push_back(copied(copy, tile));
      }
      const bool is_sum = std::any_of(s.checks.begin(), s.checks.end(),
                                      [&](const WeightCheck& c) { return c.sum == k; });
      if (has(s.extreme, k) || k == s.vote || k == s.branch || has(s.releases, k) ||
          has(s.later, k) || is_sum)
        continue;
      if (!has(s.weigh, k)) {
        out.push_back(block[k]);
        continue;
      }
      out.push_back(guess(block[k], s));
    }
    for (const StepSum& sum : sums) out.push_back(guess(sum.fold, s));
    out.push_back(vote(block, s, sums));

    If branch{block[s.branch].as<If>().condition, {}};
    for (size_t k : s.again) {
      const auto* dot = block[k].get<Dot>();
      branch.body.push_back(
          dot ? ir::make(WarpDot{dot->acc, dot->a, dot->rows, dot->b, dot->trans}, block[k].span())
              : block[k]);
    }
    for (const auto& [tile, copy] : kept) branch.body.push_back(copied(tile, copy));
    for (size_t k : s.extreme) branch.body.push_back(block[k]);
    for (const Op& op : block[s.branch].as<If>().body) branch.body.push_back(op);
    for (size_t k : s.weigh) branch.body.push_back(block[k]);
    for (const StepSum& sum : sums) branch.body.push_back(sum.fold);
    out.push_back(ir::make(std::move(branch), block[s.branch].span()));

    for (const StepSum& sum : sums) {
      if (!sum.total) continue;
      const Expr at[] = {pool_.index(sum.axes[0].name)};
      const Expr value = pool_.read(sum.tile, sum.total.dtype(), at);
      out.push_back(
          ir::make(Set{sum.total.name(), sum.axes, pool_.binary(EK::Add, sum.total, value)}));
    }
    for (size_t k : s.releases) out.push_back(block[k]);
    for (size_t k : s.later) out.push_back(block[k]);
    out.insert(out.end(), block.begin() + static_cast<long>(s.end) + 1, block.end());
    return out;
  }

  const Role& role_;
  const target::Target& target_;
  const Will will_;
  Names& taken_;
  expr::ExprPool& pool_;
  std::map<std::string, Tile, std::less<>> tiles_;
  SpeculativeSteps steps_;
  std::vector<Tile> made_;
  bool has_fired_ = false;
  std::string why_;
};

// The lag is the one that the lazy reference has.
void note_speculation(const ir::Block& lines, ir::PassContext& context) {
  decision::Reference taken{decision::ReferenceKind::Speculative, {}, {}};
  for (const ir::Block* known : {&lines, static_cast<const ir::Block*>(context.decided)}) {
    if (!known) continue;
    for (const Op& op : *known) {
      const auto* r = op.get<decision::Reference>();
      if (r && r->lag) taken.lag = r->lag;
      if (r && known == &lines) taken.by = r->by;
    }
  }
  decision::note(ir::make(taken), context);
}

}  // namespace

std::optional<ir::Program> speculate(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  const target::Target& target = ir::target_of(program);
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        using decision::ReferenceKind;
        Kernel out = kernel;
        const ir::Block lines = decision::take<decision::Reference>(out.body);
        const bool is_asked =
            !lines.empty() && lines[0].as<decision::Reference>().kind == ReferenceKind::Speculative;
        if (!lines.empty() && !is_asked) return out;
        std::string why = "no step of it votes about a reference";
        const auto attempt = [&](Will will) {
          Kernel attempted = out;
          bool has_fired = false;
          for (Op& op : attempted.body) {
            const auto* role = op.get<Role>();
            if (!role || role->unit != RoleUnit::Groups) continue;
            if (!is_asked && role->count < target.tiles.speculating_groups) continue;
            Speculator speculator(kernel, *role, target, will, taken, context.pool);
            op = ir::make(speculator.run(), op.span());
            has_fired |= speculator.has_fired();
            if (!speculator.why().empty()) why = speculator.why();
          }
          if (has_fired) out = std::move(attempted);
          return has_fired;
        };
        // Where cheap steps were asked for and are there, others stay lazy: they are few.
        const bool has_fired =
            is_asked ? attempt(Will::Cheap) || attempt(Will::Any) : attempt(Will::ByRule);
        if (has_fired) note_speculation(lines, context);
        if (has_fired || !is_asked) return out;
        decision::refuse(
            lines[0],
            fmt::format("no step of this kernel can begin with the old reference: {}", why),
            context);
        return std::nullopt;
      });
}

}  // namespace nautilus::matile
