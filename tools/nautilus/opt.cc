// SPDX-License-Identifier: Apache-2.0
// nautilus opt: run passes one by one on any dumped program.
#include <fmt/format.h>

#include "base/files.h"
#include "base/nearest.h"
#include "driver/kernels/lower_to_kernels.h"
#include "expr/rules/rules.h"
#include "ir/print.h"
#include "json_output.h"

namespace nautilus::tool {
namespace {

struct OptOptions {
  std::string file;
  std::vector<std::string> passes;
  std::vector<std::string> disabled;
  std::string output;
  bool list = false;
  bool rules = false;
  bool json = false;
};

int list_passes(bool as_json) {
  if (as_json) {
    nlohmann::json j = nlohmann::json::array();
    for (const compile::PassInfo& p : compile::passes())
      j.push_back({{"name", p.name},
                   {"from", p.from},
                   {"to", p.to},
                   {"summary", p.summary},
                   {"reads", p.reads}});
    write_json(j);
    return kOk;
  }
  for (const compile::PassInfo& p : compile::passes()) {
    fmt::print("{:<22} {:>6} -> {:<6}  {}{}\n", p.name, p.from, p.to, p.summary,
               p.reads.empty() ? "" : fmt::format(" (reads {})", p.reads));
  }
  return kOk;
}

int list_rules(bool as_json) {
  if (as_json) {
    nlohmann::json j = nlohmann::json::array();
    for (const expr::RuleText& r : expr::rule_texts())
      j.push_back(
          {{"name", r.name}, {"left", r.left}, {"right", r.right}, {"condition", r.condition}});
    write_json(j);
    return kOk;
  }
  for (const expr::RuleText& r : expr::rule_texts()) {
    fmt::print("{:<22} {:<34} -> {}{}\n", r.name, r.left, r.right,
               r.condition.empty() ? "" : fmt::format("   if {}", r.condition));
  }
  return kOk;
}

int run_opt(const OptOptions& o) {
  if (o.list) return list_passes(o.json);
  if (o.rules) return list_rules(o.json);
  if (o.file.empty()) {
    usage_error("opt needs a file (or --list, --rules)");
    return kUsageError;
  }
  std::vector<std::string> rule_names;
  for (const expr::RuleText& r : expr::rule_texts()) rule_names.emplace_back(r.name);
  for (const std::string& name : o.disabled) {
    if (std::find(rule_names.begin(), rule_names.end(), name) != rule_names.end()) continue;
    const auto near = base::nearest_name(name, rule_names);
    usage_error(fmt::format("there is no rule `{}`{}", name,
                            near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
    return kUsageError;
  }
  std::vector<const compile::PassInfo*> passes;
  for (const std::string& name : o.passes) {
    const compile::PassInfo* pass = compile::find_pass(name);
    if (!pass) {
      const auto near = compile::nearest_pass(name);
      usage_error(fmt::format("there is no pass `{}`{}", name,
                              near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
      return kUsageError;
    }
    passes.push_back(pass);
  }
  driver::Unit unit;
  int code = kOk;
  auto program = load_file(o.file, {}, unit, code);
  ir::PassContext context{unit.pool, unit.sink, o.disabled};
  for (const compile::PassInfo* pass : passes) {
    if (!program) break;
    program = driver::run_single_pass(*pass, *program, context, unit);
  }
  if (o.json) {
    nlohmann::json j = report_json(program.has_value(), unit);
    j["text"] = program ? ir::print(*program) : "";
    write_json(j);
    return program ? kOk : std::max<int>(code, kProgramError);
  }
  print_messages(unit);
  if (!program) return std::max<int>(code, kProgramError);
  const std::string text = ir::print(*program);
  if (o.output.empty()) {
    fmt::print("{}", text);
    return kOk;
  }
  std::string error;
  if (base::write_file_atomic(o.output, text, &error)) return kOk;
  usage_error(error);
  return kUsageError;
}

}  // namespace

void add_opt(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<OptOptions>();
  CLI::App* c = app.add_subcommand("opt", "Run single passes on a program of any level");
  c->add_option("FILE", o->file, "a program (.naut) or IR text");
  c->add_option("--pass", o->passes, "passes to run, in order: NAME[,NAME]")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--disable-rule", o->disabled, "rewrite rules to leave out")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("-o,--output", o->output, "write the result to this file");
  c->add_flag("--list", o->list, "list the passes of the pipeline");
  c->add_flag("--rules", o->rules, "list the rewrite rules");
  c->add_flag("--json", o->json, kJsonHelp)->excludes("--output");
  c->footer("Example: nautilus opt --pass simplify,split_reductions examples/rmsnorm.naut");
  c->callback([o, &exit_code] { exit_code = run_opt(*o); });
}

}  // namespace nautilus::tool
