// SPDX-License-Identifier: Apache-2.0
#include "tune/work/budget.h"

#include <algorithm>
#include <cstdlib>

namespace nautilus::tune {

std::optional<double> seconds_of(const std::string& text) {
  const size_t used = std::min(text.find_first_not_of("0123456789."), text.size());
  if (used == 0) return std::nullopt;
  const double value = std::strtod(text.substr(0, used).c_str(), nullptr);
  const std::string unit = text.substr(used);
  if (unit.empty() || unit == "s") return value;
  if (unit == "m" || unit == "min") return 60 * value;
  if (unit == "h") return 3600 * value;
  return std::nullopt;
}

}  // namespace nautilus::tune
