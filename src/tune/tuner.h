// SPDX-License-Identifier: Apache-2.0
// The search for the fastest schedule of a problem within a budget. Every trial runs in a child
// process and is in the database before the next one begins: whoever stops the search loses the
// trial that runs, and the next search goes on from what is there.
#pragma once

#include <functional>

#include "tune/measure/measure.h"
#include "tune/records/database.h"
#include "tune/records/winner.h"
#include "tune/search/search.h"

namespace nautilus::tune {

struct TuneOptions {
  std::string search = "learned";
  double seconds = 120;       // of the whole search
  int64_t trials = 0;         // at most so many; 0: as many as fit
  double trial_seconds = 60;  // of one trial, before its process is stopped
  int jobs = 1;               // processes that lower and compile at a time
  uint64_t seed = 1;
  size_t finalists = 3;             // that are measured again, taking turns
  int64_t patience = 128;           // trials without a better one, after which it stops
  std::string record;               // a file that trials are added to as JSON lines
  std::vector<std::string> worker;  // the command that answers proposals: `nautilus propose ...`
};

// What a search tells while it runs.
struct Progress {
  const Trial* trial = nullptr;  // that just ended; null at the end
  std::string name;              // what it tried
  double seconds = 0;            // since the start
  int64_t trials = 0;            // of this search
  double best = 0;               // median so far; 0: none
  double first = 0;              // of the compiler's own choice; 0: not timed
  double floor = 0;              // ms that the machine takes at least; 0: unknown
};

struct TuneResult {
  Winner winner;
  double first = 0;  // median of the compiler's own choice
  double floor = 0;  // ms that the machine takes at least; 0: unknown
  int64_t trials = 0;
  double seconds = 0;
  std::map<std::string, int64_t> not_timed;  // by verdict and reason, without numbers
  std::string ended;                         // why it stopped
};

// `database` may be null: then nothing is kept. Nothing, and why, if no schedule could be timed.
// `is_stopped` is asked between trials.
std::optional<TuneResult> tune(const Subject& subject, const TuneOptions& options,
                               Database* database, const std::function<void(const Progress&)>& tell,
                               const std::function<bool()>& is_stopped, std::string* error);

}  // namespace nautilus::tune
