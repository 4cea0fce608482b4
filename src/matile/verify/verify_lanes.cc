// SPDX-License-Identifier: Apache-2.0
// R7: after a fold, each lane (or warp) holds a share of the reduction's value. Until `lanes` and
// `warps` have combined the shares, only work that may be done share by share is allowed
// (lane_shares.h). A vote may ask whether some share is large, or for a minimum, whether one is
// small. Everything else needs whole values.
//
// In a role with `groups`, a value folded from elements of one group is a share of that group, too;
// with `ctas`, one folded from elements of one CTA is a share of that CTA (own_elements.h). In
// others groups and CTAs have values of their own.
//
// In an `own` tile a thread may make anything of its shares. What comes of it is whole when `lanes`
// and `warps` have combined it.
//
// One walk over the role follows what every tile holds; loops are walked until nothing changes.
#include <fmt/format.h>

#include <span>

#include "expr/walk.h"
#include "matile/verify/lane_shares.h"
#include "matile/verify/own_elements.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using expr::Reducer;
using ir::Op;
using EK = expr::Op;

using Bits = ThreadBits;

// The bits of the digits that `is_wanted` names.
template <class F>
Bits bits_of(const layout::Layout& layout, F is_wanted) {
  Bits bits = 0;
  for (const layout::Digit& d : layout.digits()) {
    const bool is_lane = d.owner == layout::Owner::Lane;
    if ((!is_lane && d.owner != layout::Owner::Warp) || !is_wanted(d)) continue;
    for (int value = 1; value < d.extent; ++value)
      bits |= static_cast<Bits>(value * d.owner_stride) << (is_lane ? 0 : 5);
  }
  return bits;
}

Bits bits_of_copies(const layout::Layout& layout) {
  return bits_of(layout, [](const layout::Digit& d) { return d.axis == layout::kCopies; });
}

class LaneShares {
 public:
  LaneShares(const ir::Program& program, const Kernel& kernel, const Role& role, diag::Sink& sink)
      : role_(role),
        sink_(sink),
        tiles_(tiles_of_role(role)),
        groups_(OwnElements::of_groups(role)),
        ctas_(OwnElements::of_ctas(role, kernel.rank)),
        positive_(program),
        rules_(state_, positive_,
               [this](const Held& held, std::string_view is_used) { need_whole(held, is_used); }) {}

  void run() { block(role_.body); }

 private:
  using Kind = Held::Kind;

  // --- findings ---------------------------------------------------------------------------------

  void fail(const Held& held, std::string message) {
    has_failed_ = true;
    if (trials_ > 0) return;
    auto& finding = sink_.report(diag::Code::NotVerified, span_, std::move(message));
    if (held.since.is_known()) finding.also(held.since, "each lane folds its own elements");
  }

  // `lanes l sum`, `warps l sum`, `groups l sum` and `ctas l sum`, as far as they are missing.
  static std::string steps(const Held& held) {
    const std::string what = fmt::format("{} {}`", held.tile, expr::name(held.folded_by));
    std::string out;
    for (const Bits of : {kLaneBits, kWarpBits, kGroupBit, kCtaBit}) {
      if ((held.bits & of) == 0) continue;
      out += fmt::format("{}`{} {}", out.empty() ? "" : " and ", holders(of), what);
    }
    return out;
  }

  static std::string_view holders(Bits bits) {
    return (bits & kLaneBits)   ? "lanes"
           : (bits & kWarpBits) ? "warps"
           : (bits & kGroupBit) ? "groups"
                                : "ctas";
  }

  // The value must be whole where it `is used` so.
  void need_whole(const Held& held, std::string_view is_used) {
    if (held.kind == Kind::Mixed)
      fail(held, fmt::format("`{}` {}, but it is whole on one way to here and shares of lanes on "
                             "another",
                             held.tile, is_used));
    else if (held.kind == Kind::Own)
      fail(held,
           fmt::format("`{}` {}, but each thread has a number of its own; `lanes` and `warps` "
                       "must come before",
                       held.tile, is_used));
    else if (held.kind == Kind::Shares)
      fail(held,
           fmt::format("`{}` {}, but its {} hold shares of a {}; {} must come before", held.tile,
                       is_used, holders(held.bits), reducer_word(held.folded_by), steps(held)));
  }

  static std::string_view reducer_word(Reducer r) {
    return r == Reducer::Sum ? "sum" : r == Reducer::Max ? "maximum" : "minimum";
  }

  // --- ops --------------------------------------------------------------------------------------

  const layout::Layout& layout_of_tile(ir::Name tile) const {
    return tiles_.find(tile.str())->second.layout;
  }

  // Of one value all groups and CTAs may have a share.
  Bits copies_of_tile(ir::Name tile) const {
    const TileUse& use = tiles_.find(tile.str())->second;
    return bits_of_copies(use.layout) | (use.op->type.dims.empty() ? kGroupBit | kCtaBit : 0);
  }

  bool is_own(ir::Name tile) const {
    const auto it = tiles_.find(tile.str());
    return it != tiles_.end() && it->second.op->spread == Spread::Own;
  }

  // What threads make of it is their own, unless they all have the same.
  void write_own(ir::Name target, Expr value) {
    const std::string name(target.str());
    bool is_same = true;
    expr::for_each(value, [&](Expr e) {
      is_same &= e.op() != EK::Reduce;
      const auto it = e.op() == EK::Read ? state_.find(e.name().str()) : state_.end();
      is_same &= it == state_.end() || !it->second.has_shares();
    });
    Held held = is_same ? rules_.value(value) : Held{.kind = Kind::Own, .since = span_};
    if (!is_same) held.bits = kLaneBits | kWarpBits;
    held.tile = name;
    state_[name] = std::move(held);
  }

  // Lanes that hold shares of one value must hold the same element of the target.
  void write(ir::Name target, Held held) {
    if (held.kind == Kind::Own) {
      need_whole(held, fmt::format("is read for `{}`", target.str()));
      held = whole();
    }
    if (held.kind == Kind::Shares && (held.bits & ~copies_of_tile(target)) != 0) {
      need_whole(held, fmt::format("is read for `{}`", target.str()));
      held = whole();
    }
    if (held.kind == Kind::Mixed) need_whole(held, fmt::format("is read for `{}`", target.str()));
    if (held.kind == Kind::Mixed) held = whole();
    held.tile = target.str();
    held.folded_by = held.reducer;
    state_[held.tile] = std::move(held);
  }

  // The tile that the reduction runs over: the one that is read with all axes.
  const layout::Layout* domain_of(Expr reduce, const std::vector<expr::Name>& axes) const {
    const layout::Layout* found = nullptr;
    expr::for_each(reduce.body(), [&](Expr e) {
      if (found || e.op() != EK::Read || e.args().size() != axes.size()) return;
      const auto it = tiles_.find(e.name().str());
      if (it == tiles_.end()) return;
      for (size_t k = 0; k < axes.size(); ++k) {
        if (e[k].op() != EK::Var || e[k].name() != axes[k]) return;
      }
      found = &it->second.layout;
    });
    return found;
  }

  void fold(const Fold& op) {
    if (is_own(op.target)) return write_own(op.target, op.value);
    Expr reduce;
    expr::for_each(op.value, [&](Expr e) {
      if (e.op() == EK::Reduce) reduce = e;
    });
    std::vector<expr::Name> axes;
    for (const ir::Axis& a : op.axes) axes.push_back(a.name);
    for (size_t k = 0; k < reduce.axis_count(); ++k) axes.push_back(reduce.axis(k).name());
    const layout::Layout* domain = domain_of(reduce, axes);
    if (!domain) return write(op.target, whole());
    Held folded = rules_.value(reduce.body());
    const bool is_same = folded.kind == Kind::Shares && folded.reducer == reduce.reducer() &&
                         (folded.bits & ~bits_of_copies(*domain)) == 0;
    if (folded.has_shares() && !is_same) {
      need_whole(folded, "is folded");
      folded = whole();
    }
    const auto kept = static_cast<int>(op.axes.size());
    Bits bits = bits_of(*domain, [&](const layout::Digit& d) { return d.axis >= kept; });
    if (kept == 0 && groups_.meet() && groups_.differ_in(reduce.body())) bits |= kGroupBit;
    if (kept == 0 && ctas_.meet() && ctas_.differ_in(reduce.body())) bits |= kCtaBit;
    if (bits != 0 && !folded.has_shares())
      folded = {.kind = Kind::Shares, .reducer = reduce.reducer(), .since = span_};
    if (folded.has_shares()) folded.bits |= bits;
    folded.tile = op.target.str();
    folded.folded_by = folded.reducer;
    write(op.target, rules_.value(op.value, {{reduce, folded.has_shares() ? folded : whole()}}));
  }

  // `lanes` puts the shares of the tile's lanes together, `warps` those of its warps, `groups`
  // those of the role's groups, `ctas` those of the cluster's CTAs.
  void combine(ir::Name tile, Reducer reducer, Bits of) {
    Held& held = state_[std::string(tile.str())];
    const Bits copies = copies_of_tile(tile) & of;
    const Bits inner = (of & -of) - 1;  // the bits of units are in the order of their sizes
    const std::string_view who = holders(of);
    if (copies == 0 || held.kind == Kind::Nothing) return;
    if (held.kind == Kind::Own && (held.bits & kLaneBits) != 0) held.reducer = reducer;
    if (held.kind == Kind::Mixed) {
      need_whole(held, "is combined");
      held = whole();
    } else if (held.has_shares() && held.reducer != reducer) {
      fail(held, fmt::format("the {} of `{}` hold shares of a {}, not of a {}", who, tile.str(),
                             reducer_word(held.reducer), reducer_word(reducer)));
      held = whole();
    } else if ((held.bits & inner) != 0 && held.has_shares()) {
      const std::string_view first = holders(held.bits);
      fail(held, fmt::format("the {} of `{}` are combined while its {} hold shares of a {}; "
                             "`{} {} {}` must come before",
                             who, tile.str(), first, reducer_word(reducer), first, tile.str(),
                             expr::name(reducer)));
      held = whole();
    } else if ((of == kGroupBit && groups_.differ(tile)) || (of == kCtaBit && ctas_.differ(tile))) {
      // values of their own: any reduction
    } else if (reducer == Reducer::Sum && !held.is_number(0) &&
               (!held.has_shares() || (copies & ~held.bits) != 0)) {
      fail(held,
           fmt::format("the {} of `{}` would be added up, but hold the same", who, tile.str()));
      held = whole();
    }
    if (!held.has_shares()) return;
    held.bits &= ~of;
    if (held.bits == 0) held = whole();
    held.tile = tile.str();
  }

  void keep_shares(ir::Name tile) {
    Held& held = state_[std::string(tile.str())];
    need_whole(held, "is shared out");
    const Bits bits = bits_of_copies(layout_of_tile(tile)) & kLaneBits;
    if (bits == 0) return;
    held = {.kind = Kind::Shares, .bits = bits, .tile = std::string(tile.str()), .since = span_};
  }

  // A vote asks the lanes of a warp, each for its share.
  void vote(Expr e) {
    const Expr condition = e.body();
    std::vector<std::pair<ir::Name, Held>> asked;
    for (ir::Name n : expr::tensors_read(condition)) {
      const auto it = state_.find(n.str());
      if (it != state_.end() && it->second.has_shares()) asked.emplace_back(n, it->second);
    }
    for (const auto& [name, held] : asked) {
      if (held.kind == Kind::Mixed || (held.bits & ~kLaneBits) != 0) {
        need_whole(held, "is voted on");
        continue;
      }
      const int sign = held.reducer == Reducer::Min ? -1 : 1;
      if (!holds_beyond(condition, name, sign, positive_))
        fail(held, fmt::format("the vote does not ask whether shares of `{}` are {}; {} must come "
                               "before",
                               held.tile, sign > 0 ? "large" : "small", steps(held)));
      for (const auto& other : asked) {
        if (name.str() < other.first.str() && asks_together(condition, name, other.first))
          need_whole(held, fmt::format("is voted on together with `{}`", other.second.tile));
      }
    }
  }

  void need_whole_tile(ir::Name tile, std::string_view is_used) {
    const auto it = state_.find(tile.str());
    if (it != state_.end()) need_whole(it->second, is_used);
  }

  void need_whole_place(std::span<const Expr> indices, Expr condition) {
    for (Expr e : indices) need_whole(rules_.value(e), "is part of an index");
    if (condition) need_whole(rules_.value(condition), "is part of a condition");
  }

  void visit(const Op& op) {
    switch (matile::kind(op)) {
      case matile::Kind::Each:
        return loop(op.as<Each>().body, true);
      case matile::Kind::Loop:
        return loop(op.as<Loop>().body, true);
      case matile::Kind::Unroll:
        return loop(op.as<Unroll>().body, false);
      case matile::Kind::If: {
        const HeldByTiles before = state_;
        block(op.as<If>().body);
        state_ = either(before, state_);
        return;
      }
      case matile::Kind::Set:
        if (is_own(op.as<Set>().target)) return write_own(op.as<Set>().target, op.as<Set>().value);
        return write(op.as<Set>().target, rules_.value(op.as<Set>().value));
      case matile::Kind::Fold:
        return fold(op.as<Fold>());
      case matile::Kind::Lanes:
        return combine(op.as<Lanes>().tile, op.as<Lanes>().reducer, kLaneBits);
      case matile::Kind::Shares:
        return keep_shares(op.as<Shares>().tile);
      case matile::Kind::Warps:
        return combine(op.as<Warps>().tile, op.as<Warps>().reducer, kWarpBits);
      case matile::Kind::Groups:
        return combine(op.as<Groups>().tile, op.as<Groups>().reducer, kGroupBit);
      case matile::Kind::Ctas:
        return combine(op.as<Ctas>().tile, op.as<Ctas>().reducer, kCtaBit);
      case matile::Kind::Vote:
        return vote(op.as<Vote>().value);
      case matile::Kind::Convert:
        need_whole_tile(op.as<Convert>().source, "is converted");
        return write(op.as<Convert>().target, whole());
      case matile::Kind::Load:
        need_whole_place(op.as<Load>().value.args(), op.as<Load>().condition);
        return write(op.as<Load>().target, whole());
      case matile::Kind::Take:
        return write(op.as<Take>().tile, whole());
      case matile::Kind::Dot:
        need_whole_tile(op.as<Dot>().a, "is an operand of a product");
        if (op.as<Dot>().mode == DotMode::Add)
          need_whole_tile(op.as<Dot>().acc, "is added to by a product");
        return write(op.as<Dot>().acc, whole());
      case matile::Kind::WarpDot:
        return write(op.as<WarpDot>().acc, whole());
      case matile::Kind::Store:
        return need_whole_tile(op.as<Store>().tile, "is stored");
      case matile::Kind::Put:
        need_whole(rules_.value(op.as<Put>().value), "is stored");
        return need_whole_place(op.as<Put>().indices, op.as<Put>().condition);
      default:
        return;
    }
  }

  void block(const ir::Block& ops) {
    for (const Op& op : ops) {
      span_ = op.span();
      visit(op);
    }
  }

  // The state at the start of an iteration is that before the loop or at the end of the previous
  // iteration. Every tile can only come to hold less, so that this ends.
  void loop(const ir::Block& body, bool may_be_skipped) {
    const HeldByTiles before = state_;
    HeldByTiles start = before;
    const bool had_failed = has_failed_;
    while (true) {
      state_ = start;
      has_failed_ = false;
      ++trials_;
      block(body);
      --trials_;
      // Only the first mistake is reported, because later ones may follow from it.
      if (has_failed_) break;
      const HeldByTiles next = either(start, state_);
      if (is_like(next, start)) break;
      start = next;
    }
    has_failed_ |= had_failed;
    state_ = start;
    if (trials_ == 0) block(body);
    if (may_be_skipped) state_ = either(before, state_);
  }

  const Role& role_;
  diag::Sink& sink_;
  RoleTiles tiles_;
  OwnElements groups_;
  OwnElements ctas_;
  PositiveScalars positive_;
  HeldByTiles state_;
  ShareRules rules_;
  diag::Span span_;
  int trials_ = 0;  // walks of loops that only look for what holds at their start
  bool has_failed_ = false;
};

}  // namespace

void verify_lanes(const ir::Program& program, const Kernel& kernel, const Role& role,
                  diag::Sink& sink) {
  LaneShares(program, kernel, role, sink).run();
}

}  // namespace nautilus::matile
