// SPDX-License-Identifier: Apache-2.0
// The winner of a problem measured again: does this version of the compiler still accept it, is it
// right, is it still the fastest? Upgrades change the meaning of lines and the compiler's own
// choice, and recorded times do not show that.
#pragma once

#include <functional>

#include "tune/records/database.h"
#include "tune/records/winner.h"

namespace nautilus::tune {

enum class Standing : uint8_t {
  Confirmed,  // no measured schedule is faster
  Inverted,   // another recorded schedule, or the compiler's own choice, is faster
  Refused,    // this version does not follow one of its lines
  Wrong,      // its results are not those of the definition
  Failed,     // it stopped with an error, or did not end
};
std::string_view word(Standing standing);

struct VerifyOptions {
  size_t schedules = 3;  // recorded schedules to measure, the winner included
  int rounds = 3;        // alternating, so that a drift of the clock does not decide
};

// A schedule and its standing now.
struct Remeasured {
  std::string name;      // "the winner", "recorded second", "the compiler's choice"
  std::string schedule;  // as recorded; the compiler's choice: the present one
  double recorded = 0;   // median; 0: none
  std::vector<Trial> trials;
  std::optional<Winner> now;  // its times; nothing if a trial was not timed

  // The first trial that was not timed.
  const Trial* objection() const;
};

struct Verification {
  Standing standing = Standing::Failed;
  std::string reason;                // of everything but Confirmed
  std::vector<Remeasured> measured;  // the winner first, the compiler's choice last
};

// Measures a schedule; an empty one is the compiler's own choice. Nothing, and why, if it cannot
// measure.
using Measure = std::function<std::optional<Trial>(const std::string& schedule, std::string*)>;

// Every new trial is in the database before the next one begins. Nothing, and why, if the database
// or a measurement failed; nothing and no error if the problem has no winner.
//
// Only new times are compared, because recorded ones belong to other versions: it is inverted if
// the lower quartile of the winner is above the least median, which is the rule of winner.h.
std::optional<Verification> verify(Database& database, const Problem& problem,
                                   const VerifyOptions& options, const Measure& measure,
                                   std::string* error);

}  // namespace nautilus::tune
