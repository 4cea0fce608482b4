// SPDX-License-Identifier: Apache-2.0
// `nautilus explain --html`: how a program became its kernels, as one self-contained page.
//
// The summary, warnings, launches and floors; then the levels side by side, from the equations to
// CUDA, for the selected kernel. A name under the pointer is marked in all of them.
#pragma once

#include "driver/report/explain.h"

namespace nautilus::driver {

// Nothing if something was reported, or is in `error`. Warnings of the request are on the page, and
// reported.
std::optional<std::string> explain_page(const ir::Program& program, const ExplainRequest& request,
                                        Unit& unit, std::string* error);

}  // namespace nautilus::driver
