// SPDX-License-Identifier: Apache-2.0
#include "driver/run/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "driver/kernels/kernel_forms.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "driver/run/fit_places.h"
#include "schedule/choose/sweep.h"

namespace nautilus::driver {
namespace {

// What rows call the program's first schedule (bench/report.py).
constexpr const char* kUntuned = "untuned";

using target::Target;

// A program at some sizes, scheduled once; its candidates are costed again and again. Without tile
// kernels, its candidates are other kernels for its statements.
struct Modelled {
  Unit unit;
  FirstSchedule first;
  std::vector<KernelForms> forms;

  std::map<std::string, double> cycles(const Target& target) {
    std::map<std::string, double> out;
    if (!first.kernels.empty()) {
      for (const schedule::Swept& s : schedule::sweep_candidates(first.decisions, first.kernels,
                                                                 first.rounded, target, unit.pool))
        out.emplace(s.name, s.cycles);
      return out;
    }
    for (const KernelForms& f : forms) out.emplace(f.swept.name, f.cycles_on(target));
    if (!forms.empty()) out.emplace(kUntuned, forms[0].cycles_on(target));
    return out;
  }
};

std::unique_ptr<Modelled> model(const MeasuredProblem& problem,
                                const std::vector<std::string>& folders, const Target& target) {
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}.naut", folder, problem.program);
    std::string ignored;
    auto text = base::read_file(path, &ignored);
    if (!text) continue;
    auto out = std::make_unique<Modelled>();
    out->unit.target = &target;
    auto program = load_text(path, std::move(*text), problem.sizes, out->unit);
    if (program) program = with_hints(std::move(*program), problem.sizes);
    auto first = program ? first_schedule(*program, out->unit) : std::nullopt;
    if (!first) return nullptr;
    out->first = std::move(*first);
    if (out->first.kernels.empty()) out->forms = kernel_forms(out->first, out->unit);
    return out;
  }
  return nullptr;
}

class Fitter {
 public:
  // How far a constant moves at a time, and what it costs to leave the table: a constant that says
  // little about the rows stays near it.
  static constexpr double kSteps[] = {1.25, 1.08, 1.025};
  static constexpr double kPull = 2e-4;

  Fitter(const Target& table, std::vector<const MeasuredProblem*> problems,
         std::map<std::string, std::unique_ptr<Modelled>>& models)
      : table_(table), problems_(std::move(problems)), models_(models) {}

  std::vector<Prediction> predictions(const MeasuredProblem& p, const Target& target) {
    const std::string key = p.text();
    auto& known = memo_[key];
    if (known.empty()) known = models_.at(key)->cycles(target);
    std::vector<Prediction> out;
    for (const auto& [name, ms] : p.ms) {
      const auto it = known.find(name);
      if (it != known.end() && it->second > 0) out.push_back({name, it->second, ms});
    }
    // Of equal predictions the compiler takes the one that it considers first.
    std::stable_partition(out.begin(), out.end(),
                          [](const Prediction& x) { return x.name == kUntuned; });
    return out;
  }

  void forget() { memo_.clear(); }

  // Mean square of what is left of logarithms within problems, and the distance from the table.
  double error(const Target& target) {
    forget();
    double sum = 0;
    double count = 0;
    for (const MeasuredProblem* p : problems_) {
      std::vector<double> logs;
      for (const Prediction& w : predictions(*p, target))
        logs.push_back(std::log(w.measured / w.predicted));
      if (logs.size() < 2) continue;
      double mean = 0;
      for (double x : logs) mean += x / static_cast<double>(logs.size());
      for (double x : logs) sum += (x - mean) * (x - mean);
      count += static_cast<double>(logs.size());
    }
    Target table = table_;
    Target now = target;
    double away = 0;
    for (const FitPlace& place : places_) {
      const double x = std::log(place.in(now) / place.in(table));
      away += x * x;
    }
    return count == 0 ? 0 : sum / count + kPull * away;
  }

  // Each constant in turn a step up or down, as long as that helps, with ever smaller steps.
  // `what`: the words of its steps.
  Target fitted(const std::string& what, const TellStep& tell) {
    Target best = table_;
    double least = error(best);
    const std::vector<size_t> moving = probed();
    size_t tried = 0;
    for (const double step : kSteps) {
      for (size_t k : moving) {
        tell({++tried, std::size(kSteps) * moving.size(), what});
        for (const double factor : {step, 1 / step}) {
          if (move(k, factor, best, least)) break;
        }
      }
    }
    return best;
  }

  // Moves a constant by a factor as long as that helps; whether it did.
  bool move(size_t place, double factor, Target& best, double& least) {
    for (bool has_moved = false;; has_moved = true) {
      Target next = best;
      double& constant = places_[place].in(next);
      constant = std::min(constant * factor, places_[place].most);
      const double now = error(next);
      if (now >= least) return has_moved;
      best = next;
      least = now;
    }
  }

  // Places that some prediction depends on.
  std::vector<size_t> probed() {
    forget();
    std::map<std::string, std::vector<Prediction>> before;
    for (const MeasuredProblem* p : problems_) before[p->text()] = predictions(*p, table_);
    std::vector<size_t> out;
    for (size_t k = 0; k < places_.size(); ++k) {
      Target moved = table_;
      double& constant = places_[k].in(moved);
      if (constant == 0) continue;
      constant *= 1.5;
      forget();
      const bool matters = std::any_of(problems_.begin(), problems_.end(), [&](const auto* p) {
        const std::vector<Prediction> now = predictions(*p, moved);
        const std::vector<Prediction>& old = before.at(p->text());
        return !std::equal(
            now.begin(), now.end(), old.begin(), old.end(),
            [](const Prediction& a, const Prediction& b) { return a.predicted == b.predicted; });
      });
      if (matters) out.push_back(k);
    }
    return out;
  }

  const std::vector<FitPlace>& all_places() const { return places_; }

 private:
  const Target& table_;
  std::vector<const MeasuredProblem*> problems_;
  std::map<std::string, std::unique_ptr<Modelled>>& models_;
  std::vector<FitPlace> places_ = fit_places();
  std::map<std::string, std::map<std::string, double>> memo_;  // by problem, for one target
};

}  // namespace

std::string MeasuredProblem::text() const {
  std::string out = program;
  for (const auto& [name, size] : sizes) out += fmt::format(" {}={}", name, size);
  return out;
}

std::string MeasuredProblem::family() const {
  const auto d = sizes.find("D");
  return d == sizes.end() ? program : fmt::format("{} D={}", program, d->second);
}

std::optional<std::vector<MeasuredProblem>> measured_problems(std::string_view jsonl,
                                                              std::string* error) {
  std::vector<MeasuredProblem> out;
  size_t line_number = 0;
  while (!jsonl.empty()) {
    ++line_number;
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view line = jsonl.substr(0, end);
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_discarded() || !row.is_object()) {
      *error = fmt::format("line {} is no row of measurements", line_number);
      return std::nullopt;
    }
    const auto text = [&](const char* name) {
      const auto it = row.find(name);
      return it != row.end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    const std::string schedule = text("schedule");
    const auto ms = row.find("ms_median");
    if (schedule.empty() || ms == row.end() || !ms->is_number() || ms->get<double>() <= 0) continue;
    // attention_full-B1-D64-M4096/attention_full.1.sched
    std::string folder = schedule.substr(0, schedule.find('/'));
    MeasuredProblem problem;
    problem.program = folder.substr(0, folder.find('-'));
    while (folder.find('-') != std::string::npos) {
      folder.erase(0, folder.find('-') + 1);
      const std::string word = folder.substr(0, folder.find('-'));
      const size_t digit = word.find_first_of("0123456789");
      int64_t size = 0;
      if (digit == 0 || digit == std::string::npos) continue;
      std::from_chars(word.data() + digit, word.data() + word.size(), size);
      problem.sizes.emplace(word.substr(0, digit), size);
    }
    const bool is_same = !out.empty() && out.back().text() == problem.text();
    if (!is_same) out.push_back(std::move(problem));
    out.back().ms.emplace(text("candidate"), ms->get<double>());
  }
  return out;
}

std::map<std::string, double> predicted_cycles(const MeasuredProblem& problem,
                                               const std::vector<std::string>& folders,
                                               const Target& target) {
  const auto m = model(problem, folders, target);
  return m ? m->cycles(target) : std::map<std::string, double>();
}

std::optional<FitReport> fit_costs(const std::vector<MeasuredProblem>& problems,
                                   const std::vector<std::string>& folders, const Target& target,
                                   const TellStep& tell, std::string* error) {
  FitReport report;
  std::map<std::string, std::unique_ptr<Modelled>> models;
  std::vector<const MeasuredProblem*> known;
  std::map<std::string, size_t> halves;  // of families
  size_t modelled = 0;
  for (const MeasuredProblem& p : problems) {
    tell({++modelled, problems.size(), "candidates of measured problems"});
    auto& m = models[p.text()];
    if (!m) m = model(p, folders, target);
    if (!m) {
      if (std::find(report.unknown.begin(), report.unknown.end(), p.program) ==
          report.unknown.end())
        report.unknown.push_back(p.program);
      continue;
    }
    known.push_back(&p);
    halves.emplace(p.family(), halves.size());
  }
  Fitter all(target, known, models);
  RankingOf table;
  for (const MeasuredProblem* p : known) {
    const std::vector<Prediction> predictions = all.predictions(*p, target);
    table.add(p->text(), predictions);
    report.problems += predictions.size() > 1 ? 1 : 0;
    report.candidates += predictions.size() > 1 ? predictions.size() : 0;
  }
  report.table = table.result();
  if (report.problems == 0) {
    *error = "no row is about a candidate of a program that is there";
    return std::nullopt;
  }
  RankingOf held_out;
  for (const size_t half : {size_t{0}, size_t{1}}) {
    std::vector<const MeasuredProblem*> fitted_to;
    std::vector<const MeasuredProblem*> others;
    for (const MeasuredProblem* p : known)
      (halves.at(p->family()) % 2 == half ? others : fitted_to).push_back(p);
    Fitter fitter(target, fitted_to, models);
    const Target found =
        fitted_to.empty()
            ? target
            : fitter.fitted(fmt::format("constants for half {} of the programs", half + 1), tell);
    Fitter judge(found, others, models);
    for (const MeasuredProblem* p : others) held_out.add(p->text(), judge.predictions(*p, found));
  }
  report.held_out = held_out.result();
  report.families = halves.size();
  Target found = all.fitted("constants for all programs", tell);
  const std::vector<size_t> probed = all.probed();
  Target in_table = target;
  for (size_t k = 0; k < all.all_places().size(); ++k) {
    const FitPlace& place = all.all_places()[k];
    report.constants.push_back({place.name, place.in(found), place.in(in_table),
                                std::find(probed.begin(), probed.end(), k) != probed.end()});
  }
  return report;
}

std::string to_text(const FitReport& report, const Target& target) {
  std::string out = fmt::format("target {}: {} candidates of {} problems\n", target.name,
                                report.candidates, report.problems);
  for (const std::string& name : report.unknown)
    out += fmt::format("# no program `{}` is in the folders: its rows are left out\n", name);
  for (const FittedConstant& c : report.constants) {
    out += c.is_probed
               ? fmt::format("{} = {:.4g}  # {:.4g} in the table\n", c.name, c.value, c.in_table)
               : fmt::format("# {}: no row says anything about it\n", c.name);
  }
  const auto line = [](std::string_view what, const Ranking& r) {
    return fmt::format(
        "{}: rank correlation {:.3f}, loss of the first choice {:.2f} % on average, {:.2f} % at "
        "worst ({})\n",
        what, r.correlation, 100 * r.loss, 100 * r.worst, r.worst_name);
  };
  out += line("as in the table", report.table);
  if (report.families > 1)
    out += line("fitted to other programs", report.held_out);
  else
    out += "# all rows are about one program: how it ranks others is not known\n";
  return out;
}

}  // namespace nautilus::driver
