// SPDX-License-Identifier: Apache-2.0
#include "tune/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

namespace nautilus::tune {
namespace {

bool has(const std::string& page, std::string_view text) {
  return page.find(text) != std::string::npos;
}

// What is wrong with the tags of a page, or nothing. Every tag must be closed, attributes quoted,
// and every `&` begin an entity, as XML wants it; that is stricter than HTML.
std::string flaw_of(const std::string& page) {
  std::vector<std::string> open;
  std::string_view rest = page;
  const std::string_view doctype = "<!DOCTYPE html>";
  if (!rest.starts_with(doctype)) return "no doctype";
  rest.remove_prefix(doctype.size());
  while (!rest.empty()) {
    if (!open.empty() && open.back() == "style") rest.remove_prefix(rest.find("</style>"));
    const size_t at = rest.find_first_of("<>&");
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at);
    const std::string near(rest.substr(0, 60));
    if (rest[0] == '>') return "a `>` in text: " + near;
    if (rest[0] == '&') {
      const std::string_view entity = rest.substr(1, rest.find(';') - 1);
      if (entity != "lt" && entity != "gt" && entity != "amp" && entity != "quot" &&
          entity != "#39")
        return "no entity: " + near;
      rest.remove_prefix(1);
      continue;
    }
    // Up to the end of the tag, with quotes in pairs.
    size_t end = 1;
    bool is_quoted = false;
    for (; end < rest.size() && (is_quoted || rest[end] != '>'); ++end) {
      if (rest[end] == '<') return "a `<` in a tag: " + near;
      if (rest[end] == '"') is_quoted = !is_quoted;
    }
    if (end == rest.size()) return "a tag without end: " + near;
    const std::string tag(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "closes something else: " + near;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(Report, FlawsOfAPageAreSeen) {
  const std::string head = "<!DOCTYPE html>";
  EXPECT_EQ(flaw_of(head + "<p class=\"a\">x &lt; y<br/></p>"), "");
  for (const char* bad : {"<p>", "<p></b>", "<p>a & b</p>", "<p>a > b</p>", "<p a=\"<b>\"></p>",
                          "<p>a < b</p>", "<p a=\"b></p>"})
    EXPECT_NE(flaw_of(head + bad), "") << bad;
}

ReportInput problem_on(std::string machine) {
  ReportInput in;
  in.problem = {"0123456789abcdef", {{"M", 4096}, {"N", 512}}, "sm_90a", std::move(machine)};
  in.program = "softmax";
  return in;
}

void add_trial(ReportInput& in, std::string lines, Verdict verdict, std::vector<double> times,
               std::string reason = {}) {
  Trial t;
  t.problem = in.problem;
  t.program = in.program;
  t.schedule =
      fmt::format("schedule @softmax version 2 equations 0123\nkernel Y rows\n  {}\n", lines);
  t.verdict = verdict;
  t.times = std::move(times);
  t.reason = std::move(reason);
  t.compiler = "0.1.0";
  t.date = fmt::format("2026-11-17T07:00:{:02}Z", 2 * in.trials.size());
  in.trials.push_back(std::move(t));
}

// The compiler's choice, two that are better, one worse, two of one cause.
ReportInput usual(std::string machine) {
  ReportInput in = problem_on(std::move(machine));
  add_trial(in, "columns 1024; vector 4", Verdict::Timed, {0.5, 0.5, 0.52});
  add_trial(in, "columns 512 tuned; vector 4", Verdict::Timed, {0.45});
  add_trial(in, "columns 512 tuned; vector 8 tuned", Verdict::Timed, {0.4, 0.4, 0.41});
  add_trial(in, "columns 256 tuned; vector 4", Verdict::Timed, {0.6});
  add_trial(in, "columns 64 tuned; vector 4", Verdict::Refused, {}, "needs 300 of 255 registers");
  add_trial(in, "columns 32 tuned; vector 4", Verdict::Refused, {}, "needs 280 of 255 registers");
  add_trial(in, "columns 16 tuned; vector 4", Verdict::Hung, {}, "not done in 60 s");
  return in;
}

TEST(Report, ThePageHasTheNumbers) {
  ReportInput in = usual("NVIDIA H200");
  in.not_legal = {{"no <such> line", 17}};
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "<h1>softmax M=4096,N=512</h1>"));
  EXPECT_TRUE(has(page, "<strong>0.4000 ms</strong>"));
  EXPECT_TRUE(has(page, "<strong>1.250 ×</strong>"));  // 0.5 / 0.4
  EXPECT_TRUE(has(page, "faster than the compiler&#39;s choice, 0.5000 ms"));
  EXPECT_TRUE(has(page, "trials, 4 timed, 4 schedules"));
  EXPECT_TRUE(has(page, "first tried in trial 3 of 7, 4 s after the first"));
  EXPECT_TRUE(has(page, "<title>trial 4, after 6 s: 0.6000 ms</title>"));
  EXPECT_TRUE(has(page, "<title>trial 7, after 12 s: hung, not done in 60 s</title>"));
  EXPECT_TRUE(has(page, "<mark>vector 8 tuned</mark>"));
  // Decisions: without 512 columns 0.5, without the vector 0.45.
  EXPECT_TRUE(has(page, "<td class=\"number\">+25.0 %</td>"));
  EXPECT_TRUE(has(page, "<td class=\"number\">+12.5 %</td>"));
  // Failures, those that differ in numbers together.
  EXPECT_TRUE(has(page, "3 of 7 trials not timed"));
  EXPECT_TRUE(has(page, "needs N of N registers"));
  EXPECT_TRUE(has(page, "<td class=\"number\">2</td>"));
  EXPECT_TRUE(has(page, "no &lt;such&gt; line"));
  EXPECT_TRUE(has(page, "<td class=\"number\">17</td>"));
}

TEST(Report, ThePageNeedsNothingElse) {
  const std::string page = html_page({usual("NVIDIA H200")});
  for (const std::string_view text : {"<script", "<link", "<img", "@import", "url(", "src="})
    EXPECT_FALSE(has(page, text)) << text;
  // The only address is the name of the format.
  std::string without = page;
  const std::string_view format = "http://www.w3.org/2000/svg";
  for (size_t at = 0; (at = without.find(format)) != std::string::npos;)
    without.erase(at, format.size());
  EXPECT_FALSE(has(without, "http"));
  EXPECT_TRUE(has(page, "prefers-color-scheme: dark"));
}

// The base of each text of a picture is inside it, with and without failures, and where schedules
// were timed again.
TEST(Report, TextsAreInsideTheirPictures) {
  ReportInput in = usual("NVIDIA H200");
  in.floors =
      Floors{.flops = 1e11, .bytes = 1e8, .flops_per_second = 1e15, .bytes_per_second = 4e12};
  ReportInput again = in;
  std::erase_if(again.trials, [](const Trial& t) { return t.verdict != Verdict::Timed; });
  for (int n = 0; n < 3; ++n) again.trials.push_back(again.trials[2]);
  again.floors->flops = 0;
  int texts = 0;
  for (const std::string& page : {html_page({in}), html_page({again})}) {
    double width = 0;
    double height = 0;
    for (std::string_view rest = page; !rest.empty(); rest.remove_prefix(1)) {
      rest.remove_prefix(std::min(rest.find('<'), rest.size()));
      const std::string tag(rest.substr(0, rest.find('>')));
      if (rest.empty()) break;
      if (tag.starts_with("<svg")) {
        ASSERT_EQ(std::sscanf(tag.c_str(), "<svg viewBox=\"0 0 %lf %lf", &width, &height), 2);
      }
      if (!tag.starts_with("<text")) continue;
      double x = 0;
      double y = 0;
      ASSERT_EQ(std::sscanf(tag.c_str(), "<text x=\"%lf\" y=\"%lf", &x, &y), 2) << tag;
      EXPECT_TRUE(x > 0 && x < width && y > 0 && y < height) << tag;
      ++texts;
    }
  }
  EXPECT_GT(texts, 40);
}

TEST(Report, ShareOfTheRoofOfProducts) {
  ReportInput in = usual("NVIDIA H200");
  in.floors =
      Floors{.flops = 1e11, .bytes = 1e8, .flops_per_second = 1e15, .bytes_per_second = 4e12};
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  // 0.1 ms of operations, 0.025 ms of bytes; the best takes 0.4 ms.
  EXPECT_TRUE(has(page, "no less than 0.1000 ms"));
  EXPECT_TRUE(has(page, ">best: 250 TFLOP/s, 25.0 %</text>"));
  EXPECT_TRUE(has(page, ">compiler&#39;s choice: 200 TFLOP/s, 20.0 %</text>"));
  EXPECT_TRUE(has(page, "<strong>25.0 %</strong>"));
}

TEST(Report, ShareOfTheRoofOfBytes) {
  ReportInput in = usual("NVIDIA H200");
  in.floors = Floors{.flops = 0, .bytes = 8e8, .flops_per_second = 1e15, .bytes_per_second = 4e12};
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "No products; 800 MB"));
  EXPECT_TRUE(has(page, ">best: 2.00 TB/s, 50.0 %</text>"));
  EXPECT_FALSE(has(page, "TFLOP/s"));
}

TEST(Report, StepsOfTheEmulatorHaveNoRoof) {
  ReportInput in = problem_on("emulator");
  add_trial(in, "columns 1024", Verdict::Timed, {12084});
  add_trial(in, "columns 512 tuned", Verdict::Timed, {10042});
  in.floors =
      Floors{.flops = 1e11, .bytes = 1e8, .flops_per_second = 1e15, .bytes_per_second = 4e12};
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "<strong>10,042 steps</strong>"));
  EXPECT_TRUE(has(page, "Steps of the emulator say nothing"));
  EXPECT_FALSE(has(page, "of the machine&#39;s roof"));
}

TEST(Report, ShortTimesAreMicroseconds) {
  ReportInput in = problem_on("NVIDIA H200");
  add_trial(in, "columns 1024", Verdict::Timed, {0.0123});
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "<strong>12.30 µs</strong>"));
}

TEST(Report, TextOfTrialsCannotBecomeMarkup) {
  ReportInput in = problem_on("<script>alert(1)</script>");
  in.program = "a<b";
  add_trial(in, "columns 1024 \"quoted\" <i>", Verdict::Timed, {1});
  add_trial(in, "columns 1024", Verdict::Failed, {}, "</td><b>\"'&\xFF");
  in.trials[0].compiler = "<0.1>";
  in.trials[0].date = "no \"date\"";
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<i>"));
  EXPECT_TRUE(has(page, "&lt;/td&gt;&lt;b&gt;&quot;&#39;&amp;\xEF\xBF\xBD"));
}

TEST(Report, OddTrialsStillMakeAPage) {
  ReportInput in = problem_on("NVIDIA H200");
  std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "There are no trials of this problem."));

  add_trial(in, "columns 1024", Verdict::Refused, {}, "");
  page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "None of 1 trial was timed and right."));
  EXPECT_TRUE(has(page, "no reason was given"));

  // Timed and then wrong: it is out.
  ReportInput out = problem_on("NVIDIA H200");
  add_trial(out, "columns 1024", Verdict::Timed, {1});
  add_trial(out, "columns 1024", Verdict::Wrong, {}, "`Y`: 3 of 8 elements");
  page = html_page({out});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "None of 2 trials was timed and right."));

  // One trial, which took no time at all.
  ReportInput zero = problem_on("NVIDIA H200");
  add_trial(zero, "columns 1024", Verdict::Timed, {0});
  zero.floors = Floors{.flops = 1, .bytes = 1, .flops_per_second = 1, .bytes_per_second = 1};
  page = html_page({zero});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "Only one schedule was timed"));
  EXPECT_FALSE(has(page, "nan"));
  EXPECT_FALSE(has(page, "inf\""));
}

// Of many that are not told apart the winner may come late by its median.
TEST(Report, TheWinnerIsAlwaysListed) {
  ReportInput in = problem_on("emulator");
  for (int n = 0; n < 20; ++n)
    add_trial(in, fmt::format("columns 512 tuned; vector {} tuned", n), Verdict::Timed, {7065});
  add_trial(in, "threads 128", Verdict::Timed, {7065});
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "<tr class=\"winner\"><td class=\"number\">21</td>"));
}

TEST(Report, TheCompilersChoiceMayWin) {
  ReportInput in = problem_on("NVIDIA H200");
  add_trial(in, "columns 512", Verdict::Timed, {0.4});
  add_trial(in, "columns 256 tuned", Verdict::Timed, {0.6});
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "no schedule was better than the compiler&#39;s choice"));
  EXPECT_FALSE(has(page, "faster than"));
}

TEST(Report, WithoutTheCompilersChoice) {
  ReportInput in = problem_on("NVIDIA H200");
  add_trial(in, "columns 512 tuned", Verdict::Timed, {0.4});
  add_trial(in, "columns 256 tuned", Verdict::Timed, {0.6});
  const std::string page = html_page({in});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "own choice was not timed"));
  EXPECT_FALSE(has(page, "faster than"));
}

TEST(Report, OrderOfTrialsDoesNotMatter) {
  ReportInput in = usual("NVIDIA H200");
  const std::string page = html_page({in});
  std::reverse(in.trials.begin(), in.trials.end());
  EXPECT_EQ(html_page({in}), page);
}

TEST(Report, SeveralProblemsAreOnePage) {
  const std::string page = html_page({usual("NVIDIA H200"), usual("emulator")});
  EXPECT_EQ(flaw_of(page), "");
  EXPECT_TRUE(has(page, "<a href=\"#problem2\">"));
  EXPECT_TRUE(has(page, "<section id=\"problem2\">"));
  EXPECT_EQ(flaw_of(html_page({})), "");
}

}  // namespace
}  // namespace nautilus::tune
