// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/share_registers.h"

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

using TileSet = std::set<int>;

// An op without a block, or the beginning of one with a block.
struct Node {
  TileSet uses;
  TileSet defines;
  TileSet apart;  // tiles that the defined one must not share with, live or not
  int copy_of = -1;
  std::vector<size_t> next;
};

class RegisterSharer {
 public:
  RegisterSharer(const Role& role, expr::ExprPool& pool) : role_(role), pool_(pool) {
    for (const Op& op : role.body) {
      const auto* t = op.get<Tile>();
      if (!t) continue;
      numbers_.emplace(t->name.str(), static_cast<int>(tiles_.size()));
      tiles_.push_back(*t);
    }
    class_.resize(tiles_.size());
    for (size_t k = 0; k < tiles_.size(); ++k) class_[k] = static_cast<int>(k);
    interferes_.assign(tiles_.size(), std::vector<bool>(tiles_.size(), false));
  }

  Role run() {
    for (const Op& op : role_.body) {
      const auto* each = op.get<Each>();
      if (!each) continue;
      add(each->body);
      solve();
      ir::for_each_op(each->body, [&](const Op& o) { share_copy(o); });
      ir::for_each_op(each->body, [&](const Op& o) { share_in_place(o); });
      share_accumulators(each->body);
    }
    return renamed();
  }

 private:
  int number(std::string_view name) const {
    const auto it = numbers_.find(name);
    return it == numbers_.end() ? -1 : it->second;
  }

  // --- control flow -------------------------------------------------------------------------

  size_t new_node() {
    nodes_.emplace_back();
    return nodes_.size() - 1;
  }

  Node node_of(const Op& op) const {
    Node node;
    Touched t;
    if (const auto* branch = op.get<If>()) {
      for (ir::Name n : expr::tensors_read(branch->condition)) t.reads.emplace(n.str());
    } else if (!block_of(op)) {
      t = touched_by(op);
    }
    for (const std::string& r : t.reads) {
      if (const int n = number(r); n >= 0) node.uses.insert(n);
    }
    for (const std::string& w : t.writes) {
      if (const int n = number(w); n >= 0) node.defines.insert(n);
    }
    if (const auto* set = op.get<Set>()) {
      if (is_identity_read(set->value, set->axes)) node.copy_of = number(set->value.name().str());
      add_apart(set->value, set->axes, node);
    }
    if (const auto* fold = op.get<Fold>()) add_apart(fold->value, fold->axes, node);
    if (const auto* dot = op.get<Dot>()) {
      if (const int a = number(dot->a.str()); a >= 0) node.apart.insert(a);
    }
    return node;
  }

  // A tile that is read at another element than the one written must stay until the end.
  void add_apart(Expr value, const ir::Axes& axes, Node& node) const {
    expr::for_each(value, [&](Expr x) {
      if (x.op() != EK::Read || is_identity_read(x, axes)) return;
      if (const int n = number(x.name().str()); n >= 0) node.apart.insert(n);
    });
  }

  void add(const ir::Block& body) {
    const size_t entry = new_node();
    std::vector<size_t> ends = add_block(body, {entry});
    const size_t exit = new_node();
    for (size_t e : ends) nodes_[e].next.push_back(exit);
  }

  // Appends the block after the nodes `from`; returns the nodes from which it is left.
  std::vector<size_t> add_block(const ir::Block& block, std::vector<size_t> from) {
    for (const Op& op : block) {
      const size_t n = new_node();
      nodes_[n] = node_of(op);
      for (size_t f : from) nodes_[f].next.push_back(n);
      from = {n};
      const ir::Block* inner = block_of(op);
      if (!inner) continue;
      const std::vector<size_t> ends = add_block(*inner, {n});
      if (op.is<Loop>() || op.is<Unroll>()) {
        for (size_t e : ends) nodes_[e].next.push_back(n);
        // An unrolled loop runs at least once, but leaving it from its head loses nothing.
      } else {
        from.insert(from.end(), ends.begin(), ends.end());
      }
    }
    return from;
  }

  // Liveness backwards to a fixed point, then the tiles that must not share.
  void solve() {
    std::vector<TileSet> in(nodes_.size());
    std::vector<TileSet> out(nodes_.size());
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t n = nodes_.size(); n-- > 0;) {
        TileSet live;
        for (size_t s : nodes_[n].next) live.insert(in[s].begin(), in[s].end());
        TileSet before = live;
        for (int d : nodes_[n].defines) before.erase(d);
        before.insert(nodes_[n].uses.begin(), nodes_[n].uses.end());
        changed |= live != out[n] || before != in[n];
        out[n] = std::move(live);
        in[n] = std::move(before);
      }
    }
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (int d : nodes_[n].defines) {
        for (int l : out[n]) {
          if (l != nodes_[n].copy_of) keep_apart(d, l);
        }
        for (int a : nodes_[n].apart) keep_apart(d, a);
      }
    }
  }

  void keep_apart(int a, int b) {
    if (a == b) return;
    interferes_[static_cast<size_t>(a)][static_cast<size_t>(b)] = true;
    interferes_[static_cast<size_t>(b)][static_cast<size_t>(a)] = true;
  }

  // --- sharing ------------------------------------------------------------------------------

  void share(int a, int b) {
    if (a < 0 || b < 0) return;
    const Tile& x = tiles_[static_cast<size_t>(a)];
    const Tile& y = tiles_[static_cast<size_t>(b)];
    if (!(x.type == y.type) || x.spread != y.spread || x.by != y.by) return;
    const int ca = class_[static_cast<size_t>(a)];
    const int cb = class_[static_cast<size_t>(b)];
    if (ca == cb) return;
    for (size_t i = 0; i < tiles_.size(); ++i) {
      for (size_t j = 0; j < tiles_.size(); ++j) {
        if (class_[i] == ca && class_[j] == cb && interferes_[i][j]) return;
      }
    }
    const int kept = std::min(ca, cb);
    const int gone = std::max(ca, cb);
    for (int& c : class_) c = c == gone ? kept : c;
  }

  void share_copy(const Op& op) {
    const auto* set = op.get<Set>();
    if (set && is_identity_read(set->value, set->axes))
      share(number(set->target.str()), number(set->value.name().str()));
  }

  void share_in_place(const Op& op) {
    const auto* set = op.get<Set>();
    const auto* fold = op.get<Fold>();
    if (!set && !fold) return;
    const ir::Name target = set ? set->target : fold->target;
    expr::for_each(set ? set->value : fold->value, [&](Expr x) {
      if (x.op() == EK::Read && is_identity_read(x, set ? set->axes : fold->axes))
        share(number(target.str()), number(x.name().str()));
    });
  }

  // Accumulators are what a role's registers go to: those that never live together are one. (A
  // register operand would be live for longer than its uses say, until its product has ended.)
  void share_accumulators(const ir::Block& body) {
    std::vector<int> accumulators;
    ir::for_each_op(body, [&](const Op& op) {
      if (const auto* d = op.get<Dot>()) accumulators.push_back(number(d->acc.str()));
    });
    for (size_t a = 0; a < accumulators.size(); ++a) {
      for (size_t b = 0; b < a; ++b) share(accumulators[a], accumulators[b]);
    }
  }

  Role renamed() {
    Renaming renaming;
    for (size_t k = 0; k < tiles_.size(); ++k) {
      const auto c = static_cast<size_t>(class_[k]);
      if (c != k) renaming.emplace(tiles_[k].name.str(), tiles_[c].name);
    }
    Role out = role_;
    out.body.clear();
    for (const Op& op : role_.body) {
      if (const auto* t = op.get<Tile>(); t && renaming.contains(t->name.str())) continue;
      out.body.push_back(op.is<Tile>() ? op : rename_tiles(op, renaming, pool_));
    }
    out.body = map_blocks(out.body, [](ir::Block block) {
      std::erase_if(block, [](const Op& op) {
        const auto* set = op.get<Set>();
        return set && is_identity_read(set->value, set->axes) && set->value.name() == set->target;
      });
      return block;
    });
    return out;
  }

  const Role& role_;
  expr::ExprPool& pool_;
  std::map<std::string, int, std::less<>> numbers_;
  std::vector<Tile> tiles_;
  std::vector<int> class_;
  std::vector<std::vector<bool>> interferes_;
  std::vector<Node> nodes_;
};

}  // namespace

std::optional<ir::Program> share_registers(const ir::Program& program, ir::PassContext& context) {
  return map_nests(program, [&](const Kernel&, const Role& role) {
    return std::optional(RegisterSharer(role, context.pool).run());
  });
}

}  // namespace nautilus::matile
