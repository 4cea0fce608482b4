// SPDX-License-Identifier: Apache-2.0
// Why schedules were not timed.
#include <fmt/format.h>

#include <algorithm>

#include "page/html.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

// Reasons that differ in numbers are one cause.
std::string without_numbers(std::string_view reason) {
  std::string out;
  bool is_in_number = false;
  for (const char c : reason) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit)
      out += c;
    else if (!is_in_number)
      out += 'N';
    is_in_number = is_digit;
  }
  return out;
}

struct Cause {
  std::string verdict;
  std::string reason;
  std::string example;
  int64_t count = 0;
};

std::string table_of_causes(std::vector<Cause> causes, std::string_view what) {
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.count > b.count; });
  const int64_t most = causes[0].count;
  std::string out = fmt::format(
      "<div class=\"wide\"><table>\n<thead><tr><th "
      "class=\"number\">{}</th><th></th><th>Verdict</th>"
      "<th>Cause</th></tr></thead>\n<tbody>\n",
      what);
  for (const Cause& c : causes) {
    out += fmt::format(
        "<tr><td class=\"number\">{}</td><td><span class=\"bar\"><span style=\"width:{:.1f}%\">"
        "</span></span></td><td>{}</td><td title=\"{}\">{}</td></tr>\n",
        c.count, 100.0 * static_cast<double>(c.count) / static_cast<double>(most),
        page::escaped(c.verdict), page::escaped(c.example), page::escaped(c.reason));
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace

std::string failures_section(const Findings& found) {
  std::string out = "<h2>Failures</h2>\n";
  std::map<std::pair<Verdict, std::string>, Cause> by_cause;
  size_t failed = 0;
  for (const Trial* t : found.trials) {
    if (t->verdict == Verdict::Timed) continue;
    ++failed;
    Cause& c = by_cause[{t->verdict, without_numbers(t->reason)}];
    if (c.count++ > 0) continue;
    c.verdict = word(t->verdict);
    c.example = t->reason;
    c.reason = t->reason.empty() ? "no reason was given" : without_numbers(t->reason);
  }
  if (failed == 0) {
    out +=
        found.trials.empty() ? "<p>There are no trials.</p>\n" : "<p>Every trial was timed.</p>\n";
  } else {
    out += fmt::format("<p>{} of {} not timed. Numbers in causes are N.</p>\n", failed,
                       page::count_text(found.trials.size(), "trial"));
    std::vector<Cause> causes;
    for (auto& [key, cause] : by_cause) causes.push_back(std::move(cause));
    out += table_of_causes(std::move(causes), "Trials");
  }
  if (found.input->not_legal.empty()) return out;
  out +=
      "<p>Schedules that the search thought of and that were refused before anything was "
      "compiled; they are no trials:</p>\n";
  std::vector<Cause> refused;
  for (const auto& [cause, count] : found.input->not_legal)
    refused.push_back({"not legal", cause, cause, count});
  return out + table_of_causes(std::move(refused), "Schedules");
}

}  // namespace nautilus::tune
