// SPDX-License-Identifier: Apache-2.0
// Options of a search that tune and worker take alike.
#pragma once

#include "tune/tuner.h"
#include "tune_subject.h"

namespace nautilus::tool {

struct SearchOptions {
  int64_t trials = 0;
  double trial_seconds = tune::TuneOptions{}.trial_seconds;
  std::string search = tune::TuneOptions{}.search;
  int jobs = 0;
};

void add_search_options(CLI::App& command, SearchOptions& options);

// For a search of so many seconds, with processes that measure the subject.
tune::TuneOptions tune_options(const SearchOptions& options, const SubjectOptions& subject,
                               double seconds);
// The command of these processes.
std::vector<std::string> proposer(const SubjectOptions& subject);

}  // namespace nautilus::tool
