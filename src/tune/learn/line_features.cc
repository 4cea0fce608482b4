// SPDX-License-Identifier: Apache-2.0
#include "tune/learn/line_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "schedule/text/schedule.h"

namespace nautilus::tune {
namespace {

namespace dc = decision;

// Lines with the same verb that have columns of their own, as a kernel has them in order: the first
// operands are the large ones. Later lines share the last column.
constexpr size_t kPlaces = 3;

// The columns of a verb begin at `first`: one for each combination of its words, which counts lines
// with them; then one for each of its numbers and places; then one for the length of each list.
struct Columns {
  size_t first = 0;
  size_t combinations = 1;
  std::vector<const ir::Field*> words;
  std::vector<const ir::Field*> numbers;
  std::vector<const ir::Field*> lists;
};

struct Table {
  std::map<const ir::OpInfo*, Columns> columns;
  std::vector<std::string> names;
};

// The words of a combination, as a line has them.
std::string words_text(const Columns& c, size_t combination) {
  std::string out;
  for (const ir::Field* f : c.words) {
    out += fmt::format(" {}", (*f->words)[combination % f->words->size()]);
    combination /= f->words->size();
  }
  return out;
}

void add_names(std::string_view verb, const Columns& c, std::vector<std::string>& names) {
  for (size_t k = 0; k < c.combinations; ++k)
    names.push_back(fmt::format("{}{}", verb, words_text(c, k)));
  for (const ir::Field* f : c.numbers) {
    for (size_t place = 1; place <= kPlaces; ++place)
      names.push_back(fmt::format("{} {}, line {}", verb, f->name, place));
  }
  for (const ir::Field* f : c.lists) names.push_back(fmt::format("{} {}, count", verb, f->name));
}

const Table& table() {
  static const Table kTable = [] {
    Table out;
    for (const ir::OpInfo* info : dc::vocabulary()) {
      Columns c;
      c.first = out.names.size();
      for (const ir::Field& f : info->fields) {
        if (f.name == "by") continue;  // who chose a line does not change its kernel
        if (f.kind == ir::FieldKind::Enum) {
          c.words.push_back(&f);
          c.combinations *= f.words->size();
        }
        if (f.kind == ir::FieldKind::Int) c.numbers.push_back(&f);
        if (f.kind == ir::FieldKind::NameList) c.lists.push_back(&f);
      }
      add_names(info->mnemonic(), c, out.names);
      out.columns.emplace(info, std::move(c));
    }
    return out;
  }();
  return kTable;
}

// Adds a list of lines, each number times `weight`.
void add(const ir::Block& lines, double weight, Features& out) {
  std::map<const ir::OpInfo*, size_t> places;
  for (const ir::Op& line : lines) {
    const auto found = table().columns.find(&line.info());
    if (found == table().columns.end()) continue;
    const Columns& c = found->second;
    const size_t place = std::min(places[&line.info()]++, kPlaces - 1);
    size_t at = 0;
    size_t factor = 1;
    for (const ir::Field* f : c.words) {
      at += factor * ir::field_value<uint8_t>(line.data(), *f);
      factor *= f->words->size();
    }
    out[c.first + at] += weight;
    for (size_t k = 0; k < c.numbers.size(); ++k) {
      const auto number = ir::field_value<ir::OptionalInt>(line.data(), *c.numbers[k]);
      // Zero is another thing than no number.
      if (number)
        out[c.first + c.combinations + kPlaces * k + place] +=
            weight * std::log2(2 + static_cast<double>(std::max<int64_t>(*number, 0)));
    }
    for (size_t k = 0; k < c.lists.size(); ++k)
      out[c.first + c.combinations + kPlaces * c.numbers.size() + k] +=
          weight * static_cast<double>(ir::field_value<ir::Names>(line.data(), *c.lists[k]).size());
  }
}

}  // namespace

const std::vector<std::string>& line_feature_names() { return table().names; }

Features line_features(std::string_view text, const Running& running) {
  Features out(table().names.size(), 0);
  expr::ExprPool pool;
  const auto parsed = schedule::parse_schedule(text, pool);
  if (!parsed) return out;
  add(parsed->lines, 1, out);
  for (const schedule::KernelSchedule& kernel : parsed->kernels) {
    const double share = 1 / static_cast<double>(kernel.alternatives.size());
    for (size_t a = 0; a < kernel.alternatives.size(); ++a) {
      if (running.empty()) {
        add(kernel.alternatives[a], share, out);
      } else if (std::find(running.begin(), running.end(), std::pair(kernel.name, a)) !=
                 running.end()) {
        add(kernel.alternatives[a], 1, out);
      }
    }
  }
  return out;
}

Features sample_features(const Features& kernels, std::string_view schedule,
                         const Running& running) {
  if (kernels.size() != feature_names().size()) return {};
  Features out = kernels;
  const Features lines = line_features(schedule, running);
  out.insert(out.end(), lines.begin(), lines.end());
  return out;
}

}  // namespace nautilus::tune
