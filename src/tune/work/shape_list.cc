// SPDX-License-Identifier: Apache-2.0
#include "tune/work/shape_list.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace nautilus::tune {
namespace {

constexpr std::string_view kJson =
    "a line is an object such as {\"B\": 1, \"N\": 4096, "
    "\"weight\": 3}";

std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> out;
  while (true) {
    const size_t end = std::min(line.find(','), line.size());
    out.emplace_back(without_blanks(line.substr(0, end)));
    if (end == line.size()) return out;
    line.remove_prefix(end + 1);
  }
}

bool is_weight(std::string_view name) { return name == "weight" || name == "count"; }

std::optional<int64_t> size_of(const std::string& text) {
  int64_t out = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failure != std::errc() || end != text.data() + text.size() || out < 1) return std::nullopt;
  return out;
}

std::optional<double> weight_of(const std::string& text) {
  char* end = nullptr;
  const double out = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !std::isfinite(out) || out <= 0) return std::nullopt;
  return out;
}

class ShapeReader {
 public:
  // Why the line is wrong; empty if it is not.
  std::string read(std::string_view line) {
    if (line.front() == '{') return read_object(line);
    if (!out_.empty() && names_.empty()) return std::string(kJson);
    if (names_.empty()) return read_names(line);
    return read_row(line);
  }

  std::vector<WeightedSizes> take() { return std::move(out_); }

 private:
  std::string read_names(std::string_view line) {
    bool has_weight = false;
    bool has_sizes = false;
    for (std::string& name : fields_of(line)) {
      const bool is_name = !name.empty() && name.find_first_of(" \t=\"'") == std::string::npos &&
                           !size_of(name) && !weight_of(name);
      if (!is_name)
        return fmt::format(
            "a table begins with the names of its columns, such as B,N,weight, not "
            "with `{}`",
            line);
      for (const std::string& other : names_) {
        if (other == name) return fmt::format("column `{}` stands twice", name);
      }
      if (is_weight(name) && has_weight) return "`weight` and `count` are two words for one column";
      (is_weight(name) ? has_weight : has_sizes) = true;
      names_.push_back(std::move(name));
    }
    if (has_sizes) return "";
    names_.clear();
    return "no column has sizes";
  }

  std::string read_row(std::string_view line) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != names_.size())
      return fmt::format("{} columns are expected ({}), not {}", names_.size(),
                         fmt::join(names_, ","), fields.size());
    WeightedSizes next;
    for (size_t k = 0; k < fields.size(); ++k) {
      if (std::string why = add(names_[k], fields[k], next); !why.empty()) return why;
    }
    out_.push_back(std::move(next));
    return "";
  }

  std::string read_object(std::string_view line) {
    if (!names_.empty())
      return fmt::format("{} columns are expected ({}), not an object", names_.size(),
                         fmt::join(names_, ","));
    const auto j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object()) return std::string(kJson);
    WeightedSizes next;
    bool has_weight = false;
    for (const auto& [name, value] : j.items()) {
      if (is_weight(name) && has_weight) return "`weight` and `count` are two words for one number";
      has_weight |= is_weight(name);
      if (std::string why = add(name, value.dump(), next); !why.empty()) return why;
    }
    if (next.sizes.empty()) return std::string(kJson);
    out_.push_back(std::move(next));
    return "";
  }

  static std::string add(const std::string& name, const std::string& text, WeightedSizes& to) {
    if (is_weight(name)) {
      const auto weight = weight_of(text);
      if (!weight) return fmt::format("`{}` is a number above 0, not `{}`", name, text);
      to.weight = *weight;
      return "";
    }
    const auto size = size_of(text);
    if (!size) return fmt::format("size `{}` is a whole number from 1, not `{}`", name, text);
    to.sizes.emplace(name, *size);
    return "";
  }

  std::vector<std::string> names_;  // of columns; empty: JSON lines
  std::vector<WeightedSizes> out_;
};

}  // namespace

std::vector<WeightedSizes> in_order(std::vector<WeightedSizes> list) {
  std::map<std::map<std::string, int64_t>, double> weights;
  for (const WeightedSizes& s : list) weights[s.sizes] += s.weight;
  std::vector<WeightedSizes> out;
  for (const auto& [sizes, weight] : weights) out.push_back({sizes, weight});
  return out;
}

std::optional<std::vector<WeightedSizes>> read_shapes(std::string_view text, std::string_view name,
                                                      std::string* error) {
  ShapeReader reader;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (const std::string why = reader.read(line); !why.empty()) {
      *error = fmt::format("{}:{}: {}", name, number, why);
      return std::nullopt;
    }
  }
  std::vector<WeightedSizes> out = in_order(reader.take());
  if (out.empty()) {
    *error = fmt::format("{}: no shapes; {}, or a table with the names of its columns first", name,
                         kJson);
    return std::nullopt;
  }
  return out;
}

}  // namespace nautilus::tune
