// SPDX-License-Identifier: Apache-2.0
#include "driver/report/program_facts.h"

#include <algorithm>

#include "driver/run/launch_report.h"
#include "driver/run/run.h"
#include "expr/walk.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "matile/point_layout.h"
#include "matile/resources.h"
#include "schedule/fusion/fusion_check.h"
#include "schedule/fusion/statement.h"
#include "spec/ops.h"

namespace nautilus::driver {
namespace {

// The sizes and scalars of a call; nothing if they break a fact.
std::optional<ir::Environment> usual_call(const ir::Program& program,
                                          std::vector<std::string>& guessed, Unit& unit) {
  ir::Environment env;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (!d || d->hint) continue;
    guessed.emplace_back(d->name.str());
    env.sizes.emplace(d->name.str(), ir::target_of(program).nests.usual_extent);
  }
  // A scalar without a default: whatever it is, no size depends on it.
  for (const ir::Op& op : program.body) {
    const auto* p = op.get<ir::Param>();
    if (p && !p->init)
      env.scalars.emplace(p->name.str(),
                          expr::is_float(p->dtype) ? expr::Value{.f = 1} : expr::Value{.i = 1});
  }
  diag::Sink ignored(unit.sources);
  if (!ir::complete(program, {}, env, ignored)) return std::nullopt;
  return env;
}

int threads_of(const matile::Kernel& kernel, const ir::Program& program) {
  const target::Target& target = ir::target_of(program);
  if (matile::find_points(kernel))
    return static_cast<int>(matile::point_layout(kernel).threads.value_or(target.points.threads));
  return matile::resources_of(kernel, target).threads;
}

// Whether a line of the derivation is about the statement: it begins with its name.
bool is_about(std::string_view line, std::string_view statement) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return line.starts_with(statement) && line.substr(statement.size()).starts_with(" s");
}

class FactCollector {
 public:
  FactCollector(const ir::Program& program, const Kernels& kernels, Unit& unit)
      : program_(program), kernels_(kernels), unit_(unit) {}

  std::optional<ProgramFacts> run() {
    const auto env = usual_call(program_, out_.guessed, unit_);
    if (!env) return std::nullopt;
    out_.sizes = *env;
    measure_tensors();
    add_launches();
    add_passed();
    if (program_.level == &spec::level()) add_work();
    return std::move(out_);
  }

 private:
  const ir::Program& plan() const { return kernels_.program; }

  void measure_tensors() {
    const ir::Environment env =
        with_plan_numbers(plan(), environment_of(plan(), out_.sizes), sms());
    for (const ir::Op& op : plan().body) {
      const auto* t = op.get<matile::Tensor>();
      if (!t) continue;
      double bytes = static_cast<double>(expr::bytes(t->type.dtype));
      for (ir::Expr d : t->type.dims)
        bytes *= static_cast<double>(std::max<int64_t>(0, ir::evaluate_size(d, env)));
      out_.tensor_bytes.emplace(t->name.str(), bytes);
    }
  }

  int sms() const { return static_cast<int>(ir::target_of(plan()).board.sms); }

  void add_launches() {
    std::map<std::string, const matile::Kernel*> bodies;
    for (const ir::Op& op : plan().body) {
      if (const auto* k = op.get<matile::Kernel>()) bodies.emplace(k->name.str(), k);
    }
    for (const PlannedLaunch& l :
         planned_launches(plan(), environment_of(plan(), out_.sizes), sms())) {
      if (l.grid == 0) continue;
      const matile::Kernel& body = *bodies.at(l.kernel);
      const auto note = std::find_if(kernels_.notes.begin(), kernels_.notes.end(),
                                     [&](const KernelNote& n) { return n.kernel == l.kernel; });
      out_.launches.push_back({l.kernel, note == kernels_.notes.end() ? nullptr : &*note, l.grid,
                               threads_of(body, plan()), memory_use(body, plan())});
    }
  }

  void add_passed() {
    for (const ir::Op& op : plan().body) {
      const auto* t = op.get<matile::Tensor>();
      if (!t || t->role != matile::TensorRole::Temp) continue;
      PassedTensor passed{std::string(t->name.str()), t->type, 0, {}, {}, {}};
      passed.bytes = out_.tensor_bytes.at(passed.name);
      for (const LaunchFacts& l : out_.launches) {
        if (l.use.writes.contains(passed.name)) passed.writers.push_back(l.kernel);
        if (l.use.reads.contains(passed.name)) passed.readers.push_back(l.kernel);
      }
      // A tensor that CTAs of one kernel exchange does not pass between kernels.
      if (passed.writers.empty() || passed.readers.empty() || passed.writers == passed.readers)
        continue;
      add_reasons(passed);
      out_.passed.push_back(std::move(passed));
    }
  }

  void add_reasons(PassedTensor& passed) {
    if (!kernels_.origin) return;
    std::vector<std::string> names{passed.name};
    const auto list = schedule::statements_of(kernels_.origin->statements, unit_.pool);
    if (const auto* own = list.producer(unit_.pool.name(passed.name))) {
      for (const schedule::Statement& s : list.statements) {
        if (std::find(s.reads_from.begin(), s.reads_from.end(), own->id) != s.reads_from.end())
          names.emplace_back(s.target.str());
      }
    }
    for (const std::string& line : kernels_.origin->derivation) {
      const std::string text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      const bool is_known =
          std::find(passed.reasons.begin(), passed.reasons.end(), text) != passed.reasons.end();
      if (!is_known && !text.ends_with(schedule::kNoProduct) &&
          std::any_of(names.begin(), names.end(),
                      [&](const std::string& n) { return is_about(text, n); }))
        passed.reasons.push_back(text);
    }
  }

  void add_work() {
    const target::Target& target = ir::target_of(plan());
    out_.work = count_work(program_, out_.sizes, unit_);
    const double cycles_per_us = 1e3 * target.board.clock_ghz;
    out_.bytes_us = out_.work.bytes / target.costs.memory_bytes_per_cycle / cycles_per_us;
    out_.products_us = out_.work.flops / 2 / target.costs.products_per_cycle /
                       static_cast<double>(target.board.sms) / cycles_per_us;
  }

  const ir::Program& program_;
  const Kernels& kernels_;
  Unit& unit_;
  ProgramFacts out_;
};

}  // namespace

std::string LaunchFacts::form() const {
  if (!note) return "points";  // only kernels of points need no name in the schedule
  return std::string(decision::words(decision::Form{})[static_cast<size_t>(note->form)]);
}

double ProgramFacts::bytes_of(const std::string& tensor) const {
  const auto it = tensor_bytes.find(tensor);
  return it == tensor_bytes.end() ? 0 : it->second;
}

std::optional<ProgramFacts> program_facts(const ir::Program& program, const Kernels& kernels,
                                          Unit& unit) {
  return FactCollector(program, kernels, unit).run();
}

}  // namespace nautilus::driver
