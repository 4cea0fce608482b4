// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/candidates.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "schedule/fusion/tile_use.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

using expr::Op;

constexpr size_t kMostShown = 6;  // candidates of a kernel that were not chosen

// The environment of one set of problem sizes: axes of tiles, the streamed axis, the product of
// all others.
struct Problem {
  int64_t tiles;
  int64_t stream;
  int64_t batch;
  int64_t rows = 0;  // of tiles, if not like their other axes
};
constexpr Problem kPlain[] = {{512, 512, 1},   {1024, 1024, 1},  {2048, 2048, 1},  {4096, 4096, 1},
                              {8192, 8192, 1}, {16384, 4096, 1}, {8192, 512, 1},   {4096, 16384, 1},
                              {4000, 1000, 1}, {4200, 1000, 1},  {16384, 8192, 1}, {8192, 4096, 1},
                              {1024, 8192, 1}};
constexpr Problem kBatched[] = {
    {512, 512, 16},    {1024, 1024, 16},   {2048, 2048, 16},    {4096, 4096, 16},
    {512, 512, 32},    {1024, 1024, 32},   {2048, 2048, 32},    {4096, 4096, 32},
    {1024, 1024, 64},  {2048, 2048, 64},   {4096, 4096, 64},    {16384, 16384, 16},
    {512, 512, 256},   {1024, 1024, 256},  {2048, 2048, 256},   {4096, 4096, 256},
    {1024, 1024, 128}, {16384, 16384, 32}, {16384, 16384, 256}, {1000, 1000, 64},
    {2048, 2048, 24},  {1024, 1024, 28},   {2048, 2048, 40}};

// Taps of images: pixels of a row, channels, images, filters.
constexpr Problem kTaps[] = {
    {1024, 3, 16, 64},   {1024, 16, 16, 128}, {1024, 32, 16, 64},  {512, 64, 16, 128},
    {256, 64, 32, 64},   {128, 128, 32, 128}, {56, 128, 32, 128},  {56, 256, 32, 256},
    {28, 256, 64, 512},  {512, 32, 8, 64},    {4096, 64, 16, 128}, {128, 48, 16, 48},
    {64, 3, 512, 64},    {224, 3, 64, 96},    {1024, 64, 8, 128},  {64, 64, 64, 64},
    {512, 128, 16, 256}, {256, 256, 16, 256}, {1024, 128, 8, 128}};

ir::Environment environment(const Fusion& fusion, const ir::Program& program, const Problem& p,
                            expr::ExprPool& pool) {
  ir::Environment env;
  std::unordered_set<Expr> batch;
  std::unordered_set<Expr> stream;
  std::unordered_set<Expr> tiles;
  for (Expr a : fusion.axis_order) {
    auto& set = a == fusion.stream ? stream : fusion.is_tile_axis(a) ? tiles : batch;
    for (Expr v : expr::free_vars(fusion.extents.at(a))) set.insert(v);
  }
  bool is_first = true;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (!d) continue;
    int64_t n = 1;
    for (Expr v : tiles) n = v.name() == d->name ? p.tiles : n;
    if (p.rows > 0 && expr::depends_on(fusion.extents.at(fusion.row), pool.index(d->name)))
      n = p.rows;
    for (Expr v : stream) n = v.name() == d->name ? p.stream : n;
    for (Expr v : batch) {
      if (v.name() != d->name || n != 1) continue;
      n = is_first ? p.batch : 1;
      is_first = false;
    }
    env.sizes.emplace(d->name.str(), n);
  }
  // An image of one row has no row without a neighbour: sizes that leave nothing are the hinted
  // ones.
  for (Expr a : fusion.axis_order) {
    const Expr extent = fusion.extents.at(a);
    if (ir::evaluate_size(extent, env) >= 1) continue;
    for (const ir::Op& op : program.body) {
      const auto* d = op.get<ir::Dim>();
      if (d && expr::depends_on(extent, pool.index(d->name)))
        env.sizes[std::string(d->name.str())] = d->hint.value_or(fusion.target->nests.usual_extent);
    }
  }
  return env;
}

ir::Environment hints(const ir::Program& program, const Target& target) {
  ir::Environment env;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>())
      env.sizes.emplace(d->name.str(), d->hint.value_or(target.nests.usual_extent));
  }
  return env;
}

// Of scalars, as in a long window.
constexpr int64_t kTypicalScalar = 4096;

// The candidates that together are nearest to the best at all problems, by the sum of the
// logarithms of each problem's time with the best of them. One more is added if it pays on average
// or is much faster somewhere.
std::vector<size_t> best_set(const std::vector<std::vector<double>>& at, size_t most_kernels,
                             const target::Tiles& worth) {
  const size_t problems = at[0].size();
  std::vector<std::vector<double>> logs(at.size());
  for (size_t k = 0; k < at.size(); ++k) {
    for (double x : at[k]) logs[k].push_back(std::log(x));
  }
  std::vector<size_t> set;
  std::vector<double> reached(problems, std::numeric_limits<double>::infinity());
  const auto with = [&](size_t k, const std::vector<double>& now) {
    double sum = 0;
    for (size_t p = 0; p < problems; ++p) sum += std::min(now[p], logs[k][p]);
    return sum;
  };
  const auto add = [&](size_t k, std::vector<double>& now) {
    for (size_t p = 0; p < problems; ++p) now[p] = std::min(now[p], logs[k][p]);
  };
  const auto best_addition = [&](const std::vector<double>& now) {
    size_t best = 0;
    for (size_t k = 1; k < at.size(); ++k) best = with(k, now) < with(best, now) ? k : best;
    return best;
  };
  while (set.size() < most_kernels) {
    const size_t k = best_addition(reached);
    double gain = 0;
    double most = 0;
    for (size_t p = 0; p < problems && !set.empty(); ++p) {
      const double g = std::max(0.0, reached[p] - logs[k][p]);
      gain += g / static_cast<double>(problems);
      most = std::max(most, g);
    }
    if (!set.empty() && gain < worth.worth_on_average && most < worth.worth_somewhere) break;
    set.push_back(k);
    add(k, reached);
    // Each of the others again: the first was chosen to be good everywhere alone.
    for (size_t n = 0; n < 2 * set.size() && set.size() > 1; ++n) {
      std::vector<double> rest(problems, std::numeric_limits<double>::infinity());
      const size_t at_place = n % set.size();
      for (size_t o = 0; o < set.size(); ++o) {
        if (o != at_place) add(set[o], rest);
      }
      set[at_place] = best_addition(rest);
      add(set[at_place], rest);
      reached = rest;
    }
  }
  return set;
}

// Keeps the candidates with a step that is not too much code, or the shortest. Returns whether even
// those are too long.
bool drop_long_code(std::vector<Ranked>& all, double long_code) {
  double least = std::numeric_limits<double>::infinity();
  for (const Ranked& r : all) least = std::min(least, r.cost.code);
  const double most = std::max(least, long_code);
  std::erase_if(all, [&](const Ranked& r) { return r.cost.code > most; });
  return least > long_code;
}

// Whether a candidate is worth a kernel more for being the best at the sizes that are asked for, if
// those say how long all axes are. Typical problems have no groups of few channels, which sums of
// several products have, and no products with few columns.
bool is_for_asked_sizes(const TileConfig& best, const Fusion& fusion) {
  const auto is_several = [&](const Dot& d) { return fusion.has_several(d); };
  return (has_few_columns(best, fusion.target->tiles) ||
          std::any_of(fusion.dots.begin(), fusion.dots.end(), is_several)) &&
         std::all_of(fusion.axis_order.begin(), fusion.axis_order.end(),
                     [&](Expr a) { return fusion.asked.contains(a); });
}

}  // namespace

void add_scalars(const ir::Program& program, ir::Environment& env) {
  for (const ir::Op& op : program.body) {
    const auto* p = op.get<ir::Param>();
    if (!p) continue;
    expr::Value v;
    is_float(p->dtype) ? void(v = expr::float_value(1)) : void(v = expr::int_value(kTypicalScalar));
    env.scalars.emplace(p->name.str(), v);
  }
}

NestCost with_crowding(NestCost cost, const Fusion& fusion, const TileConfig& sizes,
                       const Target& target) {
  if (tile_registers(fusion, sizes).all() > target.tiles.crowded_registers) {
    cost.step *= target.costs.crowded_factor;
    cost.step_unaligned *= target.costs.crowded_factor;
  }
  return cost;
}

namespace {

// The candidates of a kernel without what is chosen, and how many of them may be kernels.
struct Candidates {
  std::vector<Ranked> all;
  size_t most_kernels;
};

Candidates costed_candidates(const Kernel& kernel, const ir::Program& program, const Target& target,
                             expr::ExprPool& pool) {
  const Fusion& fusion = kernel.fusion;
  const algebra::Signs signs(program);
  Candidates out{{}, target.tiles.kernels};
  for (const TileConfig& sizes : candidate_sizes(fusion)) {
    Names names;
    const BuiltKernel built =
        build_whole_kernel({fusion, program, signs, pool}, sizes, kernel.stored, names);
    Ranked r{sizes,
             with_crowding(cost_of(built, built.wholes[0], program, target, pool), fusion, sizes,
                           target),
             {},
             0,
             false};
    r.cycles = cycles_of(r.cost, target, pool);
    // Every kernel would have statements of its own in front that find its steps.
    if (!built.before.empty()) out.most_kernels = 1;
    out.all.push_back(std::move(r));
  }
  if (drop_long_code(out.all, target.tiles.long_code))
    out.most_kernels = std::min(out.most_kernels, target.tiles.long_kernels);
  return out;
}

std::vector<ir::Environment> typical_problems(const Fusion& fusion, const ir::Program& program,
                                              expr::ExprPool& pool) {
  std::vector<ir::Environment> problems;
  bool has_batch = false;
  for (Expr a : fusion.axis_order)
    has_batch |=
        a != fusion.stream && !fusion.is_outer(a) && !fusion.is_tile_axis(a) && !fusion.is_whole(a);
  const std::span<const Problem> typical = shape_of(fusion).has_taps
                                               ? std::span<const Problem>(kTaps)
                                           : has_batch ? std::span<const Problem>(kBatched)
                                                       : std::span<const Problem>(kPlain);
  for (const Problem& p : typical) {
    problems.push_back(environment(fusion, program, p, pool));
    add_scalars(program, problems.back());
  }
  return problems;
}

// Those that are kept first, by how often they win; then the others by their cycles at the hints.
// `at`: the cycles of each at the typical problems.
std::vector<Ranked> in_order(const std::vector<Ranked>& all,
                             const std::vector<std::vector<double>>& at) {
  std::vector<size_t> order(all.size());
  for (size_t k = 0; k < all.size(); ++k) order[k] = k;
  std::vector<int> wins(all.size());
  for (size_t p = 0; p < at[0].size(); ++p) {
    size_t best = all.size();
    for (size_t k = 0; k < all.size(); ++k) {
      if (all[k].is_kept && (best == all.size() || at[k][p] < at[best][p])) best = k;
    }
    ++wins[best];
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (all[a].is_kept != all[b].is_kept) return all[a].is_kept;
    return all[a].is_kept ? wins[a] > wins[b] : all[a].at_hints < all[b].at_hints;
  });
  std::vector<Ranked> out;
  for (size_t k : order) out.push_back(all[k]);
  return out;
}

}  // namespace

std::vector<Ranked> rank_candidates(const Kernel& kernel, const ir::Program& program,
                                    const Target& target, expr::ExprPool& pool) {
  const Fusion& fusion = kernel.fusion;
  Candidates candidates = costed_candidates(kernel, program, target, pool);
  std::vector<Ranked>& all = candidates.all;
  ir::Environment hint = hints(program, target);
  add_scalars(program, hint);
  const std::vector<ir::Environment> problems = typical_problems(fusion, program, pool);
  const auto cycles = [&](const Ranked& r, const ir::Environment& env) {
    return std::max(1.0, static_cast<double>(ir::evaluate(r.cycles, env).i)) +
           target.costs.launch_cycles;
  };
  std::vector<std::vector<double>> at(all.size());
  for (size_t k = 0; k < all.size(); ++k) {
    all[k].at_hints = cycles(all[k], hint);
    for (const auto& env : problems) at[k].push_back(cycles(all[k], env));
  }
  for (size_t k : best_set(at, candidates.most_kernels, target.tiles)) all[k].is_kept = true;
  const auto fastest =
      std::min_element(all.begin(), all.end(),
                       [](const Ranked& a, const Ranked& b) { return a.at_hints < b.at_hints; });
  if (is_for_asked_sizes(fastest->sizes, fusion)) fastest->is_kept = true;
  return in_order(all, at);
}

void choose_kernel(Kernel& kernel, const std::vector<Ranked>& ranked) {
  kernel.others.clear();
  for (size_t n = 0; n < ranked.size() && ranked[n].is_kept; ++n) {
    TileConfig s = ranked[n].sizes;
    n == 0 ? void(kernel.sizes = s) : kernel.others.push_back(s);
  }
}

TileConfig sizes_for_parts(const Kernel& kernel, const ir::Program& program, const Target& target,
                           expr::ExprPool& pool) {
  const TileConfig usual = choose_sizes(kernel.fusion);
  const algebra::Signs signs(program);
  Names names;
  const BuiltKernel built =
      build_whole_kernel({kernel.fusion, program, signs, pool}, usual, kernel.stored, names);
  const NestCost cost = cost_of(built, built.wholes[0], program, target, pool);
  return cost.code > target.tiles.long_code ? kernel.sizes : usual;
}

std::vector<std::string> explain_candidates(const std::vector<Kernel>& kernels,
                                            const ir::Program& program, const Target& target,
                                            expr::ExprPool& pool) {
  std::vector<std::string> out;
  for (const Kernel& k : kernels) {
    const std::vector<Ranked> ranked = rank_candidates(k, program, target, pool);
    out.push_back(
        fmt::format("{} candidates for rows {}, streamed {}; cycles of a step by unit, "
                    "and of the launch at the hints:",
                    ranked.size(), k.fusion.row.name().str(), k.fusion.stream.name().str()));
    size_t left_out = 0;
    size_t others = 0;
    for (const Ranked& r : ranked) {
      if (!r.is_kept && ++others > kMostShown) {
        ++left_out;
        continue;
      }
      const TileConfig& s = r.sizes;
      const StepFloors& f = r.cost.floors;
      out.push_back(fmt::format(
          "  {} {}x{}{}{}{}{}: matrix {:.0f}, registers {:.0f}, shared {:.0f}, copies {:.0f}, step "
          "{:.0f}; {:.0f}",
          r.is_kept ? "kept" : "    ", s.rows * s.warp_groups, s.step,
          s.column > 0 ? fmt::format(", columns {}", s.column) : "",
          r.cost.is_alternating ? ", taking turns" : fmt::format(", {} groups", s.warp_groups),
          s.cluster > 1 ? fmt::format(", cluster {}", s.cluster) : "",
          s.resident > 1 ? fmt::format(", {} tiles at a time", s.resident) : "", f.matrix, f.vector,
          f.shared, f.copy, r.cost.step, r.at_hints));
    }
    if (left_out > 0) out.push_back(fmt::format("       and {} others", left_out));
  }
  return out;
}

}  // namespace nautilus::schedule
