// SPDX-License-Identifier: Apache-2.0
// How a fusion grows from its seed: producers and consumers join until none can, and what the check
// of the whole puts outside is left out in the next round.
#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"
#include "expr/scalar_ops.h"
#include "ir/target_of.h"
#include "schedule/fusion/axis_list.h"
#include "schedule/fusion/fusion.h"
#include "schedule/fusion/fusion_check.h"
#include "schedule/fusion/streamed_axis.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// What a kernel's loop begins with. `max(x, -inf)`, in which NaN is ignored, is x here: the loop
// has a step at least, and what is missing in it counts as -inf.
Expr first_of_loop(const Statement& s) {
  const Expr init = s.init;
  const bool is_extreme = s.reducer == expr::Reducer::Max || s.reducer == expr::Reducer::Min;
  const bool has_identity = is_extreme && init.op() == expr::combiner(s.reducer) &&
                            init[1].op() == expr::Op::FloatConst &&
                            init[1].number() == expr::identity(s.reducer, init.dtype()).f;
  return has_identity ? init[0] : init;
}

class Grower {
 public:
  Grower(const StatementList& list, const FusionRequest& request, const Target& target,
         expr::ExprPool& pool)
      : list_(list), request_(request), pool_(pool) {
    fusion_.target = &target;
  }

  Outcome<Fusion> run() {
    const Statement& seed = at(request_.seed);
    if (seed.is_opaque || seed.reduce.empty())
      return Rejection{"seed", fmt::format("`{}` is no reduction", seed.target.str())};
    fusion_.seed = request_.seed;
    expr::Substitution map;
    for (const ir::Axis& a : seed.axes) map.emplace(axis(a), pool_.index(a.name));
    const size_t streamed = streamed_axis(seed, *fusion_.target, pool_);
    for (size_t k = 0; k < seed.reduce.size(); ++k) {
      const Expr a = axis(seed.reduce[k]);
      map.emplace(a, a);
      reduced_.push_back(a);
      if (k != streamed) fusion_.outer.push_back(a);
    }
    fusion_.stream = axis(seed.reduce[streamed]);
    for (const ir::Axis& a : seed.axes) add_axis(axis(a), a.extent);
    for (const ir::Axis& a : seed.reduce) add_axis(axis(a), a.extent);
    add(seed, map, true);
    for (bool is_changed = true; is_changed;) {
      // What lies along the axes of the kernel first: it may lead to another reduction along them,
      // which would otherwise get axes of its own.
      is_changed = producers() || consumers(false) || consumers(true);
    }
    if (conflict_ >= 0)
      return Rejection{"conflict",
                       fmt::format("`{}` reads `{}` at different axes", at(reader_).target.str(),
                                   at(conflict_).target.str())};
    // Tiles have elements; scalar code knows what nothing gives.
    if (has_empty_)
      return Rejection{"empty", fmt::format("`{}` has an axis without elements, or needs one",
                                            seed.target.str())};
    sort();
    return std::move(fusion_);
  }
  // A member that is read at different axes, and who reads it so; -1 if there is none.
  int conflict() const { return conflict_; }
  int reader() const { return reader_; }

 private:
  const Statement& at(int id) const { return list_.statements[static_cast<size_t>(id)]; }
  Expr axis(const ir::Axis& a) { return pool_.index(a.name); }

  bool is_allowed(const Statement& s) const {
    return !s.is_opaque && !request_.outside.contains(s.id) && !refused_.contains(s.id) &&
           (request_.only.empty() || request_.only.contains(s.id));
  }
  bool is_member(int id) const { return ids_.contains(id); }

  void add_axis(Expr var, Expr extent) {
    has_empty_ |= extent.op() == Op::IntConst && extent.integer() < 1;
    if (fusion_.extents.emplace(var, extent).second) fusion_.axis_order.push_back(var);
  }

  // A name for an axis that only the new member has.
  Expr fresh_axis(const ir::Axis& a) {
    std::string name(a.name.str());
    for (int n = 2;; ++n) {
      const Expr var = pool_.index(name);
      if (!fusion_.extents.contains(var)) {
        add_axis(var, a.extent);
        return var;
      }
      name = fmt::format("{}_{}", a.name.str(), n);
    }
  }

  void add(const Statement& s, const expr::Substitution& map, bool is_rolled,
           bool is_closing = false) {
    Member m;
    m.statement = s.id;
    m.target = s.target;
    m.dtype = s.dtype;
    for (const ir::Axis& a : s.axes) m.axes.push_back(map.at(axis(a)));
    if (!is_rolled) {
      for (const ir::Axis& a : s.reduce) m.inner.push_back(map.at(axis(a)));
    }
    m.is_rolled = is_rolled;
    m.is_closing = is_closing;
    m.reducer = s.reducer;
    if (s.init) m.init = expr::substitute(pool_, first_of_loop(s), map);
    m.value = expr::substitute(pool_, s.value, map);
    m.read = pool_.read(s.target, s.dtype, m.axes);
    fusion_.members.push_back(std::move(m));
    ids_.insert(s.id);
  }

  bool refuse(const Statement& s, std::string_view why) {
    refused_.insert(s.id);
    fusion_.notes.push_back(fmt::format("{} stays outside: {}", s.target.str(), why));
    return false;
  }

  bool producers() {
    for (size_t k = 0; k < fusion_.members.size(); ++k) {
      const Member m = fusion_.members[k];
      bool is_changed = false;
      auto visit = [&](Expr e) {
        if (e.op() != Op::Read) return;
        const Statement* p = list_.producer(e.name());
        if (!p || p->role == scalar::Role::Input) return;
        if (is_member(p->id)) {
          if (!fusion_.find(e)) {
            conflict_ = p->id;
            reader_ = m.statement;
          }
          return;
        }
        if (is_allowed(*p)) is_changed |= producer(*p, e);
      };
      expr::for_each(m.value, visit);
      if (m.init) expr::for_each(m.init, visit);
      if (is_changed) return true;
    }
    return false;
  }

  bool producer(const Statement& p, Expr read) {
    expr::Substitution map;
    std::vector<Expr> used;
    for (size_t k = 0; k < p.axes.size(); ++k) {
      const Expr index = read[k];
      const auto extent = fusion_.extents.find(index);
      if (extent == fusion_.extents.end() || contains(used, index))
        return refuse(p, "it is not read at plain axes");
      if (extent->second != p.axes[k].extent) return refuse(p, "it is read along another extent");
      map.emplace(axis(p.axes[k]), index);
      used.push_back(index);
    }
    const bool has_stream = contains(used, fusion_.stream);
    const bool is_rolled = !has_stream && !reaches_outer(used) && is_reduced_alike(p);
    if (p.reduce.size() > 1 && !is_rolled) return refuse(p, "it reduces several axes");
    if (!fusion_.outer.empty() && !has_stream && !is_rolled &&
        (p.is_reduction() || reaches_outer(used)))
      return refuse(p, "it has not all the axes that this kernel reduces");
    if (is_rolled) {
      for (size_t k = 0; k < reduced_.size(); ++k) map.emplace(axis(p.reduce[k]), reduced_[k]);
      add(p, map, true);
      return true;
    }
    if (p.is_reduction()) {
      const ir::Axis& r = p.reduce[0];
      if (r.extent.op() != Op::IntConst || r.extent.integer() > fusion_.target->tiles.whole_depth)
        return refuse(p, fmt::format("its reduced axis of extent {} does not fit a tile",
                                     expr::to_string(r.extent)));
      map.emplace(axis(r), fresh_axis(r));
    }
    add(p, map, false);
    return true;
  }

  // Whether a statement reduces axes of the same extents as the seed, in the same order.
  bool is_reduced_alike(const Statement& s) const {
    if (s.reduce.size() != reduced_.size()) return false;
    for (size_t k = 0; k < reduced_.size(); ++k) {
      if (s.reduce[k].extent != fusion_.extents.at(reduced_[k])) return false;
    }
    return true;
  }

  bool reaches_outer(const std::vector<Expr>& axes) const {
    return std::any_of(axes.begin(), axes.end(), [&](Expr a) { return fusion_.is_outer(a); });
  }

  bool consumers(bool takes_axes) {
    for (const Statement& q : list_.statements) {
      if (is_member(q.id) || !is_allowed(q) || request_.provided.contains(q.id)) continue;
      if (consumer(q, takes_axes)) return true;
    }
    return false;
  }

  // The value with the element-wise producers that are outside written out, to see what it reads.
  Expr seen_through(Expr e) {
    if (const auto it = seen_.find(e); it != seen_.end()) return it->second;
    const Expr result = expr::rebuild(pool_, e, [&](Expr x) {
      if (x.op() != Op::Read) return x;
      const Statement* p = list_.producer(x.name());
      if (!p || p->is_opaque || p->is_reduction() || is_member(p->id)) return x;
      expr::Substitution map;
      for (size_t k = 0; k < p->axes.size(); ++k) map.emplace(axis(p->axes[k]), x[k]);
      return seen_through(expr::substitute(pool_, p->value, map));
    });
    seen_.emplace(e, result);
    return result;
  }

  // `takes_axes`: one that has axes of its own may join.
  bool consumer(const Statement& q, bool takes_axes) {
    seen_.clear();
    const Expr value = q.is_reduction() ? seen_through(q.value) : q.value;
    expr::Substitution map;
    bool reads_member = false;
    bool is_consistent = true;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != Op::Read) return;
      const Member* m = fusion_.by_name(e.name());
      if (!m) return;
      reads_member = true;
      for (size_t k = 0; k < m->axes.size(); ++k) {
        if (e[k].op() != Op::Var) {
          is_consistent = false;
          return;
        }
        const auto [it, is_new] = map.emplace(e[k], m->axes[k]);
        if (!is_new && it->second != m->axes[k]) is_consistent = false;
      }
    });
    if (!reads_member || !is_consistent) return false;
    std::set<const void*> targets;
    for (const auto& [from, to] : map) {
      if (!targets.insert(to.node()).second) return false;
    }
    auto mapped = [&](const ir::Axis& a) {
      const auto it = map.find(axis(a));
      return it == map.end() ? Expr() : it->second;
    };
    for (const ir::Axis& a : q.axes) {
      const Expr to = mapped(a);
      if (to && fusion_.is_outer(to)) return false;
      if (to == fusion_.stream) return false;  // only a tile: joins when a reduction needs it
      if (to && fusion_.extents.at(to) != a.extent) return false;
      if (!to && (!q.is_reduction() || !takes_axes)) return false;
    }
    bool is_rolled = q.is_reduction() && is_reduced_alike(q);
    for (size_t k = 0; is_rolled && k < q.reduce.size(); ++k)
      is_rolled = mapped(q.reduce[k]) == reduced_[k];
    const Expr closed = q.reduce.size() == 1 ? mapped(q.reduce[0]) : Expr();
    const bool is_closing = !is_rolled && closed && can_close(q, value, closed) &&
                            std::all_of(q.axes.begin(), q.axes.end(), mapped);
    if (q.is_reduction() && !is_rolled && !is_closing) return false;
    if (closes_cycle(q)) return refuse(q, "it needs a result that itself needs this kernel");
    for (const ir::Axis& a : q.axes) {
      if (!mapped(a)) map.insert_or_assign(axis(a), fresh_axis(a));
    }
    expr::Substitution own;
    for (const ir::Axis& a : q.axes) own.emplace(axis(a), map.at(axis(a)));
    for (const ir::Axis& a : q.reduce) own.emplace(axis(a), map.at(axis(a)));
    add(q, own, is_rolled, is_closing);
    return true;
  }

  // Whether a tile of this kernel has all that a reduction along the axis needs, when its loop is
  // through.
  bool can_close(const Statement& q, Expr value, Expr axis) const {
    const Expr extent = fusion_.extents.at(axis);
    if (contains(reduced_, axis) || extent.op() != Op::IntConst || extent.integer() < 1 ||
        extent.integer() > fusion_.target->tiles.whole_extent || q.reduce[0].extent != extent)
      return false;
    bool is_behind = true;
    expr::for_each(value, [&](Expr e) {
      const Member* m = e.op() == Op::Read ? fusion_.by_name(e.name()) : nullptr;
      is_behind &= !m || !m->has(fusion_.stream);
    });
    return is_behind;
  }

  // True if a statement outside lies between members and q.
  bool closes_cycle(const Statement& q) {
    std::map<int, bool> memo;
    auto depends = [&](auto& self, int id) -> bool {
      const Member* m = is_member(id) ? fusion_.by_name(at(id).target) : nullptr;
      if (m && !m->has(fusion_.stream)) return true;
      if (const auto it = memo.find(id); it != memo.end()) return it->second;
      bool is_dependent = false;
      for (int r : at(id).reads_from) is_dependent |= self(self, r);
      memo[id] = is_dependent;
      return is_dependent;
    };
    for (int r : q.reads_from) {
      // Allowed producers will join by themselves, or be found again by the final check.
      if (!is_member(r) && !is_allowed(at(r)) && depends(depends, r)) return true;
    }
    return false;
  }

  void sort() {
    std::sort(fusion_.members.begin(), fusion_.members.end(),
              [](const Member& a, const Member& b) { return a.statement < b.statement; });
  }

  const StatementList& list_;
  const FusionRequest& request_;
  expr::ExprPool& pool_;
  Fusion fusion_;
  std::set<int> ids_;
  std::set<int> refused_;
  std::vector<Expr> reduced_;  // by the seed: the streamed axis and the outer ones, in its order
  std::unordered_map<Expr, Expr> seen_;
  int conflict_ = -1;
  int reader_ = -1;
  bool has_empty_ = false;
};

}  // namespace

Outcome<Fusion> grow_fusion(const StatementList& list, const ir::Program& program,
                            const FusionRequest& request, expr::ExprPool& pool) {
  const algebra::Signs signs(program);
  FusionRequest current = request;
  std::vector<std::string> notes;
  bool is_cut = false;
  // Each round puts at least one statement outside, so the rounds end.
  for (size_t round = 0; round <= list.statements.size(); ++round) {
    Grower grower(list, current, ir::target_of(program), pool);
    Outcome<Fusion> grown = grower.run();
    if (!grown) {
      // The seed stays: whoever reads it otherwise is another kernel's.
      const bool is_seed = grower.conflict() == request.seed;
      const int id = is_seed ? grower.reader() : grower.conflict();
      if (id < 0 || id == request.seed) return grown;
      notes.push_back(
          fmt::format("{} stays outside: it {} different axes",
                      list.statements[static_cast<size_t>(id)].target.str(),
                      is_seed ? "reads the sum that this kernel is for at" : "is read at"));
      current.outside.insert(id);
      continue;
    }
    Fusion& fusion = *grown;
    const FusionCheck check = check_fusion(fusion, list, program, request.row, signs, pool);
    if (check.is_ok) {
      notes.insert(notes.end(), fusion.notes.begin(), fusion.notes.end());
      fusion.notes = std::move(notes);
      fusion.is_cut = is_cut;
      return grown;
    }
    if (check.outside.empty()) return Rejection{check.code, check.message};
    is_cut |= check.is_cut;
    for (int id : check.outside) {
      if (id == request.seed) return Rejection{check.code, check.message};
      notes.push_back(fmt::format("{} stays outside: {}",
                                  list.statements[static_cast<size_t>(id)].target.str(),
                                  check.message));
      current.outside.insert(id);
    }
  }
  return Rejection{"group", "no set of statements around the seed is legal"};
}

}  // namespace nautilus::schedule
