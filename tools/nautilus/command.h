// SPDX-License-Identifier: Apache-2.0
// What the sub-commands share: one function each to register, exit codes, loading a file, printing
// messages.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/load.h"

namespace nautilus::tool {

// Documented in docs/command_line.md. 70 is an internal error (base/check.h).
enum ExitCode { kOk = 0, kProgramError = 1, kUsageError = 2 };

// Each registers its sub-command; the callback stores the exit code.
void add_check(CLI::App& app, int& exit_code);
void add_print(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_test(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_reduce(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);

// Reads the file and loads it. Prints what went wrong; `exit_code` is set then.
std::optional<ir::Program> load_file(const std::string& path,
                                     const std::map<std::string, int64_t>& statics,
                                     driver::Unit& unit, int& exit_code);

// The kernels of a loaded program: with its first schedule, or with the one of a file if there is a
// path. Prints what went wrong; `exit_code` is set then.
std::optional<ir::Program> kernels_of(const ir::Program& loaded, const std::string& schedule_path,
                                      driver::Unit& unit, int& exit_code);
// What --schedule is, in every command that takes it.
inline constexpr const char* kScheduleHelp =
    "a schedule for a program of the math language, in place of its first one";

// Prints all messages of the unit to standard error, in colour on a terminal.
void print_messages(const driver::Unit& unit);
// The same as a JSON array on standard output.
std::string messages_json(const driver::Unit& unit);

// `B=1,M=64` pairs from repeated options. False (and a message) if a pair is malformed.
bool parse_pairs(const std::vector<std::string>& texts, std::map<std::string, std::string>& out);
// Integer values. False (and a message) if one is no integer.
bool parse_sizes(const std::vector<std::string>& texts, std::map<std::string, int64_t>& out);

// A hand-edited CUDA file. False (and a message) if it cannot be read or is empty.
bool read_source(const std::string& path, std::string& out);

void usage_error(const std::string& message);

}  // namespace nautilus::tool
