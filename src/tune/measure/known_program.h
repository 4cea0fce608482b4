// SPDX-License-Identifier: Apache-2.0
// The problems of a database that belong to a program. A database has hashes of equations, so the
// program has to be given again; its dims get the sizes of the problem. Statics are part of the
// hash, so each setting of its statics counts as a program of its own.
#pragma once

#include <set>

#include "tune/measure/measure.h"

namespace nautilus::tune {

struct KnownProgram {
  Subject subject;  // its sizes are statics
  std::string equations;
  std::set<std::string> dims;
};

// Nothing, and why, if the text is not a program of the math language.
std::optional<KnownProgram> known_program(const Subject& subject, std::string* error);

// The program with its own statics, and with each setting that applies: all its names are statics
// of the program. Programs with equal equations are listed once. Nothing, and why, if the program
// has an error.
std::optional<std::vector<KnownProgram>> with_statics(
    const Subject& subject, const std::vector<std::map<std::string, int64_t>>& settings,
    std::vector<bool>& is_used, std::string* error);

// The subject that measures a problem, with its target, in the emulator or on a device. Nothing if
// the problem has other equations, or, with `error`, if this program cannot measure it: the target
// is unknown, or the names of sizes differ, which the hash ignores.
std::optional<Subject> subject_of(const Problem& problem, const KnownProgram& program,
                                  std::string* error);

}  // namespace nautilus::tune
