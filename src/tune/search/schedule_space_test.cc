// SPDX-License-Identifier: Apache-2.0
// What an evolution tries of real programs, one of each form.
#include "tune/search/schedule_space.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "decision/decisions.h"
#include "schedule/search/neighbours.h"
#include "schedule/text/schedule.h"
#include "tune/learn/line_features.h"

namespace nautilus::tune {
namespace {

Subject file_of(const std::string& name, std::map<std::string, int64_t> sizes = {}) {
  Subject out;
  std::string error;
  out.path = fmt::format("{}/{}.naut", NAUTILUS_SOURCE_DIR, name);
  out.text = base::read_file(out.path, &error).value_or("");
  out.sizes = std::move(sizes);
  return out;
}

Subject example(const std::string& name, std::map<std::string, int64_t> sizes = {}) {
  return file_of("examples/" + name, std::move(sizes));
}

// `tile chains`: the form of the kernel that a step changes and the verb of the changed line.
std::set<std::string> changed_verbs(const std::string& before, const std::string& after) {
  expr::ExprPool pool;
  const auto a = schedule::parse_schedule(before, pool);
  const auto b = schedule::parse_schedule(after, pool);
  std::set<std::string> out;
  if (!a || !b || a->kernels.size() != b->kernels.size()) return out;
  for (size_t k = 0; k < a->kernels.size(); ++k) {
    const decision::Form form = b->kernels[k].form;
    for (size_t w = 0; w < b->kernels[k].alternatives.size(); ++w) {
      for (const ir::Op& line : b->kernels[k].alternatives[w]) {
        if (decision::by_of(line) == decision::By::Tuned)
          out.insert(fmt::format("{} {}", decision::words(form)[static_cast<size_t>(form)],
                                 line.info().mnemonic()));
      }
    }
  }
  return out;
}

// All that the search makes of the compiler's choice, if that is the only one with a time.
std::set<std::string> tried_by(const std::string& search_name, const Subject& subject) {
  ScheduleSpace space(subject, lower_here(subject));
  const auto search = make_search(search_name, space, {});
  const auto never = [] { return false; };
  const auto own = search->next(1, never);
  if (own.size() != 1) return {};
  Trial t;
  t.schedule = own[0].schedule;
  t.verdict = Verdict::Timed;
  t.times = {1};
  t.features = own[0].features;
  t.running = own[0].running;
  search->tell(t);
  std::set<std::string> out;
  for (const Proposal& p : search->next(200, never)) {
    for (const std::string& verb : changed_verbs(own[0].schedule, p.schedule)) out.insert(verb);
  }
  return out;
}

// Legal, and with other kernels than the compiler's choice: other steps are not proposed.
TEST(ScheduleSpace, AnEvolutionTriesLinesOfEveryForm) {
  const std::vector<std::pair<Subject, std::vector<std::string>>> cases = {
      {example("attention_decode", {{"N", 4096}}),
       {"tile reads", "tile chains", "tile tile", "tile ring"}},
      {example("linear_attention"), {"tile begin", "points begin"}},
      {example("rmsnorm"), {"rows reads", "rows chains", "rows columns"}},
      {example("cross_entropy"), {"rows begin"}},
      {example("cumsum"), {"points reads", "points threads"}},
      {example("gemm", {{"M", 64}, {"N", 64}, {"K", 8192}}), {"parts begin", "parts threads"}},
  };
  for (const auto& [subject, wanted] : cases) {
    ASSERT_FALSE(subject.text.empty()) << subject.path;
    const auto tried = tried_by("evolutionary", subject);
    for (const std::string& verb : wanted)
      EXPECT_TRUE(tried.contains(verb)) << subject.path << ": no " << verb << " among "
                                        << fmt::format("{}", fmt::join(tried, ", "));
  }
}

// Every step that a search makes from the compiler's choice, for each form of kernels.
TEST(ScheduleSpace, SchedulesThatDifferInOneLineHaveOtherFeatures) {
  size_t steps = 0;
  for (const char* file : {"golden/gemm_nt", "golden/attention_causal", "examples/rmsnorm",
                           "examples/argmax_row", "examples/conv1d"}) {
    const Subject subject = file_of(file);
    ASSERT_FALSE(subject.text.empty()) << file;
    const Lowered own = lower(subject, "");
    ASSERT_TRUE(own.refusal.empty()) << own.refusal;
    expr::ExprPool pool;
    const auto parsed = schedule::parse_schedule(own.schedule, pool);
    ASSERT_TRUE(parsed) << parsed.rejection().message;
    for (const schedule::Neighbour& n : schedule::neighbours(*parsed, target::default_target())) {
      // A line about the program, and alternatives that do not run.
      if (n.kernel.empty() || std::find(own.running.begin(), own.running.end(),
                                        std::pair(n.kernel, n.alternative)) == own.running.end())
        continue;
      ++steps;
      EXPECT_NE(line_features(schedule::print(n.schedule), own.running),
                line_features(own.schedule, own.running))
          << file << ": " << n.name;
    }
  }
  EXPECT_GT(steps, 100u);
}

}  // namespace
}  // namespace nautilus::tune
