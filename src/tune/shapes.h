// SPDX-License-Identifier: Apache-2.0
// Several shapes of a program in one budget: each has a search of its own (tuner.h), and the search
// that can save most time goes on (work/shares.h). Their winners are one plan
// (records/tuned_plan.h).
//
// Shapes are sorted by their sizes, whatever their order in the list, and turns are counted in
// trials: the same trials are made in the same order on a fast machine and on a slow one.
#pragma once

#include "tune/tuner.h"
#include "tune/work/shape_list.h"

namespace nautilus::tune {

struct ShapeSubject {
  Subject subject;                  // with the sizes of the shape
  double weight = 1;                // how often it is called
  std::vector<std::string> worker;  // the command that answers proposals for it
};

struct ShapeResult {
  std::map<std::string, int64_t> sizes;
  double weight = 1;
  TuneResult tuned;
};

struct ShapesResult {
  std::vector<ShapeResult> shapes;  // in the order of their sizes
  double best = 0;                  // weights times medians of winners, all together
  double first = 0;                 // of the compiler's own choices; 0: not all were timed
  int64_t trials = 0;
  double seconds = 0;
  std::string schedule;  // one text for all
  std::string ended;
};

// Options are for all together: time, trials. Their `worker` is not used. Nothing, and why, if a
// shape is not one of the program's or has no schedule that could be timed. Earlier measurements
// are in the database.
std::optional<ShapesResult> tune_shapes(const std::vector<ShapeSubject>& shapes,
                                        const TuneOptions& options, const TuneHooks& hooks,
                                        std::string* error);

}  // namespace nautilus::tune
