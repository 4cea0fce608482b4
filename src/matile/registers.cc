// SPDX-License-Identifier: Apache-2.0
#include "matile/registers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace nautilus::matile {

using layout::Layout;
using layout::Owner;

std::vector<RegisterDigit> register_digits(const Layout& layout) {
  std::vector<RegisterDigit> digits;
  for (const layout::Digit& d : layout.digits()) {
    if (d.owner == Owner::Register) digits.push_back({d.owner_stride, d.extent});
  }
  std::sort(digits.begin(), digits.end(),
            [](const RegisterDigit& a, const RegisterDigit& b) { return a.stride < b.stride; });
  return digits;
}

bool DigitSum::is_constant() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](int c) { return c == 0; });
}

int DigitSum::at(int e) const {
  int value = base;
  for (size_t k = 0; k < digits.size(); ++k)
    value += coefficients[k] * (e / digits[k].stride % digits[k].extent);
  return value;
}

bool DigitSum::is_permutation(int count) const {
  std::vector<bool> seen(static_cast<size_t>(count), false);
  for (int e = 0; e < count; ++e) {
    const int value = at(e);
    if (value < 0 || value >= count || seen[static_cast<size_t>(value)]) return false;
    seen[static_cast<size_t>(value)] = true;
  }
  return true;
}

std::string DigitSum::text(const std::string& e) const {
  // Neighbouring digits that are one larger digit are printed as one.
  struct Term {
    int coefficient;
    int stride;
    int extent;
  };
  std::vector<Term> terms;
  for (size_t k = 0; k < digits.size(); ++k) {
    if (!terms.empty() && terms.back().coefficient != 0 &&
        terms.back().stride * terms.back().extent == digits[k].stride &&
        coefficients[k] == terms.back().coefficient * terms.back().extent) {
      terms.back().extent *= digits[k].extent;
    } else {
      terms.push_back({coefficients[k], digits[k].stride, digits[k].extent});
    }
  }
  const int top = digits.empty() ? 1 : digits.back().stride * digits.back().extent;
  std::string out;
  for (auto t = terms.rbegin(); t != terms.rend(); ++t) {
    if (t->coefficient == 0) continue;
    std::string digit = e;
    if (t->stride != 1) digit += fmt::format(" / {}", t->stride);
    if (t->stride * t->extent != top) digit += fmt::format(" % {}", t->extent);
    const int magnitude = std::abs(t->coefficient);
    if (magnitude != 1)
      digit = digit == e ? fmt::format("{} * {}", magnitude, e)
                         : fmt::format("{} * {}", digit, magnitude);
    if (out.empty())
      out = t->coefficient < 0 ? "-(" + digit + ")" : digit;
    else
      out += (t->coefficient < 0 ? " - " : " + ") + digit;
  }
  if (out.empty()) return fmt::format("{}", base);
  if (base != 0) out += fmt::format(" {} {}", base < 0 ? "-" : "+", std::abs(base));
  return out;
}

DigitSum fit(const Layout& layout, const std::function<int(int)>& f) {
  DigitSum sum{f(0), register_digits(layout), {}};
  for (const RegisterDigit& d : sum.digits) sum.coefficients.push_back(f(d.stride) - sum.base);
  for (int e = 0; e < layout.registers(); ++e)
    NAUT_CHECK(sum.at(e) == f(e), "register {} of {} is no sum of digits", e,
               layout::to_text(layout));
  return sum;
}

std::string thread_coordinate(const Layout& layout, int axis) {
  std::string out;
  for (const layout::Digit& d : layout.digits()) {
    if (d.axis != axis || d.owner == Owner::Register) continue;
    const bool is_warp = d.owner == Owner::Warp;
    NAUT_CHECK(d.owner != Owner::WarpGroup, "a tile spreads over warp groups");
    std::string digit = is_warp ? "warp" : "lane";
    const int top = is_warp ? 4 : 32;
    if (d.owner_stride != 1) digit += fmt::format(" / {}", d.owner_stride);
    if (d.owner_stride * d.extent != top) digit += fmt::format(" % {}", d.extent);
    if (d.stride != 1)
      digit = digit.size() == 4 ? fmt::format("{} * {}", d.stride, digit)
                                : fmt::format("{} * ({})", d.stride, digit);
    out += (out.empty() ? "" : " + ") + digit;
  }
  return out.empty() ? "0" : out;
}

}  // namespace nautilus::matile
