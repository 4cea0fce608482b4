// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/speculate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/passes/rewrite.h"
#include "matile/resources.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

constexpr double kRange = 1152921504606846976.0;  // 2^60

bool reads(Expr e, std::string_view name) {
  for (ir::Name n : expr::tensors_read(e)) {
    if (n.str() == name) return true;
  }
  return false;
}

bool has_select(Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) { found |= x.op() == EK::Select; });
  return found;
}

// Guards of a reference that nothing has moved yet: `where(m[i] == -inf, 0.0, m[i])`. Adds their
// conditions; false if a select is something else.
bool take_guards(Expr e, std::vector<Expr>& conditions) {
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    if (x.op() != EK::Select) return;
    const Expr c = x[0];
    ok &= c.op() == EK::Eq && c[0].op() == EK::Read && c[0].args().size() == 1 &&
          c[0][0].op() == EK::Var && c[1].op() == EK::FloatConst && std::isinf(c[1].number()) &&
          x[2] == c[0] && x[1].op() == EK::FloatConst;
    if (std::find(conditions.begin(), conditions.end(), c) == conditions.end())
      conditions.push_back(c);
  });
  return ok;
}

// The places of a step's ops in its block.
struct Step {
  size_t dot = 0;
  size_t release = 0;  // of the streamed operand
  size_t fold = 0;     // the extreme value of the scores
  size_t vote = 0;
  size_t branch = 0;
  size_t first_row = 0;  // values per row from the reference
  size_t weights = 0;
  size_t sum = 0;
  std::vector<Expr> unset;     // by row: the reference is not there yet
  std::vector<size_t> before;  // in place on the scores, between product and fold
};

class Speculator {
 public:
  // `is_asked`: a line of the schedule wants it, whatever registers are left.
  Speculator(const Kernel& kernel, const Role& role, const target::Target& target, bool is_asked,
             Names& taken, expr::ExprPool& pool)
      : kernel_(kernel),
        role_(role),
        target_(target),
        is_asked_(is_asked),
        taken_(taken),
        pool_(pool),
        tiles_(declared_tiles(role)) {}

  bool has_fired() const { return !made_.empty(); }

  Role run() {
    Role out = role_;
    out.body = map_blocks(role_.body, [&](ir::Block block) {
      const auto step = find(block);
      return step ? rewritten(block, *step) : block;
    });
    if (made_.empty()) return role_;
    ir::Block body;
    for (const Tile& t : made_) body.push_back(ir::make(t));
    body.insert(body.end(), out.body.begin(), out.body.end());
    out.body = std::move(body);
    return out;
  }

 private:
  const Part* part(ir::Name name, ir::Name* ring_name) const {
    for (const Op& op : kernel_.body) {
      const auto* ring = op.get<Ring>();
      if (!ring) continue;
      for (const Op& p : ring->body) {
        if (p.as<Part>().name != name) continue;
        *ring_name = ring->name;
        return &p.as<Part>();
      }
    }
    return nullptr;
  }

  std::optional<Step> find(const ir::Block& block) const {
    for (size_t v = 1; v + 1 < block.size(); ++v) {
      if (!block[v].is<Vote>()) continue;
      if (const auto step = find_at(block, v)) return step;
    }
    return std::nullopt;
  }

  std::optional<Step> find_at(const ir::Block& block, size_t v) const {
    Step s;
    s.vote = v;
    s.fold = v - 1;
    s.branch = v + 1;
    // The extreme value of the scores, for the vote and the branch alone.
    const auto* fold = block[s.fold].get<Fold>();
    if (!fold || fold->value.op() != EK::Reduce) return std::nullopt;
    const bool is_extreme =
        fold->value.reducer() == expr::Reducer::Max || fold->value.reducer() == expr::Reducer::Min;
    // Of the scores, or of what scalars make of them: the branch computes it again.
    const auto folded = expr::tensors_read(fold->value.body());
    if (folded.size() != 1) return std::nullopt;
    const std::string scores(folded[0].str());
    if (const auto it = tiles_.find(scores); it == tiles_.end() || it->second.type.dims.size() != 2)
      return std::nullopt;
    const std::string local(fold->target.str());
    if (!is_extreme || !reads(block[v].as<Vote>().value, local)) return std::nullopt;
    const auto* branch = block[s.branch].get<If>();
    const Expr up = pool_.var(block[v].as<Vote>().name, ir::DType::Bool);
    if (!branch || branch->condition != up) return std::nullopt;
    const Touched moved = touched_by(branch->body);
    if (moved.mentions(scores)) return std::nullopt;
    // Values per row of the reference, the weights in place, their sum.
    size_t k = s.first_row = s.branch + 1;
    bool follows = false;
    for (; k < block.size(); ++k) {
      const auto* set = block[k].get<Set>();
      if (!set || set->axes.size() != 1 || reads(set->value, scores)) break;
      std::vector<Expr> unset;
      if (!take_guards(set->value, unset)) return std::nullopt;
      for (Expr c : unset) {
        if (!moved.writes.contains(c[0].name().str())) return std::nullopt;
        s.unset.push_back(expr::substitute(pool_, c, {{c[0][0], pool_.index(fold->axes[0].name)}}));
      }
      for (ir::Name n : expr::tensors_read(set->value)) {
        follows |= moved.writes.contains(n.str());
        if (n.str() == local) return std::nullopt;
      }
    }
    if (!follows || k + 1 >= block.size()) return std::nullopt;
    s.weights = k;
    s.sum = k + 1;
    const auto* weights = block[s.weights].get<Set>();
    if (!weights || weights->target.str() != scores || weights->value.op() != EK::Exp2 ||
        has_select(weights->value))
      return std::nullopt;
    const auto* sum = block[s.sum].get<Fold>();
    if (!sum || !is_running_sum(*sum, scores)) return std::nullopt;
    return find_product(block, s, scores, local);
  }

  // l[i] + sum[j] S[i, j], kept in l.
  static bool is_running_sum(const Fold& fold, std::string_view scores) {
    const Expr e = fold.value;
    if (e.op() != EK::Add || e[0].op() != EK::Read || e[0].name() != fold.target) return false;
    return e[1].op() == EK::Reduce && e[1].reducer() == expr::Reducer::Sum &&
           e[1].body().op() == EK::Read && e[1].body().name().str() == scores &&
           e.dtype() == expr::DType::F32;
  }

  std::optional<Step> find_product(const ir::Block& block, Step s, const std::string& scores,
                                   const std::string& local) const {
    bool found = false;
    int64_t depth = 0;
    for (size_t k = 0; k < block.size(); ++k) {
      const auto* d = block[k].get<Dot>();
      if (!d) continue;
      if (d->acc.str() != scores) {
        depth += tiles_.at(std::string(d->acc.str())).type.dims[1].integer();
        continue;
      }
      if (found || k > s.fold) return std::nullopt;
      found = true;
      s.dot = k;
    }
    if (!found) return std::nullopt;
    const Dot& dot = block[s.dot].as<Dot>();
    ir::Name ring_a;
    ir::Name ring_b;
    const Part* a = part(dot.a, &ring_a);
    const Part* b = part(dot.b, &ring_b);
    const auto& columns = tiles_.at(scores).type.dims;
    if (!a || !b || dot.mode != DotMode::Init || dot.trans != Trans::Yes || ring_a == ring_b ||
        a->swizzle != MapSwizzle::B128 || b->swizzle != MapSwizzle::B128 ||
        columns[0].integer() != 64 || columns[1].integer() % 16 != 0)
      return std::nullopt;
    depth += a->type.dims[1].integer();
    const bool is_deep = depth > target_.tiles.speculating_depth;
    if (!is_asked_ && (is_deep || !has_registers_left(block))) return std::nullopt;
    // One release of the streamed operand, behind the wait for the product; nothing else between
    // the product and the fold but work on the scores in place.
    int releases = 0;
    for (size_t k = s.dot + 1; k < block.size(); ++k) {
      const Op& op = block[k];
      if (const auto* r = op.get<Release>()) {
        if (r->ring == ring_a) return std::nullopt;
        if (r->ring != ring_b) continue;
        if (k > s.fold) return std::nullopt;
        s.release = k;
        ++releases;
      } else if (const auto* set = op.get<Set>(); set && k < s.fold && touches(op, scores)) {
        if (set->target.str() != scores || reads_vote(set->value)) return std::nullopt;
        // Masked steps are few.
        if (!s.unset.empty() && has_select(set->value)) return std::nullopt;
        s.before.push_back(k);
      } else if (k < s.fold && touches(op, scores) && !op.is<Wait>()) {
        return std::nullopt;
      } else if (k > s.sum && (touches(op, scores) || touches(op, local))) {
        // Afterwards the weights are an operand of another product.
        const bool is_cast = set && set->value.op() == EK::Cast && set->value[0].op() == EK::Read &&
                             set->value.dtype() == expr::DType::BF16 && !touches(op, local);
        if (!is_cast) return std::nullopt;
      }
    }
    if (releases != 1) return std::nullopt;
    return s;
  }

  // Beside the tiles of the step's products.
  bool has_registers_left(const ir::Block& block) const {
    // Beside more of them the repeated product spills.
    const int64_t all = role_.regs.value_or(target_.tiles.most_registers);
    return static_cast<double>(product_registers(role_, block)) <=
           target_.tiles.speculating_share * static_cast<double>(all);
  }

  static bool touches(const Op& op, std::string_view tile) { return touched_by(op).mentions(tile); }
  static bool reads_vote(Expr e) {
    bool found = false;
    expr::for_each(e, [&](Expr x) { found |= x.op() == EK::Var && x.dtype() == ir::DType::Bool; });
    return found;
  }

  // Against the farthest number no finite score has a weight of 0, and -inf still has.
  Op with_far_guards(const Op& op) {
    Set set = op.as<Set>();
    set.value = expr::rebuild(pool_, set.value, [&](Expr x) {
      if (x.op() != EK::Select) return x;
      const double far = std::copysign(std::numeric_limits<float>::max(), x[0][1].number());
      return pool_.select(x[0], pool_.floating(far, x.dtype()), x[2]);
    });
    return ir::make(std::move(set), op.span());
  }

  ir::Block rewritten(const ir::Block& block, const Step& s) {
    const Fold& sum = block[s.sum].as<Fold>();
    Tile tile = tiles_.at(std::string(sum.target.str()));
    tile.name = fresh_name(std::string(sum.target.str()) + "_step", taken_, pool_);
    made_.push_back(tile);
    const Expr row = pool_.index(sum.axes[0].name);
    const Expr at[] = {row};
    const Expr step_sum = pool_.read(tile.name, sum.value.dtype(), at);
    const Op fold = ir::make(Fold{tile.name, sum.axes, sum.value[1]}, block[s.sum].span());

    ir::Block out;
    for (size_t k = 0; k < s.fold; ++k) {
      if (k != s.release) out.push_back(block[k]);
    }
    const auto weigh = [&](ir::Block& to, bool is_first) {
      for (size_t k = s.first_row; k <= s.weights; ++k)
        to.push_back(is_first && k < s.weights ? with_far_guards(block[k]) : block[k]);
      to.push_back(fold);
    };
    weigh(out, true);
    const Vote& vote = block[s.vote].as<Vote>();
    const Expr fits = pool_.binary(EK::Lt, step_sum, pool_.floating(kRange, sum.value.dtype()));
    Expr moves = pool_.unary(EK::Not, fits);
    const expr::Substitution rows = {{pool_.index(block[s.fold].as<Fold>().axes[0].name), row}};
    const Expr some = pool_.binary(EK::Gt, step_sum, pool_.floating(0.0, sum.value.dtype()));
    for (Expr c : s.unset) {
      const Expr starts = pool_.binary(EK::And, expr::substitute(pool_, c, rows), some);
      moves = pool_.binary(EK::Or, moves, starts);
    }
    const Expr axes[] = {row};
    const Expr extents[] = {sum.axes[0].extent};
    out.push_back(ir::make(Vote{vote.name, pool_.reduce(expr::Reducer::Any, moves, axes, extents)},
                           block[s.vote].span()));
    const Dot& dot = block[s.dot].as<Dot>();
    If branch{block[s.branch].as<If>().condition, {}};
    branch.body.push_back(
        ir::make(WarpDot{dot.acc, dot.a, dot.rows, dot.b, dot.trans}, block[s.dot].span()));
    for (size_t k : s.before) branch.body.push_back(block[k]);
    branch.body.push_back(block[s.fold]);
    for (const Op& op : block[s.branch].as<If>().body) branch.body.push_back(op);
    weigh(branch.body, false);
    out.push_back(ir::make(std::move(branch), block[s.branch].span()));
    out.push_back(
        ir::make(Set{sum.target, sum.axes, pool_.binary(EK::Add, sum.value[0], step_sum)}));
    out.push_back(block[s.release]);
    out.insert(out.end(), block.begin() + static_cast<long>(s.sum) + 1, block.end());
    return out;
  }

  const Kernel& kernel_;
  const Role& role_;
  const target::Target& target_;
  bool is_asked_;
  Names& taken_;
  expr::ExprPool& pool_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::vector<Tile> made_;
};

// The lag is the one that the lazy reference has.
void note_speculation(const ir::Block& lines, ir::PassContext& context) {
  decision::Reference taken{decision::ReferenceWay::Speculative, {}, {}};
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
        using decision::ReferenceWay;
        Kernel out = kernel;
        const ir::Block lines = decision::take<decision::Reference>(out.body);
        const bool is_asked =
            !lines.empty() && lines[0].as<decision::Reference>().way == ReferenceWay::Speculative;
        if (!lines.empty() && !is_asked) return out;
        bool has_fired = false;
        for (Op& op : out.body) {
          const auto* role = op.get<Role>();
          if (!role || role->unit != RoleUnit::Groups) continue;
          if (!is_asked && role->count < target.tiles.speculating_groups) continue;
          Speculator speculator(kernel, *role, target, is_asked, taken, context.pool);
          op = ir::make(speculator.run(), op.span());
          has_fired |= speculator.has_fired();
        }
        if (has_fired) note_speculation(lines, context);
        if (has_fired || !is_asked) return out;
        decision::refuse(lines[0], "no step of this kernel can begin with the old reference",
                         context);
        return std::nullopt;
      });
}

}  // namespace nautilus::matile
