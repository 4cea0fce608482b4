// SPDX-License-Identifier: Apache-2.0
// nautilus_mutate: how much the emulator sees. Every single deletion of a wait, arrival,
// announcement, commit, fence, barrier or step in the body of a golden kernel is run on ragged
// shapes; a deletion is caught if a run is reported or its result is wrong (docs/emulator.md).
//
//   nautilus_mutate [--least PERCENT] [--seeds N] FILE.matile ...
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/parallel.h"
#include "driver/run.h"
#include "emit/emit.h"
#include "emulator/mutate.h"

namespace nautilus {
namespace {

struct Score {
  int caught = 0;
  int all = 0;
};

struct Golden {
  driver::Unit unit;
  std::optional<ir::Program> program;
  std::optional<ir::Program> oracle;
  std::optional<ir::Environment> env;
  std::optional<spec::Results> want;
};

bool load(const std::string& path, Golden& g) {
  std::string error;
  const auto text = base::read_file(path, &error);
  if (!text) {
    fmt::print(stderr, "{}\n", error);
    return false;
  }
  g.program = driver::load_text(path, *text, {}, g.unit);
  if (g.program) g.oracle = driver::load_oracle(*g.program, path, g.unit);
  if (!g.oracle) return false;
  driver::RunRequest request;
  for (const ir::Op& op : g.program->body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) request.given.sizes.emplace(d->name.str(), *d->hint);
  }
  g.env = driver::prepare(*g.oracle, request, g.unit);
  if (g.env) g.want = spec::evaluate(*g.oracle, *g.env, {}, g.unit.pool, g.unit.sink);
  return g.want.has_value();
}

// True if the run of this body is reported, or gives something else than the oracle.
bool is_caught(Golden& g, const std::string& body, uint64_t seed) {
  driver::EmulateOptions options;
  options.seed = seed;
  options.max_grid = 2;
  options.body = body;
  options.use_cache = false;
  std::string error;
  const auto got = driver::run_emulated(*g.program, driver::environment_of(*g.program, *g.env),
                                        options, g.unit.pool, &error);
  if (!got) return true;
  for (const auto& line : driver::compare_outputs(*got, *g.want, ir::numerics_of(*g.oracle))) {
    if (!line.comparison.is_accepted) return true;
  }
  return false;
}

Score score(const std::string& path, int seeds) {
  Golden first;
  if (!load(path, first)) return {0, 1};
  const auto kernels = emit::emit_kernels(*first.program, first.unit.pool);
  if (kernels.size() != 1) return {};
  const auto mutants = emulator::mutants(kernels[0].body);
  std::vector<char> caught(mutants.size(), 0);
  // Expression pools are not shared between threads, so each chunk loads the program anew.
  const int64_t chunks = base::default_threads();
  base::parallel_for(chunks, base::default_threads(), [&](int64_t c) {
    Golden own;
    if (!load(path, own)) return;
    for (size_t i = static_cast<size_t>(c); i < mutants.size(); i += static_cast<size_t>(chunks)) {
      for (int seed = 1; seed <= seeds && !caught[i]; ++seed)
        caught[i] = is_caught(own, mutants[i].body, static_cast<uint64_t>(seed));
    }
  });
  Score s{0, static_cast<int>(mutants.size())};
  for (size_t i = 0; i < mutants.size(); ++i) {
    s.caught += caught[i] ? 1 : 0;
    if (!caught[i]) fmt::print("  survives: {}\n", mutants[i].description);
  }
  fmt::print("{}: {} of {} caught\n", path, s.caught, s.all);
  std::fflush(stdout);
  return s;
}

int run(int argc, char** argv) {
  double least = 0;
  int seeds = 3;
  Score total;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--least") == 0 && i + 1 < argc) {
      least = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
      seeds = std::atoi(argv[++i]);
    } else {
      const Score s = score(argv[i], seeds);
      total.caught += s.caught;
      total.all += s.all;
    }
  }
  if (total.all == 0) {
    fmt::print(stderr, "usage: nautilus_mutate [--least PERCENT] [--seeds N] FILE.matile ...\n");
    return 2;
  }
  const double percent = 100.0 * total.caught / total.all;
  fmt::print("mutation score: {} of {} deletions caught, {:.1f} %\n", total.caught, total.all,
             percent);
  return percent >= least ? 0 : 1;
}

}  // namespace
}  // namespace nautilus

int main(int argc, char** argv) { return nautilus::run(argc, argv); }
