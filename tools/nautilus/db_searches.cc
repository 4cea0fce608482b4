// SPDX-License-Identifier: Apache-2.0
// nautilus db searches: what each search would have found in recorded trials.
#include <fmt/format.h>

#include "json_output.h"
#include "tune/records/database.h"
#include "tune/search/near_problem.h"
#include "tune/search/recorded_space.h"

namespace nautilus::tool {
namespace {

constexpr size_t kTrials[] = {8, 32, 128};

struct SearchesOptions {
  std::string database;
  size_t least = 64;
  uint64_t seeds = 5;
  bool json = false;
};

int run_searches(const SearchesOptions& o) {
  std::string error;
  const auto db = tune::Database::open(o.database, tune::Access::Read, &error);
  const auto problems = db ? db->problems(&error) : std::nullopt;
  const auto all = problems ? db->find({}, &error) : std::nullopt;
  if (!all) {
    return report_failure(o.json, error);
  }
  std::map<std::string_view, std::vector<double>> sums;
  size_t count = 0;
  if (!o.json)
    fmt::print("how much slower than the best recorded schedule, after {}\n",
               fmt::join(kTrials, ", "));
  for (const tune::Problem& p : *problems) {
    std::vector<tune::Trial> own;
    for (const tune::Trial& t : *all) {
      if (t.problem == p) own.push_back(t);
    }
    tune::RecordedSpace space(own);
    if (space.size() < o.least) continue;
    ++count;
    const auto others = tune::samples_of_others(p, *all);
    if (!o.json)
      fmt::print("{} {}, {} schedules\n", own.back().program, tune::sizes_text(p.sizes),
                 space.size());
    for (const std::string_view name : tune::search_names()) {
      const auto regret = tune::regret_of(name, space, others, kTrials[2], o.seeds);
      std::vector<std::string> texts;
      sums[name].resize(std::size(kTrials));
      for (size_t k = 0; k < std::size(kTrials); ++k) {
        const double after = regret.after[kTrials[k] - 1];
        sums[name][k] += after;
        texts.push_back(fmt::format("{:6.2f} %", 100 * after));
      }
      if (!o.json) {
        fmt::print("  {:13} {}\n", name, fmt::join(texts, " "));
        continue;
      }
      write_json_line({{"program", own.back().program},
                       {"sizes", tune::sizes_text(p.sizes)},
                       {"search", name},
                       {"regret", regret.after}});
    }
  }
  if (count == 0) {
    return report_failure(o.json, fmt::format("{}: no problem has {} schedules that were timed",
                                              o.database, o.least));
  }
  if (o.json) return kOk;
  fmt::print("mean of {} problems\n", count);
  for (const std::string_view name : tune::search_names()) {
    fmt::print("  {:13}", name);
    for (const double sum : sums[name])
      fmt::print(" {:6.2f} %", 100 * sum / static_cast<double>(count));
    fmt::print("\n");
  }
  return kOk;
}

}  // namespace

void add_db_searches(CLI::App& db, int& exit_code) {
  auto o = std::make_shared<SearchesOptions>();
  CLI::App* c = db.add_subcommand(
      "searches", "what each search would have found in recorded trials after 8, 32 and 128");
  c->add_option("--least", o->least, "timed schedules that a problem must have")
      ->capture_default_str();
  c->add_option("--seeds", o->seeds, "times that each search is run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_flag("--json", o->json, "one JSON object for each problem and search, with all trials");
  const CLI::Option* database = db.get_option("--db");
  c->callback([o, database, &exit_code] {
    o->database = database->empty() ? tune::default_database() : database->as<std::string>();
    exit_code = run_searches(*o);
  });
}

}  // namespace nautilus::tool
