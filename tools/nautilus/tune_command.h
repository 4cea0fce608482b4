// SPDX-License-Identifier: Apache-2.0
// What tune says while it runs and leaves behind, for one shape and for several.
#pragma once

#include <map>

#include "search_options.h"
#include "tune/records/database.h"
#include "tune/shapes.h"

namespace nautilus::tool {

struct TuneCommand {
  SubjectOptions subject;
  SearchOptions search;
  std::string budget = "120s";
  std::string shapes;
  std::string database;
  std::string output;
  std::string record;
  std::string html;
  bool no_database = false;
  bool json = false;
  bool dry_run = false;
};

// Ctrl-C ends the search, not the command.
void interrupt_tuning_by_signal();
bool is_tuning_interrupted();

std::string time_text(double time, bool is_emulated);

// A line when something is better, and one every few seconds; or an object for each trial.
class TuneReport {
 public:
  TuneReport(bool is_json, bool is_emulated, double budget, bool has_several = false)
      : is_json_(is_json), is_emulated_(is_emulated), has_several_(has_several), budget_(budget) {}

  void operator()(const tune::Progress& progress);

 private:
  void as_json(const tune::Progress& p) const;
  void as_text(const tune::Progress& p);

  bool is_json_;
  bool is_emulated_;
  bool has_several_;  // shapes: trials are named by their sizes
  double budget_;
  double last_ = -10;
  std::map<std::string, double> last_best_;  // by sizes
  std::map<std::string, int64_t> failures_;  // trials that were not timed, by verdict
};

// Causes of trials that were not timed, and of schedules that were refused before.
using NotTimed = std::map<std::string, int64_t>;

struct TunedPage {
  const tune::Subject* subject = nullptr;
  tune::Problem problem;
  NotTimed not_timed;
};

// A page about all trials of the problems: those of the database, or, without one, of this search.
// Prints what went wrong.
bool write_tuned_pages(const std::string& path, const std::vector<TunedPage>& pages,
                       const std::vector<tune::Trial>& trials, const tune::Database* database);

// Says what was written; writes the schedule where it is asked for. Prints what went wrong.
bool write_tuned(const TuneCommand& o, const std::string& schedule);

// Shapes in one budget (tune_several.cc). The exit status.
int tune_several(const TuneCommand& o, const std::vector<tune::ShapeSubject>& shapes,
                 double seconds, tune::Database* database);

// What would be tried, and about how long that takes (tune_dry_run.cc). The exit status.
int tune_dry_run(const TuneCommand& o, const std::vector<tune::ShapeSubject>& shapes,
                 double seconds);

}  // namespace nautilus::tool
