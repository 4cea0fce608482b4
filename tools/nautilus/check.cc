// SPDX-License-Identifier: Apache-2.0
// nautilus check: is the program well-formed?
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "driver/load/hints.h"
#include "ir/print.h"
#include "spec/ops.h"
#include "warn_option.h"

namespace nautilus::tool {
namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> shape;
  WarnOption warn;
  bool json = false;
};

std::string summary(const ir::Program& program) {
  if (program.level != &spec::level())
    return fmt::format("{} ops at level {}", program.body.size(), program.level->name);
  int inputs = 0;
  int equations = 0;
  std::string outputs;
  const auto types = spec::tensor_types(program);
  for (const ir::Op& op : program.body) {
    inputs += op.is<spec::Input>() ? 1 : 0;
    equations += op.is<spec::Let>() ? 1 : 0;
  }
  for (ir::Name n : spec::outputs(program)) {
    outputs += fmt::format("{}{}: {}", outputs.empty() ? "" : ", ", n.str(),
                           ir::print(types.at(std::string(n.str()))));
  }
  return fmt::format("{} input{}, {} equation{} after expansion, gives {}", inputs,
                     inputs == 1 ? "" : "s", equations, equations == 1 ? "" : "s", outputs);
}

int run_check(const CheckOptions& o) {
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  nlohmann::json report = nlohmann::json::array();
  int worst = kOk;
  for (const std::string& file : o.files) {
    driver::Unit unit;
    int code = kOk;
    const auto program = load_file(file, statics, unit, code);
    if (program && program->level == &spec::level() && o.warn.is_on()) {
      const ir::Program hinted = driver::with_hints(*program, statics);
      std::string error;  // a program without kernels is `compile`'s to explain
      const auto kernels = driver::make_kernels(hinted, {.has_notes = true}, unit, &error);
      if (kernels) warn(hinted, *kernels, o.warn, true, unit);
    }
    if (code == kOk && is_failure(o.warn, unit)) code = kProgramError;
    worst = std::max(worst, code);
    if (o.json) {
      report.push_back({{"file", file},
                        {"ok", program.has_value()},
                        {"messages", nlohmann::json::parse(messages_json(unit))}});
    } else {
      print_messages(unit);
      if (program) fmt::print("{}: ok, {}\n", file, summary(*program));
    }
  }
  if (o.json) fmt::print("{}\n", report.dump(2));
  return worst;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CheckOptions>();
  CLI::App* c = app.add_subcommand(
      "check",
      "Check programs: syntax, names, shapes, dtypes, index ranges, and what would be slow");
  c->add_option("FILE", o->files, "programs (.naut) or IR texts (.spec, .scalar)")->required();
  c->add_option("--shape", o->shape, "other values for static sizes and hints, NAME=N[,NAME=N]")
      ->allow_extra_args(false);
  add_warn_option(*c, o->warn);
  c->add_flag("--json", o->json, "messages as JSON on standard output");
  c->footer("Example: nautilus check examples/attention.naut");
  c->callback([o, &exit_code] { exit_code = run_check(*o); });
}

}  // namespace nautilus::tool
