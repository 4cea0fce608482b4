// SPDX-License-Identifier: Apache-2.0
// The fastest schedules, and the text of the winner.
#include <fmt/format.h>

#include <algorithm>

#include "page/html.h"
#include "schedule/text/text_lines.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

constexpr size_t kMostSchedules = 10;

bool is_taken_piece(std::string_view piece) {
  return piece.ends_with(" tuned") || piece.ends_with(" user");
}

// The text with its `tuned` and `user` decisions marked.
std::string marked_text(const std::string& schedule) {
  std::string out;
  for (size_t at = 0; at < schedule.size();) {
    const size_t end = std::min(schedule.find_first_of(";\n", at), schedule.size());
    const std::string piece = schedule.substr(at, end - at);
    const size_t begin = std::min(piece.find_first_not_of(' '), piece.size());
    out += piece.substr(0, begin);
    const std::string text = page::escaped(piece.substr(begin));
    out += is_taken_piece(piece) ? "<mark>" + text + "</mark>" : text;
    if (end < schedule.size()) out += schedule[end];
    at = end + 1;
  }
  return out;
}

// `tile i 64; tile j 80` of the `tuned` and `user` lines, each once.
std::string taken_decisions(const std::string& schedule) {
  std::vector<std::string> found;
  for (const schedule::TextLine& line : schedule::text_lines(schedule)) {
    for (std::string& piece : schedule::pieces_of(line.text)) {
      if (!is_taken_piece(piece)) continue;
      piece.resize(piece.rfind(' '));
      if (std::find(found.begin(), found.end(), piece) == found.end())
        found.push_back(std::move(piece));
    }
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

double predicted_cycles(const Findings& found, const std::string& schedule) {
  for (const Trial* t : found.trials) {
    if (t->schedule == schedule && t->predicted > 0) return t->predicted;
  }
  return 0;
}

std::string row_of_schedule(const Findings& found, const Winner& w, size_t place,
                            bool has_predictions) {
  const bool is_winner = w.schedule == found.winner->schedule;
  const bool is_choice = found.choice && w.schedule == found.choice->schedule;
  std::string out = fmt::format(
      "<tr{}><td class=\"number\">{}</td><td class=\"number\">{}</td>"
      "<td class=\"number faint\">{} to {}</td><td class=\"number\">{}</td>",
      is_winner ? " class=\"winner\"" : "", place, found.unit.text(w.median),
      found.unit.text(w.low), found.unit.text(w.high), w.samples);
  if (found.choice)
    out += fmt::format(
        "<td class=\"number\">{}</td>",
        found.choice->median > 0 ? fmt::format("{:.3f}", w.median / found.choice->median) : "");
  if (const auto share = found.share_of_roof(w.median))
    out += fmt::format("<td class=\"number\">{}</td>", page::percent_text(*share));
  const double cycles = predicted_cycles(found, w.schedule);
  if (has_predictions)
    out +=
        fmt::format("<td class=\"number\">{}</td>", cycles > 0 ? page::number_text(cycles, 1) : "");
  const std::string taken = taken_decisions(w.schedule);
  const std::string summary = is_choice ? "the compiler's choice"
                              : taken.empty()
                                  ? "no line that a search took"
                                  : fmt::format("<code>{}</code>", page::escaped(taken));
  return out +
         fmt::format("<td><details><summary>{}{}</summary><pre>{}</pre></details></td></tr>\n",
                     is_winner ? "<strong>winner</strong> " : "", summary, marked_text(w.schedule));
}

}  // namespace

std::string schedules_section(const Findings& found) {
  std::string out = "<h2>The fastest schedules</h2>\n";
  if (!found.winner) return out + "<p>No schedule was timed.</p>\n";
  const size_t shown = std::min(found.standings.size(), kMostSchedules);
  out += fmt::format(
      "<p>{} timed{}. Medians of all samples of a schedule, with quartiles. Among schedules that "
      "are not told apart the one with the fewest lines that a search took wins.</p>\n",
      page::count_text(found.standings.size(), "schedule"),
      shown < found.standings.size() ? fmt::format(", the fastest {} here", shown) : "");
  const bool has_predictions =
      std::any_of(found.standings.begin(), found.standings.begin() + static_cast<ptrdiff_t>(shown),
                  [&](const Winner& w) { return predicted_cycles(found, w.schedule) > 0; });
  out += fmt::format(
      "<div class=\"wide\"><table>\n<thead><tr><th class=\"number\"></th><th "
      "class=\"number\">Median"
      "</th><th class=\"number\">Quartiles</th><th class=\"number\">Samples</th>{}{}"
      "{}<th>Lines that a search "
      "took</th></tr></thead>\n"
      "<tbody>\n",
      found.choice ? "<th class=\"number\">Of the<br/>choice</th>" : "",
      found.share_of_roof(found.winner->median) ? "<th class=\"number\">Of the<br/>roof</th>" : "",
      has_predictions ? "<th class=\"number\">Predicted<br/>cycles</th>" : "");
  for (size_t k = 0; k < found.standings.size(); ++k) {
    const bool is_winner = found.standings[k].schedule == found.winner->schedule;
    if (k < shown || is_winner)
      out += row_of_schedule(found, found.standings[k], k + 1, has_predictions);
  }
  out += "</tbody></table></div>\n";
  return out +
         fmt::format("<h3>The winner</h3>\n<pre>{}</pre>\n", marked_text(found.winner->schedule));
}

}  // namespace nautilus::tune
