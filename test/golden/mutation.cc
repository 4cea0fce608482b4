// SPDX-License-Identifier: Apache-2.0
// nautilus_mutate: how much the emulator sees. Every single deletion of a wait, arrival,
// announcement, commit, fence, barrier or step in the body of a golden kernel is run on ragged
// shapes; a deletion is caught if a run is reported or its result is wrong (docs/emulator.md). What
// survives the shape of the hints is tried on shapes with one short size each: where a loop has
// fewer steps than a ring has slots, the waits of that ring no longer stand in for other waits.
//
//   nautilus_mutate [--least PERCENT] [--seeds N] FILE.matile ...
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "base/files.h"
#include "base/parallel.h"
#include "driver/run/run.h"
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

using Sizes = std::map<std::string, int64_t>;

// The sizes of the hints, and those with one of them a quarter as large, in whole 16 bytes: others
// would take copies of the tensors.
std::vector<Sizes> shapes_of(const ir::Program& program) {
  Sizes hints;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) hints.emplace(d->name.str(), *d->hint);
  }
  std::vector<Sizes> shapes = {hints};
  for (const auto& [name, size] : hints) {
    const int64_t shorter = (size / 4 + 7) / 8 * 8;
    if (shorter >= size) continue;
    shapes.push_back(hints);
    shapes.back()[name] = shorter;
  }
  return shapes;
}

bool load(const std::string& path, size_t shape, Golden& g) {
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
  const Sizes sizes = shapes_of(*g.program)[shape];
  for (const auto& [name, size] : sizes) request.given.sizes.emplace(name, size);
  g.env = driver::prepare(*g.oracle, request, g.unit);
  if (g.env) g.want = spec::evaluate(*g.oracle, *g.env, {}, g.unit.pool, g.unit.sink);
  return g.want.has_value();
}

// True if the run of this body is reported, or gives something else than the oracle.
bool is_caught(Golden& g, const std::string& body, uint64_t seed, int grid) {
  driver::EmulateOptions options;
  options.seed = seed;
  options.max_grid = grid;
  options.body = body;
  options.use_cache = false;
  std::string error;
  const auto got = driver::run_emulated(*g.program, driver::environment_of(*g.program, *g.env),
                                        options, g.unit.pool, &error);
  if (!got) return true;
  for (const auto& line : driver::compare_outputs(*got, *g.want, ir::numerics_of(*g.oracle))) {
    if (line.comparison.verdict == spec::Verdict::Wrong) return true;
  }
  return false;
}

// Marks the mutants that are caught on one shape. `body` is that of the kernel itself: a shape that
// it does not take says nothing.
void run_shape(const std::string& path, size_t shape, int seeds, const std::string& body,
               const std::vector<emulator::Mutant>& mutants, std::vector<char>& caught) {
  std::vector<size_t> left;
  for (size_t i = 0; i < mutants.size(); ++i) {
    if (!caught[i]) left.push_back(i);
  }
  // Short shapes have few tiles, of which one CTA should walk several.
  const int grid = shape == 0 ? 2 : 1;
  // Expression pools are not shared between threads, so each chunk loads the program anew.
  const auto chunks = static_cast<size_t>(base::default_threads());
  base::parallel_for(static_cast<int64_t>(chunks), base::default_threads(), [&](int64_t c) {
    Golden own;
    if (static_cast<size_t>(c) >= left.size() || !load(path, shape, own)) return;
    if (shape > 0 && is_caught(own, body, 1, grid)) return;
    for (size_t k = static_cast<size_t>(c); k < left.size(); k += chunks) {
      char& is_over = caught[left[k]];
      for (int seed = 1; seed <= seeds && !is_over; ++seed)
        is_over = is_caught(own, mutants[left[k]].body, static_cast<uint64_t>(seed), grid);
    }
  });
}

Score score(const std::string& path, int seeds) {
  Golden first;
  if (!load(path, 0, first)) return {0, 1};
  const auto kernels = emit::emit_kernels(*first.program, first.unit.pool);
  if (kernels.size() != 1) return {};
  const std::string& body = kernels[0].body;
  const auto mutants = emulator::mutants(body);
  std::vector<char> caught(mutants.size(), 0);
  const size_t shapes = shapes_of(*first.program).size();
  for (size_t shape = 0; shape < shapes; ++shape)
    run_shape(path, shape, seeds, body, mutants, caught);
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
