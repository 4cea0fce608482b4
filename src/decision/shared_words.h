// SPDX-License-Identifier: Apache-2.0
// Words that lines of several headers contain.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace nautilus::decision {

// Who made a decision. The first is the default and is not printed.
enum class By : uint8_t { Auto, Tuned, User };
const std::vector<std::string_view>& words(By);

enum class Switch : uint8_t { Off, On };
const std::vector<std::string_view>& words(Switch);

// When in a step something is done.
enum class Moment : uint8_t { Early, Late };
const std::vector<std::string_view>& words(Moment);

}  // namespace nautilus::decision
