// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/trial_process.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace nautilus::tune {

std::optional<Trial> TrialProcess::measure(const std::string& schedule, std::string* error) {
  if (!child_.is_running() && !child_.start(command_, error)) return std::nullopt;
  const nlohmann::json request = {{"schedule", schedule}};
  std::string line;
  auto answer = Child::Answer::Ended;
  if (child_.send(request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    answer = child_.receive(seconds_, line);
  if (answer == Child::Answer::Line) {
    auto told = trial_of_json(line, error);
    if (!told) *error = fmt::format("what measures does not answer with trials: {}", *error);
    return told;
  }
  Trial trial;
  trial.problem = problem_;
  trial.schedule = schedule;
  trial.compiler = NAUTILUS_VERSION;
  trial.date = date_now();
  if (answer == Child::Answer::Late) {
    child_.stop();
    trial.verdict = Verdict::Hung;
    trial.reason = fmt::format("not done in {:g} s", seconds_);
  } else {
    trial.verdict = Verdict::Failed;
    trial.reason = child_.end();
  }
  return trial;
}

}  // namespace nautilus::tune
