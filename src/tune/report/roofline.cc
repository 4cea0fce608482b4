// SPDX-License-Identifier: Apache-2.0
// How far schedules are from what the machine could do. All schedules of a problem have the same
// operations and bytes, so they are one column of the usual picture; programs without products
// have one number, the bytes per second.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "page/html.h"
#include "tune/report/chart.h"
#include "tune/report/sections.h"

namespace nautilus::tune {
namespace {

constexpr double kRoofWidth = 960;
constexpr double kRoofHeight = 420;
constexpr double kBoldCharacter = 8;  // width of most, in a label
constexpr double kBandHeight = 190;   // of the picture without products
constexpr double kTera = 1e12;

std::string_view style_of_schedule(const Findings& found, const Winner& w) {
  if (w.schedule == found.winner->schedule) return "dot best";
  if (found.choice && w.schedule == found.choice->schedule) return "dot choice";
  return "dot";
}

// Dots that would hide each other are drawn side by side, in the same way in every run.
constexpr double kAside = 24;  // more where there are many
constexpr size_t kManyDots = 150;

double width_of_dots(size_t count) { return count > kManyDots ? 2 * kAside : kAside; }

double aside(size_t n, size_t of) {
  const double width = width_of_dots(of);
  return n == 0 ? 0 : width * (std::fmod(0.618034 * static_cast<double>(n), 1.0) - 0.5);
}

// Of the places in the standings: the winner and the compiler's choice last, above all others.
std::vector<size_t> drawing_order(const Findings& found) {
  std::vector<size_t> out;
  for (const bool is_usual : {true, false}) {
    for (size_t n = found.standings.size(); n-- > 0;) {
      if ((style_of_schedule(found, found.standings[n]) == "dot") == is_usual) out.push_back(n);
    }
  }
  return out;
}

struct RoofLabel {
  std::string text;
  double rate;
  std::string_view style;
};

// The best and, if it is another one, the compiler's choice.
std::vector<RoofLabel> roof_labels(const Findings& found, double work, std::string_view unit) {
  std::vector<RoofLabel> out;
  const auto add = [&](std::string_view name, const Winner& w, std::string_view style) {
    const double rate = 1e3 * work / w.median;
    out.push_back({fmt::format("{}: {}, {}", name, page::prefixed_text(rate, unit),
                               page::percent_text(*found.share_of_roof(w.median))),
                   rate, style});
  };
  add("best", *found.winner, "label best");
  if (found.choice && found.choice->schedule != found.winner->schedule)
    add("compiler's choice", *found.choice, "label choice");
  return out;
}

std::string dot_title(const Findings& found, const Winner& w, double rate, std::string_view unit) {
  return fmt::format("{}: {}, {} of the roof", found.unit.text(w.median),
                     page::prefixed_text(rate, unit),
                     page::percent_text(*found.share_of_roof(w.median)));
}

// Operations per second over operations per byte.
struct RoofPicture {
  const Floors& floors;
  Scale x;
  Scale y;

  double ridge() const { return floors.flops_per_second / floors.bytes_per_second; }
  Point on_roof(double intensity) const {
    return {x(intensity),
            y(std::min(floors.flops_per_second, intensity * floors.bytes_per_second) / kTera)};
  }
};

RoofPicture roof_picture(const Findings& found) {
  const Floors& f = *found.input->floors;
  const double ridge = f.flops_per_second / f.bytes_per_second;
  const double slowest = 1e3 * f.flops / found.standings.back().median;
  const double fastest = 1e3 * f.flops / found.standings.front().median;
  return {f,
          Scale::logarithmic(std::min(ridge, f.intensity()) / 8,
                             std::max(ridge, f.intensity()) * 16, 66, kRoofWidth - 20),
          Scale::logarithmic(std::min(slowest, f.roof()) / 2.5 / kTera,
                             1.7 * std::max(fastest, f.flops_per_second) / kTera, kRoofHeight - 56,
                             34)};
}

void draw_roof(const RoofPicture& p, Drawing& drawing) {
  const Floors& f = p.floors;
  // From where it enters the picture.
  const double first = std::max(p.x.low(), p.y.low() * kTera / f.bytes_per_second);
  const bool has_slope = first < p.ridge();
  if (has_slope) drawing.polyline({p.on_roof(first), p.on_roof(p.ridge())}, "line roof");
  drawing.polyline({p.on_roof(std::max(p.ridge(), first)), p.on_roof(p.x.high())}, "line roof");
  drawing.text(
      {p.x.to() - 4, p.on_roof(p.x.high()).y - 8}, Anchor::End, "label",
      fmt::format("{}, products of 16 bits", page::prefixed_text(f.flops_per_second, "FLOP/s")));
  if (!has_slope) return;
  const Point a = p.on_roof(first);
  const Point b = p.on_roof(p.ridge());
  const double degrees = std::atan2(b.y - a.y, b.x - a.x) * 180 / std::numbers::pi;
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  const Point middle{(a.x + b.x) / 2 - 8 * (a.y - b.y) / length,
                     (a.y + b.y) / 2 - 8 * (b.x - a.x) / length};
  drawing.text(middle, Anchor::Middle, "label",
               fmt::format("{} memory", page::prefixed_text(f.bytes_per_second, "B/s")), degrees);
}

void draw_labels(const Findings& found, const RoofPicture& p, Drawing& drawing) {
  const double at = p.x(p.floors.intensity());
  const std::vector<RoofLabel> labels = roof_labels(found, p.floors.flops, "FLOP/s");
  std::vector<double> wanted;
  for (const RoofLabel& l : labels) wanted.push_back(p.y(l.rate / kTera) + 4);
  // Below the roof, so that its line does not cross them.
  const std::vector<double> places =
      spread(wanted, 20, p.on_roof(p.floors.intensity()).y + 18, p.y.from() - 8);
  // On the side that has room for all of them.
  const double apart = width_of_dots(found.standings.size()) / 2 + 8;
  const bool is_right = std::all_of(labels.begin(), labels.end(), [&](const RoofLabel& l) {
    return at + apart + 4 + kBoldCharacter * static_cast<double>(l.text.size()) < p.x.to();
  });
  const double side = is_right ? 1 : -1;
  for (size_t k = 0; k < labels.size(); ++k) {
    drawing.line({at + 7 * side, wanted[k] - 4}, {at + apart * side, places[k] - 4}, "leader");
    drawing.text({at + (apart + 4) * side, places[k]}, is_right ? Anchor::Start : Anchor::End,
                 labels[k].style, labels[k].text);
  }
}

std::string picture_of_products(const Findings& found) {
  const RoofPicture p = roof_picture(found);
  const Floors& f = p.floors;
  Drawing drawing(kRoofWidth, kRoofHeight);
  drawing.x_axis(p.x, p.y, p.x.ticks(10), "operations of products per byte of inputs and outputs");
  drawing.y_axis(p.x, p.y, p.y.ticks(8), "TFLOP/s");
  draw_roof(p, drawing);
  const double at = p.x(f.intensity());
  drawing.line({at, p.on_roof(f.intensity()).y}, {at, p.y.from()}, "line problem");
  for (const size_t n : drawing_order(found)) {
    const Winner& w = found.standings[n];
    const double rate = 1e3 * f.flops / w.median;
    const std::string_view style = style_of_schedule(found, w);
    drawing.dot({at + (style == "dot" ? aside(n, found.standings.size()) : 0), p.y(rate / kTera)},
                style == "dot" ? 2.6 : 4.6, style, dot_title(found, w, rate, "FLOP/s"));
  }
  draw_labels(found, p, drawing);
  return drawing.svg("Speed of all schedules below the roof of the machine");
}

// In bytes per second.
std::string picture_of_bytes(const Findings& found) {
  const Floors& f = *found.input->floors;
  constexpr double kGiga = 1e9;
  const double fastest = 1e3 * f.bytes / found.standings.front().median;
  const Scale x =
      Scale::linear(0, 1.06 * std::max(fastest, f.bytes_per_second) / kGiga, 20, kRoofWidth - 20);
  const Scale y = Scale::linear(0, 1, kBandHeight - 56, 30);
  Drawing drawing(kRoofWidth, kBandHeight);
  drawing.x_axis(x, y, x.ticks(10), "GB/s of inputs and outputs");
  const double roof = x(f.bytes_per_second / kGiga);
  drawing.line({roof, y.from()}, {roof, y.to()}, "line roof");
  drawing.text({roof, y.to() - 10}, Anchor::End, "label",
               fmt::format("{} memory", page::prefixed_text(f.bytes_per_second, "B/s")));
  const double middle = y(0.25);
  for (const size_t n : drawing_order(found)) {
    const Winner& w = found.standings[n];
    const double rate = 1e3 * f.bytes / w.median;
    const std::string_view style = style_of_schedule(found, w);
    drawing.dot({x(rate / kGiga), middle + (style == "dot" ? aside(n, found.standings.size()) : 0)},
                style == "dot" ? 2.6 : 4.6, style, dot_title(found, w, rate, "B/s"));
  }
  // One above the other: their dots are often near each other.
  const std::vector<RoofLabel> labels = roof_labels(found, f.bytes, "B/s");
  for (size_t k = 0; k < labels.size(); ++k) {
    const double base = y.to() + 16 + 20 * static_cast<double>(k);
    const double at = x(labels[k].rate / kGiga);
    const bool is_right = at > (x.from() + x.to()) / 2;
    drawing.line({at, base + 4}, {at, middle - 6}, "leader");
    drawing.text({at + (is_right ? 3 : -3), base}, is_right ? Anchor::End : Anchor::Start,
                 labels[k].style, labels[k].text);
  }
  return drawing.svg("Bytes per second of all schedules");
}

}  // namespace

std::string roofline_section(const Findings& found) {
  const std::string heading = "<h2>Distance from the machine's limits</h2>\n";
  const auto& floors = found.input->floors;
  if (found.is_emulated)
    return heading + "<p>Steps of the emulator say nothing about the speed of a machine.</p>\n";
  if (!floors)
    return heading +
           "<p>What the program has to compute is not known: trials keep the hash of its equations "
           "only.</p>\n";
  std::string out = heading;
  out += fmt::format(
      "<p>{}{} of inputs and outputs: by the target's numbers no less than {}.{}</p>\n",
      floors->flops > 0
          ? fmt::format("{} of products and ", page::prefixed_text(floors->flops, "FLOP"))
          : "No products; ",
      page::prefixed_text(floors->bytes, "B"), found.unit.text(floors->least_ms()),
      " A device whose clock is higher than the usual one, or whose cache holds the tensors, can "
      "be faster. Percentages are shares of the roof, and so of that time.");
  if (!found.winner) return out + "<p>No schedule was timed.</p>\n";
  if (found.standings.front().median <= 0)
    return out + "<p>The fastest schedule took no time that the clock could see.</p>\n";
  return out + (floors->flops > 0 ? picture_of_products(found) : picture_of_bytes(found));
}

}  // namespace nautilus::tune
