// SPDX-License-Identifier: Apache-2.0
// What the tests of plans share: programs with their kernels, and maps that are kept as they are.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/files.h"
#include "diag/render.h"
#include "driver/load/load.h"
#include "plan/frame.h"

namespace nautilus::driver {

struct Loaded {
  Unit unit;
  std::optional<ir::Program> program;
  std::vector<emit::KernelText> kernels;
};

inline std::unique_ptr<Loaded> load(const std::string& path, const std::string& text) {
  auto out = std::make_unique<Loaded>();
  out->program = load_text(path, text, {}, out->unit);
  EXPECT_TRUE(out->program) << diag::render_all(out->unit.sink);
  if (out->program) out->kernels = emit::emit_kernels(*out->program, out->unit.pool);
  return out;
}

inline std::unique_ptr<Loaded> load_file(const std::string& path) {
  std::string error;
  return load(path, base::read_file(path, &error).value_or(""));
}

// The map itself stands for its encoding.
inline const plan::MapEncoder kKeep = [](const runtime::TensorMapView& view,
                                         runtime::EncodedMap* map, std::string* why) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(map) % 64, 0U);
  *why = runtime::map_flaw(view);
  std::memcpy(map->bytes, &view, sizeof view);
  return why->empty();
};

}  // namespace nautilus::driver
