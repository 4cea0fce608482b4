// SPDX-License-Identifier: Apache-2.0
// nautilus db choices: what the choice without tuning loses, and what a learned correction would
// change, held out program by program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json_output.h"
#include "tune/records/database.h"
#include "tune/search/first_choice.h"

namespace nautilus::tool {
namespace {

struct ChoicesOptions {
  std::string database;
  size_t least = 8;
  bool json = false;
};

struct Means {
  size_t problems = 0;
  double predicted = 0, same = 0, held_out = 0;

  void add(const tune::FirstChoice& c) {
    ++problems;
    predicted += c.predicted;
    same += c.same;
    held_out += c.held_out;
  }
  void print(const std::string& name) const {
    const double percent = 100 / static_cast<double>(problems);
    fmt::print("{:26} {:8} {:12.2f} % {:12.2f} % {:12.2f} %\n", name, problems, percent * predicted,
               percent * same, percent * held_out);
  }
};

int run_choices(const ChoicesOptions& o) {
  std::string error;
  const auto db = tune::Database::open(o.database, tune::Access::Read, &error);
  const auto all = db ? db->find({}, &error) : std::nullopt;
  if (!all) {
    return report_failure(o.json, error);
  }
  const auto choices = tune::first_choices(*all, o.least);
  if (choices.empty()) {
    return report_failure(o.json,
                          fmt::format("{}: no problem has {} schedules with times and predictions",
                                      o.database, o.least));
  }
  std::map<std::string, Means> programs;
  Means mean;
  for (const tune::FirstChoice& c : choices) {
    programs[c.program].add(c);
    mean.add(c);
    if (o.json)
      fmt::print("{}\n", nlohmann::json{{"program", c.program},
                                        {"sizes", c.sizes},
                                        {"schedules", c.schedules},
                                        {"predicted", c.predicted},
                                        {"same", c.same},
                                        {"held_out", c.held_out}}
                             .dump());
  }
  if (o.json) return kOk;
  fmt::print("how much longer the first choice takes than the best recorded schedule\n");
  fmt::print("{:26} {:>8} {:>14} {:>14} {:>14}\n", "program", "problems", "predicted", "corrected",
             "held out");
  for (const auto& [name, m] : programs) m.print(name);
  mean.print("all");
  fmt::print(
      "corrected: by a line learned from all other problems; held out: from other programs\n");
  return kOk;
}

}  // namespace

void add_db_choices(CLI::App& db, int& exit_code) {
  auto o = std::make_shared<ChoicesOptions>();
  CLI::App* c = db.add_subcommand(
      "choices",
      "what the choice without tuning loses, and what a learned correction would change");
  c->add_option("--least", o->least, "timed schedules that a problem must have")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_flag("--json", o->json, "one JSON object for each problem");
  const CLI::Option* database = db.get_option("--db");
  c->callback([o, database, &exit_code] {
    o->database = database->empty() ? tune::default_database() : database->as<std::string>();
    exit_code = run_choices(*o);
  });
}

}  // namespace nautilus::tool
