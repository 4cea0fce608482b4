// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/sink_branches.h"

#include <algorithm>

#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

bool reads_tile(Expr e, ir::Name name) {
  const auto read = expr::tensors_read(e);
  return std::find(read.begin(), read.end(), name) != read.end();
}

// `where(vote, x, y)` of a set.
bool is_select(const Op& op, Expr vote) {
  const auto* s = op.get<Set>();
  return s && s->value.op() == EK::Select && s->value[0] == vote;
}

class BranchSinker {
 public:
  BranchSinker(const Role& role, Names& taken, expr::ExprPool& pool)
      : role_(role), taken_(taken), pool_(pool), simplifier_(pool), tiles_(declared_tiles(role)) {}

  Role run() {
    Role out = role_;
    out.body = map_blocks(role_.body, [&](ir::Block block) {
      std::vector<ir::Name> votes;
      for (const Op& op : block) {
        if (const auto* v = op.get<Vote>()) votes.push_back(v->name);
      }
      for (const ir::Name vote : votes) block = sink(std::move(block), vote);
      return block;
    });
    ir::Block body;
    for (Op& op : out.body) {
      if (op.is<Each>()) {
        for (const Tile& t : made_) body.push_back(ir::make(t));
      }
      body.push_back(std::move(op));
    }
    out.body = std::move(body);
    return out;
  }

 private:
  ir::Block sink(ir::Block block, ir::Name vote_name) {
    vote_ = pool_.var(vote_name, ir::DType::Bool);
    drop_constants(block);
    return with_branches(block);
  }

  // --- factors that are constant outside the branch --------------------------------------

  void drop_constants(ir::Block& block) {
    for (size_t k = 0; k < block.size(); ++k) {
      if (!is_select(block[k], vote_) || !block[k].as<Set>().value[2].is_const()) continue;
      const Set factor = block[k].as<Set>();
      ir::Block changed(block.begin(), block.begin() + static_cast<long>(k) + 1);
      bool ok = count_readers(factor.target) == count_readers(block, k + 1, factor.target);
      for (size_t j = k + 1; ok && j < block.size(); ++j) ok = without(block[j], factor, changed);
      if (!ok) continue;
      only_in_branch_.emplace(factor.target.str());
      block = std::move(changed);
    }
  }

  size_t count_readers(ir::Name name) const {
    size_t count = 0;
    ir::for_each_op(role_.body, [&](const Op& op) {
      if (!block_of(op) && touched_by(op).reads.contains(name.str())) ++count;
    });
    return count;
  }
  static size_t count_readers(const ir::Block& block, size_t from, ir::Name name) {
    size_t count = 0;
    for (size_t k = from; k < block.size(); ++k)
      count += !block_of(block[k]) && touched_by(block[k]).reads.contains(name.str()) ? 1 : 0;
    return count;
  }

  // The op with every use of the factor under a select of the vote; false if one has another form.
  bool without(const Op& op, const Set& factor, ir::Block& out) {
    if (!touched_by(op).reads.contains(factor.target.str())) {
      out.push_back(op);
      return true;
    }
    const auto* set = op.get<Set>();
    if (!set) return false;
    Set changed = *set;
    ir::Block extracted;
    if (!is_select(op, vote_) && other_value(set->value, factor, set->axes)) {
      changed.value = pool_.select(vote_, set->value, other_value(set->value, factor, set->axes));
    } else {
      bool ok = !is_select(op, vote_) || is_identity_read(set->value[2], set->axes);
      changed.value = extract(set->value, factor, *set, extracted, ok);
      if (!ok) return false;
    }
    for (Op& e : extracted) out.push_back(std::move(e));
    out.push_back(ir::make(std::move(changed), op.span()));
    return true;
  }

  // The tile that an expression equals where the factor has its constant; null for other
  // expressions.
  Expr other_value(Expr e, const Set& factor, const ir::Axes& axes) {
    const Expr constant = factor.value[2];
    const Expr other = simplifier_.simplify(expr::rebuild(pool_, e, [&](Expr x) {
      return x.op() == EK::Read && x.name() == factor.target ? constant : x;
    }));
    return is_identity_read(other, axes) && tiles_.contains(other.name().str()) ? other : Expr();
  }

  Expr extract(Expr e, const Set& factor, const Set& set, ir::Block& out, bool& ok) {
    if (!reads_tile(e, factor.target)) return e;
    if (e.op() == EK::Select && e[0] == vote_) {
      const std::vector<Expr> args = {e[0], e[1], extract(e[2], factor, set, out, ok)};
      return pool_.with_args(e, args);
    }
    if (const Expr other = other_value(e, factor, set.axes)) {
      const Tile& like = tiles_.find(other.name().str())->second;
      const ir::Name name = new_tile(like, std::string(other.name().str()) + "_scaled");
      out.push_back(ir::make(Set{name, set.axes, pool_.select(vote_, e, other)}));
      return pool_.read(name, e.dtype(), other.args());
    }
    if (e.op() == EK::Read || e.op() == EK::Reduce) {
      ok = false;
      return e;
    }
    std::vector<Expr> args;
    for (Expr a : e.args()) args.push_back(extract(a, factor, set, out, ok));
    return pool_.with_args(e, args);
  }

  ir::Name new_tile(const Tile& like, const std::string& base) {
    Tile tile = like;
    tile.name = fresh_name(base, taken_, pool_);
    tiles_.emplace(tile.name.str(), tile);
    made_.push_back(tile);
    return tile.name;
  }

  // --- branches -----------------------------------------------------------------------------

  struct Kept {
    ir::Name target;
    ir::Name old;
  };
  struct Branch {
    size_t at = 0;  // in the block that is written
    ir::Block body;
    std::vector<Kept> kept;
    bool touches_products = false;
  };

  ir::Block with_branches(const ir::Block& block) {
    Names products;
    for (const Op& op : block) {
      if (const auto* d = op.get<Dot>()) products.emplace(d->acc.str());
    }
    ir::Block out;
    std::vector<Branch> branches;
    for (const Op& op : block) {
      const auto* set = is_select(op, vote_) ? op.get<Set>() : nullptr;
      const bool keeps = set && is_identity_read(set->value[2], set->axes) &&
                         tiles_.contains(set->value[2].name().str());
      if (!set || (!keeps && !only_in_branch_.contains(set->target.str()))) {
        out.push_back(op);
        continue;
      }
      const Touched touched = touched_by(op);
      const bool is_product =
          std::any_of(products.begin(), products.end(),
                      [&](const std::string& p) { return touched.mentions(p); });
      Branch* branch = branches.empty() ? nullptr : &branches.back();
      if (!branch || branch->touches_products != is_product ||
          !can_move(out, branch->at, touched)) {
        branches.push_back({out.size(), {}, {}, is_product});
        branch = &branches.back();
        out.push_back(ir::make(If{vote_, {}}));
      }
      if (keeps) {
        const ir::Name old = set->value[2].name();
        out.insert(out.begin() + static_cast<long>(branch->at),
                   ir::make(Set{set->target, set->axes, set->value[2]}));
        ++branch->at;
        branch->kept.push_back({set->target, old});
      }
      branch->body.push_back(ir::make(Set{set->target, set->axes, set->value[1]}, op.span()));
    }
    for (size_t b = branches.size(); b-- > 0;) {
      commit_late(branches[b]);
      out[branches[b].at] = ir::make(If{vote_, branches[b].body});
      sink_helpers(out, b, branches, block);
    }
    return out;
  }

  // Whether an op may be in a branch at `at` instead of at the end.
  static bool can_move(const ir::Block& out, size_t at, const Touched& op) {
    for (size_t k = at + 1; k < out.size(); ++k) {
      const Touched between = touched_by(out[k]);
      for (const std::string& w : op.writes) {
        if (between.mentions(w)) return false;
      }
      for (const std::string& r : op.reads) {
        if (between.writes.contains(r)) return false;
      }
    }
    return true;
  }

  // A new value with later reads of the old one: under another name until the last of these reads.
  void commit_late(Branch& branch) {
    for (const Kept& kept : branch.kept) {
      size_t at = branch.body.size();
      size_t last = 0;
      for (size_t k = 0; k < branch.body.size(); ++k) {
        const Set& set = branch.body[k].as<Set>();
        if (set.target == kept.target) at = k;
        if (k > at && reads_tile(set.value, kept.old)) last = k;
      }
      if (last == 0) continue;
      const Set set = branch.body[at].as<Set>();
      const ir::Name name =
          new_tile(tiles_.find(kept.target.str())->second, std::string(kept.target.str()) + "_new");
      const Renaming renaming{{std::string(kept.target.str()), name}};
      for (size_t k = at; k < branch.body.size(); ++k)
        branch.body[k] = rename_tiles(branch.body[k], renaming, pool_);
      std::vector<Expr> own;
      for (const ir::Axis& a : set.axes) own.push_back(pool_.index(a.name));
      branch.body.insert(
          branch.body.begin() + static_cast<long>(last) + 1,
          ir::make(Set{kept.target, set.axes, pool_.read(name, set.value.dtype(), own)}));
    }
  }

  // Sets before a branch with targets that no other op reads.
  void sink_helpers(ir::Block& out, size_t which, std::vector<Branch>& branches,
                    const ir::Block& block) {
    size_t& at = branches[which].at;
    for (size_t k = at; k-- > 0;) {
      const auto* set = out[k].get<Set>();
      if (!set || is_copy(*set)) continue;
      const If& branch = out[at].as<If>();
      size_t inside = 0;
      for (const Op& op : branch.body)
        inside += touched_by(op).reads.contains(set->target.str()) ? 1 : 0;
      if (inside == 0 || inside != count_readers(set->target)) continue;
      if (count_readers(block, 0, set->target) == 0) continue;
      bool ok = true;
      const Touched moved = touched_by(out[k]);
      for (size_t j = k + 1; j < at; ++j) {
        const Touched between = touched_by(out[j]);
        for (const std::string& w : moved.writes) ok &= !between.mentions(w);
        for (const std::string& r : moved.reads) ok &= !between.writes.contains(r);
      }
      if (!ok) continue;
      If changed = branch;
      changed.body.insert(changed.body.begin(), out[k]);
      out[at] = ir::make(std::move(changed), out[at].span());
      out.erase(out.begin() + static_cast<long>(k));
      for (Branch& b : branches) b.at -= b.at > k ? 1 : 0;
    }
  }

  static bool is_copy(const Set& set) { return is_identity_read(set.value, set.axes); }

  const Role& role_;
  Names& taken_;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::vector<Tile> made_;
  Names only_in_branch_;
  Expr vote_;
};

}  // namespace

std::optional<ir::Program> sink_branches(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  return map_nests(program, [&](const Kernel&, const Role& role) {
    return std::optional(BranchSinker(role, taken, context.pool).run());
  });
}

}  // namespace nautilus::matile
