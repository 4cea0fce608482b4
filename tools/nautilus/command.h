// SPDX-License-Identifier: Apache-2.0
// What the sub-commands share: one function each to register, exit codes, loading a file, printing
// messages.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/load.h"
#include "ir/environment.h"
#include "plan/compile.h"

namespace nautilus::tool {

// Documented in docs/command_line.md. 70 is an internal error (base/check.h).
enum ExitCode { kOk = 0, kProgramError = 1, kUsageError = 2 };

// Each registers its sub-command; the callback stores the exit code.
void add_new(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_print(CLI::App& app, int& exit_code);
void add_schedule(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_eval(CLI::App& app, int& exit_code);
void add_opt(CLI::App& app, int& exit_code);
void add_test(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_build(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);
void add_tune(CLI::App& app, int& exit_code);
void add_propose(CLI::App& app, int& exit_code);
void add_worker(CLI::App& app, int& exit_code);
void add_db(CLI::App& app, int& exit_code);
void add_db_verify(CLI::App& db, int& exit_code);  // of `nautilus db`, which has --db
void add_db_choices(CLI::App& db, int& exit_code);
void add_db_searches(CLI::App& db, int& exit_code);
void add_reduce(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_version(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_lsp(CLI::App& app, int& exit_code);

// Reads the file and loads it. Prints what went wrong; `exit_code` is set then.
std::optional<ir::Program> load_file(const std::string& path,
                                     const std::map<std::string, int64_t>& statics,
                                     driver::Unit& unit, int& exit_code);

// `NAME=FILE`, or a path, which may have the sign in it.
struct NamedFile {
  std::string name;
  std::string path;
};
NamedFile named_file(const std::string& text);

// The text of the schedule that these files give for the program, `FILE` or `KERNEL=FILE` each;
// nothing in it if there are none. Prints what went wrong; `exit_code` is set then.
std::optional<std::string> read_schedule(const std::vector<std::string>& files,
                                         const ir::Program& loaded, driver::Unit& unit,
                                         int& exit_code);
// Reports why the schedule of these files cannot be followed.
void report_schedule(const std::vector<std::string>& files, const std::string& error,
                     driver::Unit& unit);
// Whether what was made before may be read from the disk cache.
enum class Reuse : uint8_t { Cached, None };
// The kernels of a loaded program: with its first schedule, or with that of files. Prints what went
// wrong; `exit_code` is set then.
std::optional<ir::Program> kernels_of(const ir::Program& loaded,
                                      const std::vector<std::string>& schedule_files,
                                      driver::Unit& unit, int& exit_code,
                                      Reuse reuse = Reuse::Cached);
// The same with the steps on their way, and the text of the schedule.
std::optional<driver::Kernels> make_kernels(const ir::Program& loaded,
                                            const std::vector<std::string>& schedule_files,
                                            ir::PassTrace* trace, driver::Unit& unit,
                                            int& exit_code, Reuse reuse = Reuse::Cached);
// What --schedule is, in every command that takes it.
inline constexpr const char* kScheduleHelp =
    "a schedule for a program of the math language, in place of its first one; of some of its "
    "kernels, the others are chosen by rule; KERNEL=FILE: of the file that kernel alone";

// What --source is.
inline constexpr const char* kSourceHelp =
    "a CUDA file in place of what is emitted (compile --emit cuda) for the kernels that it "
    "defines; "
    "KERNEL=FILE: for that kernel alone";
// --target, in every command that makes kernels: the unit's programs are for it. False (and a
// message) if there is none of that name; an empty name leaves it to the program.
inline constexpr const char* kTargetHelp =
    "the machine: sm_90a, or toy, which only tests have; else what the program says, or sm_90a";
bool choose_target(const std::string& name, driver::Unit& unit);

// Prints all messages of the unit to standard error, in colour on a terminal.
void print_messages(const driver::Unit& unit);
// The same as a JSON array on standard output.
std::string messages_json(const driver::Unit& unit);

// `B=1,M=64` pairs from repeated options. False (and a message) if a pair is malformed.
bool parse_pairs(const std::vector<std::string>& texts, std::map<std::string, std::string>& out);
// Whether a word is such a pair, `N=512`: what was meant for an option stands where a file should.
bool is_pair(std::string_view word);
// Integer values. False (and a message) if one is not an integer.
bool parse_sizes(const std::vector<std::string>& texts, std::map<std::string, int64_t>& out);

// Hand-edited CUDA files, `FILE` or `KERNEL=FILE`, for kernels of the program. False (and a
// message) if one cannot be read, or is not for kernels of it.
bool read_sources(const std::vector<std::string>& texts, const ir::Program& program,
                  plan::EditedSources& out);
// A line for each kernel that has one of them.
std::string sources_report(const ir::Program& program, const plan::EditedSources& sources);

// Scalars of the program from `NAME=VALUE` pairs. False (and a message) if one is not there.
bool read_scalars(const ir::Program& program, const std::vector<std::string>& texts,
                  ir::Environment& out);
// A tensor of a file, in the dtype; empty (and a message) if there is none.
std::optional<expr::Tensor> read_tensor(const std::string& name, const std::string& path,
                                        expr::DType dtype);
// Inputs from `NAME=FILE.npy` pairs, of a program on any level.
bool read_inputs(const ir::Program& program, const std::vector<std::string>& texts,
                 ir::Environment& out);
bool write_tensor(const std::string& path, const expr::Tensor& tensor);

void usage_error(const std::string& message);

}  // namespace nautilus::tool
