// SPDX-License-Identifier: Apache-2.0
// The language server on two file descriptors.
#pragma once

namespace nautilus::lsp {

// Until `exit`, or the end of the input; the status to end with.
int serve(int input, int output);

}  // namespace nautilus::lsp
