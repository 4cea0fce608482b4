// SPDX-License-Identifier: Apache-2.0
//
// Unified diffs of texts, as the test runner prints them when an output has changed. Small inputs
// get a shortest diff; large ones are first cut at lines that occur once on both sides, so that
// time and memory stay bounded at the price of a diff that may be longer than necessary.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::base {

// The form of `diff -u` without timestamps; empty when the texts are equal. A last line without
// its newline differs from the same line with one and is marked as diff marks it.
std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view before_name, std::string_view after_name,
                         int context = 3);

}  // namespace nautilus::base
