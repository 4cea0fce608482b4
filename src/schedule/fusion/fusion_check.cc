// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fusion_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "algebra/contraction.h"
#include "expr/print.h"
#include "expr/scalar_ops.h"
#include "schedule/fusion/copy_sequences.h"
#include "schedule/fusion/dot.h"
#include "schedule/fusion/fitting_sizes.h"
#include "schedule/fusion/no_dot.h"
#include "schedule/fusion/numeric_check.h"
#include "schedule/fusion/recurrence.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;

namespace {

class Checker {
 public:
  Checker(Fusion& fusion, const StatementList& list, const ir::Program& program,
          const algebra::Signs& signs, expr::ExprPool& pool)
      : fusion_(fusion), list_(list), program_(program), signs_(signs), pool_(pool) {}

  FusionCheck run(Expr row) {
    if (const int id = in_cycle(); id >= 0)
      return outside({id}, "cycle", "a result outside lies between it and this kernel");
    const std::vector<int> to_memory = find_dots(fusion_, program_, row, pool_);
    if (!to_memory.empty())
      return outside(to_memory, "operand",
                     sum_several_products(to_memory)
                         ? "operands of several products in one sum come from memory"
                         : "the second operand of a product comes from memory");
    if (const int id = not_closing(); id >= 0)
      return outside({id}, "close", "its tile does not hold the axis that it reduces");
    if (fusion_.dots.empty()) return {false, "no_dot", why_no_dot(fusion_, pool_), {}, false};
    // What the seed needs comes first: if a reference leaves the kernel for the seed, the other
    // reductions need not leave.
    for (const bool is_needed : {true, false}) {
      for (size_t k = 0; k < fusion_.members.size(); ++k) {
        if (is_needed_by_seed(fusion_.members[k]) != is_needed) continue;
        FusionCheck c = member(k);
        if (!c.is_ok) return c;
      }
    }
    if (auto deep = too_deep()) return *std::move(deep);
    if (auto repeated = repeated_product()) return *std::move(repeated);
    if (auto crowded = too_many_sequences()) return *std::move(crowded);
    if (const auto why = self_test(fusion_, signs_, pool_)) {
      // References of other members become final first.
      std::vector<int> ids;
      for (const Member& m : fusion_.members) {
        const bool is_extreme = m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min;
        if (m.is_rolled && is_extreme && m.statement != fusion_.seed) ids.push_back(m.statement);
      }
      FusionCheck check = outside(std::move(ids), why->code, why->message);
      check.is_cut = true;
      return check;
    }
    return {};
  }

 private:
  static FusionCheck outside(std::vector<int> ids, std::string code, std::string message) {
    return {false, std::move(code), std::move(message), std::move(ids), false};
  }

  // Whether these are operands of a sum of several products, which must not be computed.
  bool sum_several_products(const std::vector<int>& operands) const {
    return std::any_of(fusion_.members.begin(), fusion_.members.end(), [&](const Member& m) {
      if (!m.is_reduction() || algebra::terms(m.value).size() < 2) return false;
      const auto& reads = list_.statements[static_cast<size_t>(m.statement)].reads_from;
      return std::any_of(reads.begin(), reads.end(), [&](int id) {
        return std::find(operands.begin(), operands.end(), id) != operands.end();
      });
    });
  }

  // A reduction inside the loop along more than registers hold needs operands that come from
  // memory, and room for them. An operand that the kernel would compute goes to memory first; if
  // that is not the reason, the reduction stays outside. Empty if there is no such reduction.
  std::optional<FusionCheck> too_deep() const {
    for (size_t k = 0; k < fusion_.members.size(); ++k) {
      const Member& m = fusion_.members[k];
      const bool is_deep = std::any_of(m.inner.begin(), m.inner.end(), [&](Expr a) {
        const Expr extent = fusion_.extents.at(a);
        return extent.op() == Op::IntConst && extent.integer() > fusion_.target->tiles.whole_extent;
      });
      if (!is_deep) continue;
      const Dot* d = fusion_.dot_of(k);
      const bool is_single = d && d->a.size() == 1;
      const Member* made = is_single ? fusion_.by_name(read_name(d->a[0])) : nullptr;
      if (made)
        return outside({made->statement}, "operand",
                       "the operand of a product as deep as this comes from memory");
      if (!is_single || !comes_in_16_bits(d->a[0]) || !has_fitting_sizes(fusion_))
        return outside({m.statement}, "extent", "the axis that it reduces does not fit a tile");
    }
    return std::nullopt;
  }

  // A product before reductions other than products that have tile axes which the product lacks:
  // each place of these axes would compute it again, and it would be the only matrix work.
  std::optional<FusionCheck> repeated_product() const {
    const auto is_rolled = [&](const Dot& d) { return fusion_.members[d.member].is_rolled; };
    if (std::any_of(fusion_.dots.begin(), fusion_.dots.end(), is_rolled)) return std::nullopt;
    for (const Dot& d : fusion_.dots) {
      const Member& m = fusion_.members[d.member];
      if (!m.has(fusion_.stream)) continue;
      for (Expr a : fusion_.axis_order) {
        if (m.has(a) || fusion_.is_tile_axis(a) || fusion_.is_outer(a)) continue;
        return outside({m.statement}, "again",
                       fmt::format("it would be computed again at every `{}`", expr::to_string(a)));
      }
    }
    return std::nullopt;
  }

  // Every sequence of copies has a warp that loads it. With too many the other reductions leave:
  // one that stays would load what it reduces, which whoever computes that has at hand.
  std::optional<FusionCheck> too_many_sequences() const {
    const int warps = fusion_.target->limits.group_threads / fusion_.target->limits.warp_threads;
    const int sequences = copy_sequences(fusion_);
    std::vector<int> others;
    for (const Member& m : fusion_.members)
      if (m.is_reduction() && m.statement != fusion_.seed) others.push_back(m.statement);
    if (sequences <= warps || others.empty()) return std::nullopt;
    return outside(std::move(others), "copies",
                   fmt::format("its operands would be {} sequences of copies, and {} warps load",
                               sequences, warps));
  }

  // The tensor that a factor is an element of; no name if it is computed.
  static expr::Name read_name(Expr f) {
    const Expr x = algebra::element_of(f);
    return x ? x.name() : expr::Name();
  }

  // Whether the operand is in memory in a dtype of matrix instructions, or will be after rounding
  // of tensors that pass through memory.
  bool comes_in_16_bits(Expr factor) const {
    if (algebra::is_half_element(factor)) return true;
    if (factor.op() != Op::Read || factor.dtype() != DType::F32) return false;
    const Statement* s = list_.producer(factor.name());
    return s && !s->is_opaque && !s->axes.empty();
  }

  // A reduction after the loop with a tile that lacks columns; -1 if there is none.
  int not_closing() const {
    bool is_cut = false;
    for (const Dot& d : fusion_.dots) {
      const Expr extent = fusion_.extents.at(d.column);
      is_cut |=
          d.column != fusion_.stream &&
          (extent.op() != Op::IntConst || extent.integer() > fusion_.target->tiles.whole_extent);
    }
    for (const Member& m : fusion_.members) {
      if (m.is_closing && (is_cut || m.inner[0] == fusion_.row || !fusion_.is_column(m.inner[0])))
        return m.statement;
    }
    return -1;
  }

  // An element-wise member without the streamed axis that a statement outside needs and no sum of
  // this kernel gives: others can compute it, too. -1 if there is none.
  int known_before(int outside) {
    std::set<int> seen;
    auto find = [&](auto& self, int id) -> int {
      if (!seen.insert(id).second) return -1;
      const Statement& s = list_.statements[static_cast<size_t>(id)];
      const Member* m = fusion_.by_name(s.target);
      if (m && !m->has(fusion_.stream) && !m->is_reduction() && !depends_on_rolled(*m)) return id;
      int found = -1;
      for (size_t k = 0; k < s.reads_from.size() && found < 0; ++k)
        found = self(self, s.reads_from[k]);
      return found;
    };
    return find(find, outside);
  }

  // A member that needs a statement outside that needs a member; -1 if there is none.
  int in_cycle() {
    // A tile along the streamed axis is computed again by whoever else needs it.
    std::set<int> members;
    std::set<int> stored;
    for (const Member& m : fusion_.members) {
      members.insert(m.statement);
      if (!m.has(fusion_.stream)) stored.insert(m.statement);
    }
    std::map<int, bool> memo;
    auto depends = [&](auto& self, int id) -> bool {
      if (stored.contains(id)) return true;
      if (const auto it = memo.find(id); it != memo.end()) return it->second;
      bool is_dependent = false;
      for (int r : list_.statements[static_cast<size_t>(id)].reads_from)
        is_dependent |= self(self, r);
      memo[id] = is_dependent;
      return is_dependent;
    };
    for (auto m = fusion_.members.rbegin(); m != fusion_.members.rend(); ++m) {
      for (int r : list_.statements[static_cast<size_t>(m->statement)].reads_from) {
        if (members.contains(r) || !depends(depends, r)) continue;
        if (const int id = known_before(r); id >= 0) return id;
        if (m->statement != fusion_.seed) return m->statement;
        // The seed itself: what it needs from this kernel must come from elsewhere. Tiles along the
        // streamed axis do not count.
        for (const bool is_any : {false, true}) {
          for (const Member& p : fusion_.members) {
            if (p.statement != fusion_.seed && p.statement < m->statement &&
                (is_any || stored.contains(p.statement)))
              return p.statement;
          }
        }
      }
    }
    return -1;
  }

  // Reductions that joined the seed's loop and are not needed by it.
  std::vector<int> products_beside() {
    std::vector<int> out;
    for (const Member& m : fusion_.members) {
      if (m.is_reduction() && m.statement != fusion_.seed && !is_needed_by_seed(m))
        out.push_back(m.statement);
    }
    return out;
  }

  FusionCheck member(size_t k) {
    FusionCheck check = tile_of(k);
    return check.is_ok ? following(fusion_.members[k]) : check;
  }

  // Whether a tile of the kernel can hold the member.
  FusionCheck tile_of(size_t k) {
    const Member& m = fusion_.members[k];
    const auto tile = fusion_.tile_axes(m);
    const bool is_dot = fusion_.dot_of(k) != nullptr;
    const size_t width = tile.size() + (m.is_reduction() && !is_dot ? 1 : 0);
    if (std::vector<int> others = products_beside();
        m.statement == fusion_.seed && width > 2 && !others.empty())
      return outside(std::move(others), "rank",
                     "its rows are others than those of the product that the kernel is for");
    if (width > 2)
      return outside({m.statement}, "rank",
                     is_dot ? "its tile has more than two axes"
                            : "it is no contraction of the rows, and has more than two axes");
    if (m.is_reduction() && !is_dot && !m.has(fusion_.row))
      return outside({m.statement}, "row", "it has no row, and is the same for all tiles of rows");
    const bool is_plain = m.reducer == expr::Reducer::Sum || m.reducer == expr::Reducer::Max ||
                          m.reducer == expr::Reducer::Min;
    if (m.is_reduction() && (!is_plain || (m.dtype != DType::F32 && !is_dot)))
      return outside({m.statement}, "reducer", "tiles are reduced by sum, max and min, in f32");
    const bool is_unusual =
        expr::is_int(m.dtype) || expr::bytes(m.dtype) == 1 || m.dtype == DType::F64;
    const bool is_late = !m.is_reduction() && !m.has(fusion_.stream) && is_unusual &&
                         !fusion_.stores_integers(m.dtype);
    if (is_late)
      return outside({m.statement}, "store", fmt::format("tiles store no {}", expr::name(m.dtype)));
    if (m.is_reduction() && tile.empty())
      return outside({m.statement}, "rank", "it has no axis inside a tile");
    for (Expr a : tile) {
      const bool is_whole = fusion_.is_inner(a) && !fusion_.is_column(a) && a != fusion_.row;
      if (is_whole && !fusion_.is_whole(a))
        return outside({m.statement}, "extent", "an axis does not fit a tile");
    }
    if (!m.is_reduction() && reads_outer_tile(m))
      return outside({m.statement}, "epilogue", "it belongs behind the reduction that it reads");
    return {};
  }

  // Whether the member can follow the values that change from step to step.
  FusionCheck following(const Member& m) {
    const std::string name(m.target.str());
    if (!m.inner.empty() && !m.is_closing && depends_on_rolled(m)) {
      // Operands of the seed stay where they are, and an earlier pass computes them from final
      // values.
      const bool is_cut = is_needed_by_seed(m);
      std::vector<int> ids = is_cut ? rolled_under(m) : std::vector<int>();
      if (ids.empty())
        return outside({m.statement}, "inner",
                       "an inner reduction of running values cannot be repaired");
      FusionCheck check =
          outside(std::move(ids), "inner",
                  fmt::format("`{}` cannot follow it, an inner reduction of running values", name));
      check.is_cut = is_cut;
      return check;
    }
    if (!m.is_rolled) return {};
    const auto part = recurrence_of(fusion_, m, signs_, pool_);
    if (part) return {};
    // The values that moved become final first, in another pass.
    const bool is_cut = is_needed_by_seed(m);
    std::vector<int> ids = is_cut ? rolled_under(m) : std::vector<int>{m.statement};
    FusionCheck check =
        outside(std::move(ids), part.rejection().code,
                fmt::format("`{}` cannot follow it, {}", name, part.rejection().message));
    check.is_cut = is_cut;
    return check;
  }

  // The running values that a member reads, through element-wise ones, without the seed.
  std::vector<int> rolled_under(const Member& m) {
    std::vector<int> ids;
    auto visit = [&](Expr e) {
      const Member* p = e.op() == Op::Read ? fusion_.find(e) : nullptr;
      if (p && p->is_rolled && p != &m && p->statement != fusion_.seed) ids.push_back(p->statement);
    };
    expr::for_each(fusion_.inlined(pool_, m.value), visit);
    if (m.init) expr::for_each(fusion_.inlined(pool_, m.init), visit);
    return ids;
  }

  // True if a tile could be computed after a reduction of another kernel: it reads, at its own
  // axes, that reduction or element-wise values of it, and nothing of this kernel's loop.
  bool reads_outer_tile(const Member& m) {
    return !depends_on_rolled(m) && follows_reduction(m.value, m.axes);
  }
  bool follows_reduction(Expr value, const std::vector<Expr>& axes) {
    bool is_found = false;
    expr::for_each(value, [&](Expr e) {
      if (is_found || e.op() != Op::Read || fusion_.find(e)) return;
      const Statement* p = list_.producer(e.name());
      if (!p || p->is_opaque || e.args().size() != axes.size()) return;
      for (Expr a : axes) {
        if (std::find(e.args().begin(), e.args().end(), a) == e.args().end()) return;
      }
      std::vector<Expr> own;
      for (const ir::Axis& a : p->axes) own.push_back(pool_.index(a.name));
      is_found = p->is_reduction() || follows_reduction(p->value, own);
    });
    return is_found;
  }

  bool depends_on_rolled(const Member& m) {
    if (!dependent_) dependent_ = fusion_.dependent_on_rolled();
    return dependent_->contains(m.statement);
  }

  bool is_needed_by_seed(const Member& m) {
    if (needed_.empty()) {
      std::vector<int> work = {fusion_.seed};
      while (!work.empty()) {
        const int id = work.back();
        work.pop_back();
        if (!needed_.insert(id).second) continue;
        for (int r : list_.statements[static_cast<size_t>(id)].reads_from) work.push_back(r);
      }
    }
    return needed_.contains(m.statement);
  }

  Fusion& fusion_;
  const StatementList& list_;
  const ir::Program& program_;
  const algebra::Signs& signs_;
  expr::ExprPool& pool_;
  std::optional<std::set<int>> dependent_;  // statements of members, on rolled ones
  std::set<int> needed_;                    // statements, by the seed; with it
};

}  // namespace

FusionCheck check_fusion(Fusion& fusion, const StatementList& list, const ir::Program& program,
                         Expr row, const algebra::Signs& signs, expr::ExprPool& pool) {
  return Checker(fusion, list, program, signs, pool).run(row);
}

}  // namespace nautilus::schedule
