// SPDX-License-Identifier: Apache-2.0
// Work that must not end the process when a check fails: for a library inside another program.
#pragma once

#include <functional>
#include <string>

namespace nautilus::base {

// Runs `work` on a thread of its own and waits for it. Empty if the work finished; otherwise the
// report of the failed check, and the thread then sleeps for ever. Its stack and everything that it
// holds are lost, locks included, and threads that it started may continue for a while. So the
// caller must not free anything that `work` uses: `work` owns it, or its owner never frees it.
std::string run_guarded(const std::string& what, std::function<void()> work);

}  // namespace nautilus::base
