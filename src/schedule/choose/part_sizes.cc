// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/part_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/environment.h"
#include "ir/machine.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

class PartCost {
 public:
  explicit PartCost(const KernelInParts& of)
      : kernel_(of.kernel),
        split_(of.split),
        program_(of.program),
        target_(of.target),
        pool_(of.pool),
        signs_(of.program) {
    for (const ir::Op& op : program_.body) {
      if (const auto* d = op.get<ir::Dim>(); d && d->hint)
        hints_.sizes.emplace(d->name.str(), *d->hint);
      if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
    }
    hints_.sizes.emplace(ir::machine_name(program_, pool_).str(), target_.board.sms);
  }

  // Cycles of products alone without parts.
  std::optional<double> whole(const TileConfig& sizes) {
    const NestCost cost = cost_with(sizes);
    if (!cost.steps || cost.floors.vector > 0) return std::nullopt;
    Names own;
    const Expr count =
        count_tiles(kernel_.fusion, Tiling(kernel_.fusion, sizes, pool_, own), pool_);
    const auto tiles = known(count, hints_);
    const auto steps = known(cost.steps, hints_);
    const auto read = operands(hints_);
    if (!tiles || !steps || !read) return std::nullopt;
    const double rounds = std::ceil(static_cast<double>(*tiles) /
                                    static_cast<double>(target_.board.sms * cost.resident));
    const double work = rounds * (static_cast<double>(*steps) * step_of(cost, hints_) + cost.once);
    return std::max(work, *read / target_.costs.memory_bytes_per_cycle) + cost.kernel_once;
  }

  std::optional<PartTime> at(const TileConfig& sizes) {
    const NestCost cost = cost_with(sizes);
    const Fusion& fusion = kernel_.fusion;
    if (!cost.steps) return std::nullopt;
    Names own;
    const Tiling tiling(fusion, sizes, pool_, own);
    const Expr count = count_tiles(fusion, tiling, pool_);
    ir::Environment env = hints_;
    const SplitSizes s = name_split_sizes(fusion, split_, pool_, own);
    for (const ir::Op& op : declare_split_sizes(scope(), s, sizes, split_, count)) {
      const auto& size = op.as<ir::Size>();
      const auto value = known(size.value, env);
      if (!value) return std::nullopt;
      env.sizes.insert_or_assign(std::string(size.name.str()), *value);
    }
    const auto tiles = known(count, env);
    const auto each = known(s.steps_per_part, env);
    const auto parts = known(s.parts, env);
    const auto passed = states(env);
    const auto read = operands(env);
    if (!tiles || !each || !parts || !passed || !read) return std::nullopt;
    const double step = step_of(cost, env);
    const auto number = [](int64_t n) { return static_cast<double>(n); };
    const double rounds =
        std::ceil(number(*tiles * *parts) / number(target_.board.sms * cost.resident));
    const double work = rounds * (number(*each) * step + cost.once);
    const double memory = *read / target_.costs.memory_bytes_per_cycle;
    constexpr double kNumberBytes = 4;  // states pass through memory as f32, written and read
    const double together =
        split_.combines_last
            ? number(*parts) * *passed / number(std::max<int64_t>(*tiles, 1)) * kNumberBytes /
                  target_.costs.last_tile_bytes
            : target_.costs.next_kernel_cycles + number(*parts) * target_.costs.part_cycles;
    const double handed =
        number(*parts) * *passed * 2 * kNumberBytes / target_.costs.memory_bytes_per_cycle +
        together;
    // One group alone hides little of what it waits for.
    const bool is_alone = cost.floors.vector > 0;
    const double both = is_alone ? std::hypot(work, memory) +
                                       target_.costs.exposed_steps * step / number(cost.resident)
                                 : std::max(work, memory);
    return PartTime{both + cost.kernel_once + handed, *parts, cost.floors.vector <= 0};
  }

 private:
  FusionScope scope() const { return {kernel_.fusion, program_, signs_, pool_}; }

  NestCost cost_with(const TileConfig& sizes) const {
    Names names;
    const BuiltKernel built = build_whole_kernel(scope(), sizes, kernel_.stored, names);
    return cost_of(built, built.wholes[0], program_, target_, pool_);
  }

  static double step_of(const NestCost& cost, const ir::Environment& env) {
    bool is_ragged = false;
    for (Expr r : cost.ragged) is_ragged |= known(r, env).value_or(0) != 0;
    return is_ragged ? cost.step_unaligned : cost.step;
  }

  static std::optional<int64_t> known(Expr e, const ir::Environment& env) {
    for (Expr v : expr::free_vars(e)) {
      if (!env.sizes.contains(v.name().str())) return std::nullopt;
    }
    if (!expr::tensors_read(e).empty()) return std::nullopt;
    return ir::evaluate(e, env).i;
  }

  // Values that a part stores.
  std::optional<double> states(const ir::Environment& env) const {
    double all = 0;
    for (const Member& m : kernel_.fusion.members) {
      if (!m.is_rolled) continue;
      double elements = 1;
      for (Expr a : m.axes) {
        const auto n = known(kernel_.fusion.extents.at(a), env);
        if (!n) return std::nullopt;
        elements *= static_cast<double>(*n);
      }
      all += elements;
    }
    return all;
  }

  // Bytes of the operands of products.
  std::optional<double> operands(const ir::Environment& env) const {
    std::set<std::string> names;
    for (const Dot& d : kernel_.fusion.dots) {
      for (Expr f : d.a)
        for (ir::Name n : expr::tensors_read(f)) names.emplace(n.str());
      for (ir::Name n : expr::tensors_read(d.b)) names.emplace(n.str());
    }
    double all = 0;
    for (const std::string& name : names) {
      const auto type = types_.find(name);
      if (type == types_.end()) continue;
      double bytes = expr::bytes(type->second.dtype);
      for (Expr e : type->second.dims) {
        const auto n = known(e, env);
        if (!n) return std::nullopt;
        bytes *= static_cast<double>(*n);
      }
      all += bytes;
    }
    return all;
  }

  const Kernel& kernel_;
  const Split& split_;
  const ir::Program& program_;
  const Target& target_;
  expr::ExprPool& pool_;
  algebra::Signs signs_;
  ir::Environment hints_;
  std::map<std::string, ir::TensorType> types_;
};

}  // namespace

std::optional<PartTime> time_in_parts(const KernelInParts& of, const TileConfig& sizes) {
  return PartCost(of).at(sizes);
}

TileConfig sizes_in_parts(const KernelInParts& of, const TileConfig& usual, std::string* why) {
  const Target& target = of.target;
  PartCost cost(of);
  const auto first = cost.at(usual);
  const bool is_blocked = of.kernel.fusion.row_block > 0;
  if (!first || !(first->is_product_alone || is_blocked)) return usual;
  TileConfig best = usual;
  auto time = *first;
  for (TileConfig s : candidate_sizes(of.kernel.fusion)) {
    // Not a tile of its own for each group: groups do not alternate in kernels with parts.
    if (s.cluster > 1 || s.rows > target.matrix.rows || s == usual) continue;
    const auto t = cost.at(s);
    if (t && (t->is_product_alone || is_blocked) && t->parts > 1 && t->cycles < time.cycles) {
      best = s;
      time = *t;
    }
  }
  const double worth = is_blocked ? target.parts.worth_smaller : target.parts.worth_other;
  if (time.cycles > worth * first->cycles) return usual;
  const auto text = [](const TileConfig& s) {
    return s.column > 0 ? fmt::format("{}x{}", s.rows * s.warp_groups, s.column)
                        : fmt::format("{} rows and steps of {}", s.rows * s.warp_groups, s.step);
  };
  *why +=
      fmt::format("; tiles of {} in {} parts take {:.0f} cycles there, of {} in {} parts {:.0f}",
                  text(best), time.parts, time.cycles, text(usual), first->parts, first->cycles);
  return best;
}

bool is_whole_faster(const KernelInParts& of, const TileConfig& sizes) {
  const Kernel& kernel = of.kernel;
  const Fusion& fusion = kernel.fusion;
  if (!std::all_of(fusion.axis_order.begin(), fusion.axis_order.end(),
                   [&](Expr a) { return fusion.asked.contains(a); }))
    return false;
  PartCost cost(of);
  const auto in_parts = cost.at(sizes);
  if (!in_parts) return false;
  const auto is_faster = [&](const TileConfig& s) {
    const auto whole = s.cluster == 1 ? cost.whole(s) : std::nullopt;
    return whole && *whole < in_parts->cycles;
  };
  return is_faster(kernel.sizes) ||
         std::any_of(kernel.others.begin(), kernel.others.end(), is_faster);
}

bool is_last_tile_faster(const KernelInParts& of, const TileConfig& sizes) {
  const Fusion& fusion = of.kernel.fusion;
  Names scratch;
  if (refuse_last_tile(fusion, Tiling(fusion, sizes, of.pool, scratch), sizes)) return false;
  Split last = of.split;
  last.combines_last = true;
  Split other = of.split;
  other.combines_last = false;
  const auto by_last = time_in_parts({of.kernel, last, of.program, of.target, of.pool}, sizes);
  const auto by_other = time_in_parts({of.kernel, other, of.program, of.target, of.pool}, sizes);
  if (!by_last || !by_other || by_last->parts <= 1) return of.split.combines_last;
  return by_last->cycles < by_other->cycles;
}

}  // namespace nautilus::schedule
