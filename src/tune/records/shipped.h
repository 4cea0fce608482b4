// SPDX-License-Identifier: Apache-2.0
// Trials that come with the compiler (share/*.jsonl), so that a machine without its own trials has
// the schedules that were found elsewhere. The build embeds their texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/records/database.h"

namespace nautilus::tune {

struct ShippedText {
  std::string_view name;  // "share/trials_h200.jsonl"
  std::string_view text;  // a trial in each line
};
// Written by scripts/embed_trials.cmake.
const std::vector<ShippedText>& shipped_texts();

// The trials that match the query; lines that this version cannot read are left out.
std::vector<Trial> shipped_trials(const Query& query);

}  // namespace nautilus::tune
