// SPDX-License-Identifier: Apache-2.0
#include "command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "diag/render.h"
#include "driver/lower_to_kernels.h"

namespace nautilus::tool {

void usage_error(const std::string& message) { fmt::print(stderr, "nautilus: {}\n", message); }

void print_messages(const driver::Unit& unit) {
  if (unit.sink.all().empty()) return;
  const bool colour = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print(stderr, "{}", diag::render_all(unit.sink, colour));
}

std::string messages_json(const driver::Unit& unit) {
  nlohmann::json list = nlohmann::json::array();
  for (const diag::Diagnostic& d : unit.sink.all()) {
    auto place = [&](const diag::Label& l) {
      nlohmann::json j = {{"label", l.text}};
      if (l.span.is_known()) {
        const auto begin = unit.sources.place(l.span.file, l.span.begin);
        const auto end = unit.sources.place(l.span.file, l.span.end);
        j["file"] = unit.sources.path(l.span.file);
        j["line"] = begin.line;
        j["column"] = begin.column;
        j["end_line"] = end.line;
        j["end_column"] = end.column;
      }
      return j;
    };
    nlohmann::json j = {{"code", diag::info(d.code).number},
                        {"severity", d.is_error() ? "error" : "warning"},
                        {"message", d.message},
                        {"primary", place(d.primary)},
                        {"secondary", nlohmann::json::array()},
                        {"help", d.help}};
    for (const diag::Label& l : d.secondary) j["secondary"].push_back(place(l));
    list.push_back(j);
  }
  // Program text may stand in a message; bytes that are no UTF-8 are replaced, not refused.
  return list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<ir::Program> load_file(const std::string& path,
                                     const std::map<std::string, int64_t>& statics,
                                     driver::Unit& unit, int& exit_code) {
  std::string error;
  auto text = base::read_file(path, &error);
  if (!text) {
    usage_error(error);
    exit_code = kUsageError;
    return std::nullopt;
  }
  auto program = driver::load_text(path, std::move(*text), statics, unit);
  if (!program) exit_code = kProgramError;
  return program;
}

std::optional<ir::Program> kernels_of(const ir::Program& loaded, const std::string& schedule_path,
                                      driver::Unit& unit, int& exit_code) {
  std::optional<ir::Program> kernels;
  if (schedule_path.empty()) {
    kernels = driver::lower_to_kernels(loaded, unit);
  } else {
    std::string error;
    const auto text = base::read_file(schedule_path, &error);
    if (!text) {
      usage_error(error);
      exit_code = kUsageError;
      return std::nullopt;
    }
    kernels = driver::lower_with_schedule(loaded, *text, unit, &error);
    if (!error.empty()) fmt::print(stderr, "nautilus: {}: {}\n", schedule_path, error);
  }
  if (!kernels) exit_code = kProgramError;
  return kernels;
}

bool parse_pairs(const std::vector<std::string>& texts, std::map<std::string, std::string>& out) {
  for (const std::string& text : texts) {
    size_t begin = 0;
    while (begin <= text.size()) {
      const size_t end = std::min(text.find(',', begin), text.size());
      const std::string pair = text.substr(begin, end - begin);
      const size_t equals = pair.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size()) {
        usage_error(fmt::format("`{}` is not of the form NAME=VALUE", pair));
        return false;
      }
      if (!out.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second) {
        usage_error(fmt::format("`{}` is given twice", pair.substr(0, equals)));
        return false;
      }
      begin = end + 1;
    }
  }
  return true;
}

bool parse_sizes(const std::vector<std::string>& texts, std::map<std::string, int64_t>& out) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  for (const auto& [name, text] : pairs) {
    int64_t value = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size() || value < 0) {
      usage_error(fmt::format("the size `{}={}` is not a number from 0", name, text));
      return false;
    }
    out.emplace(name, value);
  }
  return true;
}

bool read_source(const std::string& path, std::string& out) {
  std::string error;
  auto text = base::read_file(path, &error);
  if (text && text->empty()) error = path + " is empty";
  if (!text || text->empty()) {
    usage_error(error);
    return false;
  }
  out = std::move(*text);
  return true;
}

}  // namespace nautilus::tool
