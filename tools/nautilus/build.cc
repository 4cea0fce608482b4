// SPDX-License-Identifier: Apache-2.0
// nautilus build: programs as a bundle, C that needs the CUDA driver and nothing else
// (docs/bundles.md).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/nearest.h"
#include "bundle/bundle.h"
#include "bundle/c_code.h"
#include "driver/load/hints.h"
#include "driver/run/run.h"
#include "ir/decl.h"
#include "json_output.h"

namespace nautilus::tool {
namespace {

struct BuildOptions {
  std::vector<std::string> files;
  std::string target;
  std::string output;
  std::string name;
  std::vector<std::string> shape;
  std::vector<std::string> copies;
  std::vector<std::string> schedule;
  bool no_cache = false;
  bool json = false;
};

// A program of the bundle, as the command line has it. Expressions of the bundle live in its unit.
struct Subject {
  std::string name;
  std::string path;
  std::string text;
  std::unique_ptr<driver::Unit> unit;
  std::optional<ir::Program> loaded;

  std::string file() const { return std::filesystem::path(path).filename().string(); }
};
using Subjects = std::vector<Subject>;

// `ok`, the messages about all programs, and the programs.
nlohmann::json bundle_json(const Subjects& subjects, bool ok, const std::string& error) {
  nlohmann::json messages = nlohmann::json::array();
  nlohmann::json programs = nlohmann::json::array();
  for (const Subject& s : subjects) {
    for (const nlohmann::json& m : nlohmann::json::parse(messages_json(*s.unit)))
      messages.push_back(m);
    programs.push_back({{"name", s.name}, {"file", s.path}});
  }
  nlohmann::json out = {{"ok", ok}, {"messages", messages}, {"programs", programs}};
  if (!error.empty()) out["error"] = error;
  return out;
}

// What failed, as text or as JSON with the messages about all programs. `error` may be empty if
// they say it. Returns the exit status.
int not_built(const BuildOptions& o, const Subjects& subjects, const std::string& error) {
  if (!o.json) {
    if (!error.empty()) fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  write_json(bundle_json(subjects, false, error));
  return kProgramError;
}

// `PROGRAM:NAME`, or a name for every program.
struct Scoped {
  std::string program;
  std::string name;
};

Scoped scoped(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

bool is_for(const Scoped& s, const std::string& program) {
  return s.program.empty() || s.program == program;
}

bool has_program(const Subjects& subjects, const std::string& option, const std::string& text) {
  const Scoped s = scoped(text);
  std::vector<std::string> names;
  for (const Subject& subject : subjects) {
    if (is_for(s, subject.name)) return true;
    names.push_back(subject.name);
  }
  usage_error(option + ": " + base::no_such_name("program", s.program, names));
  return false;
}

std::string bundle_name(const BuildOptions& o) {
  if (!o.name.empty()) return bundle::c_name(o.name);
  const auto folder = std::filesystem::absolute(o.output).lexically_normal();
  return bundle::c_name(
      (folder.has_filename() ? folder.filename() : folder.parent_path().filename()).string());
}

bool read_files(const BuildOptions& o, Subjects& out) {
  std::vector<bundle::NamedProgram> names;
  for (const std::string& text : o.files) {
    const NamedFile named = named_file(text);
    const std::string name =
        named.name.empty() ? std::filesystem::path(named.path).stem().string() : named.name;
    Subject s{bundle::c_name(name), named.path, "", std::make_unique<driver::Unit>(), {}};
    std::string error;
    auto content = base::read_file(s.path, &error);
    if (!content) {
      usage_error(error);
      return false;
    }
    s.text = std::move(*content);
    names.push_back({s.name, s.path});
    if (!choose_target(o.target, *s.unit)) return false;
    out.push_back(std::move(s));
  }
  const std::string clash = bundle::name_clash(bundle_name(o), names);
  if (!clash.empty()) usage_error(clash);
  return clash.empty();
}

// With the sizes that are for each. Sizes that no program has are mistakes.
int load_programs(const BuildOptions& o, const std::map<std::string, int64_t>& sizes,
                  Subjects& subjects) {
  std::set<std::string> known;
  std::set<std::string> used;
  for (Subject& s : subjects) {
    std::map<std::string, int64_t> own;
    for (const auto& [text, value] : sizes) {
      const Scoped size = scoped(text);
      if (is_for(size, s.name) && (!size.program.empty() || !own.contains(size.name)))
        own.insert_or_assign(size.name, value);
    }
    int code = kOk;
    s.loaded = load_file(s.path, own, *s.unit, code);
    if (!s.loaded) {
      if (!o.json) print_messages(*s.unit);
      return code == kUsageError ? code : not_built(o, subjects, "");
    }
    for (const ir::Op& op : s.loaded->body) {
      std::string name;
      if (const auto* d = op.get<ir::Dim>()) name = d->name.str();
      if (const auto* d = op.get<ir::Static>()) name = d->name.str();
      known.insert(name);
      used.insert({name, s.name + ":" + name});
    }
    s.loaded = driver::with_hints(std::move(*s.loaded), own);
  }
  known.erase("");
  for (const auto& [text, value] : sizes) {
    if (used.contains(text)) continue;
    usage_error("--shape: " +
                base::no_such_name("size", scoped(text).name, {known.begin(), known.end()}));
    return kUsageError;
  }
  return kOk;
}

std::set<std::string> split_at_plus(const std::string& text) {
  std::set<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('+', begin), text.size());
    out.insert(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// `none`, `all`, or sets of tensors, `A+B`; each for one program, or for all that have the tensors.
bundle::Copies copies_for(const BuildOptions& o, const Subject& subject, const ir::Program& kernels,
                          std::set<std::string>& used) {
  std::set<std::string> tensors;
  for (const ir::Op& op : kernels.body) {
    if (const auto* t = op.get<matile::Tensor>()) tensors.emplace(t->name.str());
  }
  bundle::Copies out;
  bool is_first = true;
  for (const std::string& text : o.copies) {
    const Scoped s = scoped(text);
    if (!is_for(s, subject.name)) continue;
    std::set<std::string> set = split_at_plus(s.name);
    const bool is_word = s.name == "none" || s.name == "all";
    const bool is_known = std::includes(tensors.begin(), tensors.end(), set.begin(), set.end());
    if (!is_word && !is_known && s.program.empty()) continue;
    used.insert(text);
    if (is_first) out.has_all = false;
    is_first = false;
    if (s.name == "all")
      out.has_all = true;
    else if (s.name != "none")
      out.sets.push_back(std::move(set));
  }
  return out;
}

int add_subject(const BuildOptions& o, Subject& s, const Subjects& all, bundle::Bundle& result,
                std::set<std::string>& used_copies) {
  int code = kOk;
  auto program =
      kernels_of(*s.loaded, o.schedule, *s.unit, code, o.no_cache ? Reuse::None : Reuse::Cached);
  if (!o.json) print_messages(*s.unit);
  if (!program) return code == kUsageError ? code : not_built(o, all, "");
  std::string error;
  const auto architecture = driver::architecture_of(*program, &error);
  if (architecture && !result.architecture.empty() && *architecture != result.architecture)
    error = fmt::format("{} is for {}, programs before it for {}", s.path, *architecture,
                        result.architecture);
  if (architecture) result.architecture = *architecture;
  const bundle::Copies copies = copies_for(o, s, *program, used_copies);
  const bool is_added = error.empty() && bundle::add_program(result,
                                                             {.name = s.name,
                                                              .file = s.file(),
                                                              .text = std::move(s.text),
                                                              .program = std::move(*program),
                                                              .copies = copies,
                                                              .use_cache = !o.no_cache},
                                                             s.unit->pool, &error);
  return is_added ? kOk : not_built(o, all, error);
}

int run_build(const BuildOptions& o) {
  Subjects subjects;
  if (!read_files(o, subjects)) return kUsageError;
  if (!o.schedule.empty() && subjects.size() != 1) {
    usage_error("--schedule is for a bundle of one program");
    return kUsageError;
  }
  std::map<std::string, int64_t> sizes;
  if (!parse_sizes(o.shape, sizes)) return kUsageError;
  for (const auto& [text, value] : sizes) {
    if (!has_program(subjects, "--shape", text)) return kUsageError;
  }
  for (const std::string& text : o.copies) {
    if (!has_program(subjects, "--copies", text)) return kUsageError;
  }
  if (const int code = load_programs(o, sizes, subjects); code != kOk) return code;

  bundle::Bundle result;
  result.name = bundle_name(o);
  result.compiler = "nautilus " NAUTILUS_VERSION;
  std::set<std::string> used_copies;
  for (Subject& s : subjects) {
    if (const int code = add_subject(o, s, subjects, result, used_copies); code != kOk) return code;
  }
  for (const std::string& text : o.copies) {
    if (used_copies.contains(text)) continue;
    usage_error(fmt::format("--copies {}: no program has all of these tensors", text));
    return kUsageError;
  }
  std::string error;
  if (!bundle::write_bundle(result, o.output, &error)) {
    usage_error(error);
    return kUsageError;
  }
  size_t bytes = 0;
  for (const std::string& image : result.images) bytes += image.size();
  if (o.json) {
    nlohmann::json j = bundle_json(subjects, true, "");
    j["folder"] = o.output;
    j["name"] = result.name;
    j["architecture"] = result.architecture;
    j["kernels"] = result.kernels.size();
    j["machine_code_bytes"] = bytes;
    write_json(j);
    return kOk;
  }
  fmt::print("{}: {} {}, {} kernels for {}, {} KiB of machine code\n", o.output,
             result.programs.size(), result.programs.size() == 1 ? "program" : "programs",
             result.kernels.size(), result.architecture, (bytes + 1023) / 1024);
  return kOk;
}

}  // namespace

void add_build(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<BuildOptions>();
  CLI::App* c = app.add_subcommand("build", "Write programs as C that needs only the CUDA driver");
  c->add_option("FILES", o->files,
                "programs (.naut) or IR text of any level; NAME=FILE: what it is called in the "
                "bundle")
      ->required();
  c->add_option("-o,--output", o->output, "the folder to write")->required();
  c->add_option("--name", o->name, "what functions and files begin with; else the folder's name");
  c->add_option("--target", o->target, kTargetHelp);
  c->add_option("--shape", o->shape,
                "other values for static sizes and hints, [PROGRAM:]NAME=N[,NAME=N]")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--copies", o->copies,
                "tensors that a call may give with any strides and address, since there is a plan "
                "that copies them: all (one plan that copies whatever may need it; the default), "
                "none, or a set, [PROGRAM:]A+B")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  c->add_flag("--no-cache", o->no_cache,
              "lower and compile even if the disk cache has the kernels");
  c->add_flag("--json", o->json, kJsonHelp);
  c->footer(
      "Example: nautilus build examples/gemm.naut examples/softmax.naut -o kernels\n"
      "         cc -std=c11 -c kernels/kernels.c kernels/kernels_kernels.c");
  c->callback([o, &exit_code] { exit_code = run_build(*o); });
}

}  // namespace nautilus::tool
