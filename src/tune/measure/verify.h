// SPDX-License-Identifier: Apache-2.0
// The winner of a problem measured again: does this version of the compiler still take it, is it
// right, is it still the fastest? Upgrades change what lines mean and what the compiler chooses by
// itself, and recorded times do not say so.
#pragma once

#include <functional>

#include "tune/records/database.h"
#include "tune/records/winner.h"

namespace nautilus::tune {

enum class Standing : uint8_t {
  Confirmed,  // nothing that was measured is told apart from it as faster
  Inverted,   // another recorded schedule, or the compiler's own choice, is faster
  Refused,    // this version does not follow one of its lines
  Wrong,      // its results are not those of the definition
  Failed,     // it stopped with an error, or did not end
};
std::string_view word(Standing standing);

struct VerifyOptions {
  size_t schedules = 3;  // recorded ones that are measured, the winner with them
  int rounds = 3;        // taking turns, so that a drift of the clock does not decide
};

// A schedule and what it is worth now.
struct Remeasured {
  std::string name;      // "the winner", "recorded second", "the compiler's choice"
  std::string schedule;  // as recorded; of the compiler's choice: as it is now
  double recorded = 0;   // median; 0: there is none
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

// What measures a schedule; an empty one is the compiler's own choice. Nothing, and why, if there
// is nothing that measures.
using Measure = std::function<std::optional<Trial>(const std::string& schedule, std::string*)>;

// Every new trial is in the database before the next one begins. Nothing, and why, if the database
// or what measures failed; nothing and no error if the problem has no winner.
//
// Only new times are compared, for the recorded ones are those of other versions: it is inverted
// if the lower quartile of the winner is above the least median, which is the rule of winner.h.
std::optional<Verification> verify(Database& database, const Problem& problem,
                                   const VerifyOptions& options, const Measure& measure,
                                   std::string* error);

}  // namespace nautilus::tune
