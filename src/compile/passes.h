// SPDX-License-Identifier: Apache-2.0
// The table of the passes of all levels, each once, in the order from level spec to kernels.
//
//   spec     equations of the program, several forms of which scheduling compares
//   scalar   loops; scheduling makes the nests of kernels
//   vrtile   one nest alone: tiles as values
//   matile   one kernel alone, from nest form to final form; then the plan of all kernels
//
// `nautilus opt --list` prints it; compile/manager.h runs passes and records their changes.
#pragma once

#include <string_view>
#include <vector>

#include "ir/pass.h"

namespace nautilus::compile {

// When a pass runs, and on what.
enum class Stage : uint8_t {
  Equations,  // the program on level spec
  Arrow,      // from a level to the next
  Tiles,      // one nest on level vrtile
  Kernel,     // one kernel on level matile, alone with its plan
  Together,   // all kernels of the program on level matile, by lines of theirs
  Plan,       // the same, and the host's part of them
  Apart,      // not in the sequence: run only by name
};

// What a program is known to satisfy; passes need and give these.
enum Invariant : uint32_t {
  kNone = 0,
  kReductionsSplit = 1,  // a reduction is the root of its equation
};

struct PassInfo {
  std::string_view name;
  std::string_view from;  // level
  std::string_view to;
  ir::Pass
      run;  // null for `schedule`, which needs more than the program (driver/kernels/scheduling.h)
  Stage stage;
  std::string_view summary;
  std::string_view reads = {};  // decisions that it reads in addition to the program's ops
  uint32_t needs = kNone;
  uint32_t gives = kNone;
  bool is_exact = true;  // the same bits; else exact over the reals (docs/semantics.md)
};

const std::vector<PassInfo>& passes();
// Null if there is none.
const PassInfo* find_pass(std::string_view name);
// One that the compiler itself names.
const PassInfo& the_pass(std::string_view name);
std::vector<const PassInfo*> passes_of(Stage stage);

// The name of an existing pass that was probably meant; empty if none is near.
std::string nearest_pass(std::string_view name);

}  // namespace nautilus::compile
