// SPDX-License-Identifier: Apache-2.0
// Registers that the tiles of a thread need and that the roles of a kernel have. The arithmetic is
// here; callers say what they count: the statements of a fusion before a kernel is built
// (schedule/fusion/tile_use.h), its tiles and roles afterwards (matile).
#pragma once

#include "target/target.h"

namespace nautilus::estimate {

// Of a thread that holds this many elements; narrow ones share a register.
int64_t element_registers(int64_t elements, int64_t element_bytes);
// Of a thread, for its share of a tile that is spread evenly over a group.
int64_t tile_registers(int64_t elements, int64_t element_bytes, const target::Limits& limits);
// Of a thread, for 32-bit values along the columns of a tile that all rows share.
int64_t column_registers(int64_t columns);
// That one matrix instruction with this many columns needs when the CTA starts.
int64_t instruction_registers(int64_t columns, const target::Target& target);

// The threads of a CTA: groups that compute, and the group of the loading roles.
struct Roles {
  int64_t groups = 1;
  bool has_loaders = true;
  bool are_loaders_busy = false;  // they number tiles themselves, or serve several CTAs
  int64_t resident = 1;           // CTAs that share a multiprocessor

  int64_t threads(const target::Limits& limits) const;
};

// The registers that all threads of such a CTA start with; roles pass them to each other.
int64_t pool_registers(int64_t threads, int64_t resident, const target::Limits& limits);
int64_t pool_registers(const Roles& roles, const target::Limits& limits);
// Of a thread that computes, at most: loaders get their least first.
int64_t compute_registers(const Roles& roles, const target::Target& target);
// Of a thread of the loaders: what groups with `compute` registers leave, within bounds.
int64_t loader_registers(const Roles& roles, int64_t compute, const target::Target& target);
// Of all threads, with these numbers for a thread that computes and one that loads.
int64_t needed_registers(const Roles& roles, int64_t compute, int64_t load,
                         const target::Limits& limits);

// CTAs that a multiprocessor runs at a time by their threads and registers. `registers`: of a
// thread, as it is launched.
int64_t ctas_that_fit(int64_t threads, int64_t registers, const target::Limits& limits);
// The most registers of a thread with which as many CTAs fit as with `registers`.
int64_t most_registers(int64_t threads, int64_t registers, const target::Limits& limits);

}  // namespace nautilus::estimate
