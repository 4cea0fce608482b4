// SPDX-License-Identifier: Apache-2.0
#include "tune/records/trial.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

namespace nautilus::tune {
namespace {

constexpr std::array<std::string_view, 5> kVerdicts = {"timed", "refused", "wrong", "failed",
                                                       "hung"};

// A word of the FNV-1a hash with its own start.
uint64_t hash_of(std::string_view text, uint64_t start) {
  uint64_t h = start;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h ^ (h >> 29);
}

nlohmann::json json_of(const Running& running) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [kernel, alternative] : running)
    out.push_back({{"kernel", kernel}, {"alternative", alternative}});
  return out;
}

std::optional<Running> running_of_json(const nlohmann::json& list) {
  if (!list.is_array()) return std::nullopt;
  Running out;
  for (const nlohmann::json& r : list) {
    const bool is_right = r.is_object() && r.contains("kernel") && r["kernel"].is_string() &&
                          r.contains("alternative") && r["alternative"].is_number_unsigned();
    if (!is_right) return std::nullopt;
    out.emplace_back(r["kernel"].get<std::string>(), r["alternative"].get<size_t>());
  }
  return out;
}

// Reads the lists that a trial may have; says what is wrong with one, or nothing.
std::string read_lists(const nlohmann::json& j, Trial& t) {
  if (const auto times = j.find("times"); times != j.end()) {
    if (!times->is_array()) return "`times` is no list";
    for (const auto& time : *times) {
      if (!time.is_number() || time.get<double>() < 0) return "a time is no positive number";
      t.times.push_back(time.get<double>());
    }
  }
  if (const auto features = j.find("features"); features != j.end()) {
    if (!features->is_array()) return "`features` is no list";
    for (const auto& f : *features) {
      if (!f.is_number()) return "a feature is no number";
      t.features.push_back(f.get<double>());
    }
  }
  if (const auto running = j.find("running"); running != j.end()) {
    auto list = running_of_json(*running);
    if (!list) return "`running` is no list of kernels with their alternatives";
    t.running = std::move(*list);
  }
  return "";
}

}  // namespace

std::string_view word(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

std::optional<Verdict> verdict_of(std::string_view word) {
  const auto it = std::find(kVerdicts.begin(), kVerdicts.end(), word);
  if (it == kVerdicts.end()) return std::nullopt;
  return static_cast<Verdict>(it - kVerdicts.begin());
}

std::string to_json(const Trial& trial) {
  nlohmann::json j = {{"equations", trial.problem.equations},
                      {"sizes", nlohmann::json::object()},
                      {"target", trial.problem.target},
                      {"machine", trial.problem.machine},
                      {"program", trial.program},
                      {"schedule", trial.schedule},
                      {"verdict", word(trial.verdict)},
                      {"compiler", trial.compiler},
                      {"date", trial.date}};
  for (const auto& [name, size] : trial.problem.sizes) j["sizes"][name] = size;
  if (!trial.reason.empty()) j["reason"] = trial.reason;
  if (!trial.times.empty()) j["times"] = trial.times;
  if (trial.error != 0) j["error"] = trial.error;
  if (trial.predicted != 0) j["predicted"] = trial.predicted;
  if (!trial.features.empty()) j["features"] = trial.features;
  if (!trial.running.empty()) j["running"] = json_of(trial.running);
  if (!trial.clocks.empty()) j["clocks"] = trial.clocks;
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Trial> trial_of_json(std::string_view line, std::string* error) {
  const nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
  const auto fail = [&](std::string why) {
    *error = std::move(why);
    return std::nullopt;
  };
  if (!j.is_object()) return fail("the line is no JSON object");
  std::string missing;
  const auto text = [&](const char* name, bool is_needed) -> std::string {
    const auto it = j.find(name);
    if (it != j.end() && it->is_string()) return it->get<std::string>();
    if (is_needed || it != j.end()) missing = name;
    return "";
  };
  const auto number = [&](const char* name) -> double {
    const auto it = j.find(name);
    if (it == j.end()) return 0;
    if (!it->is_number()) missing = name;
    return it->is_number() ? it->get<double>() : 0;
  };
  Trial t;
  t.problem.equations = text("equations", true);
  t.problem.target = text("target", true);
  t.problem.machine = text("machine", true);
  t.program = text("program", true);
  t.schedule = text("schedule", true);
  t.reason = text("reason", false);
  t.clocks = text("clocks", false);
  t.compiler = text("compiler", true);
  t.date = text("date", true);
  t.error = number("error");
  t.predicted = number("predicted");
  const auto verdict = verdict_of(text("verdict", true));
  const auto sizes = j.find("sizes");
  if (!missing.empty()) return fail(fmt::format("`{}` is missing or of another type", missing));
  if (!verdict) return fail("`verdict` is none of timed, refused, wrong, failed, hung");
  if (sizes == j.end() || !sizes->is_object()) return fail("`sizes` is no object");
  t.verdict = *verdict;
  for (const auto& [name, size] : sizes->items()) {
    if (!size.is_number_integer()) return fail(fmt::format("size `{}` is no integer", name));
    t.problem.sizes.emplace(name, size.get<int64_t>());
  }
  if (std::string why = read_lists(j, t); !why.empty()) return fail(std::move(why));
  if (t.verdict == Verdict::Timed && t.times.empty()) return fail("a timed trial has no times");
  return t;
}

std::string text_hash(std::string_view text) {
  return fmt::format("{:016x}{:016x}", hash_of(text, 0xCBF29CE484222325ULL),
                     hash_of(text, 0x9E3779B97F4A7C15ULL));
}

std::string identity(const Trial& trial) { return text_hash(to_json(trial)); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  return values[half];
}

std::string sizes_text(const std::map<std::string, int64_t>& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, size);
  return out;
}

std::string date_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
}

}  // namespace nautilus::tune
