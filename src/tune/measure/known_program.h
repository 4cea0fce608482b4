// SPDX-License-Identifier: Apache-2.0
// Which problems of a database are those of a program. A database has hashes of equations, so the
// program has to be given again; its dims get the sizes of the problem. Statics are part of the
// hash: one program is as many as there are settings of its statics.
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

// The program with its own statics, and with each of the settings that are for it: all names of one
// are statics of the program. A setting is used if that is so. Programs of equal equations are one.
// Nothing, and why, if the program has a fault.
std::optional<std::vector<KnownProgram>> with_statics(
    const Subject& subject, const std::vector<std::map<std::string, int64_t>>& settings,
    std::vector<bool>& is_used, std::string* error);

// What measures a problem, with its target, in the emulator or on a device. Nothing if it is a
// problem of other equations, or, with `error`, if it cannot be measured with this program: the
// target is unknown, or sizes have other names, which the hash does not count.
std::optional<Subject> subject_of(const Problem& problem, const KnownProgram& program,
                                  std::string* error);

}  // namespace nautilus::tune
