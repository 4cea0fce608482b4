// SPDX-License-Identifier: Apache-2.0
// The launches of a packed frame, put on a stream.
#pragma once

#include <vector>

#include "plan/compile.h"
#include "plan/frame.h"
#include "runtime/cuda_device.h"

namespace nautilus::plan {

// `loaded` are the kernels on the device, in their order. False, and why, if one is not launched.
bool launch_frame(const Frame& frame, const std::vector<DeviceKernel>& kernels,
                  const std::vector<void*>& loaded, runtime::Device& device,
                  const runtime::Stream& stream, std::string* error);

}  // namespace nautilus::plan
