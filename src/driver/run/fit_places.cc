// SPDX-License-Identifier: Apache-2.0
#include "driver/run/fit_places.h"

#include <fmt/format.h>

namespace nautilus::driver {
namespace {

using target::Costs;
using target::NestCosts;
using target::Target;

// Of tile kernels.
void add_places_of_tiles(std::vector<FitPlace>& out) {
  const auto add = [&](const char* name, double Costs::*number) {
    out.push_back({fmt::format("costs.{}", name),
                   [number](Target& t) -> double& { return t.costs.*number; }});
  };
  const auto add_list = [&](const char* name, target::ByGroups<double> Costs::*list) {
    for (size_t g = 1; g <= 4; ++g)
      out.push_back({fmt::format("costs.{}[{}]", name, g),
                     [list, g](Target& t) -> double& { return (t.costs.*list)[g]; }});
  };
  add("memory_bytes_per_cycle", &Costs::memory_bytes_per_cycle);
  add("launch_cycles", &Costs::launch_cycles);
  add("next_kernel_cycles", &Costs::next_kernel_cycles);
  add("alone_factor", &Costs::alone_factor);
  add_list("mixed_factor", &Costs::mixed_factor);
  add_list("turn_cycles", &Costs::turn_cycles);
  add("shared_bytes_per_cycle", &Costs::shared_bytes_per_cycle);
  add("copy_bytes_per_cycle", &Costs::copy_bytes_per_cycle);
  add("cluster_factor", &Costs::cluster_factor);
  add("unaligned_factor", &Costs::unaligned_factor);
  add("special_slots", &Costs::special_slots);
  add("extreme_slots", &Costs::extreme_slots);
  add("speculated_slots", &Costs::speculated_slots);
  add("cast_slots", &Costs::cast_slots);
  add("load_slots", &Costs::load_slots);
  add("take_slots", &Costs::take_slots);
  add("line_slots", &Costs::line_slots);
  add("row_slots", &Costs::row_slots);
  add("other_registers", &Costs::other_registers);
  add("spill_cycles", &Costs::spill_cycles);
  add("crowded_factor", &Costs::crowded_factor);
  add_list("group_factor", &Costs::group_factor);
  add_list("hiding", &Costs::hiding);
  add("tile_cycles", &Costs::tile_cycles);
  add("tile_steps", &Costs::tile_steps);
  add("result_cycles", &Costs::result_cycles);
  add("start_cycles", &Costs::start_cycles);
  add("step_floor", &Costs::step_floor);
  add("dynamic_cycles", &Costs::dynamic_cycles);
  add("part_cycles", &Costs::part_cycles);
  add("exposed_steps", &Costs::exposed_steps);
  add("last_tile_bytes", &Costs::last_tile_bytes);
}

// Of kernels of rows and points.
void add_places_of_nests(std::vector<FitPlace>& out) {
  const auto add = [&](const char* name, double NestCosts::*number) {
    out.push_back({fmt::format("nests.{}", name),
                   [number](Target& t) -> double& { return t.nests.*number; }});
  };
  add("strided_lines", &NestCosts::strided_lines);
  add("same_lines", &NestCosts::same_lines);
  add("scatter_reads", &NestCosts::scatter_reads);
  add("meeting_cycles", &NestCosts::meeting_cycles);
  add("cache_bytes", &NestCosts::cache_bytes);
  add("operation_slots", &NestCosts::operation_slots);
  add("function_operations", &NestCosts::function_operations);
  add("thread_cycles", &NestCosts::thread_cycles);
  add("turn_cycles", &NestCosts::turn_cycles);
  add("row_cycles", &NestCosts::row_cycles);
  add("row_turn_cycles", &NestCosts::row_turn_cycles);
  add("reduction_cycles", &NestCosts::reduction_cycles);
  add("lane_operations", &NestCosts::lane_operations);
  add("resident_rows", &NestCosts::resident_rows);
  add("sort_own", &NestCosts::sort_own);
  add("sort_lanes", &NestCosts::sort_lanes);
  add("sort_shared", &NestCosts::sort_shared);
  add("sort_step_cycles", &NestCosts::sort_step_cycles);
  add("search_step", &NestCosts::search_step);
  add("search_step_cycles", &NestCosts::search_step_cycles);
  add("patch_share", &NestCosts::patch_share);
  out.back().most = 1;
  add("single_share", &NestCosts::single_share);
  out.back().most = 1;
}

}  // namespace

std::vector<FitPlace> fit_places() {
  std::vector<FitPlace> out;
  add_places_of_tiles(out);
  add_places_of_nests(out);
  return out;
}

}  // namespace nautilus::driver
