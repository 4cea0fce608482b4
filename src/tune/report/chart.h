// SPDX-License-Identifier: Apache-2.0
// Charts as inline SVG: scales with their ticks, a frame with axes, and shapes with a title that
// shows when the pointer rests on them. Colours are classes; the page's style gives them, light or
// dark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::tune {

// From values to places along an axis.
class Scale {
 public:
  static Scale linear(double low, double high, double from, double to) {
    return {low, high, from, to, false};
  }
  static Scale logarithmic(double low, double high, double from, double to) {
    return {low, high, from, to, true};
  }
  // Around positive values: logarithmic where they differ much. `room` is left at both ends, as a
  // share of the axis.
  static Scale around(const std::vector<double>& values, double room, double from, double to);

  // Values outside the axis are at its end.
  double operator()(double value) const;
  // Round values inside the axis, at most so many and, unless the axis is empty, at least two.
  std::vector<double> ticks(size_t most) const;

  double low() const { return low_; }
  double high() const { return high_; }
  double from() const { return from_; }
  double to() const { return to_; }
  bool is_logarithmic() const { return is_logarithmic_; }

 private:
  Scale(double low, double high, double from, double to, bool is_logarithmic)
      : low_(low), high_(high), from_(from), to_(to), is_logarithmic_(is_logarithmic) {}

  double low_, high_, from_, to_;
  bool is_logarithmic_;
};

// Without digits that rounding left: 0.3, 1,200.
std::string tick_text(double value);

// Places for labels near `wanted`: in their order, at least `distance` apart and not beyond `high`,
// and not before `low` where there is room.
std::vector<double> spread(const std::vector<double>& wanted, double distance, double low,
                           double high);

enum class Anchor : uint8_t { Start, Middle, End };

struct Point {
  double x = 0;
  double y = 0;
};

// `style` is a class of the page's style; a title shows when the pointer rests on the shape.
class Drawing {
 public:
  Drawing(double width, double height) : width_(width), height_(height) {}

  void line(Point a, Point b, std::string_view style);
  void polyline(const std::vector<Point>& points, std::string_view style);
  void dot(Point at, double radius, std::string_view style, std::string_view title = {});
  void cross(Point at, double radius, std::string_view style, std::string_view title = {});
  void text(Point at, Anchor anchor, std::string_view style, std::string_view text,
            double degrees = 0);

  // Grid lines, ticks and the name of the axis; at the bottom and at the left of the frame that
  // the two scales make.
  void x_axis(const Scale& x, const Scale& y, const std::vector<double>& ticks,
              std::string_view name);
  void y_axis(const Scale& x, const Scale& y, const std::vector<double>& ticks,
              std::string_view name);

  // The whole drawing; `about` is for readers who do not see it.
  std::string svg(std::string_view about) const;

 private:
  double width_, height_;
  std::string shapes_;
};

}  // namespace nautilus::tune
