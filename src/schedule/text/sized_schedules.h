// SPDX-License-Identifier: Apache-2.0
// Several schedules of a program in one text, each for sizes of its own: the winners of a search
// for several shapes.
//
//   schedule @gemm version 2 equations 0619ea01
//   kernel C.sum tile
//     ...
//   or schedule
//   at M, N, K = 16, 8192, 8192 within 4 tuned
//   at M, N, K = 32, 8192, 8192 within 4 tuned
//   kernel C.sum tile
//     ...
//
// One plan has the kernels of all of them, and a launch uses those of the nearest sizes
// (lower/kernel/plan_by_sizes.h), or those of the first schedule where no sizes are near enough.
#pragma once

#include "schedule/text/schedule.h"
#include "schedule/text/text_lines.h"

namespace nautilus::schedule {

struct SizedSchedule {
  ir::Block at;  // sizes that it is for: lines `at`
  Schedule schedule;
};

// Whether the text has several schedules, or one that says which sizes it is for.
bool is_sized(std::string_view text);

// `or schedule`.
bool is_next_schedule(const TextLine& line);

// Of any text: one without sizes is one schedule. The rejection names the line.
Outcome<std::vector<SizedSchedule>> parse_sized_schedules(std::string_view text,
                                                          expr::ExprPool& pool);
std::string print(const std::vector<SizedSchedule>& schedules);

}  // namespace nautilus::schedule
