// SPDX-License-Identifier: Apache-2.0
#include "tune/records/trial_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "tune/records/database.h"

namespace nautilus::tune {
namespace {

// The first bytes of every SQLite file.
constexpr std::string_view kDatabaseMark = "SQLite format 3";

std::optional<std::vector<Trial>> trials_of_lines(const std::string& path, const std::string& text,
                                                  std::string* error) {
  std::vector<Trial> out;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line(text.data() + at, end - at);
    at = end + 1;
    ++number;
    if (line.empty()) continue;
    auto trial = trial_of_json(line, error);
    if (!trial) {
      *error = fmt::format("{}:{}: {}", path, number, *error);
      return std::nullopt;
    }
    out.push_back(std::move(*trial));
  }
  return out;
}

}  // namespace

std::optional<std::vector<Trial>> read_trials(const std::string& path, std::string* error) {
  const auto text = base::read_file(path, error);
  if (!text) return std::nullopt;
  if (!text->starts_with(kDatabaseMark)) return trials_of_lines(path, *text, error);
  const auto database = Database::open(path, Access::Read, error);
  return database ? database->find({}, error) : std::nullopt;
}

}  // namespace nautilus::tune
