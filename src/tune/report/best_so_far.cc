// SPDX-License-Identifier: Apache-2.0
// The times of all trials in their order, and the fastest so far.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/html.h"
#include "tune/report/chart.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

constexpr double kSearchWidth = 960;
constexpr double kSearchHeight = 400;
constexpr double kNotTimedRow = 14;  // below the frame, for trials without a time
constexpr size_t kMostDots = 200;    // with more trials they are smaller

struct SearchChart {
  const Findings& found;
  Scale x;
  Scale y;
  bool has_failures;
  Drawing drawing{kSearchWidth, kSearchHeight};

  double time(double median) const { return found.unit.factor * median; }
  double place(size_t trial) const { return x(static_cast<double>(trial + 1)); }

  std::string title(size_t n) const {
    const Trial& t = *found.trials[n];
    std::string out = fmt::format("trial {}", n + 1);
    if (!found.seconds.empty())
      out += fmt::format(", after {}", page::duration_text(found.seconds[n]));
    out += t.verdict == Verdict::Timed ? fmt::format(": {}", found.unit.text(median(t.times)))
                                       : fmt::format(": {}, {}", word(t.verdict), t.reason);
    if (found.winner && t.schedule == found.winner->schedule) out += " (the winner)";
    if (found.choice && t.schedule == found.choice->schedule) out += " (the compiler's choice)";
    return out;
  }

  // Trials, and below them the time since the first: trials have different durations.
  void axes() {
    std::vector<double> ticks = x.ticks(12);
    std::erase_if(ticks, [&](double t) {
      return t < 1 || t != std::floor(t) || t > static_cast<double>(found.trials.size());
    });
    const bool has_times = !found.seconds.empty() && found.seconds.back() > 0;
    const double below = has_failures ? 2 * kNotTimedRow : 0;
    const Scale frame = Scale::linear(0, 1, y.from() + below, y.to());
    drawing.x_axis(x, frame, ticks, "");
    drawing.y_axis(x, y, y.ticks(7), fmt::format("median time, {}", found.unit.name));
    if (has_times) {
      for (const double t : ticks)
        drawing.text({x(t), frame.from() + 33}, Anchor::Middle, "tick faint",
                     page::duration_text(found.seconds[static_cast<size_t>(t) - 1]));
    }
    drawing.text({(x.from() + x.to()) / 2, frame.from() + (has_times ? 55 : 40)}, Anchor::Middle,
                 "name", has_times ? "trial, and time since the first" : "trial");
  }

  std::string_view style_of(const Trial& t) const {
    if (found.winner && t.schedule == found.winner->schedule) return "dot best";
    if (found.choice && t.schedule == found.choice->schedule) return "dot choice";
    return "dot";
  }

  // Those of the winner and of the compiler's choice last, above all others.
  void dots() {
    const double radius = found.trials.size() > kMostDots ? 2 : 3.2;
    for (const bool is_usual : {true, false}) {
      for (size_t n = 0; n < found.trials.size(); ++n) {
        const Trial& t = *found.trials[n];
        const std::string_view style = style_of(t);
        if ((style == "dot") != is_usual) continue;
        if (t.verdict == Verdict::Timed)
          drawing.dot({place(n), y(time(median(t.times)))}, is_usual ? radius : 4.2, style,
                      title(n));
        else
          drawing.cross({place(n), y.from() + kNotTimedRow}, radius,
                        t.verdict == Verdict::Refused ? "cross" : "cross bad", title(n));
      }
    }
  }

  void best_line() {
    std::vector<Point> corners;
    double best = 0;
    for (size_t n = 0; n < found.trials.size(); ++n) {
      const Trial& t = *found.trials[n];
      if (t.verdict != Verdict::Timed) continue;
      const double now = median(t.times);
      if (!corners.empty() && now >= best) continue;
      if (!corners.empty()) corners.push_back({place(n), y(time(best))});
      best = now;
      corners.push_back({place(n), y(time(best))});
    }
    corners.push_back({x.to(), y(time(best))});
    drawing.polyline(corners, "line best");
  }

  // Names of the two lines, at their right ends.
  void labels() {
    struct Label {
      std::string name;
      double time;
      std::string_view style;
    };
    std::vector<Label> all = {{"best", found.winner->median, "label best"}};
    if (found.choice && found.choice->schedule != found.winner->schedule)
      all.push_back({"compiler's choice", found.choice->median, "label choice"});
    std::vector<double> wanted;
    for (const Label& l : all) wanted.push_back(y(time(l.time)) - 3);
    const std::vector<double> places = spread(wanted, 36, y.to(), y.from() - 8);
    for (size_t k = 0; k < all.size(); ++k) {
      drawing.text({x.to() + 10, places[k]}, Anchor::Start, all[k].style, all[k].name);
      drawing.text({x.to() + 10, places[k] + 16}, Anchor::Start, all[k].style,
                   found.unit.text(all[k].time));
    }
  }
};

// When the winner was first timed.
std::string when_found(const Findings& found) {
  for (size_t n = 0; n < found.trials.size(); ++n) {
    if (found.trials[n]->schedule != found.winner->schedule) continue;
    std::string out =
        fmt::format("The winner was first tried in trial {} of {}", n + 1, found.trials.size());
    if (n > 0 && !found.seconds.empty() && found.seconds.back() > 0)
      out += fmt::format(", {} after the first", page::duration_text(found.seconds[n]));
    return out + ". ";
  }
  return "";
}

}  // namespace

std::string best_so_far_section(const Findings& found) {
  std::string out = "<h2>The search</h2>\n";
  if (found.trials.empty()) return out + "<p>There are no trials of this problem.</p>\n";
  if (!found.winner)
    return out + fmt::format("<p>None of {} was timed and right.</p>\n",
                             page::count_text(found.trials.size(), "trial"));
  std::vector<double> times;
  for (const Trial* t : found.trials) {
    if (t->verdict == Verdict::Timed) times.push_back(found.unit.factor * median(t->times));
  }
  const bool has_failures = times.size() < found.trials.size();
  SearchChart chart{
      found,
      Scale::linear(0.5, static_cast<double>(found.trials.size()) + 0.5, 66, kSearchWidth - 150),
      Scale::around(times, 0.07, kSearchHeight - 72 - (has_failures ? 2 * kNotTimedRow : 0), 34),
      has_failures};
  chart.axes();
  if (found.choice && found.choice->schedule != found.winner->schedule) {
    const double at = chart.y(chart.time(found.choice->median));
    chart.drawing.line({chart.x.from(), at}, {chart.x.to(), at}, "line choice");
  }
  chart.best_line();
  chart.dots();
  chart.labels();
  out += fmt::format(
      "<p>{}Each dot is the median of one trial{}; the line is the fastest trial so far.{}{}</p>\n",
      when_found(found), has_failures ? ", each cross below a trial that was not timed" : "",
      chart.y.is_logarithmic() ? " The scale of times is logarithmic." : "",
      found.choice ? "" : " The compiler's own choice was not timed.");
  return out + chart.drawing.svg("Times of all trials and the fastest so far");
}

}  // namespace nautilus::tune
