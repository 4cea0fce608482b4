// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for hashes that others check: `sha256sum` says the same of a file.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::base {

// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace nautilus::base
