// SPDX-License-Identifier: Apache-2.0
// How a fusion grows from its seed: producers and consumers join until none can, and what the check
// of the whole puts outside is left out in the next round.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "expr/print.h"
#include "expr/scalar_ops.h"
#include "ir/target_of.h"
#include "schedule/fusion/axis_list.h"
#include "schedule/fusion/fusion.h"
#include "schedule/fusion/fusion_check.h"
#include "schedule/fusion/member_readers.h"
#include "schedule/fusion/streamed_axis.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// The initial value of a kernel's loop. `max(x, -inf)`, in which NaN is ignored, is x here: the
// loop has at least one step, and missing elements in it count as -inf.
Expr first_of_loop(const Statement& s) {
  const Expr init = s.init;
  const bool is_extreme = s.reducer == expr::Reducer::Max || s.reducer == expr::Reducer::Min;
  const bool has_identity = is_extreme && init.op() == expr::combiner(s.reducer) &&
                            init[1].op() == expr::Op::FloatConst &&
                            init[1].number() == expr::identity(s.reducer, init.dtype()).f;
  return has_identity ? init[0] : init;
}

// State that the rounds share.
struct Rounds {
  std::map<int, bool>&
      provided;  // statements for which it mattered whether another kernel has them
  // Values and first elements of statements at axes of fusions.
  std::map<std::pair<int, std::vector<const void*>>, std::pair<Expr, Expr>> written = {};
};

class Grower {
 public:
  Grower(const StatementList& list, const FusionRequest& request, const Target& target,
         expr::ExprPool& pool, Rounds& rounds)
      : list_(list),
        request_(request),
        pool_(pool),
        rounds_(rounds),
        readers_(list, fusion_, pool) {
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
      // Statements along the axes of the kernel come first: they may lead to another reduction
      // along these axes, which would otherwise get axes of its own.
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
  // A member that is read at different axes, and its reader; -1 if there is none.
  int conflict() const { return conflict_; }
  int reader() const { return reader_; }

 private:
  const Statement& at(int id) const { return list_.statements[static_cast<size_t>(id)]; }
  Expr axis(const ir::Axis& a) { return pool_.index(a.name); }

  bool is_allowed(const Statement& s) const {
    return !s.is_opaque && !request_.outside.contains(s.id) && !refused_.contains(s.id) &&
           (request_.only.empty() || request_.only.contains(s.id));
  }
  bool is_member(int id) const { return readers_.is_member(id); }

  void add_axis(Expr var, Expr extent) {
    has_empty_ |= extent.op() == Op::IntConst && extent.integer() < 1;
    if (fusion_.extents.emplace(var, extent).second) fusion_.axis_order.push_back(var);
  }

  // A name for an axis that only the new member has.
  Expr fresh_axis(const ir::Axis& a) {
    // Names in use stay in use: the search continues where it ended.
    int& n = next_name_.try_emplace(a.name, 1).first->second;
    for (;; ++n) {
      const Expr var = n == 1 ? axis(a) : pool_.index(fmt::format("{}_{}", a.name.str(), n));
      if (fusion_.extents.contains(var)) continue;
      add_axis(var, a.extent);
      return var;
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
    std::tie(m.value, m.init) = written(s, map);
    for (Expr e : s.place) m.place.push_back(expr::substitute(pool_, e, map));
    if (s.in_place) m.in_place = expr::substitute(pool_, s.in_place, map);
    m.read = pool_.read(s.target, s.dtype, m.axes);
    fusion_.members.push_back(std::move(m));
    axes_.push_back(map);
    readers_.join(s.id);
  }

  std::pair<Expr, Expr> written(const Statement& s, const expr::Substitution& map) {
    std::vector<const void*> at_axes;
    for (const ir::Axes* axes : {&s.axes, &s.reduce}) {
      for (const ir::Axis& a : *axes) at_axes.push_back(map.at(axis(a)).node());
    }
    const auto [it, is_new] = rounds_.written.try_emplace({s.id, std::move(at_axes)});
    if (is_new) {
      it->second.first = expr::substitute(pool_, s.value, map);
      if (s.init) it->second.second = expr::substitute(pool_, first_of_loop(s), map);
    }
    return it->second;
  }

  bool refuse(const Statement& s, std::string_view why) {
    refused_.insert(s.id);
    fusion_.notes.push_back(fmt::format("{} stays outside: {}", s.target.str(), why));
    return false;
  }

  // Every member is visited once: a statement that it reads and that is not a member then was
  // refused, and will not become one.
  bool producers() {
    bool is_changed = false;
    for (; looked_at_ < fusion_.members.size(); ++looked_at_) {
      const Statement& reader = at(fusion_.members[looked_at_].statement);
      const expr::Substitution axes = axes_[looked_at_];
      const auto visit = [&](Expr read) {
        const Statement* p = list_.producer(read.name());
        if (!p || p->role == scalar::Role::Input) return;
        const bool is_known = is_member(p->id);
        if (!is_known && !is_allowed(*p)) return;
        const Expr e = expr::substitute(pool_, read, axes);
        if (!is_known) {
          is_changed |= producer(*p, e);
        } else if (!fusion_.find(e)) {
          conflict_ = p->id;
          reader_ = reader.id;
        }
      };
      for (Expr e : reader.reads) visit(e);
      for (Expr e : reader.init_reads) visit(e);
    }
    return is_changed;
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

  bool is_provided(int id) {
    return rounds_.provided.emplace(id, request_.provided.contains(id)).first->second;
  }

  bool consumers(bool takes_axes) {
    while (const auto id = readers_.next(takes_axes)) {
      const Statement& q = at(*id);
      if (is_member(q.id) || !is_allowed(q) || is_provided(q.id)) continue;
      if (consumer(q, takes_axes)) return true;
    }
    return false;
  }

  // `takes_axes`: one that has axes of its own may join.
  bool consumer(const Statement& q, bool takes_axes) {
    const std::vector<Expr> reads = readers_.member_reads(q);
    if (reads.empty()) return false;
    expr::Substitution map;
    for (Expr e : reads) {
      const Member* m = fusion_.by_name(e.name());
      for (size_t k = 0; k < m->axes.size(); ++k) {
        if (e[k].op() != Op::Var) return false;
        const auto [it, is_new] = map.emplace(e[k], m->axes[k]);
        if (!is_new && it->second != m->axes[k]) return false;
      }
    }
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
    const bool is_closing = !is_rolled && closed && can_close(q, reads, closed) &&
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
  bool can_close(const Statement& q, const std::vector<Expr>& reads, Expr axis) const {
    const Expr extent = fusion_.extents.at(axis);
    if (contains(reduced_, axis) || extent.op() != Op::IntConst || extent.integer() < 1 ||
        extent.integer() > fusion_.target->tiles.whole_extent || q.reduce[0].extent != extent)
      return false;
    return std::none_of(reads.begin(), reads.end(),
                        [&](Expr e) { return fusion_.by_name(e.name())->has(fusion_.stream); });
  }

  // True if a statement outside is between members and q in the order of dependence.
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
  Rounds& rounds_;
  Fusion fusion_;
  std::vector<expr::Substitution> axes_;  // of members: from those of their statements
  MemberReaders readers_;
  std::unordered_map<ir::Name, int> next_name_;  // of fresh axes
  size_t looked_at_ = 0;                         // members with visited producers
  std::set<int> refused_;
  std::vector<Expr> reduced_;  // by the seed: the streamed axis and the outer ones, in its order
  int conflict_ = -1;
  int reader_ = -1;
  bool has_empty_ = false;
};

}  // namespace

Outcome<Fusion> grow_fusion(const StatementList& list, const ir::Program& program,
                            const FusionRequest& request, expr::ExprPool& pool,
                            std::map<int, bool>& provided) {
  const algebra::Signs signs(program);
  FusionRequest current = request;
  Rounds rounds{provided};
  std::vector<std::string> notes;
  bool is_cut = false;
  // Each round puts at least one statement outside, so the rounds end.
  for (size_t round = 0; round <= list.statements.size(); ++round) {
    Grower grower(list, current, ir::target_of(program), pool, rounds);
    Outcome<Fusion> result = grower.run();
    if (!result) {
      // The seed stays: whoever reads it otherwise is another kernel's.
      const bool is_seed = grower.conflict() == request.seed;
      const int id = is_seed ? grower.reader() : grower.conflict();
      if (id < 0 || id == request.seed) return result;
      notes.push_back(
          fmt::format("{} stays outside: it {} different axes",
                      list.statements[static_cast<size_t>(id)].target.str(),
                      is_seed ? "reads the sum that this kernel is for at" : "is read at"));
      current.outside.insert(id);
      continue;
    }
    Fusion& fusion = *result;
    const FusionCheck check = check_fusion(fusion, list, program, request.row, signs, pool);
    if (check.is_ok) {
      notes.insert(notes.end(), fusion.notes.begin(), fusion.notes.end());
      fusion.notes = std::move(notes);
      fusion.is_cut = is_cut;
      return result;
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

Outcome<Fusion> grow_fusion(const StatementList& list, const ir::Program& program,
                            const FusionRequest& request, expr::ExprPool& pool) {
  std::map<int, bool> ignored;
  return grow_fusion(list, program, request, pool, ignored);
}

}  // namespace nautilus::schedule
