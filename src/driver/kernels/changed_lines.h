// SPDX-License-Identifier: Apache-2.0
// Which lines of a given schedule somebody changed. Who edits a printed schedule marks nothing, but
// the first schedule of the program still has these lines otherwise.
#pragma once

#include "schedule/text/schedule.h"

namespace nautilus::driver {

// The given schedule with the lines marked `user` that the first one lacks or has otherwise, in the
// same alternative of the same kernel. Kernels that the first schedule does not have stay as they
// are.
schedule::Schedule with_changes_marked(schedule::Schedule given, const schedule::Schedule& first);

}  // namespace nautilus::driver
