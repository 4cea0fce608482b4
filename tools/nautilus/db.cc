// SPDX-License-Identifier: Apache-2.0
// nautilus db: what is in a database of trials; trials in and out as JSON lines.
#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "json_output.h"
#include "tune/records/database.h"
#include "tune/records/trial_file.h"
#include "tune/records/winner.h"
#include "tune/report/report.h"

namespace nautilus::tool {
namespace {

struct DbOptions {
  std::string database;
  std::vector<std::string> files;
  std::string output;
  std::string equations;
  std::string program;
  bool json = false;
};

std::string path_of(const DbOptions& o) {
  return o.database.empty() ? tune::default_database() : o.database;
}

// Every problem with its trials, to `body`; the hash may be cut short.
template <class Body>
int for_each_problem(const DbOptions& o, Body&& body) {
  std::string error;
  const auto db = tune::Database::open(path_of(o), tune::Access::Read, &error);
  const auto problems = db ? db->problems(&error) : std::nullopt;
  if (!problems) return report_failure(o.json, error);
  size_t found = 0;
  for (const tune::Problem& p : *problems) {
    if (!p.equations.starts_with(o.equations)) continue;
    const auto trials = db->find(tune::Query::of(p), &error);
    if (!trials) return report_failure(o.json, error);
    ++found;
    body(p, *trials);
  }
  if (found == 0 && !o.equations.empty())
    return report_failure(o.json, fmt::format("no trials of equations {}", o.equations));
  return kOk;
}

nlohmann::json problem_json(const tune::Problem& p, const std::vector<tune::Trial>& trials) {
  nlohmann::json j = {{"equations", p.equations}, {"program", trials.back().program},
                      {"sizes", p.sizes},         {"target", p.target},
                      {"machine", p.machine},     {"trials", trials.size()}};
  if (const auto best = tune::winner_of(trials))
    j["best"] = {{"median", best->median},
                 {"low", best->low},
                 {"high", best->high},
                 {"samples", best->samples},
                 {"candidates", best->candidates},
                 {"schedule", best->schedule}};
  return j;
}

// `list` and `best` as JSON are the same: every problem with its best schedule.
int run_problems_json(const DbOptions& o) {
  nlohmann::json out = nlohmann::json::array();
  const int code =
      for_each_problem(o, [&](const tune::Problem& p, const std::vector<tune::Trial>& trials) {
        out.push_back(problem_json(p, trials));
      });
  if (code == kOk) write_json(out);
  return code;
}

int run_list(const DbOptions& o) {
  if (o.json) return run_problems_json(o);
  return for_each_problem(o, [](const tune::Problem& p, const std::vector<tune::Trial>& trials) {
    const auto best = tune::winner_of(trials);
    fmt::print("{}  {}  {}  {}  {}  {} trials{}\n", p.equations.substr(0, 12),
               trials.back().program, tune::sizes_text(p.sizes), p.target, p.machine, trials.size(),
               best ? fmt::format(", best {:.6g} {}", best->median,
                                  p.machine == "emulator" ? "steps" : "ms")
                    : "");
  });
}

int run_show(const DbOptions& o) {
  return for_each_problem(o, [&](const tune::Problem& p, const std::vector<tune::Trial>& trials) {
    if (!o.json)
      fmt::print("# {} {} {}\n", trials.back().program, tune::sizes_text(p.sizes), p.machine);
    for (const tune::Trial& t : trials) fmt::print("{}\n", tune::to_json(t));
  });
}

int run_best(const DbOptions& o) {
  if (o.json) return run_problems_json(o);
  return for_each_problem(o, [](const tune::Problem& p, const std::vector<tune::Trial>& trials) {
    const auto best = tune::winner_of(trials);
    if (!best) return;
    fmt::print("# {} on {}: {:.6g} ({:.6g} to {:.6g}), {} schedules timed\n{}\n",
               tune::sizes_text(p.sizes), p.machine, best->median, best->low, best->high,
               best->candidates, best->schedule);
  });
}

int run_export(const DbOptions& o) {
  std::string error;
  const auto db = tune::Database::open(path_of(o), tune::Access::Read, &error);
  const auto trials = db ? db->find({}, &error) : std::nullopt;
  if (!trials) return report_failure(o.json, error);
  std::string out;
  for (const tune::Trial& t : *trials) out += tune::to_json(t) + "\n";
  if (o.output.empty()) {
    fmt::print("{}", out);
    return kOk;
  }
  if (!base::write_file_atomic(o.output, out, &error)) return report_failure(o.json, error);
  if (o.json) write_json({{"ok", true}, {"file", o.output}, {"trials", trials->size()}});
  return kOk;
}

// Files of JSON lines or other databases. A flaw in one of them leaves the database as it was.
int run_import(const DbOptions& o) {
  std::string error;
  std::vector<tune::Trial> trials;
  for (const std::string& path : o.files) {
    const auto found = tune::read_trials(path, &error);
    if (!found) return report_failure(o.json, error);
    trials.insert(trials.end(), found->begin(), found->end());
  }
  const auto db = tune::Database::open(path_of(o), tune::Access::Write, &error);
  if (!db || !db->add(trials, &error)) return report_failure(o.json, error);
  o.json ? write_json({{"ok", true}, {"read", trials.size()}})
         : fmt::print("{} trials read\n", trials.size());
  return kOk;
}

// What the program of a file has to do in this problem; nothing if its equations are others.
std::optional<tune::Floors> floors_in(const std::string& path, const std::string& text,
                                      const tune::Problem& problem) {
  tune::Subject subject;
  subject.path = path;
  subject.text = text;
  subject.sizes = problem.sizes;
  subject.target = target::find_target(problem.target);
  subject.emulates = true;  // asks for no device
  std::string ignored;
  const auto own = tune::problem_of(subject, &ignored);
  if (!own || own->equations != problem.equations) return std::nullopt;
  return tune::floors_of(subject);
}

int run_html(const DbOptions& o) {
  std::string error;
  if (o.json && o.output.empty()) {
    usage_error("--json needs --output: the page is not JSON");
    return kUsageError;
  }
  const auto text = o.program.empty() ? std::string() : base::read_file(o.program, &error);
  if (!text) return report_failure(o.json, error);
  std::vector<tune::ReportInput> inputs;
  bool has_floors = o.program.empty();
  const int code =
      for_each_problem(o, [&](const tune::Problem& p, const std::vector<tune::Trial>& trials) {
        const auto floors = o.program.empty() ? std::nullopt : floors_in(o.program, *text, p);
        has_floors |= floors.has_value();
        inputs.push_back(
            {.problem = p, .program = trials.back().program, .trials = trials, .floors = floors});
      });
  if (code != kOk) return code;
  if (!has_floors)
    return report_failure(o.json, fmt::format("{}: no trials of these equations", o.program));
  const std::string page = tune::html_page(inputs);
  if (o.output.empty()) {
    fmt::print("{}", page);
    return kOk;
  }
  if (!base::write_file_atomic(o.output, page, &error)) return report_failure(o.json, error);
  if (o.json) write_json({{"ok", true}, {"file", o.output}, {"problems", inputs.size()}});
  return kOk;
}

int run_gc(const DbOptions& o) {
  std::string error;
  const auto db = tune::Database::open(path_of(o), tune::Access::Write, &error);
  const auto gone = db ? db->drop_slower(&error) : std::nullopt;
  if (!gone) return report_failure(o.json, error);
  o.json ? write_json({{"ok", true}, {"dropped", *gone}})
         : fmt::print("{} trials of slower schedules dropped\n", *gone);
  return kOk;
}

// A database of an earlier version, as soon as it is opened for writing.
int run_upgrade(const DbOptions& o) {
  std::string error;
  const std::string path = path_of(o);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return report_failure(o.json, fmt::format("{}: no such file", path));
  if (!tune::Database::open(path, tune::Access::Write, &error))
    return report_failure(o.json, error);
  o.json ? write_json({{"ok", true}, {"database", path}, {"schema", tune::Database::kSchema}})
         : fmt::print("{}: schema {}\n", path, tune::Database::kSchema);
  return kOk;
}

}  // namespace

void add_db(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<DbOptions>();
  CLI::App* c = app.add_subcommand("db", "Look at, exchange and tidy databases of trials");
  c->add_option("--db", o->database, "the database (default: $NAUTILUS_DB, or that of the user)");
  c->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, int (*run)(const DbOptions&),
                       const char* json = kJsonHelp) {
    CLI::App* s = c->add_subcommand(name, help);
    s->add_flag("--json", o->json, json);
    s->callback([o, run, &exit_code] { exit_code = run(*o); });
    return s;
  };
  const char* which = "only problems whose equations' hash begins so";
  const auto add_shown = [&](const char* name, const char* help, int (*run)(const DbOptions&),
                             const char* json) {
    add(name, help, run, json)->add_option("EQUATIONS", o->equations, which);
  };
  add_shown("list", "problems, how many trials each has, the best time", run_list, kJsonHelp);
  add_shown("show", "all trials as JSON lines", run_show, "without the lines that name problems");
  add_shown("best", "the best schedule of each problem", run_best, kJsonHelp);
  add("export", "all trials as JSON lines", run_export)
      ->add_option("--output,-o", o->output, "a file instead of standard output");
  const char* from = "databases, and files of JSON lines";
  add("import", "take in trials of JSON lines and of other databases", run_import)
      ->add_option("FILES", o->files, from)
      ->required();
  add("merge", "the same as import: rows never change, so taking them in is merging", run_import)
      ->add_option("FILES", o->files, from)
      ->required();
  CLI::App* html = add("html", "a page about the trials of each problem", run_html);
  html->add_option("EQUATIONS", o->equations, which);
  html->add_option("--output,-o", o->output, "a file instead of standard output");
  html->add_option("--program", o->program,
                   "the program (.naut), for how far its schedules are from the machine's limits");
  add("gc", "drop the times of schedules that are not the best of their problem", run_gc);
  add("upgrade", "bring a database of an earlier version to this one's schema", run_upgrade);
  add_db_verify(*c, exit_code);
  add_db_choices(*c, exit_code);
  add_db_searches(*c, exit_code);
  c->footer("Example: nautilus db --db all.db merge node1.db node2.db");
}

}  // namespace nautilus::tool
