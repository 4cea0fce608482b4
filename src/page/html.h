// SPDX-License-Identifier: Apache-2.0
// Text and numbers as a page shows them.
#pragma once

#include <string>
#include <string_view>

namespace nautilus::page {

// Of text between tags or in an attribute. Bytes that are not UTF-8, and control characters, become
// the replacement character.
std::string escaped(std::string_view text);

// Rounded to this many significant digits, but never before the decimal point: 12,084 and 0.4123.
std::string number_text(double value, int digits);

// With the prefix that leaves one to three digits before the decimal point: `949 TFLOP/s`.
std::string prefixed_text(double value, std::string_view unit);

// A share: `75.2 %`.
std::string percent_text(double share);

// A change, with its sign: `+3.1 %`.
std::string change_text(double share);

// `95 s`, `2.4 min`, `14 min`, `5.2 h`, `3.1 days`.
std::string duration_text(double seconds);

// `1 trial`, `2 trials`.
std::string count_text(size_t count, std::string_view noun);

}  // namespace nautilus::page
