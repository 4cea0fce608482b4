// SPDX-License-Identifier: Apache-2.0
// The decisions that the step from VR-tile to MA-tile reads: who works on the tiles, how they are
// numbered, and how operands arrive.
#include <fmt/format.h>

#include <algorithm>

#include "lower/tiles/tile_lowering.h"

namespace nautilus::lower {

using ir::Op;

void NestChoices::begin(ir::Block& body) {
  groups.begin(body);
  order.begin(body);
  source.begin(body);
  fetch.begin(body);
  bring.begin(body);
  promote.begin(body);
}

bool NestChoices::end() {
  const bool ok[] = {groups.end("the kernel has no groups"),
                     order.end("the kernel has no tiles"),
                     source.end("the kernel has no tiles"),
                     fetch.end("no loop has exactly one product, of a computed operand"),
                     bring.end("the kernel does not read it in boxes for element-wise work"),
                     promote.end("the kernel does not copy it")};
  return std::all_of(std::begin(ok), std::end(ok), [](bool x) { return x; });
}

bool NestLowering::choose_groups(const vrtile::Par& grid, const vrtile::Par* groups,
                                 const ir::Block& work) {
  using decision::GroupKind;
  constexpr int64_t kAlternating = 2;
  const auto* asked = choices_.groups.asked();
  groups_ = groups ? groups->axes[0].extent.integer() : 1;
  const bool can_alternate =
      groups_ == 1 && has_only_product_loops(work) && has_equal_tiles(grid, work);
  alternates_ = asked ? asked->kind == GroupKind::Alternating : can_alternate;
  if (alternates_ && !can_alternate) {
    choices_.groups.refuse(
        "groups alternate where loops have nothing but products and tiles have equal steps");
    return refuse("groups cannot alternate");
  }
  if (alternates_) groups_ = kAlternating;
  if (asked && asked->count != groups_) {
    choices_.groups.refuse(fmt::format("the tile is for {} groups", groups_));
    return refuse("the tile is for another number of groups");
  }
  choices_.groups.took({groups_, alternates_ ? GroupKind::Alternating : GroupKind::Sharing, {}});
  return true;
}

bool NestLowering::choose_grid(const ir::Axes& axes, GridFacts facts) {
  facts.packing = packing_;
  const auto* order = choices_.order.asked();
  facts.order = order ? *order : usual_order(facts, target_);
  if (const std::string why = refuse_order(facts.order, facts, target_); order && !why.empty()) {
    choices_.order.refuse(why);
    return refuse(why);
  }
  const auto* source = choices_.source.asked();
  facts.source = source ? *source : usual_source(facts.order);
  if (const std::string why = refuse_source(facts.source, facts); source && !why.empty()) {
    choices_.source.refuse(why);
    return refuse(why);
  }
  grid_ = number_tiles(axes, facts, target_, names_, pool_);
  if (packing_.cluster > 1 && !grid_.rank)
    return refuse("no two tiles beside each other share an operand");
  choices_.order.took(facts.order);
  choices_.source.took(facts.source);
  return true;
}

bool NestLowering::is_copied(ir::Name tensor) {
  const auto* asked = choices_.bring.asked(tensor);
  const OperandPath path = asked ? asked->path : usual_path_;
  // What is copied is noted where it is: not everything that could be is.
  if (path == OperandPath::Direct) choices_.bring.took({tensor, path, {}});
  return path == OperandPath::Copied;
}

// Misses of what no other tile needs bring little more than that, and so do those of a cluster,
// whose CTAs each copy a part of it.
void NestLowering::promotes(ir::Name map, bool is_needed_once) {
  int64_t& bytes = promotions_.emplace(map.str(), target_.memory.promote_bytes).first->second;
  if (is_needed_once || grid_.rank) bytes = target_.memory.line_bytes;
}

bool NestLowering::fetches_early(const vrtile::For& loop) {
  using decision::Moment;
  if (!has_one_computed_product(loop.body)) return false;
  const auto* asked = choices_.fetch.asked();
  const bool is_early = asked ? asked->moment == Moment::Early : usual_path_ == OperandPath::Copied;
  choices_.fetch.took({is_early ? Moment::Early : Moment::Late, {}});
  return is_early;
}

// Bytes that misses of a map bring to the second-level cache.
void NestLowering::choose_promotions() {
  std::map<std::string, int> places;
  for (Op& op : map_ops_) {
    matile::Map map = op.as<matile::Map>();
    const auto usual = promotions_.find(std::string(map.name.str()));
    if (usual == promotions_.end()) continue;
    const std::string tensor(map.value.name().str());
    const int place = ++places[tensor];
    const ir::Name operand = pool_.name(place == 1 ? tensor : fmt::format("{}.{}", tensor, place));
    const auto* asked = choices_.promote.asked(operand);
    const int64_t bytes = asked ? asked->bytes.value_or(-1) : usual->second;
    const std::vector<int>& all = target_.memory.promotions;
    if (std::find(all.begin(), all.end(), bytes) == all.end())
      choices_.promote.refuse(operand,
                              fmt::format("a miss brings one of {} bytes", fmt::join(all, ", ")));
    if (bytes != target_.memory.promote_bytes) map.promote = bytes;
    choices_.promote.took({operand, bytes, {}});
    op = ir::make(std::move(map));
  }
}

}  // namespace nautilus::lower
