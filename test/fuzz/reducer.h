// SPDX-License-Identifier: Apache-2.0
// Makes a failing text small: a bug in three lines is half understood.
#pragma once

#include <string>

#include "sandbox.h"

namespace nautilus::fuzz {

// Tries smaller texts, each in a child process, and keeps those that fail with the same key, until
// nothing smaller fails or the deadline has passed.
using TextCheck = Verdict (*)(const std::string& text, uint64_t seed);
std::string reduce(std::string text, uint64_t seed, const std::string& key, TextCheck check,
                   Clock::time_point deadline);

}  // namespace nautilus::fuzz
