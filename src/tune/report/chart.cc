// SPDX-License-Identifier: Apache-2.0
#include "tune/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "page/html.h"

namespace nautilus::tune {
namespace {

constexpr double kMuch = 4;  // times the least value: then an axis is logarithmic

// 1, 2 or 5 times a power of ten, not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> multiples(double step, double low, double high) {
  std::vector<double> out;
  const double slack = 1e-9 * step;
  for (double n = std::ceil((low - slack) / step); n * step <= high + slack; ++n)
    out.push_back(n * step);
  return out;
}

// Powers of ten, each `stride` decades, times the factors.
std::vector<double> round_powers(const std::vector<double>& factors, int stride, double low,
                                 double high) {
  std::vector<double> out;
  const auto first = static_cast<int>(std::floor(std::log10(low)));
  const auto last = static_cast<int>(std::ceil(std::log10(high)));
  for (int decade = first; decade <= last; ++decade) {
    if (decade % stride != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10.0, decade);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) out.push_back(value);
    }
  }
  return out;
}

std::string title_of(std::string_view title) {
  return title.empty() ? "" : fmt::format("<title>{}</title>", page::escaped(title));
}

}  // namespace

Scale Scale::around(const std::vector<double>& values, double room, double from, double to) {
  if (values.empty()) return linear(0, 1, from, to);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (*least > 0 && *most > kMuch * *least) {
    const double factor = std::pow(*most / *least, room);
    return logarithmic(*least / factor, *most * factor, from, to);
  }
  // Equal values have a tenth of their size around them.
  const double size = std::max(*most - *least, 0.1 * std::abs(*most));
  const double margin = size > 0 ? room * size + (size - (*most - *least)) / 2 : 1;
  return linear(*least - margin, *most + margin, from, to);
}

double Scale::operator()(double value) const {
  value = std::clamp(value, low_, high_);
  const double share = is_logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                       : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::vector<double> Scale::ticks(size_t most) const {
  if (!(high_ > low_) || most < 2) return {};
  if (is_logarithmic_) {
    const std::vector<double> fine = round_powers({1, 2, 5}, 1, low_, high_);
    if (fine.size() >= 3 && fine.size() <= most) return fine;
    for (int stride = 1; fine.size() > most; ++stride) {
      std::vector<double> powers = round_powers({1}, stride, low_, high_);
      if (powers.size() <= most) {
        if (powers.size() >= 2) return powers;
        break;
      }
    }
  }
  for (double step = round_step((high_ - low_) / static_cast<double>(most));;
       step = round_step(1.5 * step)) {
    std::vector<double> found = multiples(step, low_, high_);
    if (found.size() <= most) return found;
  }
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  int digits = 1;
  while (digits < 10) {
    const double unit =
        std::pow(10.0, digits - 1 - std::floor(std::log10(std::abs(value)) + 1e-12));
    if (std::abs(std::round(value * unit) / unit - value) <= 1e-9 * std::abs(value)) break;
    ++digits;
  }
  return page::number_text(value, digits);
}

std::vector<double> spread(const std::vector<double>& wanted, double distance, double low,
                           double high) {
  std::vector<size_t> order(wanted.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<double> out = wanted;
  // Down from the first, then up from the end what went too far.
  double least = low;
  for (const size_t k : order) {
    out[k] = std::max(out[k], least);
    least = out[k] + distance;
  }
  double most = high;
  for (auto k = order.rbegin(); k != order.rend(); ++k) {
    out[*k] = std::min(out[*k], most);
    most = out[*k] - distance;
  }
  return out;
}

void Drawing::line(Point a, Point b, std::string_view style) {
  shapes_ += fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)",
                         a.x, a.y, b.x, b.y, style);
  shapes_ += '\n';
}

void Drawing::polyline(const std::vector<Point>& points, std::string_view style) {
  std::string places;
  for (const Point& p : points)
    places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", p.x, p.y);
  shapes_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", places, style);
}

void Drawing::dot(Point at, double radius, std::string_view style, std::string_view title) {
  shapes_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" class="{}">{}</circle>)",
                         at.x, at.y, radius, style, title_of(title));
  shapes_ += '\n';
}

void Drawing::cross(Point at, double radius, std::string_view style, std::string_view title) {
  shapes_ += fmt::format(
      R"(<path d="M{:.1f} {:.1f}l{:.1f} {:.1f}m0 {:.1f}l{:.1f} {:.1f}" class="{}">{}</path>)",
      at.x - radius, at.y - radius, 2 * radius, 2 * radius, -2 * radius, -2 * radius, 2 * radius,
      style, title_of(title));
  shapes_ += '\n';
}

void Drawing::text(Point at, Anchor anchor, std::string_view style, std::string_view text,
                   double degrees) {
  const std::string_view where = anchor == Anchor::Start    ? "start"
                                 : anchor == Anchor::Middle ? "middle"
                                                            : "end";
  const std::string turn = degrees == 0 ? ""
                                        : fmt::format(" transform=\"rotate({:.1f} {:.1f} {:.1f})\"",
                                                      degrees, at.x, at.y);
  shapes_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}"{}>{}</text>)",
                         at.x, at.y, where, style, turn, page::escaped(text));
  shapes_ += '\n';
}

void Drawing::x_axis(const Scale& x, const Scale& y, const std::vector<double>& ticks,
                     std::string_view name) {
  constexpr double kTickText = 17;  // from the axis to the base of its text
  constexpr double kName = 40;
  for (const double t : ticks) {
    line({x(t), y.to()}, {x(t), y.from()}, "grid");
    text({x(t), y.from() + kTickText}, Anchor::Middle, "tick", tick_text(t));
  }
  line({x.from(), y.from()}, {x.to(), y.from()}, "axis");
  if (!name.empty())
    text({(x.from() + x.to()) / 2, y.from() + kName}, Anchor::Middle, "name", name);
}

void Drawing::y_axis(const Scale& x, const Scale& y, const std::vector<double>& ticks,
                     std::string_view name) {
  constexpr double kHalfText = 4;
  for (const double t : ticks) {
    line({x.from(), y(t)}, {x.to(), y(t)}, "grid");
    text({x.from() - 8, y(t) + kHalfText}, Anchor::End, "tick", tick_text(t));
  }
  // Above the axis, where it is read without turning the head.
  if (!name.empty()) text({x.from(), y.to() - 12}, Anchor::Start, "name", name);
}

std::string Drawing::svg(std::string_view about) const {
  return fmt::format(
      "<div class=\"wide\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n{}</svg></div>\n",
      width_, height_, page::escaped(about), shapes_);
}

}  // namespace nautilus::tune
