// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "schedule/apply/apply.h"
#include "schedule/choose/part_sizes.h"
#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

// One alternative of a kernel.
struct Alternative {
  TileConfig sizes;
  Split split;
  std::string name;
  double cycles = 0;
  int64_t kind = 0;     // of its parts; 0: whole
  double handicap = 0;  // cycles by which its place in the order is later
};

// The second of two similar candidates tells less: each candidate before it with the same groups,
// rows, cluster and kind of parts puts it this part of its cycles later.
constexpr double kSimilar = 0.03;

std::string name_of(const Ranked& r) {
  const TileConfig& s = r.sizes;
  std::string out = fmt::format("{}x{}", s.rows * s.warp_groups, s.step);
  if (s.column > 0) out += fmt::format(" columns {}", s.column);
  out += r.cost.is_alternating ? " taking turns"
         : s.warp_groups == 1  ? " 1 group"
                               : fmt::format(" {} groups", s.warp_groups);
  if (s.cluster > 1) out += fmt::format(" cluster {}", s.cluster);
  return out;
}

// All candidates of a kernel, also where the number of steps is not known before a call: there they
// are ordered by the cycles that an element of a step takes.
std::vector<Ranked> all_ranked(const Kernel& kernel, const ir::Program& program,
                               const Target& target, expr::ExprPool& pool) {
  std::vector<Ranked> ranked = rank_candidates(kernel, program, target, pool);
  const std::vector<TileConfig> sizes = candidate_sizes(kernel.fusion);
  if (ranked.size() > 1 || sizes.size() == 1) return ranked;
  const algebra::Signs signs(program);
  ranked.clear();
  for (const TileConfig& s : sizes) {
    Names names;
    const BuiltKernel built =
        build_whole_kernel({kernel.fusion, program, signs, pool}, s, kernel.stored, names);
    Ranked r{s, cost_of(built, built.wholes[0], program, target, pool), {}, 0, false};
    r.at_hints = r.cost.step / static_cast<double>(s.rows * s.warp_groups * s.step *
                                                   std::max<int64_t>(1, s.column));
    ranked.push_back(std::move(r));
  }
  return ranked;
}

// The kernel of a candidate in parts: as many as fill the machine, half and twice as many; combined
// by a kernel or by the last tile.
std::vector<Alternative> in_parts(const Kernel& kernel, const Ranked& r, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool) {
  std::vector<Alternative> out;
  // Not a tile of its own for each group: groups do not alternate in kernels with parts.
  if (r.sizes.cluster > 1 || r.sizes.rows > target.matrix.rows) return out;
  Names scratch;
  const Tiling tiling(kernel.fusion, r.sizes, pool, scratch);
  if (refuse_split({kernel.fusion, program, algebra::Signs(program), pool}, tiling)) return out;
  const Split fill{Split::kFill, false, false};
  const auto filled = time_in_parts({kernel, fill, program, target, pool}, r.sizes);
  if (!filled || filled->parts <= 1) return out;
  int64_t kind = 0;
  for (const int64_t parts : {Split::kFill, filled->parts / 2, filled->parts * 2}) {
    for (const bool is_last : {false, true}) {
      ++kind;
      if (parts == 1 || (is_last && refuse_last_tile(kernel.fusion, tiling, r.sizes))) continue;
      const Split split{parts, false, is_last};
      const auto time = time_in_parts({kernel, split, program, target, pool}, r.sizes);
      if (!time || time->parts <= 1) continue;
      out.push_back({r.sizes, split,
                     fmt::format("{} {} parts{}", name_of(r), time->parts, is_last ? " last" : ""),
                     time->cycles + target.costs.launch_cycles, kind});
    }
  }
  return out;
}

std::vector<Alternative> alternatives(const Kernel& kernel, const ir::Program& program,
                                      const Target& target, expr::ExprPool& pool) {
  std::vector<Alternative> out;
  for (Ranked& r : all_ranked(kernel, program, target, pool)) {
    out.push_back({r.sizes, {}, name_of(r), r.at_hints});
    for (Alternative& a : in_parts(kernel, r, program, target, pool)) out.push_back(std::move(a));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Alternative& a, const Alternative& b) { return a.cycles < b.cycles; });
  std::map<std::array<int64_t, 4>, int> similar;
  for (Alternative& a : out) {
    const TileConfig& s = a.sizes;
    int& before = similar[{s.warp_groups, s.rows, s.cluster, a.kind}];
    a.handicap = kSimilar * before++ * a.cycles;
  }
  return out;
}

}  // namespace

std::vector<Swept> sweep_candidates(const Schedule& first, const std::vector<Kernel>& kernels,
                                    const ir::Program& rounded, const Target& target,
                                    expr::ExprPool& pool) {
  std::vector<std::vector<Alternative>> of_kernel;
  std::vector<Kernel> best = kernels;
  double least = 0;  // cycles of all kernels, each as it is predicted to be best
  for (size_t k = 0; k < kernels.size(); ++k) {
    of_kernel.push_back(alternatives(kernels[k], rounded, target, pool));
    best[k].sizes = of_kernel[k][0].sizes;
    best[k].split = of_kernel[k][0].split;
    best[k].others.clear();
    least += of_kernel[k][0].cycles;
  }
  std::vector<std::pair<double, Swept>> found;  // by cycles with the handicap
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (size_t n = 0; n < of_kernel[k].size(); ++n) {
      if (n == 0 && k > 0) continue;  // the best of all is there already
      const Alternative& a = of_kernel[k][n];
      std::vector<Kernel> chosen = best;
      chosen[k].sizes = a.sizes;
      chosen[k].split = a.split;
      Swept s{first, a.name, least - of_kernel[k][0].cycles + a.cycles};
      s.schedule.kernels = to_schedule(chosen, By::Tuned);
      if (kernels.size() > 1) s.name = fmt::format("kernel {} {}", k + 1, a.name);
      const double order = s.cycles + a.handicap;
      found.emplace_back(order, std::move(s));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Swept> out;
  for (auto& [order, s] : found) out.push_back(std::move(s));
  return out;
}

}  // namespace nautilus::schedule
