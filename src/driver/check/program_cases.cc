// SPDX-License-Identifier: Apache-2.0
// Cases about texts of programs: printed, verified, lowered, after passes, as kernels.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/diff.h"
#include "base/files.h"
#include "compile/manager.h"
#include "diag/render.h"
#include "driver/check/case_runner.h"
#include "driver/check/numbered_names.h"
#include "driver/kernels/lower_to_kernels.h"
#include "emit/emit.h"
#include "expr/rules/rules.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "matile/resources_text.h"
#include "schedule/fusion/statement_text.h"

namespace nautilus::driver {

namespace {

bool is_rule(std::string_view name) {
  const auto& rules = expr::rule_texts();
  return std::any_of(rules.begin(), rules.end(),
                     [&](const expr::RuleText& r) { return r.name == name; });
}

}  // namespace

std::string CaseRunner::roundtrip(const ir::Program& program) {
  const std::string text = ir::print(program);
  const uint32_t file = unit_.sources.add("printed", text);
  const auto again = ir::parse(file, levels(), unit_.pool, unit_.sink);
  if (!again) return "the printed text does not parse\n" + rendered();
  if (!(*again == program) || ir::print(*again) != text)
    return "the printed text parses to another program\n" + text;
  if (test_.command != "roundtrip") return "";
  return text == strip_comments(test_.input)
             ? ""
             : "the text is not in printed form; it prints as\n" + text;
}

std::string CaseRunner::strip_comments(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    const size_t first = line.find_first_not_of(" \n");
    if (first != std::string_view::npos && line[first] != '#') out += line;
    text.remove_prefix(end);
  }
  return out;
}

CaseResult CaseRunner::lower(const ir::Program& program, const std::string& level) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto out = compile::lower_to(level, program, context);
  return shown(out ? ir::print(*out) : rendered());
}

CaseResult CaseRunner::passes(const ir::Program& program) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  for (const auto& [name, value] : test_.options) {
    if (name != "disable" || !is_rule(value))
      return failed(fmt::format("there is no option `{}={}`", name, value));
    context.disabled_rules.push_back(value);
  }
  ir::Program current = program;
  std::string error;
  if (run_passes(test_.argument, current, context, error)) return shown(ir::print(current));
  return error.empty() ? shown(rendered()) : failed(error);
}

bool CaseRunner::run_passes(std::string_view names, ir::Program& program, ir::PassContext& context,
                            std::string& error) {
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const compile::PassInfo* pass = compile::find_pass(names.substr(0, comma));
    if (!pass) {
      error = fmt::format("there is no pass `{}`", names.substr(0, comma));
      return false;
    }
    auto next = run_single_pass(*pass, program, context, unit_);
    if (!next) return false;
    program = std::move(*next);
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return true;
}

CaseResult CaseRunner::like(const ir::Program& program) {
  std::string error;
  const auto text = base::read_file(test_.folder + test_.argument, &error);
  if (!text) return failed(error);
  const auto other = load_text(test_.argument, *text, {}, unit_);
  if (!other) return failed(rendered());
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  ir::Program current = program;
  if (const auto it = test_.options.find("pass"); it != test_.options.end()) {
    if (!run_passes(it->second, current, context, error))
      return failed(error.empty() ? rendered() : error);
  }
  const std::string want = with_numbered_names(ir::print(*other));
  const std::string got = with_numbered_names(ir::print(current));
  return want == got ? CaseResult{} : failed(base::unified_diff(want, got, "other", "this"));
}

CaseResult CaseRunner::graph(const ir::Program& program) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  const auto out = compile::lower_to("scalar", program, context);
  return out ? shown(schedule::block_graph(*out, unit_.pool)) : failed(rendered());
}

CaseResult CaseRunner::emit_case(const ir::Program& program) {
  if (program.level->name != "matile") return failed("emit takes a program of level matile");
  if (!matile::verify_final(program, unit_.sink)) return shown(rendered());
  std::string out;
  for (const emit::KernelText& k : emit::emit_kernels(program, unit_.pool)) out += k.body;
  return shown(out);
}

CaseResult CaseRunner::resources(const ir::Program& program) {
  if (program.level->name != "matile") return failed("resources takes a program of level matile");
  if (!matile::verify_final(program, unit_.sink)) return shown(rendered());
  return shown(matile::resources_text(program));
}

CaseResult CaseRunner::diag() {
  load_text(file_, test_.input, {}, unit_);
  return shown(rendered());
}

CaseResult CaseRunner::verify_case() {
  load_text(file_, test_.input, {}, unit_);
  std::map<uint32_t, std::string> wanted;
  uint32_t line = 1;
  std::string_view rest = test_.input;
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find('\n'));
    if (const size_t at = text.find("#~ "); at != std::string_view::npos)
      wanted.emplace(line, text.substr(at + 3));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    ++line;
  }
  std::map<uint32_t, std::string> got;
  for (const diag::Diagnostic& d : unit_.sink.all()) {
    const uint32_t at = d.primary.span.is_known()
                            ? unit_.sources.place(d.primary.span.file, d.primary.span.begin).line
                            : 0;
    std::string& text = got[at];
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", diag::info(d.code).number, d.message);
  }
  if (got == wanted) return {};
  std::string message;
  for (const auto& [at, text] : wanted) {
    if (!got.contains(at))
      message += fmt::format("line {}: expected `{}`, nothing reported\n", at, text);
  }
  for (const auto& [at, text] : got) {
    const auto it = wanted.find(at);
    if (it == wanted.end()) message += fmt::format("line {}: unexpected `{}`\n", at, text);
    if (it != wanted.end() && it->second != text)
      message += fmt::format("line {}: expected `{}`, got `{}`\n", at, it->second, text);
  }
  return failed(message);
}

}  // namespace nautilus::driver
