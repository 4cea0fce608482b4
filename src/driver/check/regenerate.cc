// SPDX-License-Identifier: Apache-2.0
#include "driver/check/regenerate.h"

#include "base/diff.h"
#include "base/files.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/run/run.h"
#include "matile/outline.h"

namespace nautilus::driver {

std::optional<std::string> regeneration_difference(const std::string& path,
                                                   std::string_view schedule,
                                                   std::string_view kernel, Unit& unit,
                                                   std::string* error) {
  const auto text = base::read_file(path, error);
  if (!text) return std::nullopt;
  const auto golden = load_text(path, *text, {}, unit);
  if (!golden) return std::nullopt;
  const auto math = load_oracle(*golden, path, unit);
  if (!math) return std::nullopt;
  const auto generated = lower_with_schedule(*math, schedule, unit, error);
  if (!generated) return std::nullopt;
  return base::unified_diff(matile::outline(*golden, unit.pool),
                            matile::outline(*generated, unit.pool, kernel), "golden", "from math",
                            1);
}

}  // namespace nautilus::driver
