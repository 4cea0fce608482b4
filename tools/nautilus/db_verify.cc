// SPDX-License-Identifier: Apache-2.0
// nautilus db verify: the winners of a database measured again with this version of the compiler.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "json_output.h"
#include "tune/measure/known_program.h"
#include "tune/measure/trial_process.h"
#include "tune/measure/verify.h"
#include "tune_subject.h"

namespace nautilus::tool {
namespace {

struct DbVerifyOptions {
  std::vector<std::string> files;
  std::vector<std::string> shapes;  // each one setting of statics
  tune::VerifyOptions how;
  double trial_seconds = 60;
  uint64_t seed = 1;
  int sms = 2;
  int repetitions = 0;
  bool json = false;
};

// The programs of the files, with all settings of their statics. Prints what went wrong.
bool read_programs(const DbVerifyOptions& o, std::vector<tune::KnownProgram>& out, int& exit_code) {
  std::vector<std::map<std::string, int64_t>> settings(o.shapes.size());
  exit_code = kUsageError;
  for (size_t k = 0; k < o.shapes.size(); ++k) {
    if (!parse_sizes({o.shapes[k]}, settings[k])) return false;
  }
  std::vector<bool> is_used(settings.size(), false);
  for (const std::string& file : o.files) {
    std::string error;
    tune::Subject subject;
    const auto text = base::read_file(file, &error);
    if (!text) {
      usage_error(error);
      return false;
    }
    subject.path = file;
    subject.text = *text;
    subject.multiprocessors = o.sms;
    subject.repetitions = o.repetitions;
    subject.seed = o.seed;
    auto programs = tune::with_statics(subject, settings, is_used, &error);
    if (!programs) {
      exit_code = report_failure(o.json, error);
      return false;
    }
    out.insert(out.end(), programs->begin(), programs->end());
  }
  for (size_t k = 0; k < settings.size(); ++k) {
    if (is_used[k]) continue;
    usage_error(
        fmt::format("--shape {}: these are not all statics of one of the programs; sizes "
                    "of dims are those of the database",
                    o.shapes[k]));
    return false;
  }
  exit_code = kOk;
  return true;
}

std::vector<std::string> measuring_command(const tune::Subject& subject) {
  SubjectOptions options;
  options.file = subject.path;
  if (!subject.sizes.empty()) options.shape = {tune::sizes_text(subject.sizes)};
  options.target = subject.target->name;
  options.seed = subject.seed;
  options.emulate = subject.emulates;
  options.sms = subject.multiprocessors;
  options.repetitions = subject.repetitions;
  std::vector<std::string> out = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                  "propose"};
  for (std::string& word : subject_arguments(options)) out.push_back(std::move(word));
  return out;
}

class VerifyReport {
 public:
  explicit VerifyReport(bool is_json) : is_json_(is_json) {}

  void operator()(const tune::Problem& p, const std::string& program, const std::string& file,
                  const tune::Verification& v) {
    ++counts_[std::string(tune::word(v.standing))];
    is_json_ ? as_json(p, program, file, v) : as_text(p, program, v);
    std::fflush(stdout);
  }

  // Problems that were not measured, by the reason.
  void skip(const std::string& reason) { ++skipped_[reason]; }

  // The exit status.
  int end() const {
    if (is_json_) {
      nlohmann::json j = {{"event", "end"},
                          {"standings", nlohmann::json::object()},
                          {"skipped", nlohmann::json::object()}};
      for (const auto& [standing, n] : counts_) j["standings"][standing] = n;
      for (const auto& [reason, n] : skipped_) j["skipped"][reason] = n;
      print(j);
    } else {
      for (const auto& [reason, n] : skipped_) fmt::print("not measured: {} ({})\n", n, reason);
      std::vector<std::string> parts;
      for (const auto& [standing, n] : counts_) parts.push_back(fmt::format("{} {}", n, standing));
      if (!parts.empty()) fmt::print("{}\n", fmt::join(parts, ", "));
    }
    if (counts_.empty()) return report_failure(is_json_, "no problem of the database was measured");
    return counts_.size() == 1 && counts_.contains("confirmed") ? kOk : kProgramError;
  }

 private:
  static void print(const nlohmann::json& j) {
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  void as_json(const tune::Problem& p, const std::string& program, const std::string& file,
               const tune::Verification& v) {
    nlohmann::json j = {{"event", "problem"},
                        {"standing", tune::word(v.standing)},
                        {"program", program},
                        {"file", file},
                        {"equations", p.equations},
                        {"sizes", nlohmann::json::object()},
                        {"target", p.target},
                        {"machine", p.machine},
                        {"schedules", nlohmann::json::array()}};
    for (const auto& [name, size] : p.sizes) j["sizes"][name] = size;
    if (!v.reason.empty()) j["reason"] = v.reason;
    for (const tune::Remeasured& m : v.measured) {
      nlohmann::json s = {{"name", m.name}, {"schedule", m.schedule}};
      if (m.recorded > 0) s["recorded"] = m.recorded;
      if (m.now) {
        s["median"] = m.now->median;
        s["low"] = m.now->low;
        s["high"] = m.now->high;
      }
      if (const tune::Trial* t = m.objection()) {
        s["verdict"] = tune::word(t->verdict);
        s["reason"] = t->reason;
      }
      j["schedules"].push_back(std::move(s));
    }
    print(j);
  }

  static void as_text(const tune::Problem& p, const std::string& program,
                      const tune::Verification& v) {
    const std::string_view unit = p.machine == "emulator" ? "steps" : "ms";
    fmt::print("{}: {} {} {} {}{}\n", tune::word(v.standing), program, tune::sizes_text(p.sizes),
               p.target, p.machine, v.reason.empty() ? "" : ": " + v.reason);
    for (const tune::Remeasured& m : v.measured) {
      const tune::Trial* t = m.objection();
      const std::string now = m.now ? fmt::format("{:.6g} {} ({:.6g} to {:.6g})", m.now->median,
                                                  unit, m.now->low, m.now->high)
                                    : fmt::format("{}: {}", tune::word(t->verdict), t->reason);
      fmt::print("  {:<26} {}{}\n", m.name, now,
                 m.recorded > 0 ? fmt::format(", recorded {:.6g}", m.recorded) : "");
    }
  }

  bool is_json_;
  std::map<std::string, int64_t> counts_;
  std::map<std::string, int64_t> skipped_;
};

// Why this machine cannot measure a problem; empty if it can.
std::string obstacle(const tune::Problem& problem, const tune::Subject& subject) {
#ifndef NAUTILUS_EMULATOR
  // A failure would count against the schedule.
  if (subject.emulates) return "of the emulator, which this build does not have";
#endif
  std::string error;
  const auto here = tune::problem_of(subject, &error);
  if (!here) return error;
  return *here == problem ? "" : fmt::format("of {}, this is {}", problem.machine, here->machine);
}

int run_verify(const DbVerifyOptions& o, const std::string& path) {
  std::vector<tune::KnownProgram> programs;
  int code = kOk;
  if (!read_programs(o, programs, code)) return code;
  std::string error;
  // Without anything to verify no file is made.
  if (!tune::Database::open(path, tune::Access::Read, &error)) return report_failure(o.json, error);
  const auto database = tune::Database::open(path, tune::Access::Write, &error);
  const auto problems = database ? database->problems(&error) : std::nullopt;
  if (!problems) return report_failure(o.json, error);
  VerifyReport report(o.json);
  for (const tune::Problem& problem : *problems) {
    std::optional<tune::Subject> subject;
    std::string why;
    for (const tune::KnownProgram& program : programs) {
      if (!subject) subject = tune::subject_of(problem, program, &why);
    }
    if (subject) why = obstacle(problem, *subject);
    if (!subject || !why.empty()) {
      report.skip(why.empty() ? "of none of the programs" : why);
      continue;
    }
    tune::TrialProcess process(measuring_command(*subject), problem, o.trial_seconds);
    std::string program;
    const auto measure = [&](const std::string& schedule, std::string* e) {
      auto trial = process.measure(schedule, e);
      if (trial && !trial->program.empty()) program = trial->program;
      return trial;
    };
    error.clear();
    const auto verification = tune::verify(*database, problem, o.how, measure, &error);
    if (!error.empty()) return report_failure(o.json, error);
    if (verification)
      report(problem, program, subject->path, *verification);
    else
      report.skip("no schedule was timed");
  }
  return report.end();
}

}  // namespace

void add_db_verify(CLI::App& db, int& exit_code) {
  auto o = std::make_shared<DbVerifyOptions>();
  CLI::App* c = db.add_subcommand("verify", "measure the winners again with this version");
  c->add_option("FILES", o->files, "the programs (.naut): a database has their hashes only")
      ->required();
  c->add_option("--shape", o->shapes,
                "other sizes of statics, D=128,E=4; each such option is one more setting")
      ->allow_extra_args(false);
  c->add_option("--schedules", o->how.schedules, "recorded schedules that are measured again")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--rounds", o->how.rounds, "measurements of each, taking turns")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--trial-limit", o->trial_seconds, "seconds of one trial before it is stopped")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--seed", o->seed, "of the inputs")->capture_default_str();
  c->add_option("--sms", o->sms, "multiprocessors of the emulated device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--repetitions", o->repetitions, "launches that are timed (default: 30)")
      ->check(CLI::PositiveNumber);
  c->add_flag("--json", o->json, "one JSON object for each problem, and one at the end");
  c->footer(
      "Exit status 1 if a winner is not confirmed.\n"
      "Example: nautilus db --db trials.db verify golden/*.naut --shape D=128");
  const CLI::Option* database = db.get_option("--db");
  c->callback([o, database, &exit_code] {
    exit_code =
        run_verify(*o, database->empty() ? tune::default_database() : database->as<std::string>());
  });
}

}  // namespace nautilus::tool
