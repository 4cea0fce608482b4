// SPDX-License-Identifier: Apache-2.0
#include "target/target.h"

#include <algorithm>

namespace nautilus::target {

int Limits::shared_bytes(int resident) const {
  return std::min(cta_shared_bytes, sm_shared_bytes / resident - kept_shared_bytes);
}

int Limits::registers(int threads, int resident) const {
  const int share = sm_registers / (resident * threads);
  return std::min(share / register_step * register_step, launch_registers);
}

const OperandWidth* Matrix::width(OperandKind kind, int bytes) const {
  const auto it = std::find_if(widths.begin(), widths.end(), [&](const OperandWidth& w) {
    return w.kind == kind && w.bytes == bytes;
  });
  return it == widths.end() ? nullptr : &*it;
}

const Target& default_target() { return sm_90a(); }

const std::vector<const Target*>& targets() {
  static const std::vector<const Target*> all = {&sm_90a(), &toy()};
  return all;
}

const Target* find_target(std::string_view name) {
  for (const Target* t : targets()) {
    if (t->name == name) return t;
  }
  return nullptr;
}

}  // namespace nautilus::target
