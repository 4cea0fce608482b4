// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/pipeline_stages.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using ir::Name;
using ir::Op;

class Stager {
 public:
  Stager(const For& loop, Names& names, expr::ExprPool& pool) : names_(names), pool_(pool) {
    for (const Op& op : loop.body) {
      if (const auto* c = op.get<Carry>()) {
        out_.carries.push_back(*c);
      } else {
        out_.ops.push_back(op);
      }
    }
    for (size_t k = 0; k < out_.ops.size(); ++k) {
      if (const Name n = name_of(out_.ops[k])) definition_.emplace(n, k);
    }
  }

  std::optional<StagePlan> run() {
    for (const Op& op : out_.ops) {
      if (op.is<For>() || op.is<Store>()) return std::nullopt;
    }
    choose_stages();
    load_again();
    if (std::find(out_.stage.begin(), out_.stage.end(), 1) == out_.stage.end()) return std::nullopt;
    choose_order();
    if (!is_legal()) return std::nullopt;
    return std::move(out_);
  }

 private:
  static Name name_of(const Op& op) { return op.is<Let>() ? op.as<Let>().name : defined(op); }

  // Positions of the ops of the same iteration that op k needs.
  std::vector<size_t> needs(size_t k) const {
    std::vector<size_t> out;
    for_each_use(out_.ops[k], [&](Name n) {
      const auto it = definition_.find(n);
      if (it != definition_.end()) out.push_back(it->second);
    });
    return out;
  }

  void choose_stages() {
    const size_t count = out_.ops.size();
    std::vector<bool> has_dot(count);  // needs a product of the same iteration
    out_.stage.assign(count, 0);
    for (size_t k = 0; k < count; ++k) {
      const auto* dot = out_.ops[k].get<Dot>();
      for (size_t u : needs(k)) {
        // Products that add to one tile follow each other without waiting.
        const bool is_sum = dot && defined(out_.ops[u]) == dot->acc;
        if (has_dot[u] || (out_.ops[u].is<Dot>() && !is_sum)) has_dot[k] = true;
        if (out_.stage[u] == 1) out_.stage[k] = 1;
      }
      if (out_.ops[k].is<Dot>() && has_dot[k]) out_.stage[k] = 1;
    }
    // A load that only late ops use is as late as they are.
    for (size_t k = 0; k < count; ++k) {
      if (!out_.ops[k].is<Load>() || !needs(k).empty()) continue;
      bool is_used = false;
      bool is_late = true;
      for (size_t v = 0; v < count; ++v) {
        const auto used = needs(v);
        if (std::find(used.begin(), used.end(), k) == used.end()) continue;
        is_used = true;
        is_late &= out_.stage[v] == 1;
      }
      for (const Carry& c : out_.carries) is_late &= c.next != defined(out_.ops[k]);
      if (is_used && is_late) out_.stage[k] = 1;
    }
  }

  // Operands of products live in shared memory and are not carried: where products of both stages
  // use the same tile, it is loaded for each.
  void load_again() {
    const size_t count = out_.ops.size();
    for (size_t k = 0; k < count; ++k) {
      const Name name = defined(out_.ops[k]);
      if (!out_.ops[k].is<Load>() || out_.stage[k] == 1 || !is_operand_of(name, 1)) continue;
      const Name again = names_.copy(name);
      out_.ops.push_back(rename(out_.ops[k], {{name, again}}, pool_));
      out_.stage.push_back(1);
      definition_.emplace(again, out_.ops.size() - 1);
      for (size_t v = 0; v < count; ++v) {
        if (out_.stage[v] == 1) out_.ops[v] = rename(out_.ops[v], {{name, again}}, pool_);
      }
      for (Carry& c : out_.carries) {
        NAUT_CHECK(c.next != again, "`{}` is carried", name.str());
      }
    }
    sort_by_need();
  }

  bool is_operand_of(Name name, int stage) const {
    for (size_t v = 0; v < out_.ops.size(); ++v) {
      const auto* d = out_.ops[v].get<Dot>();
      if (d && out_.stage[v] == stage && (d->a == name || d->b == name)) return true;
    }
    return false;
  }

  // Copies that were added at the end are moved before their readers.
  void sort_by_need() {
    std::vector<size_t> order;
    std::vector<bool> is_placed(out_.ops.size());
    auto place = [&](auto& self, size_t k) -> void {
      if (is_placed[k]) return;
      is_placed[k] = true;
      for (size_t u : needs(k)) self(self, u);
      order.push_back(k);
    };
    for (size_t k = 0; k < out_.ops.size(); ++k) place(place, k);
    std::vector<Op> ops;
    std::vector<int> stage;
    for (size_t k : order) {
      ops.push_back(out_.ops[k]);
      stage.push_back(out_.stage[k]);
    }
    out_.ops = std::move(ops);
    out_.stage = std::move(stage);
    definition_.clear();
    for (size_t k = 0; k < out_.ops.size(); ++k) {
      if (const Name n = name_of(out_.ops[k])) definition_.emplace(n, k);
    }
  }

  // Stage 0 up to its last product that needs no other one, then what is late, then the rest.
  void choose_order() {
    const size_t count = out_.ops.size();
    std::unordered_set<size_t> first;
    for (size_t k = 0; k < count; ++k) {
      if (out_.ops[k].is<Dot>() && out_.stage[k] == 0) add_with_needs(k, first);
    }
    for (size_t k = 0; k < count; ++k) {
      if (first.contains(k)) out_.order.push_back(k);
    }
    for (size_t k = 0; k < count; ++k) {
      if (out_.stage[k] == 1) out_.order.push_back(k);
    }
    for (size_t k = 0; k < count; ++k) {
      if (out_.stage[k] == 0 && !first.contains(k)) out_.order.push_back(k);
    }
  }

  void add_with_needs(size_t k, std::unordered_set<size_t>& set) const {
    if (!set.insert(k).second) return;
    for (size_t u : needs(k)) add_with_needs(u, set);
  }

  bool is_legal() const {
    std::vector<size_t> place(out_.ops.size());
    for (size_t k = 0; k < out_.order.size(); ++k) place[out_.order[k]] = k;
    auto is_kept = [&](size_t u, size_t v, int distance) {
      const int slack = out_.stage[v] + distance - out_.stage[u];
      return slack > 0 || (slack == 0 && place[u] < place[v]);
    };
    for (size_t v = 0; v < out_.ops.size(); ++v) {
      for (size_t u : needs(v)) {
        if (!is_kept(u, v, 0)) return false;
      }
      bool is_ok = true;
      for_each_use(out_.ops[v], [&](Name n) {
        for (const Carry& c : out_.carries) {
          if (c.name != n) continue;
          const auto next = definition_.find(c.next);
          // A carry of a carry, or of a tile from outside, is left alone.
          if (next == definition_.end()) {
            is_ok &= out_.stage[v] == 0;
          } else {
            is_ok &= is_kept(next->second, v, 1);
          }
        }
      });
      if (!is_ok) return false;
    }
    return true;
  }

  Names& names_;
  expr::ExprPool& pool_;
  StagePlan out_;
  std::unordered_map<Name, size_t> definition_;
};

}  // namespace

std::optional<StagePlan> stages_of(const For& loop, Names& names, expr::ExprPool& pool) {
  return Stager(loop, names, pool).run();
}

}  // namespace nautilus::vrtile
