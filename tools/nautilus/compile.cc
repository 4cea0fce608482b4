// SPDX-License-Identifier: Apache-2.0
// nautilus compile: CUDA text and machine code of a program.
#include <fmt/format.h>

#include "base/files.h"
#include "command.h"
#include "driver/load/hints.h"
#include "driver/run/run.h"
#include "plan/compile.h"
#include "runtime/disassemble.h"
#include "runtime/nvrtc.h"

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
  bool no_cache = false;
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

std::string report_text(const std::vector<plan::DeviceKernel>& kernels) {
  std::string out;
  for (const plan::DeviceKernel& k : kernels) {
    out += fmt::format("kernel {}: {} threads, {} bytes of shared memory, {} bytes of parameters\n",
                       k.text.name, k.text.threads, k.text.shared_bytes, k.text.param_bytes);
    for (const runtime::KernelUse& use : k.report.kernels)
      out +=
          fmt::format("  {} registers, {} bytes of stack, spills {} stores {} loads\n",
                      use.registers, use.stack_bytes, use.spill_store_bytes, use.spill_load_bytes);
    for (const runtime::MachineLoop& loop : k.spilling_loops)
      out += fmt::format(
          "  of them in a loop of {} instructions, {} matrix, {} copies, depth {}: {} stores {} "
          "loads\n",
          loop.instructions, loop.matrix, loop.bulk_copies, loop.depth, loop.spill_stores,
          loop.spill_loads);
    out += fmt::format("  {} bytes of machine code\n", k.cubin.size());
  }
  return out;
}

int run_compile(const CompileOptions& o) {
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  int code = kOk;
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  auto loaded = load_file(o.file, statics, unit, code);
  if (loaded) loaded = driver::with_hints(std::move(*loaded), statics);
  const auto program = loaded ? kernels_of(*loaded, o.schedule, unit, code) : std::nullopt;
  print_messages(unit);
  if (!program) return std::max<int>(code, kProgramError);
  plan::EditedSources sources;
  if (!read_sources(o.source, *program, sources)) return kUsageError;
  if (!sources.empty() && (o.emit == "cuda" || o.emit == "body" || o.emit == "ptx")) {
    usage_error("--source is compiled, not emitted: --emit report, sass or cubin");
    return kUsageError;
  }
  if (o.emit == "cuda" || o.emit == "body") {
    const auto texts = emit::emit_kernels(*program, unit.pool);
    if (o.emit == "cuda") return write(o, emit::device_source(texts));
    std::string text;
    for (const emit::KernelText& k : texts) text += k.body;
    return write(o, text);
  }
  std::string error;
  const auto architecture = driver::architecture_of(*program, &error);
  if (!architecture) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  if (o.emit == "ptx") {
    const auto source = emit::device_source(emit::emit_kernels(*program, unit.pool));
    const auto ptx = runtime::compile_ptx(source, program->name + ".cu", *architecture, &error);
    if (ptx) return write(o, *ptx);
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  const auto kernels =
      plan::compile_edited(*program, unit.pool, sources, *architecture, !o.no_cache, &error);
  if (!kernels) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  for (const plan::DeviceKernel& k : *kernels) {
    const std::string warning = plan::spill_warning(k);
    if (!warning.empty()) fmt::print(stderr, "nautilus: warning: {}\n", warning);
  }
  if (o.emit == "report")
    return write(o, report_text(*kernels) + sources_report(*program, sources));
  if (o.emit == "sass") {
    std::string text;
    for (const plan::DeviceKernel& k : *kernels) {
      const auto instructions = runtime::disassemble(k.cubin, &error);
      if (!instructions) {
        fmt::print(stderr, "nautilus: {}\n", error);
        return kProgramError;
      }
      text += *instructions;
    }
    return write(o, text);
  }
  if (o.output.empty() || kernels->size() != 1) {
    usage_error("--emit cubin needs one kernel and an output file (-o)");
    return kUsageError;
  }
  return write(o, (*kernels)[0].cubin);
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
       "instructions of the machine code; cubin: machine code; report: what the assembler "
       "says")
      ->check(CLI::IsMember({"cuda", "body", "ptx", "sass", "cubin", "report"}))
      ->capture_default_str();
  c->add_option("-o,--output", o->output, "write to this file");
  c->add_option("--shape", o->shape, "other values for static sizes and hints, NAME=N[,NAME=N]")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  c->add_option("--source", o->source, kSourceHelp)->allow_extra_args(false);
  c->add_flag("--no-cache", o->no_cache, "compile even if the disk cache has the kernel");
  c->footer("Example: nautilus compile golden/gemm_coop_128x256.matile --emit cuda -o gemm.cu");
  c->callback([o, &exit_code] { exit_code = run_compile(*o); });
}

}  // namespace nautilus::tool
