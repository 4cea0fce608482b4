// SPDX-License-Identifier: Apache-2.0
// Texts that are almost programs: stored ones with bytes, tokens and numbers changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nautilus::fuzz {

// Every text of the examples, the library and the tests below `root`, and the examples as they
// print at the levels of the compiler.
std::vector<std::string> load_corpus(const std::string& root);

// The same corpus and seed give the same text.
std::string mutate(const std::vector<std::string>& corpus, uint64_t seed);

}  // namespace nautilus::fuzz
