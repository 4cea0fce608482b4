// SPDX-License-Identifier: Apache-2.0
// The search for the fastest schedule of a problem within a budget. Every trial runs in a child
// process and is in the database before the next one begins: stopping the search loses only the
// running trial, and the next search continues from the database.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "tune/measure/measure.h"
#include "tune/records/database.h"
#include "tune/records/winner.h"
#include "tune/search/search.h"

namespace nautilus::tune {

struct TuneOptions {
  std::string search = "learned";
  double seconds = 120;       // of the whole search
  int64_t trials = 0;         // the most trials; 0: as many as fit
  double trial_seconds = 60;  // of one trial, before its process is stopped
  int jobs = 1;               // processes that lower and compile at a time
  uint64_t seed = 1;
  size_t finalists = 3;             // that are measured again, alternating
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
  double floor = 0;              // least ms of the machine; 0: unknown
};

struct TuneResult {
  Winner winner;
  double first = 0;  // median of the compiler's own choice
  double floor = 0;  // least ms of the machine; 0: unknown
  int64_t trials = 0;
  double seconds = 0;
  std::map<std::string, int64_t> not_timed;  // by verdict and reason, without numbers
  std::string ended;                         // why it stopped
};

using TuneClock = std::chrono::steady_clock;

// Where trials go, and callbacks.
struct TuneHooks {
  Database* database = nullptr;  // null: nothing is kept
  std::function<void(const Progress&)> tell;
  std::function<bool()> is_stopped;                // asked between trials
  TuneClock::time_point start = TuneClock::now();  // of the time that a search has
};

// The state of a running search.
struct TunerState {
  double best = 0;     // median so far; 0: none
  double floor = 0;    // least ms of the machine; 0: unknown
  int64_t trials = 0;  // of this search
  int64_t idle = 0;    // of them, since one was better
};

// A search that goes on step by step, so that several can share a budget (shapes.h).
class Tuner {
 public:
  virtual ~Tuner() = default;
  // Measures at most `most` schedules; the next ones are made in parallel, also while other
  // searches measure. False, and why, if measuring or storing trials failed.
  virtual bool step(size_t most, std::string* error) = 0;
  // Why the search is over; empty while it is not.
  virtual const std::string& ended() const = 0;
  virtual TunerState state() const = 0;
  // The fastest measured again, and the winner. Nothing, and why, if no schedule could be timed.
  virtual std::optional<TuneResult> finish(std::string* error) = 0;
};

// Nothing, and why, if the program has no schedule or the database cannot be read.
std::unique_ptr<Tuner> start_tuner(const Subject& subject, const TuneOptions& options,
                                   const TuneHooks& hooks, std::string* error);

// One search to its end. `database` may be null: then nothing is stored. Nothing, and why, if no
// schedule could be timed. `is_stopped` is asked between trials.
std::optional<TuneResult> tune(const Subject& subject, const TuneOptions& options,
                               Database* database, const std::function<void(const Progress&)>& tell,
                               const std::function<bool()>& is_stopped, std::string* error);

}  // namespace nautilus::tune
