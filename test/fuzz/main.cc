// SPDX-License-Identifier: Apache-2.0
// The fuzzer: generated programs against every evaluator and pass, and damaged texts against the
// front end.
//
// Case k of seed S is made from S + k alone, so a failing case is the first one of its own seed.
// Without --seed half of the time goes to one fixed seed, which repeats from run to run, and half
// to a new one, which is printed.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "cascade_check.h"
#include "cascade_generator.h"
#include "mutation.h"
#include "program_generator.h"
#include "property.h"
#include "reducer.h"
#include "sandbox.h"

namespace nautilus::fuzz {
namespace {

constexpr uint64_t kFixedSeed = 1;
constexpr int64_t kBatch = 200;
constexpr size_t kMaxFailures = 12;  // distinct ones, then the run ends
constexpr int kReduceSeconds = 30;

struct Options {
  double seconds = 10;
  std::optional<uint64_t> seed;
  std::string only;
  std::string save = (std::filesystem::temp_directory_path() / "nautilus-fuzz").string();
  std::string one;
};

Verdict check_any(const std::string& text, uint64_t) { return check_text(text); }

struct Part {
  std::string_view name;
  TextCheck check;
};
constexpr Part kPrograms{"programs", check_program};
constexpr Part kMutation{"mutation", check_any};
constexpr Part kSchedules{"schedules", check_schedules};
// Slow, since each program is compiled by the system's compiler: only where it is asked for.
constexpr Part kKernels{"kernels", check_compiled};
constexpr Part kCascades{"cascades", check_cascade_kernels};
constexpr Part kDevice{"device", check_cascade_on_device};

constexpr const Part* kUsual[] = {&kPrograms, &kMutation, &kSchedules};
constexpr const Part* kOnRequest[] = {&kKernels, &kCascades, &kDevice};

bool is_part(std::string_view name) {
  const auto is_it = [&](const Part* p) { return p->name == name; };
  return std::ranges::any_of(kUsual, is_it) || std::ranges::any_of(kOnRequest, is_it);
}

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options) : options_(options) {}

  int run() {
    if (!options_.one.empty()) return run_one();
    std::vector<uint64_t> seeds = {kFixedSeed, std::random_device()()};
    if (options_.seed) seeds = {*options_.seed};
    const std::vector<const Part*> parts = parts_asked_for();
    const double share = options_.seconds / static_cast<double>(seeds.size() * parts.size());
    for (const uint64_t seed : seeds) {
      for (const Part* p : parts) run_part(*p, seed, share);
    }
    return found_.empty() ? 0 : 1;
  }

 private:
  std::vector<const Part*> parts_asked_for() const {
    std::vector<const Part*> parts;
    for (const Part* p : kUsual) {
      if (options_.only.empty() || options_.only == p->name) parts.push_back(p);
    }
    for (const Part* p : kOnRequest) {
      if (options_.only == p->name) parts.push_back(p);
    }
    return parts;
  }

  std::string text_of(const Part& part, uint64_t seed) {
    if (&part == &kSchedules || &part == &kCascades || &part == &kDevice)
      return generate_cascade(seed);
    if (&part != &kMutation) return generate_program(seed);
    if (corpus_.empty()) corpus_ = load_corpus(NAUTILUS_SOURCE_DIR);
    return mutate(corpus_, seed);
  }

  void run_part(const Part& part, uint64_t seed, double seconds) {
    fmt::print("{}: seed {}, {:.1f} s\n", part.name, seed, seconds);
    text_of(part, seed);  // loads the corpus once, before there are children
    const auto start = Clock::now();
    auto deadline =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    Clock::duration reducing{};
    Tally tally;
    int64_t index = 0;
    while (Clock::now() < deadline && found_.size() < kMaxFailures) {
      const Batch batch = run_batch(index, kBatch, deadline, [&](int64_t k) {
        const uint64_t own = seed + static_cast<uint64_t>(k);
        return part.check(text_of(part, own), own);
      });
      tally.add(batch.tally);
      index += batch.tally.cases;
      if (!batch.failure) continue;
      const auto before = Clock::now();
      report(part, seed + static_cast<uint64_t>(batch.failure->index), *batch.failure);
      reducing += Clock::now() - before;
      deadline += Clock::now() - before;
    }
    const std::chrono::duration<double> took = Clock::now() - start - reducing;
    fmt::print("  {} cases, {:.0f} per second, {:.1f} % accepted\n", tally.cases,
               static_cast<double>(tally.cases) / std::max(took.count(), 1e-3),
               100.0 * static_cast<double>(tally.accepted) /
                   static_cast<double>(std::max<int64_t>(tally.cases, 1)));
    std::string line;
    for (const auto& [code, n] : tally.codes) line += fmt::format("  {} {}", code, n);
    if (!line.empty()) fmt::print("  reported:{}\n", line);
    std::fflush(stdout);
  }

  void report(const Part& part, uint64_t seed, const FailedCase& failure) {
    if (!found_.insert(failure.key).second) {
      fmt::print("  again, seed {}: {}\n", seed, failure.key);
      return;
    }
    const std::string text = text_of(part, seed);
    const std::string small = reduce(text, seed, failure.key, part.check,
                                     Clock::now() + std::chrono::seconds(kReduceSeconds));
    const Batch again =
        run_batch(0, 1, Clock::time_point::max(), [&](int64_t) { return part.check(small, seed); });
    const std::string path = save(part, seed, small);
    save(part, seed, text, "-full");
    fmt::print(
        "FAILED: {}\n--- the case, {} bytes\n{:.4000}\n--- reduced\n{:.4000}\n--- {:.6000}\n",
        failure.key, text.size(), text, small,
        again.failure ? again.failure->message : failure.message);
    fmt::print("--- reproduce with --seed {0} --only {1}, or --seed {0} --only {1} --one {2}\n",
               seed, part.name, path);
    std::fflush(stdout);
  }

  std::string save(const Part& part, uint64_t seed, const std::string& text,
                   std::string_view suffix = "") {
    std::error_code ignored;
    std::filesystem::create_directories(options_.save, ignored);
    const std::string path = fmt::format("{}/{}-{}{}.naut", options_.save, part.name, seed, suffix);
    std::string error;
    if (!base::write_file_atomic(path, text, &error))
      fmt::print("cannot write {}: {}\n", path, error);
    return path;
  }

  int run_one() {
    std::string error;
    const auto text = base::read_file(options_.one, &error);
    if (!text) {
      fmt::print(stderr, "{}: {}\n", options_.one, error);
      return 2;
    }
    int result = 0;
    for (const Part* p : parts_asked_for()) {
      const Batch batch = run_batch(0, 1, Clock::time_point::max(), [&](int64_t) {
        return p->check(*text, options_.seed.value_or(kFixedSeed));
      });
      const std::string code = batch.tally.codes.empty() ? "" : batch.tally.codes.begin()->first;
      fmt::print("{}: {} {}\n", p->name, batch.tally.accepted ? "accepted" : "refused", code);
      if (!batch.failure) continue;
      fmt::print("FAILED: {}\n{}\n", batch.failure->key, batch.failure->message);
      result = 1;
    }
    return result;
  }

  const Options& options_;
  std::vector<std::string> corpus_;
  std::set<std::string> found_;
};

int usage() {
  fmt::print(stderr,
             "nautilus_fuzz [--seconds N] [--seed S] [--only "
             "programs|mutation|schedules|kernels|cascades|device] "
             "[--save DIR] [--one FILE]\n");
  return 2;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

int main(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; k += 2) {
    const std::string_view name = argv[k];
    if (k + 1 == argc) return usage();
    const std::string value = argv[k + 1];
    if (name == "--seconds") {
      const auto seconds = number(value);
      if (!seconds) return usage();
      options.seconds = *seconds;
    } else if (name == "--seed") {
      uint64_t seed = 0;
      const auto r = std::from_chars(value.data(), value.data() + value.size(), seed);
      if (r.ec != std::errc() || r.ptr != value.data() + value.size()) return usage();
      options.seed = seed;
    } else if (name == "--only" && is_part(value)) {
      options.only = value;
    } else if (name == "--save") {
      options.save = value;
    } else if (name == "--one") {
      options.one = value;
    } else {
      return usage();
    }
  }
  // Programs are tiny: threads would cost more than they bring, and children must not inherit any.
  setenv("NAUTILUS_THREADS", "1", 0);
  return Fuzzer(options).run();
}

}  // namespace
}  // namespace nautilus::fuzz

int main(int argc, char** argv) { return nautilus::fuzz::main(argc, argv); }
