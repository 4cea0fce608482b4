// SPDX-License-Identifier: Apache-2.0
#include "compile/steps.h"

#include <algorithm>

#include "compile/change_text.h"
#include "compile/dump.h"
#include "compile/passes.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "vrtile/ops.h"

namespace nautilus::compile {
namespace {

using ir::Op;
using Step = ir::PassTrace::Step;

template <class T>
bool has_one(const ir::Program& program) {
  return std::count_if(program.body.begin(), program.body.end(),
                       [](const Op& op) { return op.is<T>(); }) == 1;
}

// A step of one kernel, which is a program of its own there.
bool is_of_kernel(const Step& step) {
  const PassInfo& pass = the_pass(step.pass);
  if (pass.stage == Stage::Kernel) return has_one<matile::Kernel>(step.program);
  return pass.stage == Stage::Tiles || pass.from == "vrtile" || pass.to == "vrtile";
}

// Text without the line that names the program and its last pass.
std::string body_text(const ir::Block& body) {
  std::string out;
  for (const Op& op : body) {
    out += ir::print(op);
    if (!out.ends_with('\n')) out += '\n';
  }
  return out;
}

// The plan of all kernels, their bodies left out.
ir::Block plan_of(const ir::Program& program) {
  ir::Block out;
  for (const Op& op : program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) {
      out.push_back(op);
      continue;
    }
    matile::Kernel head = *kernel;
    head.body.clear();
    out.push_back(ir::make(std::move(head)));
  }
  return out;
}

// The kernel and its launches in a program of all kernels; nothing if it is not there.
ir::Block kernel_in(const ir::Program& program, std::string_view name) {
  ir::Block out;
  for (const Op& op : program.body) {
    const auto* kernel = op.get<matile::Kernel>();
    const auto* launch = op.get<matile::Launch>();
    if ((kernel && kernel->name.str() == name) || (launch && launch->kernel.str() == name))
      out.push_back(op);
  }
  return out;
}

// The ops of a kernel, without the declarations around it.
ir::Block work_of(const ir::Block& body) {
  ir::Block out;
  for (const Op& op : body) {
    if (op.is<vrtile::Par>() || op.is<matile::Kernel>()) out.push_back(op);
  }
  return out;
}

PassStep step_between(const Step& step, size_t number, const ir::Block* before,
                      const ir::Block& after, const ir::Block& work) {
  PassStep out{step.pass, dump_name(number, step), {}, {}, body_text(after)};
  if (before) out.before = body_text(*before);
  out.change = before ? change_text(out.before, out.after) : contents_text(work);
  return out;
}

class KernelKind {
 public:
  KernelKind(std::string name, const ir::Program& loaded) : out_{std::move(name), {}} {
    const bool is_alone = has_one<matile::Kernel>(loaded) || has_one<vrtile::Par>(loaded);
    const ir::Block here = is_alone ? loaded.body : kernel_in(loaded, out_.kernel);
    if (!here.empty()) set_last(loaded.level, here, kernel_in(loaded, out_.kernel));
  }

  void add(const Step& step, size_t number) {
    const bool is_own = is_of_kernel(step);
    const ir::Block kernel = kernel_in(step.program, out_.kernel);
    if (is_own ? step.unit != out_.kernel : kernel.empty()) return;
    const ir::Block& now = is_own ? step.program.body : kernel;
    const ir::Block* before = level_ != step.program.level ? nullptr
                              : is_own                     ? &last_
                                                           : &last_kernel_;
    if (!before || *before != now)
      out_.steps.push_back(step_between(step, number, before, now, work_of(now)));
    set_last(step.program.level, now, kernel);
  }

  KernelSteps take() { return std::move(out_); }

 private:
  void set_last(const ir::Level* level, const ir::Block& all, const ir::Block& kernel) {
    level_ = level;
    last_ = all;
    last_kernel_ = kernel;
  }

  KernelSteps out_;
  const ir::Level* level_ = nullptr;  // of the last step
  ir::Block last_;                    // the program, of a step of the kernel alone
  ir::Block last_kernel_;             // of level matile
};

}  // namespace

std::vector<PassStep> program_steps(const ir::Program& loaded, const ir::PassTrace& trace) {
  std::vector<PassStep> out = {{"input", dump_name(loaded), contents_text(loaded.body), {}, {}}};
  const ir::Level* level = loaded.level;
  ir::Block last = plan_of(loaded);
  out[0].after = body_text(last);
  for (size_t k = 0; k < trace.steps.size(); ++k) {
    const Step& step = trace.steps[k];
    if (is_of_kernel(step)) continue;
    const ir::Block now = plan_of(step.program);
    const bool is_same_level = step.program.level == level;
    out.push_back(step_between(step, k + 1, is_same_level ? &last : nullptr, now, now));
    // A pass may have changed only kernels, and a schedule may change no statement.
    if (is_same_level && last == now)
      out.back().change = level->name == "matile" ? "kernels alone" : "unchanged";
    level = step.program.level;
    last = now;
  }
  return out;
}

std::vector<KernelSteps> kernel_steps(const ir::Program& loaded, const ir::PassTrace& trace,
                                      const ir::Program& kernels) {
  std::vector<KernelSteps> out;
  for (const Op& op : kernels.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    KernelKind alternative(std::string(kernel->name.str()), loaded);
    for (size_t k = 0; k < trace.steps.size(); ++k) alternative.add(trace.steps[k], k + 1);
    out.push_back(alternative.take());
  }
  return out;
}

}  // namespace nautilus::compile
