// SPDX-License-Identifier: Apache-2.0
// `nautilus explain --html`: how a program became its kernels, as one page that needs nothing else.
//
// The summary, warnings, launches and floors; then the levels beside each other, from the equations
// to CUDA, for the kernel that is chosen. A name under the pointer is marked in all of them.
#pragma once

#include "driver/report/explain.h"

namespace nautilus::driver {

// Nothing if something was reported, or is in `error`. Warnings of the request are on the page, and
// reported.
std::optional<std::string> explain_page(const ir::Program& program, const ExplainRequest& request,
                                        Unit& unit, std::string* error);

}  // namespace nautilus::driver
