// SPDX-License-Identifier: Apache-2.0
// Windows of a kernel of points: loops whose turns are known, with all loops inside of them.
#pragma once

#include <set>

#include "matile/ops.h"

namespace nautilus::matile {

bool counts_from_zero(const Loop& l);
// Turns of the loop alone; 0 if they are not known.
int64_t known_turns(const Loop& l);

// Whether the elements that a loop reads may stay in registers for another one: it starts at 0, and
// how often it turns is not known.
bool is_held_loop(const Loop& l);

// Turns of the innermost statements of a loop and the loops in it; 0 if some are not known.
int64_t all_turns(const Loop& l);

// Turns of the longest window that is in no other one; 0 without windows.
int64_t window_turns(const ir::Block& body);

// Whether the loop has known turns and nothing but loops of the same kind and values that change.
bool is_window(const Loop& l);

// Turns that the line `windows` can name. Patches write out each window for itself, also those in
// others; all other kernels write out either every window or none. Empty where nothing is gained:
// a thread has one point at a time, and no condition to ask once for a whole window.
std::set<int64_t> sizes_of_windows(const Kernel& kernel);

}  // namespace nautilus::matile
