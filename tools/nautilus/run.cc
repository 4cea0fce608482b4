// SPDX-License-Identifier: Apache-2.0
// nautilus run: run a program, in the emulator or on a device, and check it.
#include <fmt/format.h>

#include <chrono>

#include "command.h"
#include "driver/lower_to_kernels.h"
#include "driver/run.h"

namespace nautilus::tool {
namespace {

struct RunOptions {
  std::string file;
  std::string target = "sm_90a";
  std::string source;
  std::vector<std::string> shape;
  std::string schedule;
  uint64_t seed = 1;
  int sms = 2;
  bool emulate = false;
  bool check = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run_run(const RunOptions& o) {
  driver::Unit unit;
  int code = kOk;
  std::map<std::string, int64_t> sizes;
  if (!parse_sizes(o.shape, sizes)) return kUsageError;
  const auto loaded = load_file(o.file, sizes, unit, code);
  const auto finish = [&](int exit) {
    print_messages(unit);
    return exit;
  };
  if (!loaded) return finish(std::max<int>(code, kProgramError));
  auto program = kernels_of(*loaded, o.schedule, unit, code);
  if (!program) return finish(code);
  driver::DeviceOptions device{o.target, ""};
  if (!o.source.empty() && !read_source(o.source, device.source)) return kUsageError;
  if (!o.source.empty() && o.emulate) {
    usage_error("--source is for a GPU: the emulator runs the body alone");
    return kUsageError;
  }
  driver::RunRequest request;
  request.seed = o.seed;
  for (const ir::Op& op : program->body) {
    const auto* s = op.get<ir::Static>();  // is in the program already
    if (s) sizes.erase(std::string(s->name.str()));
  }
  request.given.sizes.insert(sizes.begin(), sizes.end());
  for (const ir::Op& op : program->body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) request.given.sizes.emplace(d->name.str(), *d->hint);
  }
  // Inputs are drawn for the oracle: both programs see the same numbers.
  const auto oracle =
      loaded->level->name == "spec" ? loaded : driver::load_oracle(*program, o.file, unit);
  if (!oracle) return finish(kProgramError);
  const auto env = driver::prepare(*oracle, request, unit);
  if (!env) return finish(kProgramError);
  const ir::Environment own = driver::environment_of(*program, *env);
  const auto start = std::chrono::steady_clock::now();
  driver::EmulateOptions emulate_options;
  emulate_options.seed = o.seed;
  emulate_options.multiprocessors = o.sms;
  std::string error;
  const auto got = o.emulate
                       ? driver::run_emulated(*program, own, emulate_options, unit.pool, &error)
                       : driver::run_on_device(*program, own, device, unit.pool, &error);
  if (!got) {
    fmt::print(stderr, "nautilus: {}\n", error);
    // What the evaluator finds wrong with the inputs, an index outside of a tensor, explains it.
    if (o.check) spec::evaluate(*oracle, *env, {}, unit.pool, unit.sink);
    return finish(kProgramError);
  }
  fmt::print("{}: {} in {:.3f} s\n", o.file, o.emulate ? "emulated" : "run", seconds_since(start));
  if (!o.check) return finish(kOk);
  const auto want = spec::evaluate(*oracle, *env, {}, unit.pool, unit.sink);
  if (!want) return finish(kProgramError);
  bool ok = true;
  for (const driver::CheckLine& line :
       driver::compare_outputs(*got, *want, ir::numerics_of(*oracle))) {
    ok &= line.comparison.is_accepted;
    fmt::print("  {}: {}, relative error {:.2e}, worst element {:.2f} of what is allowed{}\n",
               line.tensor, line.comparison.is_accepted ? "ok" : "WRONG", line.relative_error,
               line.comparison.worst_ratio,
               line.comparison.is_accepted
                   ? ""
                   : fmt::format(", {} elements off, first worst at {}", line.comparison.mismatches,
                                 line.comparison.worst_index));
  }
  return finish(ok ? kOk : kProgramError);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "Run a program on random inputs");
  c->add_option("FILE", o->file, "a program (.naut) or IR text of any level")->required();
  c->add_option("--target", o->target, "the architecture: sm_90a")->capture_default_str();
  c->add_option("--shape", o->shape, "sizes: M=64,N=80; others from the program's hints")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp);
  c->add_option("--seed", o->seed, "of the inputs, and of the emulator's schedule");
  c->add_option("--sms", o->sms, "multiprocessors of the emulated device")->capture_default_str();
  c->add_option("--source", o->source,
                "a CUDA file to run instead of the one that is emitted (compile --emit cuda)");
  c->add_flag("--emulate", o->emulate, "in the emulator instead of on a GPU");
  c->add_flag(
      "--check", o->check,
      "compare with the reference evaluator, or with the oracle that an MA-tile file names");
  c->footer(
      "Example: nautilus run golden/gemm_coop_128x256.matile --target sm_90a --emulate --check");
  c->callback([o, &exit_code] { exit_code = run_run(*o); });
}

}  // namespace nautilus::tool
