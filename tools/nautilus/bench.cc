// SPDX-License-Identifier: Apache-2.0
// nautilus bench: times of a program on a GPU, and what a launch costs the host.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>

#include "base/files.h"
#include "driver/load/hints.h"
#include "driver/run/bench.h"
#include "driver/run/calibrate.h"
#include "driver/run/fit.h"
#include "driver/run/work_count.h"
#include "json_output.h"
#include "target/target.h"

namespace nautilus::tool {
namespace {

struct BenchOptions {
  std::string file;
  std::string target;
  std::vector<std::string> source;
  std::string mode = "sustained";
  std::vector<std::string> shape;
  std::vector<std::string> schedule;
  std::vector<std::string> scalars;
  uint64_t seed = 1;
  int repetitions = 0;
  double flops = 0;
  double bytes = 0;
  bool graph = false;
  bool host_cost = false;
  bool json = false;
  bool calibrate = false;
  std::vector<std::string> rows;
  std::vector<std::string> programs = {"golden", "examples"};
};

std::string host_text(const driver::HostCost& host) {
  const auto text = [](const driver::Quartiles& q) {
    return fmt::format("{:.2f} us ({:.2f} to {:.2f})", q.median, q.low, q.high);
  };
  std::string out = fmt::format("  host, plan alone:    {}\n", text(host.evaluate_us));
  if (host.launch_us) out += fmt::format("  host, bind + launch: {}\n", text(*host.launch_us));
  return out;
}

nlohmann::json to_json(const driver::Quartiles& q) {
  return {{"median", q.median}, {"low", q.low}, {"high", q.high}};
}

nlohmann::json to_json(const driver::HostCost& host) {
  nlohmann::json j = {{"calls", host.calls}, {"plan_us", to_json(host.evaluate_us)}};
  if (host.launch_us) j["launch_us"] = to_json(*host.launch_us);
  return j;
}

// What is given counts; the rest is counted.
driver::Work work_of(const BenchOptions& o, const ir::Program& loaded, const ir::Program& program,
                     const driver::BenchResult& r, driver::Unit& unit) {
  driver::Work work;
  ir::Environment env;
  for (const auto& [name, value] : r.sizes) env.sizes.emplace(name, value);
  env.scalars = r.scalars;
  diag::Sink ignored(unit.sources);
  const auto oracle = loaded.level->name == "spec" ? std::optional(loaded)
                                                   : driver::load_oracle(program, o.file, unit);
  if (oracle && ir::complete(*oracle, {}, env, ignored))
    work = driver::count_work(*oracle, env, unit);
  if (o.flops > 0) work.flops = o.flops;
  if (o.bytes > 0) work.bytes = o.bytes;
  return work;
}

void print(const BenchOptions& o, const driver::BenchResult& r, const driver::Work& work) {
  std::string sizes;
  for (const auto& [name, value] : r.sizes) sizes += fmt::format(" {}={}", name, value);
  fmt::print("{} on {}:{}\n", o.file, r.device, sizes);
  fmt::print("  {:.4f} ms ({:.4f} to {:.4f}), median and quartiles of {}, {}{}\n", r.ms.median,
             r.ms.low, r.ms.high, r.repetitions, o.mode, o.graph ? ", graph" : "");
  fmt::print("{}", driver::launch_report(r.launches));
  if (work.flops > 0)
    fmt::print("  {:.1f} TFLOP/s of {:.4g} operations in products\n",
               work.flops / r.ms.median * 1e-9, work.flops);
  if (work.bytes > 0)
    fmt::print("  {:.1f} GB/s of {:.4g} bytes, inputs and outputs once\n",
               work.bytes / r.ms.median * 1e-6, work.bytes);
  if (!r.clocks.empty()) fmt::print("  {}\n", r.clocks);
  if (r.host) fmt::print("{}", host_text(*r.host));
}

void print_json(const BenchOptions& o, const driver::BenchResult& r, const driver::Work& work) {
  nlohmann::json j = {{"ok", true},          {"file", o.file},
                      {"device", r.device},  {"mode", o.mode},
                      {"graph", o.graph},    {"repetitions", r.repetitions},
                      {"ms", to_json(r.ms)}, {"sizes", nlohmann::json::object()}};
  for (const auto& [name, value] : r.sizes) j["sizes"][name] = value;
  if (!o.source.empty()) j["source"] = o.source;
  if (work.flops > 0) j["tflops"] = work.flops / r.ms.median * 1e-9;
  if (work.bytes > 0) j["gb_per_s"] = work.bytes / r.ms.median * 1e-6;
  j["flops"] = work.flops;
  j["bytes"] = work.bytes;
  for (const driver::PlannedLaunch& l : r.launches) {
    if (l.grid > 0) j["kernels"].push_back({{"name", l.kernel}, {"grid", l.grid}});
  }
  if (!r.clocks.empty()) j["clocks"] = r.clocks;
  if (r.host) j["host"] = to_json(*r.host);
  fmt::print("{}\n", j.dump(2));
}

// Writes how far the command is beside its output, so that this stays the same.
class Steps {
 public:
  ~Steps() { write(text_.end()); }
  void operator()(const driver::Step& step) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    write(text_.next(step, seconds.count()));
  }

 private:
  static void write(const std::string& text) {
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
  }

  driver::StepText text_{isatty(STDERR_FILENO) != 0};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// From recorded rows: needs no GPU.
int run_fit(const BenchOptions& o, const target::Target& target) {
  std::vector<driver::MeasuredProblem> problems;
  std::string error;
  for (const std::string& path : o.rows) {
    const auto text = base::read_file(path, &error);
    const auto found = text ? driver::measured_problems(*text, &error) : std::nullopt;
    if (!found) {
      usage_error(text ? fmt::format("{}: {}", path, error) : error);
      return kUsageError;
    }
    problems.insert(problems.end(), found->begin(), found->end());
  }
  const auto report = [&] {
    Steps steps;
    return driver::fit_costs(problems, o.programs, target, std::ref(steps), &error);
  }();
  if (!report) {
    usage_error(error);
    return kUsageError;
  }
  const std::string text = driver::to_text(*report, target);
  o.json ? write_json({{"ok", true}, {"text", text}}) : fmt::print("{}", text);
  return kOk;
}

int run_calibrate(const BenchOptions& o) {
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  const target::Target& target = unit.target ? *unit.target : target::default_target();
  std::string error;
  if (!o.rows.empty()) return run_fit(o, target);
  const auto constants = [&] {
    Steps steps;
    return driver::calibrate({}, target, std::ref(steps), &error);
  }();
  if (!constants) {
    fmt::print(stderr, "nautilus: {}\n", error);
    if (o.json) write_json({{"ok", false}, {"error", error}});
    return kProgramError;
  }
  const std::string text = driver::to_text(*constants, target);
  o.json ? write_json({{"ok", true}, {"text", text}}) : fmt::print("{}", text);
  return kOk;
}

int run_bench(const BenchOptions& o) {
  if (o.calibrate) return run_calibrate(o);
  if (o.file.empty()) {
    usage_error("a program is needed, or --calibrate");
    return kUsageError;
  }
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  int code = kOk;
  std::map<std::string, int64_t> sizes;
  if (!parse_sizes(o.shape, sizes)) return kUsageError;
  const auto loaded = load_file(o.file, sizes, unit, code);
  // Kernels for the sizes that are measured; small problems stay those of the program's hints.
  std::optional<ir::Program> program;
  if (loaded) program = kernels_of(driver::with_hints(*loaded, sizes), o.schedule, unit, code);
  if (program) program = driver::with_hints_of(std::move(*program), *loaded);
  print_messages(unit);
  if (!program && o.json && code != kUsageError) write_json(report_json(false, unit));
  if (!program) return std::max<int>(code, kProgramError);
  driver::BenchOptions options;
  if (!read_sources(o.source, *program, options.device.sources)) return kUsageError;
  for (const ir::Op& op : program->body) {
    const auto* s = op.get<ir::Static>();  // is in the program already
    if (s) sizes.erase(std::string(s->name.str()));
  }
  options.given.sizes.insert(sizes.begin(), sizes.end());
  if (!read_scalars(*program, o.scalars, options.given)) return kUsageError;
  options.seed = o.seed;
  options.is_burst = o.mode == "burst";
  options.use_graph = o.graph;
  options.repetitions = o.repetitions;
  options.host_cost = o.host_cost;
  std::string error;
  const auto result = driver::bench(*program, options, unit.pool, &error);
  if (result) {
    const driver::Work work = work_of(o, *loaded, *program, *result, unit);
    o.json ? print_json(o, *result, work) : print(o, *result, work);
    if (!o.json) fmt::print("{}", sources_report(*program, options.device.sources));
    return kOk;
  }
  // The plan's part of the host's cost needs no device.
  std::string ignored;
  const auto host =
      o.host_cost ? driver::plan_cost(*program, options.given, unit.pool, &ignored) : std::nullopt;
  if (o.json) {
    nlohmann::json j = {{"ok", false}, {"error", error}};
    if (host) j["host"] = to_json(*host);
    write_json(j);
  }
  if (host && !o.json) fmt::print("{}:\n{}", o.file, host_text(*host));
  std::fflush(stdout);
  fmt::print(stderr, "nautilus: {}\n", error);
  return kProgramError;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = app.add_subcommand("bench", "Time a program on a GPU");
  c->add_option("FILE", o->file, "a program (.naut) or IR text of any level");
  c->add_option("--target", o->target, kTargetHelp);
  c->add_option("--shape", o->shape, "sizes: M=4096,N=4096; others from the program's hints")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  c->add_option("--set", o->scalars, "scalars: scale=0.125; others as the program declares")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--source", o->source, kSourceHelp)->allow_extra_args(false);
  c->add_option(
       "--mode", o->mode,
       "sustained: after 0.7 s of work, when clocks and power have settled; burst: after a "
       "pause")
      ->check(CLI::IsMember({"sustained", "burst"}))
      ->capture_default_str();
  c->add_flag("--graph", o->graph, "replay a captured graph instead of launching");
  c->add_option("--reps", o->repetitions, "timed launches; default 100, or 30 in a burst")
      ->check(CLI::Range(1, 100000));
  c->add_option("--flops", o->flops, "operations of one run, if not those of its products: 1.1e12");
  c->add_option("--bytes", o->bytes,
                "bytes that one run has to move, if not those of its inputs and outputs");
  c->add_flag("--host-cost", o->host_cost,
              "also time the host: 10000 times bind and launch of a small problem");
  c->add_option("--seed", o->seed, "of the inputs");
  c->add_flag("--calibrate", o->calibrate,
              "measure the constants of the cost model instead and print them beside the table's");
  c->add_option(
       "--rows", o->rows,
       "with --calibrate: recorded sweeps (bench/results/*.jsonl) to fit all constants to, "
       "instead of a GPU")
      ->needs("--calibrate")
      ->allow_extra_args(true);
  c->add_option("--programs", o->programs, "folders with the programs of the rows")
      ->delimiter(',')
      ->capture_default_str();
  c->add_flag("--json", o->json, kJsonHelp);
  c->footer(
      "Inputs are random, the second-level cache is flushed before each timed launch.\n"
      "Examples:\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --shape M=8192,N=8192,K=8192\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --host-cost --reps 10\n"
      "  nautilus compile golden/gemm_pp_128x192.matile --emit cuda -o edited.cu\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --source edited.cu --shape "
      "M=4096,N=4096,K=4096");
  c->callback([o, &exit_code] { exit_code = run_bench(*o); });
}

}  // namespace nautilus::tool
