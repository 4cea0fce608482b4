// SPDX-License-Identifier: Apache-2.0
// Diagnostics as text with the source line and carets:
//
//   error[E0301]: index `j` is not bound by any axis
//     --> mlp.naut:3:30
//      |
//    3 | Y[i, o] = sum[k] X[i, k] * W[j, k]
//      | -------                      ^ neither an output axis nor a reduction axis
//      | |
//      | output axes
//      = help: ...
//
// Plain ASCII, so that expected texts stay greppable; colour only when asked for.
#pragma once

#include <string>

#include "diag/diagnostic.h"

namespace nautilus::diag {

std::string render(const Diagnostic& diagnostic, const SourceMap& sources, bool colour = false);
// All messages but the first `from`.
std::string render_all(const Sink& sink, bool colour = false, size_t from = 0);

}  // namespace nautilus::diag
