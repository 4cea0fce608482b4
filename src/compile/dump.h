// SPDX-License-Identifier: Apache-2.0
// What a trace shows: the compiled program at a level, and a folder with all steps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/pass.h"

namespace nautilus::compile {

// The compiled program at a level above `kernels`, as text that is valid input. On level vrtile it
// has the grids of all tile kernels; results of other kernels are inputs there. Nothing if no
// kernel has that level; comment lines name the kernels that skip it.
std::optional<std::string> text_at(std::string_view level, const ir::Program& loaded,
                                   const ir::PassTrace& trace, const ir::Program& kernels);

// The names of files in a folder of dumps: NNN-<unit>-<pass>.<level>. Number 0 is the program as it
// was loaded, number k the k-th step of the trace.
std::string dump_name(const ir::Program& loaded);
std::string dump_name(size_t number, const ir::PassTrace::Step& step);

// Writes the program as it was loaded, each step as NNN-<unit>-<pass>.<level>, the schedule (if
// there is one) as schedule.sched, and index.txt. False, and why, if a file cannot be written.
bool write_dumps(const std::string& folder, const ir::Program& loaded, const ir::PassTrace& trace,
                 const std::string& schedule, std::string* error);

}  // namespace nautilus::compile
