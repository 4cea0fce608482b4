// SPDX-License-Identifier: Apache-2.0
#include "driver/report/explain_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diff.h"
#include "base/nearest.h"
#include "compile/steps.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

using compile::PassStep;

// A word of a list such as `ring, stages, registers`.
bool names(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(", "), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return false;
}

bool is_read_by(const compile::PassInfo& pass, const ir::Op& line, decision::Form form) {
  // The pass that makes kernels of other forms finds tile kernels finished, except for their last
  // tile.
  const bool makes_others = pass.from == "scalar" && pass.to == "matile";
  if (makes_others && form == decision::Form::Tile) return line.is<decision::LastTile>();
  // These lines decide the nests of a schedule; the other lines are for later passes.
  if (!pass.run) {
    const auto topic = decision::topic(line.info());
    return topic == decision::Topic::Members || topic == decision::Topic::Sizes;
  }
  return names(pass.reads, line.info().mnemonic());
}

// Lines of the kernel's schedule that the pass looks at, `loop down; pipeline 1`.
std::string lines_text(std::string_view pass, const KernelNote* note) {
  const compile::PassInfo* info = compile::find_pass(pass);
  std::string out;
  if (!info || !note) return out;
  for (const ir::Op& line : note->lines) {
    if (is_read_by(*info, line, note->form)) out += (out.empty() ? "" : "; ") + ir::print(line);
  }
  return out;
}

std::string row_text(const PassStep& step, const KernelNote* note, size_t width) {
  const std::string read = lines_text(step.pass, note);
  const std::string_view between = read.empty() || step.change.empty() ? "" : " ";
  return fmt::format("  {:<{}}  {}{}{}\n", step.file, width,
                     read.empty() ? "" : fmt::format("`{}`", read), between, step.change);
}

std::string indented_step(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += fmt::format("    {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// The purpose of the pass, and the change of the text; the whole text if there was none before.
std::string program_text(const PassStep& step) {
  const compile::PassInfo* info = compile::find_pass(step.pass);
  std::string out;
  if (info) out += fmt::format("    # {}\n", info->summary);
  if (step.before.empty()) return out + indented_step(step.after);
  std::string_view diff;
  const std::string all = base::unified_diff(step.before, step.after, "before", "after");
  diff = all;
  // Without the two lines that name the files.
  for (int k = 0; k < 2 && !diff.empty(); ++k)
    diff.remove_prefix(std::min(diff.find('\n'), diff.size() - 1) + 1);
  return out + indented_step(diff);
}

std::string steps_text(const std::vector<PassStep>& steps, const KernelNote* note,
                       bool shows_programs) {
  size_t width = 0;
  for (const PassStep& s : steps) width = std::max(width, s.file.size());
  std::string out;
  for (const PassStep& s : steps) {
    out += row_text(s, note, shows_programs ? 0 : width);
    if (shows_programs) out += program_text(s);
  }
  return out;
}

// `kernel attention_2: tile, alternative 2 of 3 for O.sum.acc`.
std::string head_text(const std::string& kernel, const KernelNote* note) {
  std::string out = "kernel " + kernel;
  if (note) {
    out += fmt::format(": {}", decision::words(note->form)[static_cast<size_t>(note->form)]);
    if (note->alternatives > 1)
      out += fmt::format(", alternative {} of {}", note->alternative, note->alternatives);
    if (!note->in_front_of.empty()) out += fmt::format(", in front of {}", note->in_front_of);
    if (!note->statement.empty()) out += fmt::format(", for {}", note->statement);
  }
  return out + "\n";
}

const KernelNote* note_of(const std::string& kernel, const std::vector<KernelNote>& notes) {
  const auto it = std::find_if(notes.begin(), notes.end(),
                               [&](const KernelNote& n) { return n.kernel == kernel; });
  return it == notes.end() ? nullptr : &*it;
}

// Whether the program has the kernel; why not, and which ones it has.
bool has_kernel(const ir::Program& kernels, const std::string& name, std::string* error) {
  std::vector<std::string> known;
  for (const ir::Op& op : kernels.body) {
    if (const auto* k = op.get<matile::Kernel>()) known.emplace_back(k->name.str());
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return true;
  *error = base::no_such_name("kernel", name, known);
  return false;
}

}  // namespace

std::optional<std::string> passes_text(const ir::Program& loaded, const ir::PassTrace& trace,
                                       const Kernels& kernels, const PassesRequest& request,
                                       std::string* error) {
  if (!request.kernel.empty() && !has_kernel(kernels.program, request.kernel, error))
    return std::nullopt;
  const auto program = compile::program_steps(loaded, trace);
  std::string out;
  if (request.kernel.empty())
    out += fmt::format("program {}\n{}", loaded.name,
                       steps_text(program, nullptr, request.shows_programs));
  const auto scheduled = std::find_if(program.begin(), program.end(),
                                      [](const PassStep& s) { return s.pass == "schedule"; });
  for (const compile::KernelSteps& k : compile::kernel_steps(loaded, trace, kernels.program)) {
    if (!request.kernel.empty() && k.kernel != request.kernel) continue;
    const KernelNote* note = note_of(k.kernel, kernels.notes);
    std::vector<PassStep> steps = k.steps;
    // The nest that became the kernel is one of the whole program's.
    if (note && note->form == decision::Form::Tile && scheduled != program.end())
      steps.insert(steps.begin(), {scheduled->pass, scheduled->file, {}, {}, {}});
    out += head_text(k.kernel, note) + steps_text(steps, note, request.shows_programs);
  }
  return out;
}

}  // namespace nautilus::driver
