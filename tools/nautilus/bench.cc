// SPDX-License-Identifier: Apache-2.0
// nautilus bench: times of a program on a GPU, and what a launch costs the host.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "driver/bench.h"
#include "driver/calibrate.h"
#include "driver/hints.h"

namespace nautilus::tool {
namespace {

struct BenchOptions {
  std::string file;
  std::string target = "sm_90a";
  std::string source;
  std::string mode = "sustained";
  std::vector<std::string> shape;
  std::string schedule;
  std::vector<std::string> scalars;
  uint64_t seed = 1;
  int repetitions = 0;
  double flops = 0;
  double bytes = 0;
  bool graph = false;
  bool host_cost = false;
  bool json = false;
  bool calibrate = false;
};

bool parse_scalars(const ir::Program& program, const BenchOptions& o, ir::Environment& env) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(o.scalars, pairs)) return false;
  for (const auto& [name, text] : pairs) {
    const ir::Param* param = nullptr;
    for (const ir::Op& op : program.body) {
      const auto* p = op.get<ir::Param>();
      if (p && p->name.str() == name) param = p;
    }
    if (!param) {
      usage_error(fmt::format("the program has no scalar `{}`", name));
      return false;
    }
    std::string error;
    const auto value = ir::parse_scalar(text, param->dtype, &error);
    if (!value) {
      usage_error(fmt::format("the scalar `{}`: {}", name, error));
      return false;
    }
    env.scalars.emplace(name, *value);
  }
  return true;
}

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

void print(const BenchOptions& o, const driver::BenchResult& r) {
  std::string sizes;
  for (const auto& [name, value] : r.sizes) sizes += fmt::format(" {}={}", name, value);
  fmt::print("{} on {}:{}\n", o.file, r.device, sizes);
  fmt::print("  {:.4f} ms ({:.4f} to {:.4f}), median and quartiles of {}, {}{}\n", r.ms.median,
             r.ms.low, r.ms.high, r.repetitions, o.mode, o.graph ? ", graph" : "");
  if (o.flops > 0) fmt::print("  {:.1f} TFLOP/s\n", o.flops / r.ms.median * 1e-9);
  if (o.bytes > 0) fmt::print("  {:.1f} GB/s\n", o.bytes / r.ms.median * 1e-6);
  if (!r.clocks.empty()) fmt::print("  {}\n", r.clocks);
  if (r.host) fmt::print("{}", host_text(*r.host));
}

void print_json(const BenchOptions& o, const driver::BenchResult& r) {
  nlohmann::json j = {{"file", o.file},
                      {"device", r.device},
                      {"mode", o.mode},
                      {"graph", o.graph},
                      {"repetitions", r.repetitions},
                      {"ms", to_json(r.ms)},
                      {"sizes", nlohmann::json::object()}};
  for (const auto& [name, value] : r.sizes) j["sizes"][name] = value;
  if (!o.source.empty()) j["source"] = o.source;
  if (o.flops > 0) j["tflops"] = o.flops / r.ms.median * 1e-9;
  if (o.bytes > 0) j["gb_per_s"] = o.bytes / r.ms.median * 1e-6;
  if (!r.clocks.empty()) j["clocks"] = r.clocks;
  if (r.host) j["host"] = to_json(*r.host);
  fmt::print("{}\n", j.dump(2));
}

int run_calibrate(const BenchOptions& o) {
  driver::DeviceOptions device;
  device.architecture = o.target;
  std::string error;
  const auto constants = driver::calibrate(device, schedule::kHopper, &error);
  if (!constants) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  fmt::print("{}", driver::to_text(*constants, schedule::kHopper));
  return kOk;
}

int run_bench(const BenchOptions& o) {
  if (o.calibrate) return run_calibrate(o);
  if (o.file.empty()) {
    usage_error("a program is needed, or --calibrate");
    return kUsageError;
  }
  driver::Unit unit;
  int code = kOk;
  std::map<std::string, int64_t> sizes;
  if (!parse_sizes(o.shape, sizes)) return kUsageError;
  const auto loaded = load_file(o.file, sizes, unit, code);
  // Kernels for the sizes that are measured; small problems stay those of the program's hints.
  std::optional<ir::Program> program;
  if (loaded) program = kernels_of(driver::with_hints(*loaded, sizes), o.schedule, unit, code);
  if (program) program = driver::with_hints_of(std::move(*program), *loaded);
  print_messages(unit);
  if (!program) return std::max<int>(code, kProgramError);
  driver::BenchOptions options;
  options.device.architecture = o.target;
  if (!o.source.empty() && !read_source(o.source, options.device.source)) return kUsageError;
  for (const ir::Op& op : program->body) {
    const auto* s = op.get<ir::Static>();  // is in the program already
    if (s) sizes.erase(std::string(s->name.str()));
  }
  options.given.sizes.insert(sizes.begin(), sizes.end());
  if (!parse_scalars(*program, o, options.given)) return kUsageError;
  options.seed = o.seed;
  options.is_burst = o.mode == "burst";
  options.use_graph = o.graph;
  options.repetitions = o.repetitions;
  options.host_cost = o.host_cost;
  std::string error;
  const auto result = driver::bench(*program, options, unit.pool, &error);
  if (result) {
    o.json ? print_json(o, *result) : print(o, *result);
    return kOk;
  }
  // The plan's part of the host's cost needs no device.
  std::string ignored;
  const auto host =
      o.host_cost ? driver::plan_cost(*program, options.given, unit.pool, &ignored) : std::nullopt;
  if (host && o.json) fmt::print("{}\n", nlohmann::json{{"host", to_json(*host)}}.dump(2));
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
  c->add_option("--target", o->target, "the architecture: sm_90a")->capture_default_str();
  c->add_option("--shape", o->shape, "sizes: M=4096,N=4096; others from the program's hints")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp);
  c->add_option("--set", o->scalars, "scalars: scale=0.125; others as the program declares")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--source", o->source,
                "a CUDA file to time instead of the one that is emitted (compile --emit cuda)");
  c->add_option(
       "--mode", o->mode,
       "sustained: after 0.7 s of work, when clocks and power have settled; burst: after a "
       "pause")
      ->check(CLI::IsMember({"sustained", "burst"}))
      ->capture_default_str();
  c->add_flag("--graph", o->graph, "replay a captured graph instead of launching");
  c->add_option("--reps", o->repetitions, "timed launches; default 100, or 30 in a burst")
      ->check(CLI::Range(1, 100000));
  c->add_option("--flops", o->flops, "operations of one run, to print TFLOP/s: 1.1e12");
  c->add_option("--bytes", o->bytes, "bytes that one run has to move, to print GB/s");
  c->add_flag("--host-cost", o->host_cost,
              "also time the host: 10000 times bind and launch of a small problem");
  c->add_option("--seed", o->seed, "of the inputs");
  c->add_flag("--calibrate", o->calibrate,
              "measure the constants of the cost model instead and print them beside the table's");
  c->add_flag("--json", o->json, "as JSON");
  c->footer(
      "Inputs are random, the second-level cache is flushed before each timed launch.\n"
      "Examples:\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --shape M=8192,N=8192,K=8192 --flops "
      "1.0995e12\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --host-cost --reps 10\n"
      "  nautilus compile golden/gemm_pp_128x192.matile --emit cuda -o edited.cu\n"
      "  nautilus bench golden/gemm_pp_128x192.matile --source edited.cu --shape "
      "M=4096,N=4096,K=4096");
  c->callback([o, &exit_code] { exit_code = run_bench(*o); });
}

}  // namespace nautilus::tool
