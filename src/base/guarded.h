// SPDX-License-Identifier: Apache-2.0
// Work whose failed checks must not end the process: that of a library in somebody else's.
#pragma once

#include <functional>
#include <string>

namespace nautilus::base {

// Runs `work` on a thread of its own and waits for it. Empty if it came to its end; else the report
// of the check that failed in it, and then the thread sleeps for ever: its stack and all that it
// holds are lost, locks included, and threads that it started may go on for a while. So what `work`
// touches must not be the caller's to free: it owns it, or whoever does keeps it for ever.
std::string run_guarded(const std::string& what, std::function<void()> work);

}  // namespace nautilus::base
