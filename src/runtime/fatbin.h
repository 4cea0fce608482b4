// SPDX-License-Identifier: Apache-2.0
// Machine code and assembler text in one file, from which a driver chooses what fits its device.
#pragma once

#include <optional>
#include <string>

namespace nautilus::runtime {

// Made by `fatbinary` of the CUDA toolkit. Nothing, and why, if it is not there.
std::optional<std::string> make_fatbin(const std::string& cubin, const std::string& ptx,
                                       const std::string& architecture, std::string* error);

}  // namespace nautilus::runtime
