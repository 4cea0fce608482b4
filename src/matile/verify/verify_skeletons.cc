// SPDX-License-Identifier: Apache-2.0
// Counts the steps of rings and turns by running the roles' loops, lets and branches for concrete
// sizes. A proof would need case analysis over minima and maxima of sizes; running the loops over
// sampled sizes, small ones and ragged ones among them, finds every disagreement that shows up at
// any of them.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/random.h"
#include "expr/walk.h"
#include "ir/environment.h"
#include "ir/walk.h"
#include "matile/verify/step_outline.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using ir::Op;

constexpr int64_t kTiles = 24;        // looked at per sample
constexpr int64_t kMaxSteps = 20000;  // of one role in one tile

struct Counts {
  std::map<std::string, int64_t> rings;  // fills or gets (skips included)
  std::map<std::string, int64_t> jumps;
  std::map<std::string, int64_t> turns;
};

// Whether expressions read tensors; a kernel's are asked for again with every sample and tile.
class TensorReads {
 public:
  bool in(ir::Expr e) {
    const auto [it, is_new] = known_.try_emplace(e, false);
    if (is_new) it->second = !expr::tensors_read(e).empty();
    return it->second;
  }

 private:
  std::unordered_map<ir::Expr, bool> known_;
};

class Skeleton {
 public:
  Skeleton(ir::Environment env, TensorReads& reads) : env_(std::move(env)), reads_(reads) {}

  // False if the role steps further than makes sense to follow.
  bool run(const ir::Block& ops, Counts& counts) {
    for (const Op& op : ops) {
      if (++steps_ > kMaxSteps) return false;
      switch (kind(op)) {
        case Kind::Let:
          env_.sizes.insert_or_assign(std::string(op.as<Let>().name.str()),
                                      value(op.as<Let>().value));
          break;
        case Kind::Loop:
          if (!loop(op.as<Loop>(), counts)) return false;
          break;
        case Kind::Unroll:
          if (!unrolled(op.as<Unroll>(), 0, counts)) return false;
          break;
        case Kind::If:
          // Votes guard register work only.
          if (is_known(op.as<If>().condition) && value(op.as<If>().condition) != 0 &&
              !run(op.as<If>().body, counts))
            return false;
          break;
        case Kind::Fill:
          ++counts.rings[std::string(op.as<Fill>().ring.str())];
          break;
        case Kind::Get:
          ++counts.rings[std::string(op.as<Get>().ring.str())];
          break;
        case Kind::Skip:
          ++counts.rings[std::string(op.as<Skip>().ring.str())];
          break;
        case Kind::Jump:
          counts.jumps[std::string(op.as<Jump>().ring.str())] += value(op.as<Jump>().slots);
          break;
        case Kind::Enter:
          ++counts.turns[std::string(op.as<Enter>().turn.str())];
          break;
        default:
          break;
      }
    }
    return true;
  }

  void set(ir::Name name, int64_t x) { env_.sizes.insert_or_assign(std::string(name.str()), x); }

 private:
  bool is_known(ir::Expr e) const {
    return e.op() != expr::Op::Var || env_.sizes.contains(e.name().str()) ||
           env_.scalars.contains(e.name().str());
  }
  int64_t value(ir::Expr e) const {
    const expr::Value v = reads_.in(e) ? with_reads(e) : ir::evaluate(e, env_);
    return expr::is_float(e.dtype()) ? 0 : v.i;
  }
  // The contents of a tensor are unknown: any number, but the same for all readers of an element.
  expr::Value with_reads(ir::Expr e) const {
    if (!reads_.in(e)) return ir::evaluate(e, env_);
    expr::Value args[3];
    uint64_t at = 0;  // which element, as a number
    if (e.op() == expr::Op::Read) {
      for (char c : e.name().str()) at = at * 31 + static_cast<unsigned char>(c);
    }
    for (size_t k = 0; k < e.args().size(); ++k) {
      const expr::Value v = with_reads(e[k]);
      if (k < 3) args[k] = v;
      at = at * 1000003 + static_cast<uint64_t>(v.i);
    }
    if (e.op() != expr::Op::Read)
      return expr::apply(e.op(), e.dtype(), e.args().back().dtype(), args);
    base::Random random(at);
    constexpr int64_t kMost[] = {2, 12, 700};
    return expr::int_value(random.integer(-2, kMost[random.integer(0, 2)]));
  }

  bool unrolled(const Unroll& op, size_t axis, Counts& counts) {
    if (axis == op.axes.size()) return run(op.body, counts);
    for (int64_t i = 0; i < op.axes[axis].extent.integer(); ++i) {
      set(op.axes[axis].name, i);
      if (!unrolled(op, axis + 1, counts)) return false;
    }
    return true;
  }

  bool loop(const Loop& op, Counts& counts) {
    const int64_t from = value(op.from);
    const int64_t to = value(op.to);
    const bool is_up = op.direction == Direction::Up;
    for (int64_t i = from; is_up ? i < to : i >= to; i += is_up ? 1 : -1) {
      set(op.var, i);
      if (++steps_ > kMaxSteps || !run(op.body, counts)) return false;
    }
    return true;
  }

  ir::Environment env_;
  TensorReads& reads_;
  int64_t steps_ = 0;
};

// The tile loop of a role, if it has one.
const Each* tile_loop(const Role& role) {
  for (const Op& op : role.body) {
    if (const auto* each = op.get<Each>()) return each;
  }
  return nullptr;
}

std::string sizes_text(const ir::Program& program, const ir::Environment& env) {
  std::string out;
  for (const Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d)
      out += fmt::format("{}{}={}", out.empty() ? "" : " ", d->name.str(),
                         env.sizes.find(d->name.str())->second);
  }
  return out;
}

class Comparison {
 public:
  Comparison(const ir::Program& program, const Kernel& kernel, const Resources& r, diag::Span span,
             diag::Sink& sink)
      : program_(program), kernel_(kernel), r_(r), span_(span), sink_(sink) {
    for (const Op& op : program.body) {
      if (const auto* d = op.get<ir::Dim>()) names_.insert(d->name);
    }
    for (const Op& op : kernel.body) {
      ir::for_each_expr(op, [&](ir::Expr root) {
        expr::for_each(root, [&](ir::Expr e) {
          if (e.op() == expr::Op::Var) names_.insert(e.name());
        });
      });
    }
  }

  // Ring and turn steps belong to tiles; false (and reported) if some are elsewhere.
  bool stand_in_tiles() {
    for (const RoleInfo& role : r_.roles) {
      const auto steps = [&](const ir::Block& ops) {
        bool found = false;
        ir::for_each_op(ops, [&](const Op& op) {
          found |= op.is<Fill>() || op.is<Get>() || op.is<Skip>() || op.is<Enter>();
        });
        return found;
      };
      for (const Op& op : role.op->body) {
        if (op.is<Each>() || !steps({op})) continue;
        sink_.report(diag::Code::NotVerified, op.span(),
                     "rings and turns are stepped inside the walk over the tiles");
        return false;
      }
    }
    return true;
  }

  // False once something was reported.
  bool compare(const ir::Environment& sample) {
    ir::Environment env = own_part(sample);
    for (int rank = 0; rank < r_.cluster; ++rank) {
      if (kernel_.rank) env.sizes.insert_or_assign(std::string(kernel_.rank.str()), rank);
      if (!compare_tiles(env)) return false;
      if (!kernel_.rank) break;
    }
    return true;
  }

 private:
  using Known = std::map<std::string, std::pair<int64_t, std::string>>;

  // A plan has numbers of all its kernels; the roles of this one are run with copies of its own.
  ir::Environment own_part(const ir::Environment& sample) const {
    ir::Environment env;
    for (ir::Name n : names_) {
      if (const auto it = sample.sizes.find(n.str()); it != sample.sizes.end())
        env.sizes.insert(*it);
      if (const auto it = sample.scalars.find(n.str()); it != sample.scalars.end())
        env.scalars.insert(*it);
    }
    return env;
  }

  bool compare_tiles(const ir::Environment& env) {
    counted_.clear();
    for (const TilesInfo& tiles : r_.tiles) {
      const int64_t count = std::min(kTiles, ir::evaluate(tiles.op->count, env).i);
      for (int64_t t = 0; t < count; ++t) {
        if (!compare_tile(tiles, t, count, env)) return false;
      }
    }
    return true;
  }

  // A role's loop over tiles, at sizes.
  struct Walk {
    const RoleInfo& role;
    const Each& each;
    const ir::Environment& env;
  };
  // Who is in which tile.
  struct Walker {
    const std::string& who;
    int64_t tile;
    const ir::Environment& env;
  };

  bool compare_tile(const TilesInfo& tiles, int64_t t, int64_t count, const ir::Environment& env) {
    Known ring_steps;
    Known turn_steps;
    for (const RoleInfo& role : r_.roles) {
      const Each* each = tile_loop(*role.op);
      if (!each || each->tiles != tiles.op->name) continue;
      const int64_t by = each->alternate.value_or(1);
      for (int g = 0; g < role.groups(); ++g) {
        if (by > 1 && t % by != g) continue;
        Counts counts;
        const Walk walk = {role, *each, env};
        if (!run(walk, g, t, counts)) return true;  // too long to follow
        const std::string who = role.groups() > 1
                                    ? fmt::format("{} group {}", role.op->name.str(), g)
                                    : std::string(role.op->name.str());
        const Walker walker = {who, t, env};
        for (const auto& [ring, n] : counts.rings) {
          if (!agree(ring_steps, ring, n, walker, "steps ring")) return false;
        }
        if (by > 1 && !compare_jumps(walk, walker, g, count)) return false;
        if (by > 1) continue;  // groups that alternate take turns tile by tile
        for (const auto& [turn, n] : counts.turns) {
          if (!agree(turn_steps, turn, n, walker, "takes turn")) return false;
        }
      }
    }
    return true;
  }

  // Every ring and turn that the role uses at all has an entry. Tiles and groups that the role does
  // not ask about step alike.
  bool run(const Walk& walk, int group, int64_t tile, Counts& counts) {
    const auto& [role, each, env] = walk;
    const StepOutline& outline = outlines_.try_emplace(&each, each.body).first->second;
    const bool is_by_group = role.op->index && outline.uses(role.op->index);
    const int64_t own_tile = outline.uses(each.var) ? tile : 0;
    const auto key = std::make_tuple(&each, is_by_group ? group : 0, own_tile);
    const auto [it, is_new] = counted_.try_emplace(key);
    auto& [is_followed, known] = it->second;
    if (is_new) {
      ir::for_each_op(each.body, [&all = known](const Op& op) {
        if (const auto* x = op.get<Fill>()) all.rings[std::string(x->ring.str())];
        if (const auto* x = op.get<Get>()) all.rings[std::string(x->ring.str())];
        if (const auto* x = op.get<Skip>()) all.rings[std::string(x->ring.str())];
        if (const auto* x = op.get<Enter>()) all.turns[std::string(x->turn.str())];
      });
      Skeleton skeleton(env, reads_);
      if (role.op->index) skeleton.set(role.op->index, group);
      skeleton.set(each.var, tile);
      is_followed = skeleton.run(outline.body(), known);
    }
    counts = known;
    return is_followed;
  }

  // A group that alternates jumps over the tiles of the others: before its first tile over those in
  // front of it, after each tile over those up to its next one.
  bool compare_jumps(const Walk& walk, const Walker& walker, int group, int64_t count) {
    const int64_t by = *walk.each.alternate;
    const int64_t tile = walker.tile;
    Counts mine;
    if (!run(walk, group, tile, mine)) return true;
    Counts before;
    Skeleton start(walk.env, reads_);
    start.set(walk.role.op->index, group);
    for (const Op& op : walk.role.op->body) {
      if (op.is<Each>()) break;
      if (!start.run({op}, before)) return true;
    }
    for (const auto& [name, steps] : mine.rings) {
      const std::string& ring = name;  // lambdas cannot capture the binding itself
      const auto steps_of = [&](int64_t t) -> std::optional<int64_t> {
        Counts other;
        const int other_group = static_cast<int>(t % by);
        if (!run(walk, other_group, t, other)) return std::nullopt;
        return other.rings[ring];
      };
      int64_t after = 0;
      int64_t front = 0;
      for (int64_t k = 1; k < by; ++k) {
        if (tile + k >= count) return true;  // the sequence ends here
        const auto n = steps_of(tile + k);
        if (!n) return true;
        after += *n;
      }
      for (int64_t t = 0; t < group; ++t) {
        const auto n = steps_of(t);
        if (!n) return true;
        front += *n;
      }
      Known jumps{{ring, {after, "the others' tiles after it"}}};
      if (!agree(jumps, ring, mine.jumps[ring], walker, "jumps over ring")) return false;
      Known starts{{ring, {front, "the others' tiles before it"}}};
      if (!agree(starts, ring, before.jumps[ring], walker, "first jumps over ring")) return false;
    }
    return true;
  }

  bool agree(Known& known, const std::string& what, int64_t n, const Walker& walker,
             std::string_view verb) {
    const auto& [who, tile, env] = walker;
    const auto [it, is_new] = known.emplace(what, std::make_pair(n, who));
    if (is_new || it->second.first == n) return true;
    sink_
        .report(diag::Code::NotVerified, span_,
                fmt::format("tile {}: {} {} `{}` {}x, {} {}x", tile, who, verb, what, n,
                            it->second.second, it->second.first))
        .with_help(fmt::format("with {}{}", sizes_text(program_, env), rank_text(env)));
    return false;
  }

  std::string rank_text(const ir::Environment& env) const {
    if (!kernel_.rank) return "";
    return fmt::format(" {}={}", kernel_.rank.str(), env.sizes.find(kernel_.rank.str())->second);
  }

  const ir::Program& program_;
  const Kernel& kernel_;
  const Resources& r_;
  diag::Span span_;
  diag::Sink& sink_;
  std::unordered_set<ir::Name> names_;  // that the kernel has
  TensorReads reads_;
  std::map<const Each*, StepOutline> outlines_;
  // By role, group and tile, at the current sizes.
  std::map<std::tuple<const Each*, int, int64_t>, std::pair<bool, Counts>> counted_;
};

}  // namespace

void verify_skeletons(const ir::Program& program, const Kernel& kernel, diag::Span span,
                      const Resources& resources, const std::vector<ir::Environment>& samples,
                      diag::Sink& sink) {
  Comparison comparison(program, kernel, resources, span, sink);
  if (!comparison.stand_in_tiles()) return;
  for (const ir::Environment& env : samples) {
    if (!comparison.compare(env)) return;
  }
  if (samples.empty())
    sink.report(diag::Code::NotVerified, span, "no sizes were found that the program's facts allow")
        .with_help("give the dimensions hints that satisfy them");
}

}  // namespace nautilus::matile
