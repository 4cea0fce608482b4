// SPDX-License-Identifier: Apache-2.0
#include "tune/report/report.h"

#include <fmt/format.h>

#include <set>

#include "page/html.h"
#include "page/page_style.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

std::string name_of_problem(const ReportInput& in) {
  const std::string sizes = sizes_text(in.problem.sizes);
  return fmt::format("{}{}{}", in.program.empty() ? "a program" : in.program,
                     sizes.empty() ? "" : " ", sizes);
}

// Where and when, in one line.
std::string facts_line(const Findings& found) {
  const Problem& problem = found.input->problem;
  std::set<std::string> compilers;
  for (const Trial* t : found.trials) compilers.insert(t->compiler);
  std::string out =
      fmt::format("{} · target {}", page::escaped(problem.machine), page::escaped(problem.target));
  if (!compilers.empty())
    out +=
        fmt::format(" · nautilus {}", page::escaped(fmt::format("{}", fmt::join(compilers, ", "))));
  if (!found.trials.empty())
    out += fmt::format(" · {} to {}", page::escaped(found.trials.front()->date),
                       page::escaped(found.trials.back()->date));
  return fmt::format("<p class=\"facts\">{} · equations {}</p>\n", out,
                     page::escaped(problem.equations.substr(0, 12)));
}

std::string number_tile(std::string_view value, std::string_view what) {
  return fmt::format("<div class=\"tile\"><strong>{}</strong><span>{}</span></div>\n",
                     page::escaped(value), page::escaped(what));
}

std::string number_tiles(const Findings& found) {
  std::string out = "<div class=\"tiles\">\n";
  if (found.winner) {
    out += number_tile(found.unit.text(found.winner->median), "best schedule, median");
    if (found.choice && found.choice->schedule == found.winner->schedule)
      out += number_tile("1.000 ×", "no schedule was better than the compiler's choice");
    else if (found.choice && found.winner->median > 0)
      out += number_tile(fmt::format("{:.3f} ×", found.choice->median / found.winner->median),
                         fmt::format("faster than the compiler's choice, {}",
                                     found.unit.text(found.choice->median)));
    if (const auto share = found.share_of_roof(found.winner->median))
      out += number_tile(page::percent_text(*share), "of the machine's roof");
  } else {
    out += number_tile("none", "schedule was timed");
  }
  size_t timed = 0;
  for (const Trial* t : found.trials) timed += t->verdict == Verdict::Timed ? 1 : 0;
  out += number_tile(page::number_text(static_cast<double>(found.trials.size()), 1),
                     fmt::format("trial{}, {} timed, {}", found.trials.size() == 1 ? "" : "s",
                                 timed, page::count_text(found.standings.size(), "schedule")));
  return out + "</div>\n";
}

std::string part_of(const ReportInput& in, size_t number) {
  const Findings found = findings_of(in);
  std::string out = fmt::format("<section id=\"problem{}\">\n<h1>{}</h1>\n", number,
                                page::escaped(name_of_problem(in)));
  out += facts_line(found) + number_tiles(found);
  out += best_so_far_section(found) + roofline_section(found) + decisions_section(found);
  return out + failures_section(found) + schedules_section(found) + "</section>\n";
}

}  // namespace

std::string html_page(const std::vector<ReportInput>& problems) {
  std::string body;
  if (problems.empty()) body = "<p>There are no trials.</p>\n";
  if (problems.size() > 1) {
    body += "<nav><ul>\n";
    for (size_t n = 0; n < problems.size(); ++n)
      body += fmt::format(
          "<li><a href=\"#problem{}\">{}</a> <span class=\"faint\">{}</span></li>\n", n + 1,
          page::escaped(name_of_problem(problems[n])), page::escaped(problems[n].problem.machine));
    body += "</ul></nav>\n";
  }
  for (size_t n = 0; n < problems.size(); ++n) body += part_of(problems[n], n + 1);
  const std::string title =
      problems.size() == 1 ? "Tuning " + name_of_problem(problems[0]) : "Tuning";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</"
      "html>\n",
      page::escaped(title), page::kPageStyle, body);
}

}  // namespace nautilus::tune
