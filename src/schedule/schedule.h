// SPDX-License-Identifier: Apache-2.0
// A schedule: the decisions that turn an unscheduled scalar program into kernels, as text.
//
//   schedule @attention_causal hash 5d0f6ab2c3e41f77 version 1
//   round Z bf16 auto          an operand in memory takes the dtype of its partner (round.h)
//   locate a auto              a position of an extreme is found by reductions (locate.h)
//   kernel U auto              a kernel grown from the reduction U
//   tile i cta 192 wg 64 auto  its rows
//   tile j 80 auto             steps of the streamed axis
//   tile n 256 auto            columns that do not fit a tile
//   fuse S auto                statements inside, element-wise or inner reductions
//   roll m auto                reductions in the streaming loop
//   order j descending user    the steps from the last to the first
//   split j fill auto          parts of the steps beside each other (split.h): as many as fill the
//                              machine, or a number; `or_whole`: the plan takes a kernel without
//                              parts where one is enough; `combine last`: the tile that comes
//                              last puts the parts together, not a kernel of its own
//   cluster i 2 auto           two tiles beside each other share what they load
//   resident 2 auto            a multiprocessor works on two tiles at the same time
//   or i cta 128 wg 64 j 128 auto   another kernel for the same, run where it is cheaper
//
// A word may be a hole, `?{64,96}` (holes.h). One decision per line, with who took it: auto, tuned
// or user. Statements that no kernel stores
// stay as they are.
#pragma once

#include "schedule/split.h"

namespace nautilus::schedule {

enum class Provenance : uint8_t { Auto, Tuned, User };
std::string_view name(Provenance p);

struct Decision {
  // round, locate, kernel, tile, fuse, roll, order, split, cluster, resident, or
  std::string verb;
  std::vector<std::string> words;
  Provenance provenance = Provenance::Auto;
};

struct Schedule {
  std::string program;
  uint64_t hash = 0;  // of the unscheduled program's text
  std::vector<Decision> decisions;
};

std::string print(const Schedule& schedule);
// The rejection names the line.
Outcome<Schedule> parse_schedule(std::string_view text);

uint64_t program_hash(const ir::Program& program);

struct Kernel {
  Group group;
  Sizes sizes;
  std::set<int> stored;       // filled when the program is put together
  std::vector<Sizes> others;  // further kernels of the same group; the plan runs the cheapest
  Split split = {};
};

// The decisions of kernels, in order.
Schedule to_schedule(const ir::Program& program, const std::vector<Kernel>& kernels,
                     Provenance provenance);

// Where a grid nest comes from: the seed of its kernel, and whether it computes all of it or parts.
struct NestOrigin {
  std::string seed;
  bool is_whole = true;
};

struct Scheduled {
  ir::Program program;
  std::vector<std::string> notes;  // the derivation, for people
  std::vector<NestOrigin> nests;   // grid nests, in order
};

// Checks every decision against the program and builds the scheduled form. A decision that is not
// legal is refused with its line.
Outcome<Scheduled> apply_schedule(const ir::Program& program, const Schedule& schedule,
                                  expr::ExprPool& pool);

// Puts kernels and remaining statements together.
Outcome<Scheduled> assemble(const ir::Program& program, const StatementList& list,
                            std::vector<Kernel> kernels, expr::ExprPool& pool);

// Statements that outputs need and no kernel stores, with the kernels' choice of what to store.
std::set<int> remaining(const StatementList& list, std::vector<Kernel>& kernels);

}  // namespace nautilus::schedule
