// SPDX-License-Identifier: Apache-2.0
// nautilus eval: run the oracle; compare results of others with it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "command.h"
#include "compile/manager.h"
#include "driver/load/tensor_text.h"
#include "driver/oracle/ladder.h"
#include "expr/error_bound.h"
#include "scalar/interp.h"

namespace nautilus::tool {
namespace {

struct EvalOptions {
  std::string file;
  std::vector<std::string> shape;
  std::vector<std::string> set;
  std::vector<std::string> input;
  std::vector<std::string> output;
  std::vector<std::string> expect;
  std::string out_dir;
  std::string in_dir;
  std::string inputs = "normal";
  std::string level = "spec";
  uint64_t seed = 1;
  int threads = 0;
  bool ladder = false;
  bool all = false;
  bool full = false;
  bool json = false;
};

class Eval {
 public:
  explicit Eval(const EvalOptions& o) : o_(o) {}

  int run() {
    if (o_.inputs != "normal" && o_.inputs != "exact")
      return usage(fmt::format("--inputs is `normal` or `exact`, not `{}`", o_.inputs));
    if (o_.level != "spec" && o_.level != "scalar")
      return usage(fmt::format("--level is `spec` or `scalar`, not `{}`", o_.level));
    std::map<std::string, int64_t> sizes;
    if (!parse_sizes(o_.shape, sizes)) return kUsageError;
    int code = kOk;
    program_ = load_file(o_.file, sizes, unit_, code);
    if (!program_) return finish(code);
    if (program_->level->name != "spec")
      return usage("eval takes a program of the math language or of level spec");
    // Statics were taken when loading; what is left are dims.
    for (const auto& size : sizes) {
      const bool is_static =
          std::any_of(program_->body.begin(), program_->body.end(), [&](const ir::Op& op) {
            return op.is<ir::Static>() && op.as<ir::Static>().name.str() == size.first;
          });
      if (!is_static) request_.given.sizes.insert(size);
    }
    if (!read_scalars(*program_, o_.set, request_.given) ||
        !read_inputs(*program_, o_.input, request_.given))
      return finish(kUsageError);
    request_.inputs = o_.inputs == "exact" ? spec::InputKind::Exact : spec::InputKind::Normal;
    request_.seed = o_.seed;
    if (o_.ladder) return run_ladder();
    return evaluate();
  }

 private:
  int usage(const std::string& message) {
    usage_error(message);
    return kUsageError;
  }

  int finish(int code) {
    if (o_.json) {
      report_["ok"] = code == kOk;
      report_["messages"] = nlohmann::json::parse(messages_json(unit_));
      fmt::print("{}\n", report_.dump(2));
    } else {
      print_messages(unit_);
    }
    return code;
  }

  int run_ladder() {
    const auto difference = driver::check_ladder(*program_, request_, unit_);
    if (!difference) return finish(kProgramError);
    if (!o_.json) {
      fmt::print("{}\n", difference->empty() ? "all evaluators agree: definition = blocked = "
                                               "scalar (bits), declared dtypes within bounds"
                                             : *difference);
    } else {
      report_["difference"] = *difference;
    }
    return finish(difference->empty() ? kOk : kProgramError);
  }

  int evaluate() {
    if (!names_are_outputs(o_.output) || !names_are_outputs(o_.expect)) return finish(kUsageError);
    const auto env = driver::prepare(*program_, request_, unit_);
    if (!env) return finish(kProgramError);
    const auto begin = std::chrono::steady_clock::now();
    auto results =
        o_.expect.empty()
            ? spec::evaluate(*program_, *env, {o_.threads, o_.all}, unit_.pool, unit_.sink)
            : spec::evaluate_to_judge(*program_, *env, {o_.threads, o_.all}, unit_.pool,
                                      unit_.sink);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!results) return finish(kProgramError);
    if (o_.level == "scalar" && !use_scalar(*env, *results)) return finish(kProgramError);
    describe_run(*env, seconds);
    for (const auto& [name, result] : *results) show(name, result);
    if (!write_inputs(*env) || !write_outputs(*results)) return finish(kUsageError);
    const int code = compare_all(*results);
    return finish(code);
  }

  bool names_are_outputs(const std::vector<std::string>& texts) {
    std::map<std::string, std::string> pairs;
    if (!parse_pairs(texts, pairs)) return false;
    for (const auto& pair : pairs) {
      const bool is_known =
          std::any_of(program_->body.begin(), program_->body.end(), [&](const ir::Op& op) {
            return (op.is<spec::Output>() && op.as<spec::Output>().name.str() == pair.first) ||
                   (o_.all && op.is<spec::Let>() && op.as<spec::Let>().name.str() == pair.first);
          });
      if (!is_known) return usage(fmt::format("the program has no output `{}`", pair.first)) == kOk;
    }
    return true;
  }

  // The values of the lowered program instead of the oracle's; the bounds stay the oracle's.
  bool use_scalar(const ir::Environment& env, spec::Results& results) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto lowered = compile::lower_to("scalar", *program_, context);
    const auto values =
        lowered ? scalar::interpret(*lowered, env, scalar::Arithmetic::Oracle, unit_.sink)
                : std::nullopt;
    if (!values) return false;
    for (const auto& [name, tensor] : *values) results[name].value = tensor;
    return true;
  }

  void describe_run(const ir::Environment& env, double seconds) {
    std::string sizes;
    for (const auto& [name, value] : env.sizes)
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value);
    report_["sizes"] = env.sizes;
    report_["seed"] = o_.seed;
    report_["seconds"] = seconds;
    if (!o_.json) {
      fmt::print("{} with {}; {} inputs, seed {}; {:.3f} s\n", program_->name,
                 sizes.empty() ? "no sizes" : sizes, o_.inputs, o_.seed, seconds);
    }
  }

  void show(const std::string& name, const spec::Result& result) {
    double largest = 0;
    int64_t unlimited = 0;
    for (double b : result.bound) {
      if (b == expr::kInf) {
        ++unlimited;
      } else {
        largest = std::max(largest, b);
      }
    }
    const bool is_judged = spec::is_judged(result, ir::numerics_of(*program_));
    nlohmann::json j = {{"name", name},
                        {"dtype", expr::name(result.value.dtype)},
                        {"shape", result.value.shape},
                        {"largest_bound", largest},
                        {"unbounded", unlimited},
                        {"judged", is_judged}};
    if (o_.full) {
      for (int64_t i = 0; i < result.value.size(); ++i) {
        // JSON has no infinities; they travel as text.
        const double v = result.value.number(i);
        j["values"].push_back(std::isfinite(v) ? nlohmann::json(v)
                                               : nlohmann::json(std::isnan(v) ? "nan"
                                                                : v > 0       ? "inf"
                                                                              : "-inf"));
      }
    }
    report_["outputs"].push_back(j);
    if (o_.json) return;
    const bool has_none = unlimited > 0 && unlimited == result.value.size();
    const std::string bound =
        has_none ? std::string("not judged: no element has an error bound")
                 : fmt::format("error bound <= {:.3g}{}", largest,
                               unlimited   ? fmt::format(", none for {} elements", unlimited)
                               : is_judged ? ""
                                           : " (too wide to tell right from wrong)");
    fmt::print("{} : {}{}  {}\n{}", name, expr::name(result.value.dtype),
               expr::shape_text(result.value.shape), bound,
               driver::tensor_text(result.value, o_.full ? INT64_MAX : 64));
  }

  bool write_inputs(const ir::Environment& env) {
    if (o_.in_dir.empty()) return true;
    std::error_code error;
    std::filesystem::create_directories(o_.in_dir, error);
    return std::all_of(env.tensors.begin(), env.tensors.end(), [&](const auto& t) {
      return write_tensor(fmt::format("{}/{}.npy", o_.in_dir, t.first), t.second);
    });
  }

  bool write_outputs(const spec::Results& results) {
    std::map<std::string, std::string> pairs;
    if (!parse_pairs(o_.output, pairs)) return false;
    if (!o_.out_dir.empty()) {
      std::error_code error;
      std::filesystem::create_directories(o_.out_dir, error);
      for (const auto& [name, result] : results)
        pairs.emplace(name, fmt::format("{}/{}.npy", o_.out_dir, name));
    }
    for (const auto& [name, path] : pairs) {
      const auto it = results.find(name);
      if (it == results.end())
        return usage(fmt::format("the program has no output `{}`", name)) == kOk;
      if (!write_tensor(path, it->second.value)) return false;
      if (!o_.json) fmt::print("wrote {}\n", path);
    }
    return true;
  }

  int compare_all(const spec::Results& results) {
    std::map<std::string, std::string> pairs;
    if (!parse_pairs(o_.expect, pairs)) return kUsageError;
    int code = kOk;
    for (const auto& [name, path] : pairs) {
      const auto it = results.find(name);
      if (it == results.end()) return usage(fmt::format("the program has no output `{}`", name));
      // Values to be judged are taken as they are: rounding them first could hide an error.
      const auto dtype =
          is_float(it->second.value.dtype) ? expr::DType::F64 : it->second.value.dtype;
      const auto got = read_tensor(name, path, dtype);
      if (!got) return kUsageError;
      if (got->shape != it->second.value.shape) {
        return usage(fmt::format("{} has shape {}, `{}` has {}", path, expr::shape_text(got->shape),
                                 name, expr::shape_text(it->second.value.shape)));
      }
      const auto c = spec::compare(*got, it->second, ir::numerics_of(*program_));
      const bool is_accepted = c.verdict == spec::Verdict::Accepted;
      const bool is_judged = c.verdict != spec::Verdict::NotJudged;
      report_["comparisons"].push_back({{"name", name},
                                        {"accepted", is_accepted},
                                        {"judged", is_judged},
                                        {"sampled", it->second.is_sampled},
                                        {"unjudged_elements", c.unjudged},
                                        {"mismatches", c.mismatches},
                                        {"max_abs_error", c.max_abs_error},
                                        {"worst_ratio", fmt::format("{:.4g}", c.worst_ratio)},
                                        {"worst_index", c.worst_index}});
      if (!o_.json) {
        fmt::print(
            "{}: {}, largest error {:.3g}, at most {:.3g} of what is allowed{} (element {}), {} of "
            "{} outside\n",
            name,
            is_accepted ? "accepted"
            : is_judged ? "NOT accepted"
                        : "NOT JUDGED",
            c.max_abs_error, c.worst_ratio, it->second.is_sampled ? ", sampled," : "",
            c.worst_index, c.mismatches, got->size());
        if (!is_accepted) fmt::print("  {}\n", spec::objection(c, *got, it->second));
      }
      if (!is_accepted) code = kProgramError;
    }
    return code;
  }

  const EvalOptions& o_;
  driver::Unit unit_;
  std::optional<ir::Program> program_;
  driver::RunRequest request_;
  nlohmann::json report_;
};

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<EvalOptions>();
  CLI::App* c = app.add_subcommand("eval", "Evaluate a program in fp64, with error bounds");
  c->add_option("FILE", o->file, "a program (.naut) or spec text")->required();
  c->add_option("--shape", o->shape,
                "sizes, NAME=N[,NAME=N]; default: from the inputs, then the hints")
      ->allow_extra_args(false);
  c->add_option("--set", o->set, "scalars, NAME=X[,NAME=X]; default: as declared")
      ->allow_extra_args(false);
  c->add_option("--input", o->input, "input tensors, NAME=FILE.npy; the others are drawn at random")
      ->allow_extra_args(false);
  c->add_option("--output", o->output, "write an output, NAME=FILE.npy")->allow_extra_args(false);
  c->add_option("--out-dir", o->out_dir, "write every output to this folder");
  c->add_option("--in-dir", o->in_dir, "write every input, drawn or given, to this folder");
  c->add_option("--expect", o->expect, "compare a result of yours with the oracle, NAME=FILE.npy")
      ->allow_extra_args(false);
  c->add_option("--inputs", o->inputs, "random inputs: `normal`, or `exact` (small integers)")
      ->capture_default_str();
  c->add_option("--seed", o->seed, "seed of the random inputs")->capture_default_str();
  c->add_option("--level", o->level, "`spec`, or `scalar` to run the lowered loops")
      ->capture_default_str();
  c->add_option("--threads", o->threads, "threads (default: all)");
  c->add_flag("--ladder", o->ladder, "run every evaluator and compare them");
  c->add_flag("--all", o->all, "show every equation, not only the outputs");
  c->add_flag("--full", o->full, "print every element");
  c->add_flag("--json", o->json, "report as JSON");
  c->footer(
      "Example: nautilus eval examples/attention.naut --shape M=128,N=128 --seed 7 --output "
      "O=o.npy");
  c->callback([o, &exit_code] { exit_code = Eval(*o).run(); });
}

}  // namespace nautilus::tool
