// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/split_roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "matile/passes/nest_resources.h"
#include "matile/passes/rewrite.h"
#include "matile/passes/ring_sequence.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;
using Kind = RingSequence::Kind;

constexpr int kLoaderWarps = 4;

// Ring bounds in a group's range and in the loader's.
struct SharedRange {
  Expr from;
  Expr to;
};

class RoleSplitter {
 public:
  RoleSplitter(const ir::Program& program, const Kernel& kernel, const Role& role,
               ir::PassContext& context)
      : kernel_(kernel),
        role_(role),
        pool_(context.pool),
        sink_(context.sink),
        scalars_(program, kernel, role, context.pool),
        taken_(names_of(program)) {
    for (const Op& op : program.body) {
      if (const auto* m = op.get<Map>()) maps_.emplace(m->name.str(), *m);
    }
  }

  std::optional<Kernel> run() {
    for (const Op& op : role_.body) {
      if (const auto* each = op.get<Each>()) each_ = each;
    }
    if (!each_) return refuse("a nest walks tiles with `each`");
    if (!find_rings()) return std::nullopt;
    rings_ = nest_rings_;
    for (NestRing& ring : rings_) {
      ring.sequence = ring_sequence(each_->body, ring.parts, scalars_, pool_);
      if (!find_shared_range(ring)) return std::nullopt;
    }
    if (!assign_loaders()) return std::nullopt;
    const auto chosen = choose_resources(kernel_, role_, rings_, taken_, pool_, sink_);
    if (!chosen) return std::nullopt;
    Kernel out{.name = kernel_.name,
               .form = KernelForm::Roles,
               .cluster = kernel_.cluster,
               .rank = kernel_.rank};
    for (const Op& op : kernel_.body) {
      if (op.is<Tiles>() || op.is<Cta>()) out.body.push_back(op);
    }
    for (const Op& op : chosen->declarations) out.body.push_back(op);
    for (int warp = 0; warp < kLoaderWarps; ++warp) {
      auto loader = loader_role(warp, chosen->loader_registers);
      if (loader) out.body.push_back(ir::make(std::move(*loader)));
      if (is_refused_) return std::nullopt;
    }
    for (const Op& op : kernel_.body) {
      // Kept for the passes that place waits and turns.
      const auto* d = op.get<Decide>();
      if (d && (d->what.str() == "in_flight" || d->what.str() == "turn")) out.body.push_back(op);
    }
    auto compute = compute_role(*chosen);
    if (!compute) return std::nullopt;
    out.body.push_back(ir::make(std::move(*compute)));
    return out;
  }

 private:
  std::nullopt_t refuse(std::string message) {
    is_refused_ = true;
    sink_.report(diag::Code::NotVerified, {},
                 fmt::format("kernel `{}`: {}", kernel_.name.str(), message));
    return std::nullopt;
  }

  // --- rings --------------------------------------------------------------------------------

  // Parts with the same fetches: of each run of neighbouring fetches, those that occur in the same
  // runs.
  bool find_rings() {
    std::map<std::string, std::vector<int>, std::less<>> runs_of;
    std::vector<std::string> order;
    int run = 0;
    map_blocks(each_->body, [&](ir::Block block) {
      bool is_open = false;
      Names in_run;
      for (const Op& op : block) {
        const auto* f = op.get<Fetch>();
        if (!f || in_run.contains(f->part.str())) {
          is_open = false;
          in_run.clear();
        }
        if (!f) continue;
        if (!is_open) ++run;
        is_open = true;
        in_run.emplace(f->part.str());
        auto& runs = runs_of[std::string(f->part.str())];
        if (runs.empty()) order.emplace_back(f->part.str());
        runs.push_back(run);
      }
      return block;
    });
    for (const Op& op : kernel_.body) {
      const auto* p = op.get<Part>();
      if (p && !runs_of.contains(p->name.str())) {
        refuse(fmt::format("part `{}` is never fetched", p->name.str()));
        return false;
      }
    }
    std::map<std::pair<std::vector<int>, bool>, size_t> known;
    for (const Op& op : kernel_.body) {
      const auto* p = op.get<Part>();
      if (!p) continue;
      const std::string name(p->name.str());
      const bool is_per_group = depends_on_group(name);
      const auto [it, is_new] =
          known.emplace(std::make_pair(runs_of.at(name), is_per_group), nest_rings_.size());
      if (is_new) nest_rings_.emplace_back().is_per_group = is_per_group;
      nest_rings_[it->second].parts.push_back(name);
      nest_rings_[it->second].ops.push_back(*p);
    }
    for (NestRing& ring : nest_rings_) {
      std::string base;
      for (const std::string& part : ring.parts) base += part + "_";
      ring.name = fresh_name(base + "ring", taken_, pool_);
    }
    return true;
  }

  bool depends_on_group(const std::string& part) const {
    bool found = false;
    ir::for_each_op(each_->body, [&](const Op& op) {
      const auto* f = op.get<Fetch>();
      if (!f || f->part.str() != part) return;
      for (Expr e : f->at) {
        // The range of a loop may differ from group to group; the coordinates at one of its values
        // may not.
        found |= scalars_.depends_on_group(e) && !is_loop_bound_only(part, e);
      }
    });
    return found;
  }

  // A peeled iteration has the group's bounds in its coordinates. If the whole sequence is one
  // loop, they are values of its variable.
  bool is_loop_bound_only(const std::string& part, Expr) const {
    const RingSequence s = ring_sequence(each_->body, {part}, scalars_, pool_);
    if (s.kind != Kind::Range) return false;
    for (const Fetch& f : s.fetches) {
      for (Expr e : f.at) {
        if (scalars_.depends_on_group(e)) return false;
      }
    }
    return true;
  }

  bool find_shared_range(NestRing& ring) {
    const RingSequence& s = ring.sequence;
    if (s.kind == Kind::Once) return true;
    if (s.kind == Kind::Literal) {
      bool ok = true;
      ir::for_each_op(each_->body, [&](const Op& op) {
        const auto* loop = op.get<Loop>();
        const auto* branch = op.get<If>();
        if (!loop && !branch) return;
        bool fetches = false;
        ir::for_each_op(*block_of(op), [&](const Op& o) {
          const auto* f = o.get<Fetch>();
          fetches |= f && f->part.str() == ring.parts[0];
        });
        if (!fetches) return;
        ok &= loop ? !scalars_.depends_on_group(loop->from) && !scalars_.depends_on_group(loop->to)
                   : !scalars_.depends_on_group(branch->condition);
      });
      if (!ok) refuse(fmt::format("the fetches of `{}` differ from group to group", ring.parts[0]));
      return ok;
    }
    if (ring.is_per_group) {
      if (!scalars_.depends_on_group(s.from) && !scalars_.depends_on_group(s.to)) return true;
      refuse(fmt::format("how often `{}` is fetched differs from group to group", ring.parts[0]));
      return false;
    }
    const bool is_up = s.direction == Direction::Up;
    const Expr from =
        scalars_.depends_on_group(s.from) ? scalars_.extreme_over_groups(s.from, !is_up) : s.from;
    const Expr to =
        scalars_.depends_on_group(s.to) ? scalars_.extreme_over_groups(s.to, is_up) : s.to;
    if (!from || !to) {
      refuse(fmt::format("the range of `{}` is not monotone in the group", ring.parts[0]));
      return false;
    }
    shared_.emplace(ring.name.str(), SharedRange{bound(s.from, from), bound(s.to, to)});
    return true;
  }

  // What the loader's range has instead of a group's bound: the scalar of all groups, named once.
  Expr bound(Expr own, Expr common) {
    if (!scalars_.depends_on_group(own)) return own;
    if (common.is_const()) return common;
    // `nt - 1`: name the value of nt.
    for (const auto& [value, name] : bounds_) {
      if (const auto d = expr::difference(common, value); d && d->constant())
        return plus(pool_.index(name), *d->constant());
    }
    Expr core = common;
    int64_t offset = 0;
    if (core.op() == EK::Add && core[1].op() == EK::IntConst) {
      offset = core[1].integer();
      core = core[0];
    }
    const ir::Name name = fresh_name("n_all", taken_, pool_);
    bounds_.emplace_back(core, name);
    return plus(pool_.index(name), offset);
  }

  Expr plus(Expr e, int64_t c) {
    if (c == 0) return e;
    if (e.op() == EK::IntConst) return pool_.integer(e.integer() + c);
    return pool_.binary(EK::Add, e, pool_.integer(c));
  }

  // --- loading roles ------------------------------------------------------------------------

  // Every ring of more than one fetch a tile has a warp of its own, so that none waits for another;
  // the others go with the first.
  bool assign_loaders() {
    int next = 0;
    for (NestRing& ring : rings_) {
      if (ring.sequence.kind == Kind::Once) continue;
      ring.loader = next++;
    }
    for (NestRing& ring : rings_) {
      for (const std::string& part : ring.parts) {
        if (const auto warp = decision(kernel_, "loader", part))
          ring.loader = static_cast<int>(*warp);
      }
    }
    if (std::any_of(rings_.begin(), rings_.end(),
                    [](const NestRing& r) { return r.loader >= kLoaderWarps; })) {
      refuse(fmt::format("it has more than {} independent sequences of copies", kLoaderWarps));
      return false;
    }
    return true;
  }

  Op fill(const NestRing& ring, const std::vector<Fetch>& fetches) {
    Fill out{ring.name, {}, {}};
    expr::Substitution group;
    if (ring.is_per_group) {
      out.group = fresh_name("group", taken_, pool_);
      group.emplace(pool_.index(role_.index), pool_.index(out.group));
    }
    for (const Fetch& f : fetches) {
      Copy copy{f.part, f.map, {}, {}};
      for (Expr e : f.at) {
        const Expr written = ring.is_per_group ? scalars_.without_group_lets(e) : e;
        copy.at.push_back(expr::substitute(pool_, written, group));
      }
      const int64_t panels = panels_of(ring, f);
      const int64_t width = maps_.find(f.map.str())->second.box[0].integer();
      const Expr first = copy.at[0];
      for (int64_t p = 0; p < panels; ++p) {
        if (panels > 1) copy.panel = p;
        copy.at[0] = plus(first, p * width);
        out.body.push_back(ir::make(copy));
      }
    }
    return ir::make(std::move(out));
  }

  // How many boxes fill the part: one, or one for each panel.
  int64_t panels_of(const NestRing& ring, const Fetch& f) const {
    const Map& map = maps_.find(f.map.str())->second;
    int64_t elements = 1;
    for (Expr b : map.box) elements *= b.integer();
    for (const Part& part : ring.ops) {
      if (part.name != f.part) continue;
      return part.type.dims[0].integer() * part.type.dims[1].integer() / elements;
    }
    return 1;
  }

  std::optional<Role> loader_role(int warp, int64_t registers) {
    std::vector<const NestRing*> mine;
    for (const NestRing& ring : rings_) {
      if (ring.loader == warp) mine.push_back(&ring);
    }
    if (mine.empty()) return std::nullopt;
    std::vector<const NestRing*> once;
    const NestRing* repeated = nullptr;
    for (const NestRing* ring : mine) {
      if (ring->sequence.kind == Kind::Once) {
        once.push_back(ring);
      } else if (repeated) {
        refuse(fmt::format("`{}` and `{}` are loaded by one warp", repeated->parts[0],
                           ring->parts[0]));
        return std::nullopt;
      } else {
        repeated = ring;
      }
    }
    ir::Block body = shared_lets();
    const auto fill_once = [&](ir::Block& to) {
      for (const NestRing* ring : once) to.push_back(fill(*ring, ring->sequence.fetches));
    };
    if (!repeated) {
      fill_once(body);
    } else if (repeated->sequence.kind == Kind::Range) {
      const RingSequence& s = repeated->sequence;
      const auto shared = shared_.find(repeated->name.str());
      const Expr from = shared == shared_.end() ? s.from : shared->second.from;
      const Expr to = shared == shared_.end() ? s.to : shared->second.to;
      const bool is_up = s.direction == Direction::Up;
      Loop loop{s.var, from, s.direction, to, {fill(*repeated, s.fetches)}};
      const bool runs = is_up ? scalars_.is_at_least(plus(to, -1), from) || runs_once(s)
                              : scalars_.is_at_least(from, to) || runs_once(s);
      if (!once.empty() && runs) {
        // The slot of a ring with one slot is free late; a step of the loop goes in front.
        If first{pool_.binary(EK::Eq, pool_.index(s.var), from), {}};
        fill_once(first.body);
        loop.body.push_back(ir::make(std::move(first)));
      } else {
        fill_once(body);
      }
      body.push_back(ir::make(std::move(loop)));
    } else {
      fill_once(body);
      for (Op& op : projection(each_->body, *repeated)) body.push_back(std::move(op));
    }
    std::string name = "load";
    if (warp > 0) name += "_" + mine[0]->parts[0];
    Each each{each_->var, each_->tiles, {}, std::move(body)};
    return Role{fresh_name(name, taken_, pool_), RoleUnit::Warp, warp, {}, registers,
                {ir::make(std::move(each))}};
  }

  // The group's own range is not empty, hence the loader's is not.
  bool runs_once(const RingSequence& s) const {
    return s.direction == Direction::Up ? scalars_.is_at_least(s.to, plus_one(s.from))
                                        : scalars_.is_at_least(s.from, s.to);
  }
  Expr plus_one(Expr e) const { return pool_.binary(EK::Add, e, pool_.integer(1)); }

  // The nest with only the fills of a ring.
  ir::Block projection(const ir::Block& block, const NestRing& ring) {
    ir::Block out;
    std::vector<Fetch> pending;
    for (const Op& op : block) {
      if (const auto* f = op.get<Fetch>()) {
        if (std::find(ring.parts.begin(), ring.parts.end(), f->part.str()) == ring.parts.end())
          continue;
        pending.push_back(*f);
        if (pending.size() < ring.parts.size()) continue;
        out.push_back(fill(ring, pending));
        pending.clear();
        continue;
      }
      const ir::Block* inner = block_of(op);
      if (!inner) continue;
      ir::Block kept = projection(*inner, ring);
      if (!kept.empty()) out.push_back(with_block(op, std::move(kept)));
    }
    return out;
  }

  // Scalars that all groups share, and the common bounds behind those they are made of.
  ir::Block shared_lets() {
    ir::Block out;
    for (const Op& op : each_->body) {
      const auto* let = op.get<Let>();
      if (let && !scalars_.depends_on_group(let->value)) out.push_back(op);
    }
    for (const auto& [value, name] : bounds_) out.push_back(ir::make(Let{name, value}));
    return out;
  }

  // --- the compute role ---------------------------------------------------------------------

  std::optional<Role> compute_role(const NestResources& chosen) {
    ir::Block body = with_gets(each_->body);
    // Common bounds stand behind the scalars they are made of: in front of the first of a group.
    ir::Block tile;
    bool has_bounds = bounds_.empty();
    const auto add_bounds = [&] {
      if (has_bounds) return;
      has_bounds = true;
      for (const auto& [value, name] : bounds_) tile.push_back(ir::make(Let{name, value}));
    };
    for (Op& op : body) {
      const auto* let = op.get<Let>();
      if (!let || scalars_.depends_on_group(let->value)) add_bounds();
      tile.push_back(std::move(op));
    }
    add_bounds();
    add_skips(tile);
    ir::Block out;
    for (const Op& op : role_.body) {
      if (const auto* each = op.get<Each>()) {
        if (!add_jumps(out, tile)) return std::nullopt;
        Each changed = *each;
        changed.body = with_stages(tile, chosen);
        out.push_back(ir::make(std::move(changed)));
      } else {
        out.push_back(op);
      }
    }
    Role role = role_;
    role.regs = chosen.compute_registers;
    role.body = std::move(out);
    return role;
  }

  const NestRing* ring_of(std::string_view part) const {
    for (const NestRing& ring : rings_) {
      if (std::find(ring.parts.begin(), ring.parts.end(), part) != ring.parts.end()) return &ring;
    }
    return nullptr;
  }

  ir::Block with_gets(const ir::Block& block) const {
    return map_blocks(block, [&](ir::Block ops) {
      ir::Block out;
      for (Op& op : ops) {
        const auto* f = op.get<Fetch>();
        if (!f) {
          out.push_back(std::move(op));
        } else if (const NestRing* ring = ring_of(f->part.str()); ring->parts[0] == f->part.str()) {
          out.push_back(ir::make(Get{ring->name}, op.span()));
        }
      }
      return out;
    });
  }

  static bool steps(const Op& op, ir::Name ring) {
    bool found = false;
    ir::for_each_op({op}, [&](const Op& o) {
      const auto* g = o.get<Get>();
      found |= g && g->ring == ring;
    });
    return found;
  }

  // Gets a slot of the ring or reads its parts.
  bool uses(const Op& op, ir::Name ring) const {
    if (steps(op, ring)) return true;
    const Touched touched = touched_by(op);
    for (const NestRing& r : rings_) {
      if (r.name != ring) continue;
      return std::any_of(r.parts.begin(), r.parts.end(),
                         [&](const std::string& part) { return touched.reads.contains(part); });
    }
    return false;
  }

  // A group whose range ends earlier than the loader's takes part in the rest by skips.
  void add_skips(ir::Block& tile) {
    struct Difference {
      Expr low;
      Expr high;
      bool is_front;
      std::vector<ir::Name> rings;
    };
    std::vector<Difference> differences;
    const auto add = [&](Expr low, Expr high, bool is_front, ir::Name ring) {
      for (Difference& d : differences) {
        if (d.low != low || d.high != high || d.is_front != is_front) continue;
        d.rings.push_back(ring);
        return;
      }
      differences.push_back({low, high, is_front, {ring}});
    };
    for (const NestRing& ring : rings_) {
      const auto it = shared_.find(ring.name.str());
      if (it == shared_.end()) continue;
      const RingSequence& s = ring.sequence;
      const bool is_up = s.direction == Direction::Up;
      // As ranges low <= x < high of iterations that this group does not have. A group without any
      // iteration skips what the others have, no more.
      const Expr begin = is_up ? s.from : s.to;                    // first of the group's
      const Expr end = is_up ? s.to : plus_simple(s.from, 1);      // behind its last
      const Expr first = is_up ? it->second.from : it->second.to;  // and of the loader's
      const Expr last = is_up ? it->second.to : plus_simple(it->second.from, 1);
      if (first != begin) {
        const Expr high = scalars_.is_at_least(end, begin) ? begin : binary(EK::Min, begin, last);
        add(first, high, is_up, ring.name);
      }
      if (last != end) {
        const Expr low = scalars_.is_at_least(end, begin) ? end : binary(EK::Max, begin, end);
        add(low, last, !is_up, ring.name);
      }
    }
    for (const Difference& d : differences) {
      Loop loop{fresh_name("skipped", taken_, pool_), d.low, Direction::Up, d.high, {}};
      for (ir::Name ring : d.rings) loop.body.push_back(ir::make(Skip{ring}));
      size_t at = d.is_front ? tile.size() : 0;
      for (size_t k = 0; k < tile.size(); ++k) {
        for (ir::Name ring : d.rings) {
          if (d.is_front && steps(tile[k], ring)) at = std::min(at, k);
          if (!d.is_front && uses(tile[k], ring)) at = std::max(at, k + 1);
        }
      }
      tile.insert(tile.begin() + static_cast<long>(at), ir::make(std::move(loop)));
    }
  }

  Expr binary(EK op, Expr a, Expr b) { return pool_.binary(op, a, b); }

  Expr plus_simple(Expr e, int64_t c) {
    if (e.op() == EK::Add && e[1].op() == EK::IntConst) return plus(e[0], e[1].integer() + c);
    return plus(e, c);
  }

  // How often a tile fetches the ring, if only in unrolled blocks; null otherwise.
  Expr unrolled_count(const ir::Block& block, const NestRing& ring) const {
    int64_t count = 0;
    for (const Op& op : block) {
      const auto* f = op.get<Fetch>();
      if (f && f->part.str() == ring.parts[0]) ++count;
      const ir::Block* inner = block_of(op);
      if (!inner) continue;
      const Expr once = unrolled_count(*inner, ring);
      if (!once) return {};
      if (once.is_int(0)) continue;
      const auto* unroll = op.get<Unroll>();
      if (!unroll) return {};
      int64_t copies = once.integer();
      for (const ir::Axis& a : unroll->axes) copies *= a.extent.integer();
      count += copies;
    }
    return pool_.integer(count);
  }

  // Groups that alternate tiles step over the slots of the others' tiles.
  bool add_jumps(ir::Block& before, ir::Block& tile) {
    if (each_->alternate.value_or(1) == 1) return true;
    const int64_t others = *each_->alternate - 1;
    for (const NestRing& ring : rings_) {
      const RingSequence& s = ring.sequence;
      Expr count;
      if (s.kind == Kind::Once) count = pool_.integer(1);
      if (s.kind == Kind::Range && s.direction == Direction::Up)
        count = s.from.is_int(0) ? s.to : pool_.binary(EK::Sub, s.to, s.from);
      if (s.kind == Kind::Range && s.direction == Direction::Down)
        count = plus_simple(s.to.is_int(0) ? s.from : pool_.binary(EK::Sub, s.from, s.to), 1);
      if (s.kind == Kind::Literal) count = unrolled_count(each_->body, ring);
      if (!count || ring.is_per_group || scalars_.depends_on(count, each_->var)) {
        refuse(fmt::format("groups alternate tiles, but `{}` is not fetched equally often for each",
                           ring.parts[0]));
        return false;
      }
      const Expr index = pool_.index(role_.index);
      before.push_back(
          ir::make(Jump{ring.name, count.is_int(1) ? index : pool_.binary(EK::Mul, index, count)}));
      const Expr jump = others == 1 ? count : pool_.binary(EK::Mul, pool_.integer(others), count);
      size_t at = 0;
      for (size_t k = 0; k < tile.size(); ++k) {
        if (uses(tile[k], ring.name)) at = k + 1;
      }
      tile.insert(tile.begin() + static_cast<long>(at), ir::make(Jump{ring.name, jump}));
    }
    return true;
  }

  ir::Block with_stages(const ir::Block& block, const NestResources& chosen) const {
    return map_blocks(block, [&](ir::Block ops) {
      for (Op& op : ops) {
        const auto* store = op.get<Store>();
        if (!store || store->stage) continue;
        Store changed = *store;
        changed.stage = chosen.stage_of.at(std::string(store->tile.str()));
        op = ir::make(std::move(changed), op.span());
      }
      return ops;
    });
  }

  const Kernel& kernel_;
  const Role& role_;
  expr::ExprPool& pool_;
  diag::Sink& sink_;
  Scalars scalars_;
  Names taken_;
  std::map<std::string, Map, std::less<>> maps_;
  const Each* each_ = nullptr;
  std::vector<NestRing> nest_rings_;
  std::vector<NestRing> rings_;
  std::map<std::string, SharedRange, std::less<>> shared_;
  std::vector<std::pair<Expr, ir::Name>> bounds_;
  bool is_refused_ = false;
};

}  // namespace

std::optional<ir::Program> split_roles(const ir::Program& program, ir::PassContext& context) {
  return map_kernels(program, KernelForm::Nest, [&](const Kernel& k) -> std::optional<Kernel> {
    for (const Op& op : k.body) {
      if (const auto* role = op.get<Role>()) return RoleSplitter(program, k, *role, context).run();
    }
    return k;
  });
}

}  // namespace nautilus::matile
