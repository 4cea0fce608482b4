// SPDX-License-Identifier: Apache-2.0
// nautilus print: the program at any of its levels, its block graph, the library, the ops of a
// level.
#include <fmt/format.h>

#include <filesystem>

#include "compile/dump.h"
#include "compile/manager.h"
#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "driver/load/hints.h"
#include "ir/print.h"
#include "json_output.h"
#include "matile/ops.h"
#include "matile/resources_text.h"
#include "schedule/fusion/statement_text.h"
#include "spec/language/library.h"
#include "spec/language/vocabulary.h"

namespace nautilus::tool {
namespace {

struct PrintOptions {
  std::string file;
  std::string level = "spec";
  std::string dump_dir;
  std::string ops;
  std::vector<std::string> shape;
  std::vector<std::string> schedule;
  std::string target;
  bool graph = false;
  bool resources = false;
  bool library = false;
  bool codes = false;
  bool words = false;
  bool json = false;
};

void show_op(const ir::OpInfo& info, bool as_json, nlohmann::json& list) {
  if (as_json)
    list.push_back({{"format", info.format}, {"meaning", info.doc}});
  else
    fmt::print("{}\n    {}\n", info.format, info.doc);
}

int print_ops(const std::string& name, bool as_json) {
  nlohmann::json list = nlohmann::json::array();
  const ir::Level* level = driver::find_level(name);
  const auto* ops = name == "decisions" ? &decision::vocabulary()
                    : name == "layout"  ? &matile::layout_vocabulary()
                    : level             ? &level->ops
                                        : nullptr;
  if (!ops) {
    usage_error(
        fmt::format("there is no level `{}`; levels are spec, scalar, vrtile and matile (or "
                    "`decisions`, `layout`)",
                    name));
    return kUsageError;
  }
  for (const ir::OpInfo* info : *ops) show_op(*info, as_json, list);
  if (as_json) write_json(list);
  return kOk;
}

void print_words(bool as_json) {
  const spec::Vocabulary& v = spec::vocabulary();
  const std::pair<const char*, const std::vector<std::string>*> parts[] = {
      {"keywords", &v.keywords},
      {"reducers", &v.reducers},
      {"dtypes", &v.dtypes},
      {"functions", &v.functions},
      {"library", &v.library}};
  nlohmann::json j;
  for (const auto& [part, words] : parts) {
    j[part] = *words;
    if (!as_json) fmt::print("{}: {}\n", part, fmt::join(*words, " "));
  }
  if (as_json) write_json(j);
}

int print_resources(const PrintOptions& o) {
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  int code = kOk;
  const auto program = load_file(o.file, {}, unit, code);
  if (program && program->level->name != "matile") {
    usage_error("--resources is for programs of level matile");
    return kUsageError;
  }
  const bool ok = program && matile::verify_final(*program, unit.sink);
  print_messages(unit);
  if (o.json && code != kUsageError) {
    nlohmann::json j = report_json(ok, unit);
    j["text"] = ok ? matile::resources_text(*program) : "";
    write_json(j);
    return ok ? kOk : kProgramError;
  }
  if (!ok) return std::max<int>(code, kProgramError);
  fmt::print("{}", matile::resources_text(*program));
  return kOk;
}

std::optional<std::string> no_level(const ir::Program& program, const std::string& level,
                                    driver::Unit& unit) {
  auto& d = unit.sink.report(diag::Code::BadPass, {},
                             fmt::format("@{} has no form on level {}", program.name, level));
  d.with_help(
      level == "vrtile" && program.level->name != "matile"
          ? "none of its kernels is made of tiles; `print --level matile` shows them"
          : fmt::format("it is on level {}, from where it only goes down", program.level->name));
  return std::nullopt;
}

// The compiled program at the level, and the dumps on its way. The level that the program has
// already, equations above all, is shown as it was read.
std::optional<std::string> text_of(const ir::Program& program, const PrintOptions& o,
                                   driver::Unit& unit, int& code) {
  if (o.graph) {
    ir::PassContext context{unit.pool, unit.sink, {}};
    const auto loops = compile::lower_to("scalar", program, context);
    return loops ? std::optional(schedule::block_graph(*loops, unit.pool)) : std::nullopt;
  }
  const bool is_own = o.level == program.level->name && o.level != "matile";
  if (is_own && o.dump_dir.empty()) return ir::print(program);
  ir::PassTrace trace;
  const auto kernels = make_kernels(program, o.schedule, &trace, unit, code);
  if (!kernels) return std::nullopt;
  std::string error;
  if (!o.dump_dir.empty() &&
      !compile::write_dumps(o.dump_dir, program, trace, kernels->schedule, &error)) {
    usage_error(error);
    code = kUsageError;
    return std::nullopt;
  }
  if (is_own) return ir::print(program);
  auto text = compile::text_at(o.level, program, trace, kernels->program);
  return text ? text : no_level(program, o.level, unit);
}

void print_library(bool is_json) {
  if (!is_json) {
    for (const spec::LibraryText& t : spec::library_texts())
      fmt::print("# {}\n{}\n", t.path, t.text);
    return;
  }
  nlohmann::json j = nlohmann::json::array();
  for (const spec::LibraryFunction& f : spec::library_functions())
    j.push_back({{"name", f.name}, {"about", f.about}, {"text", f.text}, {"file", f.file}});
  write_json(j);
}

void print_codes(bool is_json) {
  if (!is_json) {
    for (const diag::CodeInfo& c : diag::all_codes())
      fmt::print("{}  {}: {}\n", c.number, c.name, c.meaning);
    return;
  }
  nlohmann::json j = nlohmann::json::array();
  for (const diag::CodeInfo& c : diag::all_codes())
    j.push_back({{"code", c.number}, {"name", c.name}, {"meaning", c.meaning}});
  write_json(j);
}

// What is no program's; false if the options do not ask for it.
bool print_reference(const PrintOptions& o) {
  if (o.words) {
    print_words(o.json);
  } else if (o.library) {
    print_library(o.json);
  } else if (o.codes) {
    print_codes(o.json);
  } else {
    return false;
  }
  return true;
}

int run_print(const PrintOptions& o) {
  if (print_reference(o)) return kOk;
  if (!o.ops.empty()) return print_ops(o.ops, o.json);
  if (o.file.empty()) {
    usage_error("print needs a file (or --library, --words, --ops, --codes)");
    return kUsageError;
  }
  if (o.resources) return print_resources(o);
  if (!driver::find_level(o.level)) {
    usage_error(
        fmt::format("there is no level `{}`; levels are spec, scalar, vrtile and matile", o.level));
    return kUsageError;
  }
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  if (!o.dump_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(o.dump_dir, error);
    if (error) {
      usage_error(fmt::format("cannot create {}: {}", o.dump_dir, error.message()));
      return kUsageError;
    }
  }
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  int code = kOk;
  auto program = load_file(o.file, statics, unit, code);
  if (program) program = driver::with_hints(std::move(*program), statics);
  const auto text = program ? text_of(*program, o, unit, code) : std::nullopt;
  if (o.json) {
    if (code == kUsageError) return kUsageError;
    nlohmann::json j = report_json(text.has_value(), unit);
    j["text"] = text.value_or("");
    write_json(j);
  } else {
    print_messages(unit);
    fmt::print("{}", text.value_or(""));
  }
  return text ? kOk : std::max<int>(code, kProgramError);
}

}  // namespace

void add_print(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<PrintOptions>();
  CLI::App* c = app.add_subcommand("print", "Show a program at one of its levels");
  c->add_option("FILE", o->file, "a program (.naut) or IR text");
  c->add_option("--level", o->level,
                "spec (equations), scalar (loops), vrtile (tiles) or matile (kernels)")
      ->capture_default_str();
  c->add_flag("--graph", o->graph, "the block graph of the scalar level");
  c->add_flag("--resources", o->resources,
              "what the kernels of an MA-tile program occupy: shared memory, barriers, registers");
  c->add_option(
      "--dump-dir", o->dump_dir,
      "write the program, and each kernel, after every pass that changed it to this folder");
  c->add_option("--shape", o->shape, "other values for static sizes and hints, NAME=N[,NAME=N]")
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  c->add_option("--target", o->target, kTargetHelp);
  c->add_flag("--library", o->library, "the standard library");
  c->add_flag("--words", o->words, "keywords, reducers, dtypes and functions of the language");
  c->add_option(
      "--ops", o->ops,
      "the ops of a level with their meaning, or `decisions`, or the lines of a `layout`");
  c->add_flag("--codes", o->codes, "all message codes");
  c->add_flag("--json", o->json, "text and messages as JSON");
  c->footer("Example: nautilus print --level scalar examples/attention.naut");
  c->callback([o, &exit_code] { exit_code = run_print(*o); });
}

}  // namespace nautilus::tool
