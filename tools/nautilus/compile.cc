// SPDX-License-Identifier: Apache-2.0
// nautilus compile: CUDA text and machine code of a program.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "diag/render.h"
#include "driver/load/hints.h"
#include "driver/report/warnings.h"
#include "driver/run/run.h"
#include "json_output.h"
#include "plan/compile.h"
#include "runtime/disassemble.h"
#include "runtime/fatbin.h"
#include "runtime/machine_loops.h"
#include "runtime/nvrtc.h"
#include "warn_option.h"

namespace nautilus::tool {
namespace {

struct CompileOptions {
  std::string file;
  std::string target;
  std::string emit = "report";
  std::string output;
  std::vector<std::string> shape;
  std::vector<std::string> schedule;
  std::vector<std::string> source;
  WarnOption warn;
  bool no_cache = false;
  bool json = false;
};

int write(const CompileOptions& o, const std::string& content) {
  if (o.output.empty()) {
    fmt::print("{}", content);
    return kOk;
  }
  std::string error;
  if (base::write_file_atomic(o.output, content, &error)) return kOk;
  usage_error(error);
  return kUsageError;
}

// A folder holds one file per kernel.
bool is_folder_wanted(const CompileOptions& o) {
  return o.output.ends_with('/') || base::is_folder(o.output);
}

// One kernel goes into the file that is named, several into NAME.EXTENSION of a folder.
int write_each(const CompileOptions& o, const std::vector<std::string>& names,
               const std::vector<std::string>& contents) {
  if (names.size() == 1 && !is_folder_wanted(o)) return write(o, contents[0]);
  std::error_code why;
  std::filesystem::create_directories(o.output, why);
  if (!base::is_folder(o.output)) {
    usage_error(fmt::format(
        "the program has {} kernels: -o must be a folder, one file each, and {} is a file",
        names.size(), o.output));
    return kUsageError;
  }
  std::string error;
  for (size_t k = 0; k < names.size(); ++k) {
    const std::string path =
        (std::filesystem::path(o.output) / fmt::format("{}.{}", names[k], o.emit)).string();
    if (!base::write_file_atomic(path, contents[k], &error)) {
      usage_error(error);
      return kUsageError;
    }
    fmt::print("{}\n", path);
  }
  return kOk;
}

// Assembler text of each kernel.
std::optional<std::vector<std::string>> ptx_of(const std::vector<emit::KernelText>& texts,
                                               const std::string& architecture,
                                               std::string* error) {
  std::vector<std::string> out;
  for (const emit::KernelText& k : texts) {
    auto ptx = runtime::compile_ptx(emit::device_source(k), k.name + ".cu", architecture, error);
    if (!ptx) return std::nullopt;
    out.push_back(std::move(*ptx));
  }
  return out;
}

int write_fatbins(const CompileOptions& o, const std::vector<plan::DeviceKernel>& kernels,
                  const std::vector<std::string>& names, const std::string& architecture) {
  std::string error;
  std::vector<std::string> contents;
  for (const plan::DeviceKernel& k : kernels) {
    const auto ptx = runtime::compile_ptx(k.source, k.text.name + ".cu", architecture, &error);
    auto fatbin = ptx ? runtime::make_fatbin(k.cubin, *ptx, architecture, &error) : std::nullopt;
    if (!fatbin) {
      fmt::print(stderr, "nautilus: {}\n", error);
      return kProgramError;
    }
    contents.push_back(std::move(*fatbin));
  }
  return write_each(o, names, contents);
}

// A source that somebody edited may have other kernels, too.
std::vector<runtime::KernelUse> uses_of(const plan::DeviceKernel& k) {
  std::vector<runtime::KernelUse> out;
  for (const runtime::KernelUse& use : k.report.kernels) {
    if (k.report.kernels.size() == 1 || use.name == k.text.name) out.push_back(use);
  }
  return out;
}

size_t code_bytes(const plan::DeviceKernel& k) { return runtime::code_bytes(k.cubin, k.text.name); }

std::string report_text(const std::vector<plan::DeviceKernel>& kernels) {
  std::string out;
  for (const plan::DeviceKernel& k : kernels) {
    out += fmt::format("kernel {}: {} threads, {} bytes of shared memory, {} bytes of parameters\n",
                       k.text.name, k.text.threads, k.text.shared_bytes, k.text.param_bytes);
    for (const runtime::KernelUse& use : uses_of(k))
      out +=
          fmt::format("  {} registers, {} bytes of stack, spills {} stores {} loads\n",
                      use.registers, use.stack_bytes, use.spill_store_bytes, use.spill_load_bytes);
    for (const runtime::MachineLoop& loop : k.spilling_loops)
      out += fmt::format(
          "  of them in a loop of {} instructions, {} matrix, {} copies, depth {}: {} stores {} "
          "loads\n",
          loop.instructions, loop.matrix, loop.bulk_copies, loop.depth, loop.spill_stores,
          loop.spill_loads);
    out += fmt::format("  {} bytes of machine code\n", code_bytes(k));
  }
  return out;
}

nlohmann::json compile_json(const std::vector<plan::DeviceKernel>& kernels) {
  nlohmann::json out = nlohmann::json::array();
  for (const plan::DeviceKernel& k : kernels) {
    nlohmann::json j = {{"name", k.text.name},
                        {"threads", k.text.threads},
                        {"shared_bytes", k.text.shared_bytes},
                        {"param_bytes", k.text.param_bytes},
                        {"code_bytes", code_bytes(k)}};
    for (const runtime::KernelUse& use : uses_of(k)) {
      j["registers"] = use.registers;
      j["stack_bytes"] = use.stack_bytes;
      j["spill_store_bytes"] = use.spill_store_bytes;
      j["spill_load_bytes"] = use.spill_load_bytes;
    }
    const std::string warning = plan::spill_warning(k);
    if (!warning.empty()) j["warning"] = warning;
    out.push_back(j);
  }
  return out;
}

// Of kernels that are too large for the caches; false if that is an error.
bool warn_about_code(const CompileOptions& o, const ir::Program& loaded,
                     const driver::Kernels& made, const std::vector<plan::DeviceKernel>& kernels,
                     driver::Unit& unit) {
  if (!o.warn.is_on()) return true;
  const size_t before = unit.sink.all().size();
  std::vector<driver::CodeSize> sizes;
  for (const plan::DeviceKernel& k : kernels) {
    const auto note =
        std::find_if(made.notes.begin(), made.notes.end(),
                     [&](const driver::KernelNote& n) { return n.kernel == k.text.name; });
    sizes.push_back({k.text.name, note == made.notes.end() ? "" : note->statement, code_bytes(k)});
  }
  driver::report_large_kernels(loaded, sizes, unit);
  if (unit.sink.all().size() == before) return true;
  if (!o.json) fmt::print(stderr, "{}", diag::render_all(unit.sink, false, before));
  return !is_failure(o.warn, unit);
}

int tell_error(const std::string& error) {
  fmt::print(stderr, "nautilus: {}\n", error);
  return kProgramError;
}

int fail(const CompileOptions& o, const driver::Unit& unit, const std::string& why) {
  if (o.json)
    write_json(report_json(false, unit, why));
  else if (!why.empty())
    tell_error(why);
  return kProgramError;
}

int emit_source(const CompileOptions& o, const ir::Program& program, driver::Unit& unit) {
  const auto texts = emit::emit_kernels(program, unit.pool);
  if (o.emit == "cuda") return write(o, emit::device_source(texts));
  std::string text;
  for (const emit::KernelText& k : texts) text += k.body;
  return write(o, text);
}

int emit_ptx(const CompileOptions& o, const ir::Program& program, const std::string& architecture,
             driver::Unit& unit) {
  std::string error;
  const auto texts = emit::emit_kernels(program, unit.pool);
  if (is_folder_wanted(o)) {
    std::vector<std::string> names;
    for (const emit::KernelText& k : texts) names.push_back(k.name);
    const auto contents = ptx_of(texts, architecture, &error);
    return contents ? write_each(o, names, *contents) : tell_error(error);
  }
  const std::string file = program.name + ".cu";
  const auto ptx = runtime::compile_ptx(emit::device_source(texts), file, architecture, &error);
  return ptx ? write(o, *ptx) : tell_error(error);
}

int emit_sass(const CompileOptions& o, const std::vector<plan::DeviceKernel>& kernels) {
  std::string error;
  std::string text;
  for (const plan::DeviceKernel& k : kernels) {
    const auto instructions = runtime::disassemble(k.cubin, &error);
    if (!instructions) return tell_error(error);
    text += *instructions;
  }
  return write(o, text);
}

// Machine code: a file, or a folder with one for each kernel.
int emit_code(const CompileOptions& o, const std::vector<plan::DeviceKernel>& kernels,
              const std::string& architecture) {
  std::vector<std::string> names;
  std::vector<std::string> contents;
  for (const plan::DeviceKernel& k : kernels) {
    names.push_back(k.text.name);
    contents.push_back(k.cubin);
  }
  return o.emit == "fatbin" ? write_fatbins(o, kernels, names, architecture)
                            : write_each(o, names, contents);
}

// What `--emit` asks for of kernels that there are.
int emit_program(const CompileOptions& o, const ir::Program& loaded, const driver::Kernels& made,
                 driver::Unit& unit) {
  const ir::Program& program = made.program;
  plan::EditedSources sources;
  if (!read_sources(o.source, program, sources)) return kUsageError;
  const bool is_source = o.emit == "cuda" || o.emit == "body";
  if (!sources.empty() && (is_source || o.emit == "ptx")) {
    usage_error("--source is compiled, not emitted: --emit report, sass or cubin");
    return kUsageError;
  }
  if (is_source) return emit_source(o, program, unit);
  std::string error;
  const auto architecture = driver::architecture_of(program, &error);
  if (!architecture) return fail(o, unit, error);
  if (o.emit == "ptx") return emit_ptx(o, program, *architecture, unit);
  const auto kernels =
      plan::compile_edited(program, unit.pool, sources, *architecture, !o.no_cache, &error);
  if (!kernels) return fail(o, unit, error);
  for (const plan::DeviceKernel& k : *kernels) {
    const std::string warning = plan::spill_warning(k);
    if (!warning.empty()) fmt::print(stderr, "nautilus: warning: {}\n", warning);
  }
  if (!warn_about_code(o, loaded, made, *kernels, unit)) return fail(o, unit, "");
  if (o.json) {
    nlohmann::json j = report_json(true, unit);
    j["kernels"] = compile_json(*kernels);
    write_json(j);
    return kOk;
  }
  if (o.emit == "report") return write(o, report_text(*kernels) + sources_report(program, sources));
  return o.emit == "sass" ? emit_sass(o, *kernels) : emit_code(o, *kernels, *architecture);
}

int run_compile(const CompileOptions& o) {
  if (o.json && o.emit != "report") {
    usage_error("--json goes with --emit report alone; what else is emitted is text or code");
    return kUsageError;
  }
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  if (o.output.empty() && (o.emit == "cubin" || o.emit == "fatbin")) {
    usage_error(fmt::format(
        "--emit {} needs an output (-o): a file, or a folder with one file per kernel", o.emit));
    return kUsageError;
  }
  int code = kOk;
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  auto loaded = load_file(o.file, statics, unit, code);
  if (loaded) loaded = driver::with_hints(std::move(*loaded), statics);
  const Reuse reuse = o.no_cache ? Reuse::None : Reuse::Cached;
  const auto made =
      loaded ? make_kernels(*loaded, o.schedule, nullptr, unit, code, reuse) : std::nullopt;
  if (made) warn(*loaded, *made, o.warn, false, unit);
  print_messages(unit);
  if (!made && code == kUsageError) return kUsageError;
  if (!made || is_failure(o.warn, unit)) return fail(o, unit, "");
  return emit_program(o, *loaded, *made, unit);
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<CompileOptions>();
  CLI::App* c = app.add_subcommand("compile", "Compile a program for a GPU");
  c->add_option("FILE", o->file, "a program (.naut) or IR text of any level")->required();
  c->add_option("--target", o->target, kTargetHelp);
  c->add_option(
       "--emit", o->emit,
       "cuda: one self-contained file; body: without the prelude; ptx: assembler text; sass: "
       "instructions of the machine code; cubin: machine code; fatbin: machine code and assembler "
       "text; report: what the assembler says")
      ->check(CLI::IsMember({"cuda", "body", "ptx", "sass", "cubin", "fatbin", "report"}))
      ->capture_default_str();
  c->add_option(
      "-o,--output", o->output,
      "write to this file; of cubin, fatbin and ptx also a folder (NAME/), which then has a "
      "file for each kernel");
  c->add_option("--shape", o->shape, "other values for static sizes and hints, NAME=N[,NAME=N]")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  add_warn_option(*c, o->warn);
  c->add_option("--source", o->source, kSourceHelp)->allow_extra_args(false);
  c->add_flag("--no-cache", o->no_cache,
              "lower and compile even if the disk cache has the kernels");
  c->add_flag("--json", o->json, "the report as JSON on standard output")->excludes("--output");
  c->footer("Example: nautilus compile golden/gemm_coop_128x256.matile --emit cuda -o gemm.cu");
  c->callback([o, &exit_code] { exit_code = run_compile(*o); });
}

}  // namespace nautilus::tool
