// SPDX-License-Identifier: Apache-2.0
// A trial: one schedule of a problem, what became of it, and how long it took. Databases hold
// trials, JSON lines exchange them, and they alone decide which schedule is best.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nautilus::tune {

// What a schedule is for. Names of programs do not count, the hash of their equations does.
struct Problem {
  std::string equations;
  std::map<std::string, int64_t> sizes;  // of dims; statics are part of the equations
  std::string target;
  std::string machine;  // the device's name; or `emulator`, with steps as times

  friend bool operator==(const Problem&, const Problem&) = default;
};

// Kernels that run at the sizes of a problem, by the statements that name them in schedules, and
// which of their alternatives, counted from 0.
using Running = std::vector<std::pair<std::string, size_t>>;

enum class Verdict : uint8_t {
  Timed,    // right and measured
  Refused,  // a line cannot be followed, or the kernel does not compile
  Wrong,    // its results differ from the definition
  Failed,   // it stopped with an error, or ended its process
  Hung,     // it did not end in time
};
std::string_view word(Verdict verdict);
std::optional<Verdict> verdict_of(std::string_view word);

struct Trial {
  Problem problem;
  std::string program;   // its name, for people
  std::string schedule;  // text; complete where it was timed
  Verdict verdict = Verdict::Failed;
  std::string reason;            // why it was not timed
  std::vector<double> times;     // ms, or steps in the emulator; all of them
  double error = 0;              // relative, the largest of the outputs
  double predicted = 0;          // cycles by the model; 0: unknown
  std::vector<double> features;  // of the kernels, for learning (features.h); empty: unknown
  Running running;               // changes of other alternatives have no effect; empty: unknown
  std::string clocks;            // "1755 MHz, 540 W, 62 degrees Celsius" while it ran
  std::string compiler;          // version
  std::string date;              // UTC, as 2026-11-17T07:00:00Z

  friend bool operator==(const Trial&, const Trial&) = default;
};

// One line of JSON. Equal trials have equal lines.
std::string to_json(const Trial& trial);
// Nothing, and why, if the line is not a trial.
std::optional<Trial> trial_of_json(std::string_view line, std::string* error);

// 32 hexadecimal digits.
std::string text_hash(std::string_view text);
// The hash of the trial's line: equal trials count once.
std::string identity(const Trial& trial);

double median(std::vector<double> values);

// `M=64,N=80`.
std::string sizes_text(const std::map<std::string, int64_t>& sizes);

// UTC, as trials have it.
std::string date_now();

}  // namespace nautilus::tune
