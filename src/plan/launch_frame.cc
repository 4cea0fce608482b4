// SPDX-License-Identifier: Apache-2.0
#include "plan/launch_frame.h"

namespace nautilus::plan {

bool launch_frame(const Frame& frame, const std::vector<DeviceKernel>& kernels,
                  const std::vector<void*>& loaded, runtime::Device& device,
                  const runtime::Stream& stream, std::string* error) {
  for (const Frame::Launch& l : frame.launches()) {
    const emit::KernelText& text = kernels[l.kernel].text;
    runtime::LaunchShape shape;
    shape.grid[0] = static_cast<unsigned>(l.grid);
    shape.block[0] = static_cast<unsigned>(text.threads);
    shape.shared_bytes = static_cast<unsigned>(text.shared_bytes);
    shape.is_early = &l != &frame.launches().front() && text.may_begin_early;
    void* parameters[] = {l.params};
    if (!device.launch(loaded[l.kernel], shape, parameters, stream, error)) return false;
  }
  return true;
}

}  // namespace nautilus::plan
