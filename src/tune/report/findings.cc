// SPDX-License-Identifier: Apache-2.0
#include "tune/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "page/html.h"

namespace nautilus::tune {
namespace {

// Seconds of a trial's date; nothing if it is not a date.
std::optional<double> seconds_of_date(std::string_view date) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  if (date.size() != kForm.size()) return std::nullopt;
  for (size_t k = 0; k < kForm.size(); ++k) {
    const bool is_digit = date[k] >= '0' && date[k] <= '9';
    if (kForm[k] == '0' ? !is_digit : date[k] != kForm[k]) return std::nullopt;
  }
  const auto number = [&](size_t at, size_t length) {
    int n = 0;
    for (const char c : date.substr(at, length)) n = 10 * n + (c - '0');
    return n;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!day.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(day).time_since_epoch().count();
  return 86400.0 * static_cast<double>(days) + 3600 * number(11, 2) + 60 * number(14, 2) +
         number(17, 2);
}

std::vector<double> seconds_since_first(const std::vector<const Trial*>& trials) {
  std::vector<double> out;
  for (const Trial* t : trials) {
    const auto seconds = seconds_of_date(t->date);
    if (!seconds) return {};
    out.push_back(*seconds);
  }
  for (size_t k = out.size(); k-- > 0;) out[k] -= out[0];
  return out;
}

TimeUnit unit_for(bool is_emulated, double best) {
  constexpr double kShort = 0.1;  // ms
  if (is_emulated) return {"steps", 1, true};
  if (best > 0 && best < kShort) return {"µs", 1000, false};
  return {"ms", 1, false};
}

}  // namespace

std::string TimeUnit::text(double time) const {
  if (is_whole) return fmt::format("{} {}", page::number_text(time, 1), name);
  return fmt::format("{} {}", page::number_text(factor * time, 4), name);
}

std::optional<double> Findings::share_of_roof(double time) const {
  if (is_emulated || !input->floors || time <= 0) return std::nullopt;
  return input->floors->least_ms() / time;
}

Findings findings_of(const ReportInput& input) {
  Findings out;
  out.input = &input;
  out.is_emulated = input.problem.machine == "emulator";
  for (const Trial& t : input.trials) out.trials.push_back(&t);
  std::stable_sort(out.trials.begin(), out.trials.end(),
                   [](const Trial* a, const Trial* b) { return a->date < b->date; });
  out.seconds = seconds_since_first(out.trials);
  out.standings = standings(input.trials);
  out.winner = winner_of(input.trials);
  for (const Trial* t : out.trials) {
    if (t->verdict != Verdict::Timed || lines_taken(t->schedule) > 0) continue;
    const auto at = std::find_if(out.standings.begin(), out.standings.end(),
                                 [&](const Winner& w) { return w.schedule == t->schedule; });
    if (at == out.standings.end()) continue;
    out.choice = *at;
    break;
  }
  out.unit = unit_for(out.is_emulated, out.winner ? out.winner->median : 0);
  return out;
}

}  // namespace nautilus::tune
