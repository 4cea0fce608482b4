// SPDX-License-Identifier: Apache-2.0
// Work in a process of its own: a failed check, a crash or an endless search there must not end the
// server, and with it the editor's session.
#pragma once

#include <functional>
#include <string>

namespace nautilus::lsp {

struct IsolatedResult {
  bool ok = false;
  std::string output;  // what the work returned
  std::string report;  // if it did not: why, with what it wrote to standard error
};

// Forks; the caller must have no other threads. The child is ended after `seconds`.
IsolatedResult run_isolated(const std::function<std::string()>& work, double seconds);

}  // namespace nautilus::lsp
