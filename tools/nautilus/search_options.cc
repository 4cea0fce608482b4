// SPDX-License-Identifier: Apache-2.0
#include "search_options.h"

#include <algorithm>
#include <filesystem>
#include <thread>

namespace nautilus::tool {

void add_search_options(CLI::App& command, SearchOptions& o) {
  command.add_option("--trials", o.trials, "so many schedules at most")->check(CLI::PositiveNumber);
  command.add_option("--trial-limit", o.trial_seconds, "seconds of one trial before it is stopped")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  std::vector<std::string> names(tune::search_names().begin(), tune::search_names().end());
  command.add_option("--search", o.search, "which schedule is tried next")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command
      .add_option("--jobs", o.jobs,
                  "processes that lower and compile at a time (default: all cores but one)")
      ->check(CLI::PositiveNumber);
}

std::vector<std::string> proposer(const SubjectOptions& subject) {
  std::vector<std::string> out = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                  "propose"};
  for (std::string& word : subject_arguments(subject)) out.push_back(std::move(word));
  return out;
}

tune::TuneOptions tune_options(const SearchOptions& o, const SubjectOptions& subject,
                               double seconds) {
  tune::TuneOptions out;
  out.search = o.search;
  out.seconds = seconds;
  out.trials = o.trials;
  out.trial_seconds = o.trial_seconds;
  out.seed = subject.seed;
  // One core is for what measures.
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 2u)) - 1;
  out.jobs = subject.emulate ? 1 : o.jobs > 0 ? o.jobs : cores;
  out.worker = proposer(subject);
  return out;
}

}  // namespace nautilus::tool
