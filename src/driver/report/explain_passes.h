// SPDX-License-Identifier: Apache-2.0
// The compiled program and each of its kernels after each pass that changed them: a table of what
// each pass read and did, or the programs themselves.
#pragma once

#include "driver/kernels/lower_to_kernels.h"

namespace nautilus::driver {

struct PassesRequest {
  bool shows_programs = false;  // what each pass changed in the text, in place of a line
  std::string kernel = {};      // only this kernel
};

// `kernels` were made of `loaded` with the trace. Nothing, and why, if there is no such kernel.
std::optional<std::string> passes_text(const ir::Program& loaded, const ir::PassTrace& trace,
                                       const Kernels& kernels, const PassesRequest& request,
                                       std::string* error);

}  // namespace nautilus::driver
