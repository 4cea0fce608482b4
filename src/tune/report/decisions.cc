// SPDX-License-Identifier: Apache-2.0
// The table of decisions that mattered.
#include <fmt/format.h>

#include <algorithm>

#include "page/html.h"
#include "tune/report/decision_effects.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

constexpr size_t kMostDecisions = 24;

std::string code(std::string_view value) {
  return value.empty() ? "<span class=\"faint\">none</span>"
                       : fmt::format("<code>{}</code>", page::escaped(value));
}

std::string effect_row(const DecisionEffect& e, bool names_kernel, double most) {
  const OtherValue& other = e.best_without;
  std::string out = fmt::format(
      "<tr><td>{}{}</td><td>{}{}</td>",
      names_kernel && !e.kernel.empty()
          ? fmt::format("<span class=\"faint\">{}</span><br/>", page::escaped(e.kernel))
          : "",
      code(e.decision), code(e.value),
      e.choice ? fmt::format("<br/><span class=\"faint\">compiler: </span>{}", code(*e.choice))
               : "");
  out += fmt::format(
      "<td class=\"number\">{}</td><td><span class=\"bar\"><span style=\"width:{:.1f}%\"></span>"
      "</span></td><td>{}<br/><span class=\"faint\">{}</span></td>",
      page::change_text(e.change()), 100 * std::clamp(e.change() / most, 0.0, 1.0),
      code(other.value),
      other.further == 0
          ? "nothing else differs"
          : fmt::format("with {}", page::count_text(other.further, "other difference")));
  out += e.alone ? fmt::format("<td class=\"number alone\">{}<br/>{}</td>",
                               page::change_text(e.change_to(*e.alone)), code(e.alone->value))
                 : "<td class=\"number faint\">not tried</td>";
  return out + fmt::format("<td class=\"number\">{} / {}</td></tr>\n", e.with, e.without);
}

}  // namespace

std::string decisions_section(const Findings& found) {
  std::string out = "<h2>Decisions that mattered</h2>\n";
  if (!found.winner) return out + "<p>No schedule was timed.</p>\n";
  if (found.standings.size() < 2)
    return out + "<p>Only one schedule was timed: there is nothing to compare it with.</p>\n";
  const DecisionEffects all =
      decision_effects(found.standings, found.winner->schedule,
                       found.choice ? std::optional(found.choice->schedule) : std::nullopt);
  if (all.unread > 0)
    out += fmt::format("<p>{} left out: this version does not read their text.</p>\n",
                       page::count_text(all.unread, "schedule"));
  if (all.effects.empty())
    return out + "<p>No timed schedule differs from the winner in a line that a search took.</p>\n";
  out +=
      "<p>For each line of the winner: how much longer the fastest schedule takes that has another "
      "value. That one may differ in other lines, too; where a schedule differs in this line alone "
      "(and in what the compiler's rules make of it), the column <em>alone</em> says what the line "
      "itself is worth.</p>\n"
      "<div class=\"wide\"><table class=\"decisions\">\n<thead><tr><th>Decision</th><th>Winner</th>"
      "<th class=\"number\">Without</th><th></th><th>Fastest other value</th>"
      "<th class=\"number\">Alone</th><th class=\"number\">Schedules<br/>with / without</th></tr>"
      "</thead>\n<tbody>\n";
  const double most = std::max(all.effects[0].change(), 1e-6);
  const std::string& kernel = all.effects[0].kernel;
  const bool names_kernel =
      std::any_of(all.effects.begin(), all.effects.end(),
                  [&](const DecisionEffect& e) { return e.kernel != kernel; });
  const size_t shown = std::min(all.effects.size(), kMostDecisions);
  for (size_t k = 0; k < shown; ++k) out += effect_row(all.effects[k], names_kernel, most);
  out += "</tbody></table></div>\n";
  if (shown < all.effects.size())
    out += fmt::format("<p>{} with less effect not shown.</p>\n",
                       page::count_text(all.effects.size() - shown, "decision"));
  if (all.untried.empty()) return out;
  std::string names;
  for (const std::string& name : all.untried)
    names += fmt::format("{}<code>{}</code>", names.empty() ? "" : ", ", page::escaped(name));
  return out + fmt::format(
                   "<details><summary>{} that no trial had otherwise</summary><p>{}</p>"
                   "</details>\n",
                   page::count_text(all.untried.size(), "decision"), names);
}

}  // namespace nautilus::tune
