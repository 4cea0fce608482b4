// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/defer_lanes.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/monotone.h"
#include "matile/passes/registers/sum_deferral.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

class Deferrer {
 public:
  Deferrer(const ir::Program& program, const Role& role, expr::ExprPool& pool)
      : role_(role), pool_(pool), positive_(program) {}

  Role run() {
    Role out = role_;
    for (Op& op : out.body) {
      const auto* each = op.get<Each>();
      if (!each) continue;
      op = with_block(op, map_blocks(defer_sums(each->body),
                                     [&](ir::Block b) { return move_down(std::move(b)); }));
    }
    role_tiles_unused(out);
    return out;
  }

 private:
  ir::Block defer_sums(ir::Block body) {
    std::vector<std::string> starts;
    ir::for_each_op(body, [&](const Op& op) {
      const auto* l = op.get<Lanes>();
      if (l && l->reducer == expr::Reducer::Sum) starts.emplace_back(l->tile.str());
    });
    Names done;
    for (const std::string& start : starts) {
      if (done.contains(start)) continue;
      Names alike;
      const auto tiles = declared_tiles(role_);
      const Tile& like = tiles.find(start)->second;
      for (const auto& [name, tile] : tiles) {
        if (tile.spread == like.spread && tile.type == like.type) alike.emplace(name);
      }
      const auto plan = plan_deferral(body, alike, like.spread == Spread::Row, start);
      if (!plan) continue;
      const Names& partial = plan->first;
      const auto& uses = plan->second;
      done.insert(partial.begin(), partial.end());
      std::set<const void*> unrolled;
      ir::for_each_op(body, [&](const Op& op) {
        const auto* u = op.get<Unroll>();
        if (u) ir::for_each_op(u->body, [&](const Op& inner) { unrolled.insert(inner.data()); });
      });
      const auto stands_here = [&](const Op& use, const Op& op) {
        if (!unrolled.contains(use.data())) return use.data() == op.data();
        bool found = false;
        if (const auto* u = op.get<Unroll>())
          ir::for_each_op(u->body, [&](const Op& inner) { found |= inner.data() == use.data(); });
        return found;
      };
      body = map_blocks(body, [&](ir::Block block) {
        ir::Block out;
        for (Op& op : block) {
          const auto* l = op.get<Lanes>();
          if (l && partial.contains(l->tile.str())) continue;
          for (const auto& [use, name] : uses) {
            if (stands_here(use, op))
              out.push_back(ir::make(Lanes{pool_.name(name), expr::Reducer::Sum}));
          }
          const auto* set = op.get<Set>();
          const bool is_shared =
              set && partial.contains(set->target.str()) && is_held_whole(*set, partial);
          const ir::Name target = set ? set->target : ir::Name{};
          out.push_back(std::move(op));
          if (is_shared) out.push_back(ir::make(Shares{target, expr::Reducer::Sum}));
        }
        return join_folds(std::move(out), partial);
      });
    }
    return body;
  }

  size_t mentions(const ir::Block& body, std::string_view name) const {
    size_t count = 0;
    ir::for_each_op(body, [&](const Op& op) {
      if (!block_of(op) && touched_by(op).mentions(name)) ++count;
    });
    return count;
  }

  // `fold t = sum ...` with a term of a later set of the block as its only use: one fold.
  ir::Block join_folds(ir::Block block, const Names& partial) {
    for (size_t k = 0; k < block.size(); ++k) {
      const auto* fold = block[k].get<Fold>();
      if (!fold || !partial.contains(fold->target.str()) || fold->value.op() != EK::Reduce)
        continue;
      for (size_t j = k + 1; j < block.size(); ++j) {
        const Touched t = touched_by(block[j]);
        const auto* set = block[j].get<Set>();
        if (!t.mentions(fold->target.str())) {
          bool blocks = false;
          for (const std::string& r : touched_by(block[k]).reads) blocks |= t.writes.contains(r);
          if (blocks) break;
          continue;
        }
        if (!set || set->axes.size() != fold->axes.size() ||
            mentions(role_.body, fold->target.str()) > 3 ||  // fold, its lanes, this set
            is_identity_read(set->value, set->axes))
          break;
        expr::Substitution axes;
        for (size_t a = 0; a < set->axes.size(); ++a)
          axes.emplace(pool_.index(fold->axes[a].name), pool_.index(set->axes[a].name));
        const Expr sum = expr::substitute(pool_, fold->value, axes);
        const Expr value = expr::rebuild(pool_, set->value, [&](Expr x) {
          return x.op() == EK::Read && x.name() == fold->target ? sum : x;
        });
        block[j] = ir::make(Fold{set->target, set->axes, value}, block[j].span());
        block.erase(block.begin() + static_cast<long>(k));
        --k;
        break;
      }
    }
    return block;
  }

  bool tolerates(const Op& op, const Lanes& lanes) const {
    const auto* vote = op.get<Vote>();
    if (!vote || vote->value.op() != EK::Reduce) return false;
    const bool is_max = lanes.reducer == expr::Reducer::Max;
    if (!is_max && lanes.reducer != expr::Reducer::Min) return false;
    return holds_beyond(vote->value.body(), lanes.tile, is_max ? 1 : -1, positive_);
  }

  // Lanes of a tile that the same question reads are combined later: both would be shares.
  static bool is_asked_with_shares(const ir::Block& block, size_t at, ir::Name tile) {
    const Expr condition = block[at].as<Vote>().value.body();
    bool found = false;
    for (size_t k = at + 1; k < block.size(); ++k) {
      ir::for_each_op({block[k]}, [&](const Op& op) {
        const auto* l = op.get<Lanes>();
        found |= l && l->tile != tile && asks_together(condition, tile, l->tile);
      });
    }
    return found;
  }

  ir::Block move_down(ir::Block block) {
    for (size_t k = 0; k < block.size(); ++k) {
      if (!block[k].is<Lanes>()) continue;
      const Lanes lanes = block[k].as<Lanes>();
      size_t to = k;
      while (to + 1 < block.size() && (!touched_by(block[to + 1]).mentions(lanes.tile.str()) ||
                                       (tolerates(block[to + 1], lanes) &&
                                        !is_asked_with_shares(block, to + 1, lanes.tile))))
        ++to;
      if (to + 1 >= block.size() || to == k) continue;
      // Only a move past a vote or into a branch gains anything.
      const Op& next = block[to + 1];
      const bool into = next.is<If>() && is_only_use(block, k, to + 1, lanes.tile);
      bool passes_vote = false;
      for (size_t j = k + 1; j <= to; ++j) passes_vote |= tolerates(block[j], lanes);
      if (!into && !passes_vote) continue;
      const Op moved = block[k];
      if (into) {
        ir::Block inner = next.as<If>().body;
        inner.insert(inner.begin(), moved);
        block[to + 1] = with_block(next, std::move(inner));
      } else {
        block.insert(block.begin() + static_cast<long>(to) + 1, moved);
      }
      block.erase(block.begin() + static_cast<long>(k));
      --k;
    }
    return block;
  }

  // The tile is written in this block before the exchange, and apart from votes only the branch
  // reads it.
  bool is_only_use(const ir::Block& block, size_t from, size_t branch, ir::Name tile) const {
    size_t here = 0;
    for (size_t k = 0; k < block.size(); ++k) {
      size_t inside = 0;
      ir::for_each_op({block[k]}, [&](const Op& op) {
        inside += !block_of(op) && touched_by(op).mentions(tile.str()) ? 1 : 0;
      });
      here += inside;
      if (k > branch && inside > 0) return false;
    }
    // Equally many mentions in the whole role: no other op uses the tile.
    return from > 0 && here == mentions(role_.body, tile.str());
  }

  // Tiles that no op mentions any more lose their declaration.
  static void role_tiles_unused(Role& role) {
    Names used;
    for (const Op& op : role.body) {
      if (op.is<Tile>()) continue;
      const Touched t = touched_by(op);
      used.insert(t.reads.begin(), t.reads.end());
      used.insert(t.writes.begin(), t.writes.end());
    }
    std::erase_if(role.body, [&](const Op& op) {
      const auto* t = op.get<Tile>();
      return t && !used.contains(t->name.str());
    });
  }

  const Role& role_;
  expr::ExprPool& pool_;
  PositiveScalars positive_;
};

}  // namespace

std::optional<ir::Program> defer_lanes(const ir::Program& program, ir::PassContext& context) {
  return map_nests(program, [&](const Kernel&, const Role& role) {
    return std::optional(Deferrer(program, role, context.pool).run());
  });
}

}  // namespace nautilus::matile
