// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/lower_to_kernels.h"

#include <algorithm>
#include <map>

#include "compile/kernels.h"
#include "driver/kernels/changed_lines.h"
#include "driver/kernels/given_schedule.h"
#include "driver/kernels/scheduling.h"
#include "driver/kernels/sized_kernels.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

// The steps to the program that was scheduled; whether some form of the algebra leads there.
bool trace_equations(const ir::Program& program, const FirstSchedule& scheduled,
                     ir::PassContext& context) {
  diag::Sink ignored(context.sink.sources());
  std::vector<Algebra> forms = {scheduled.algebra};
  for (const Algebra& other : compile::forms_of_algebra()) forms.push_back(other);
  for (const Algebra& form : forms) {
    // Which form was taken shows in what came of it.
    ir::PassContext silent{context.pool, ignored, {}};
    if (compile::lower_with_algebra(program, silent, form) != scheduled.unscheduled) continue;
    ir::PassContext traced{context.pool, ignored, {}, context.trace};
    compile::lower_with_algebra(program, traced, form);
    return true;
  }
  return false;
}

// That, and the schedule.
void trace_schedule(const ir::Program& program, const FirstSchedule& scheduled,
                    ir::PassContext& context) {
  if (!context.trace) return;
  // Programs between passes have lines about operands only where these differ from the rules of
  // passes.
  if (program.level->name == "spec" && !trace_equations(program, scheduled, context))
    trace_equations(with_operand_lines(program, scheduled.decisions), scheduled, context);
  compile::trace(compile::the_pass("schedule"), scheduled.program, context);
}

// Lines that were read before the kernel was a program of its own, before the others.
void add_nest_lines(const schedule::Schedule& schedule, KernelNote& note) {
  ir::Block lines;
  for (const schedule::KernelSchedule& k : schedule.kernels) {
    if (k.name != note.statement || k.form != decision::Form::Tile) continue;
    for (size_t alternative = 0; alternative < k.alternatives.size(); ++alternative) {
      for (const ir::Op& line : k.alternatives[alternative]) {
        const auto topic = decision::topic(line.info());
        const bool is_here =
            topic == decision::Topic::Members
                ? alternative == 0
                : topic == decision::Topic::Sizes && alternative + 1 == note.alternative;
        if (is_here) lines.push_back(line);
      }
    }
  }
  schedule::complete(lines, note.lines);
  note.lines = std::move(lines);
}

// Kernels in front of others have the lines of those.
void add_fronts(const ir::Block& decided, std::vector<KernelNote>& notes) {
  std::vector<KernelNote> fronts;
  for (const KernelNote& note : notes) {
    for (const ir::Op& op : decided) {
      const auto* made = op.get<decision::Kernel>();
      if (!made || made->made.str() != note.kernel) continue;
      for (const ir::Name front : made->front) {
        fronts.push_back(note);
        fronts.back().kernel = front.str();
        fronts.back().in_front_of = note.kernel;
      }
    }
  }
  notes.insert(notes.end(), fronts.begin(), fronts.end());
}

// The notes of passes about kernels. `scheduled` is null for a program without a schedule;
// otherwise its nests give the origins of tile kernels.
std::vector<KernelNote> notes_of(const ir::Block& decided, const FirstSchedule* scheduled) {
  std::vector<KernelNote> out;
  std::map<std::pair<std::string, decision::Form>, size_t> alternatives;
  size_t nest = 0;
  for (const ir::Op& op : decided) {
    const auto* made = op.get<decision::Kernel>();
    if (!made) continue;
    KernelNote note{
        std::string(made->made.str()), made->form, std::string(made->name.str()), 1, 1, made->body};
    if (made->form == decision::Form::Tile)
      note.statement = scheduled ? scheduled->nests.at(nest++).seed : "";
    if (!note.statement.empty()) note.alternative = ++alternatives[{note.statement, note.form}];
    out.push_back(std::move(note));
  }
  for (KernelNote& note : out) {
    if (note.statement.empty()) continue;
    note.alternatives = alternatives[{note.statement, note.form}];
    if (scheduled && note.form == decision::Form::Tile) add_nest_lines(scheduled->decisions, note);
  }
  add_fronts(decided, out);
  return out;
}

void add_names(const ir::Names& names, std::set<std::string>& out) {
  for (ir::Name n : names) out.emplace(n.str());
}

// Whether threads have patches: products at the speed of the ordinary units, which were compared
// with those of the matrix unit.
bool has_patches(const schedule::KernelSchedule& kernel) {
  return std::any_of(
      kernel.alternatives.begin(), kernel.alternatives.end(), [](const ir::Block& lines) {
        return std::any_of(lines.begin(), lines.end(),
                           [](const ir::Op& line) { return line.is<decision::Patch>(); });
      });
}

Origin origin_of(const FirstSchedule& scheduled) {
  Origin out{scheduled.unscheduled, {}, scheduled.notes};
  for (const schedule::KernelSchedule& k : scheduled.decisions.kernels) {
    if (k.form != decision::Form::Tile && !has_patches(k)) continue;
    out.in_tiles.insert(k.name);
    for (const ir::Block& lines : k.alternatives) {
      for (const ir::Op& line : lines) {
        const auto* fuse = line.get<decision::Fuse>();
        const auto* roll = line.get<decision::Roll>();
        if (fuse) add_names(fuse->statements, out.in_tiles);
        if (roll) add_names(roll->statements, out.in_tiles);
      }
    }
  }
  return out;
}

std::optional<Kernels> kernels_of(const ir::Program& program, const FirstSchedule& scheduled,
                                  bool has_notes, ir::PassContext& context) {
  compile::TraceAttempt attempt(context);
  trace_schedule(program, scheduled, context);
  ir::Block decided;
  ir::PassContext own = context;
  has_notes |= context.trace != nullptr;
  if (has_notes) own.decided = &decided;
  const bool is_made = scheduled.made && !context.trace;
  auto kernels = is_made ? compile::plan_kernels(*scheduled.made, own)
                         : compile::to_kernels(scheduled.program, own);
  if (!kernels) return std::nullopt;
  attempt.keep();
  if (is_made && has_notes)
    decided.insert(decided.begin(), scheduled.decided.begin(), scheduled.decided.end());
  return Kernels{std::move(*kernels), schedule::print(scheduled.decisions),
                 notes_of(decided, &scheduled), origin_of(scheduled)};
}

// What is said about lines that somebody changed without a mark; nothing if it is not for one of
// them that there are no kernels.
std::optional<diag::Diagnostic> refused_change(const ir::Program& program,
                                               const schedule::Schedule& given, Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  std::string ignored;
  const auto marked = replay(program, with_changes_marked(given, first->decisions), unit, &ignored);
  if (!marked) return std::nullopt;
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}};
  if (compile::nests_to_kernels(marked->program, context) || sink.all().empty() ||
      sink.all()[0].code != diag::Code::DecisionRefused)
    return std::nullopt;
  return sink.all()[0];
}

// The kernels of a schedule that was given.
std::optional<Kernels> kernels_of_given(const ir::Program& program, const FirstSchedule& scheduled,
                                        const KernelRequest& request, Unit& unit) {
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}, request.trace};
  auto kernels = kernels_of(program, scheduled, request.has_notes, context);
  std::vector<diag::Diagnostic> said = sink.all();
  if (!kernels && !said.empty() && said[0].code != diag::Code::DecisionRefused) {
    if (const auto refused = refused_change(program, scheduled.decisions, unit)) said = {*refused};
  }
  for (const diag::Diagnostic& d : said) unit.sink.report(d.code, d.primary.span, d.message) = d;
  return kernels;
}

// Of a program that has nests, or will have them.
bool is_unscheduled(const ir::Program& program) {
  return program.level->name == "spec" || program.after == "spec_to_scalar";
}

std::optional<FirstSchedule> schedule_of(const ir::Program& program, bool is_tried, Unit& unit) {
  if (program.level->name == "scalar")
    return schedule_loops(compile::without_after(program), is_tried, unit);
  return is_tried ? first_schedule(program, unit) : schedule_without_trial(program, unit);
}

}  // namespace

std::optional<Kernels> make_kernels(const ir::Program& program, const KernelRequest& request,
                                    Unit& unit, std::string* error) {
  ir::PassContext context{unit.pool, unit.sink, {}, request.trace};
  if (request.schedule) {
    if (program.level->name != "spec") {
      *error = "a schedule is for a program of the math language";
      return std::nullopt;
    }
    if (schedule::is_sized(*request.schedule)) return sized_kernels(program, request, unit, error);
    const auto scheduled = replay_schedule(program, *request.schedule, unit, error);
    auto kernels = scheduled ? kernels_of_given(program, *scheduled, request, unit) : std::nullopt;
    if (scheduled && !kernels) *error = unknown_kernel(program, scheduled->decisions, unit);
    return kernels;
  }
  if (is_unscheduled(program)) {
    // Lowering a schedule shows whether its kernels have a form; only if one has none is it worth
    // trying each alone. Together they may still not fit, which is not an error: every program has
    // kernels without tiles.
    for (const bool is_tried : {false, true}) {
      const auto scheduled = schedule_of(program, is_tried, unit);
      if (!scheduled && is_tried) return std::nullopt;
      if (!scheduled) continue;
      diag::Sink refusals(unit.sources);
      ir::PassContext own{unit.pool, refusals, {}, request.trace};
      if (auto kernels = kernels_of(program, *scheduled, request.has_notes, own)) return kernels;
    }
  }
  ir::Block decided;
  if (context.trace || request.has_notes) context.decided = &decided;
  auto kernels = compile::lower_to("matile", program, context);
  if (!kernels || !matile::verify_final(*kernels, unit.sink)) return std::nullopt;
  return Kernels{std::move(*kernels), "", notes_of(decided, nullptr), {}};
}

std::optional<Kernels> explained_kernels(const ir::Program& program, const FirstSchedule& scheduled,
                                         ir::PassTrace& trace, Unit& unit) {
  diag::Sink refusals(unit.sources);
  ir::PassContext context{unit.pool, refusals, {}, &trace};
  return kernels_of(program, scheduled, true, context);
}

std::optional<Kernels> complete_kernels(FirstSchedule& scheduled, Unit& unit) {
  ir::Block decided;
  ir::PassContext context{unit.pool, unit.sink, {}};
  context.decided = &decided;
  auto kernels = compile::to_kernels(scheduled.program, context);
  if (!kernels) return std::nullopt;
  complete(scheduled, decided);
  return Kernels{std::move(*kernels), schedule::print(scheduled.decisions),
                 notes_of(decided, &scheduled), origin_of(scheduled)};
}

std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit) {
  std::string error;
  auto kernels = make_kernels(program, {}, unit, &error);
  return kernels ? std::optional(std::move(kernels->program)) : std::nullopt;
}

std::optional<ir::Program> lower_with_schedule(const ir::Program& program, std::string_view text,
                                               Unit& unit, std::string* error) {
  auto kernels = make_kernels(program, {.schedule = std::string(text)}, unit, error);
  return kernels ? std::optional(std::move(kernels->program)) : std::nullopt;
}

std::optional<ir::Program> run_single_pass(const compile::PassInfo& pass,
                                           const ir::Program& program, ir::PassContext& context,
                                           Unit& unit) {
  std::optional<ir::Program> result;
  if (pass.run || pass.from != program.level->name) {
    result = compile::run_pass(pass, program, context);
  } else {
    result = schedule_loops(compile::without_after(program), true, unit).program;
  }
  if (result) result->after = compile::label_after(program, pass);
  return result;
}

}  // namespace nautilus::driver
