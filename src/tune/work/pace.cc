// SPDX-License-Identifier: Apache-2.0
#include "tune/work/pace.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace nautilus::tune {
namespace {

constexpr int64_t kPause = 30;  // seconds
constexpr int64_t kLeast = 8;   // trials

// Seconds since 1970 of `2026-11-17T07:00:00Z`.
std::optional<int64_t> seconds_of_date(const std::string& date) {
  std::tm t = {};
  char zone = 0;
  if (std::sscanf(date.c_str(), "%d-%d-%dT%d:%d:%d%c", &t.tm_year, &t.tm_mon, &t.tm_mday,
                  &t.tm_hour, &t.tm_min, &t.tm_sec, &zone) != 7 ||
      zone != 'Z')
    return std::nullopt;
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  return static_cast<int64_t>(timegm(&t));
}

}  // namespace

std::optional<double> seconds_of_a_trial(const std::vector<Trial>& trials,
                                         const std::string& machine) {
  std::vector<int64_t> dates;
  for (const Trial& t : trials) {
    if (t.problem.machine != machine) continue;
    if (const auto date = seconds_of_date(t.date)) dates.push_back(*date);
  }
  std::sort(dates.begin(), dates.end());
  int64_t sum = 0;
  int64_t count = 0;
  for (size_t k = 1; k < dates.size(); ++k) {
    const int64_t gap = dates[k] - dates[k - 1];
    if (gap > kPause) continue;
    sum += gap;
    ++count;
  }
  if (count + 1 < kLeast || sum == 0) return std::nullopt;
  return static_cast<double>(sum) / static_cast<double>(count);
}

}  // namespace nautilus::tune
