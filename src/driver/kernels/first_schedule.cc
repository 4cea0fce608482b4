// SPDX-License-Identifier: Apache-2.0
// The first schedule of a program: forms of its equations are tried one after the other, and each
// is taken if what it gives is predicted to be faster than what was there before.
#include <fmt/format.h>

#include <algorithm>

#include "compile/kernels.h"
#include "decision/lines.h"
#include "driver/kernels/program_lines.h"
#include "driver/kernels/scheduling.h"
#include "driver/kernels/tile_kernels.h"
#include "ir/target_of.h"
#include "schedule/choose/plan_cost.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"
#include "spec/passes/chunks/chunk_scans.h"
#include "spec/scans.h"

namespace nautilus::driver {
namespace {

using decision::Rewrite;

struct KernelCounts {
  size_t products = 0;
  size_t rolled = 0;
};

KernelCounts counts(const FirstSchedule& schedule) {
  KernelCounts n;
  for (const schedule::Kernel& k : schedule.kernels) {
    n.products += k.fusion.dots.size();
    for (const schedule::Member& m : k.fusion.members) n.rolled += m.is_rolled ? 1 : 0;
  }
  return n;
}

// Whether a form of the program without differences in its products is worth its further sums: it
// reads once what the other one reads twice. The time of a small kernel or two is not known so
// well.
bool is_better_apart(const FirstSchedule& apart, const FirstSchedule& whole, Unit& unit) {
  const KernelCounts a = counts(apart);
  const KernelCounts w = counts(whole);
  if (a.products < w.products || a.rolled <= w.rolled) return false;
  const target::Target& target = ir::target_of(whole.program);
  const auto cycles = [&](const FirstSchedule& s) {
    return schedule::plan_cycles(s.kernels, s.rounded, target, unit.pool);
  };
  const auto with = cycles(apart);
  const double unsure = 2 * target.costs.next_kernel_cycles;
  return !with || *with < target.algebra.worth_apart * *cycles(whole) + unsure;
}

// Of a program that brings lines about operands, as dumps on the way do: the first form of the
// algebra that has these operands.
std::optional<FirstSchedule> schedule_with_own_lines(const ir::Program& program, Unit& unit) {
  ir::Program plain = program;
  plain.body = decision::with_lines(std::move(plain.body), {});
  const schedule::Schedule given{
      program.name, spec::equations_hash(program), decision::lines(program.body), {}};
  std::string error;
  auto out = replay_schedule(plain, schedule::print(given), unit, &error);
  if (!out) {
    if (!error.empty()) unit.sink.report(diag::Code::DecisionRefused, {}, error);
    return std::nullopt;
  }
  describe(*out, program, unit);
  complete(*out, unit);
  return out;
}

// Why scans are computed one step after the other, whatever that takes.
std::vector<std::string> sequential_scans(const ir::Program& program, Unit& unit) {
  if (!program.after.empty() || !spec::has_scans(program)) return {};
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  ir::Program split = program;
  for (const std::string_view name : {"simplify", "inline_conditions", "split_reductions"}) {
    auto next = compile::run_pass(*compile::find_pass(name), split, context);
    if (!next) return {};
    split = std::move(*next);
  }
  return spec::chunk_refusals(split, unit.pool);
}

// What a form is said to be, and what the time without it is called.
struct TakenForm {
  Rewrite rewrite;
  std::string_view what;
  std::string_view otherwise;
};
constexpr TakenForm kTakenForms[] = {
    {Rewrite::Limbs, "products of f32 operands are products of 16-bit limbs", "of scalar code"},
    {Rewrite::Groups,
     "sums that are products of matrices within groups of an axis are products of each group",
     "without"},
    {Rewrite::Chunks, "scans of matrices are products of chunks of their steps",
     "of one step after the other"}};

class FormChooser {
 public:
  // `given`: lines that every form has. `lowered`: the program in the plainest form of those.
  FormChooser(const ir::Program& program, const schedule::Schedule& given,
              const ir::Program& lowered, ir::PassContext& context, Unit& unit)
      : program_(program),
        given_(given),
        context_(context),
        unit_(unit),
        algebra_(as_given(given, {})),
        best_(with_tile_kernels(lowered, true, unit)) {
    consider_shift(lowered);
  }

  FirstSchedule run() {
    consider_sums();
    consider_operands();
    consider_groups();
    const Algebra chunked = form(best_.algebra, Rewrite::Chunks);
    if (changes(Rewrite::Chunks, chunked)) consider(chunked, "");
    consider_pieces();
    consider_masks();
    consider_ranks();
    return std::move(best_);
  }

 private:
  // Differences from values of a row, in their products or apart: what all further forms have.
  void consider_shift(const ir::Program& lowered) {
    const Algebra shifting = form(algebra_, Rewrite::DistributeRowShift);
    const auto apart = unit_.forms.get(program_, context_, shifting);
    if (apart && *apart != lowered) {
      FirstSchedule other = with_tile_kernels(*apart, true, unit_);
      if (is_better_apart(other, best_, unit_)) {
        algebra_ = shifting;
        best_ = std::move(other);
      } else {
        best_.notes.push_back(
            "differences from values of a row stay in their products: taking them apart takes "
            "longer");
      }
    }
    best_.algebra = algebra_;
  }

  // Sums over short axes are written out because products of tiles have one axis to sum over. Where
  // that gives no further products, each of them would be a kernel, with its result in memory.
  void consider_sums() {
    const Algebra whole = form(best_.algebra, Rewrite::Sums, false);
    if (whole == best_.algebra || !changes(Rewrite::Sums, best_.algebra)) return;
    const auto lowered = unit_.forms.get(program_, context_, whole);
    if (!lowered || *lowered == best_.unscheduled) return;
    FirstSchedule other = with_tile_kernels(*lowered, true, unit_);
    if (counts(other).products < counts(best_).products) return;
    const double share = predicted_cost(other, unit_) / predicted_cost(best_, unit_);
    if (share >= 1) return;
    other.notes.insert(
        other.notes.begin(),
        fmt::format("sums over several axes stay whole: predicted to take {:.2g} of the time of "
                    "sums written out",
                    share));
    other.algebra = whole;
    best_ = std::move(other);
  }

  // Copies of operands that no box can bring are made where that gives more kernels, products of
  // limbs where matrix instructions gain more than limbs cost.
  void consider_operands() {
    constexpr std::string_view kGathered =
        "operands that no box can bring as they lie are copied first";
    const Algebra gathering = form(algebra_, Rewrite::Gather);
    consider(form(algebra_, Rewrite::Limbs), "");
    consider(form(gathering, Rewrite::Limbs, best_.algebra.has(Rewrite::Limbs)), kGathered);
    if (!best_.algebra.has(Rewrite::Limbs)) consider(form(gathering, Rewrite::Limbs), kGathered);
  }

  void consider_groups() {
    const Algebra grouped = form(algebra_, Rewrite::Groups);
    if (!changes(Rewrite::Groups, grouped)) return;
    // Groups that are blocks of rows are tiles already, and stay in one kernel with what follows.
    const bool has_blocks =
        std::any_of(best_.kernels.begin(), best_.kernels.end(), [](const schedule::Kernel& k) {
          return k.fusion.row_block > 0 && !k.fusion.block_rows.is_int(1);
        });
    if (has_blocks) return;
    for (const bool has_limbs : {false, true})
      consider(form(grouped, Rewrite::Limbs, has_limbs), "");
  }

  // Reductions behind products start in the kernels of those, whatever forms products have by now.
  void consider_pieces() {
    const Algebra divided = form(best_.algebra, Rewrite::Pieces);
    if (divided == best_.algebra || !changes(Rewrite::Pieces, divided)) return;
    const auto lowered = unit_.forms.get(program_, context_, divided);
    FirstSchedule other = with_tile_kernels(*lowered, true, unit_);
    const double share = predicted_cost(other, unit_) / predicted_cost(best_, unit_);
    if (counts(other).products < counts(best_).products || share >= 1) {
      best_.notes.push_back(
          fmt::format("products are reduced as a whole: pieces first, in the products' kernels, "
                      "are predicted to take {:.2g} of the time",
                      share));
      return;
    }
    other.notes.insert(
        other.notes.begin(),
        fmt::format("products are reduced in pieces first, by their own kernels: predicted to take "
                    "{:.2g} of the time without",
                    share));
    keep_notes_of_forms(other);
    other.algebra = divided;
    best_ = std::move(other);
  }

  // A sum whose terms have one place each is a product of matrices with nearly all elements 0, or a
  // walk over the terms, which memory adds to their places.
  void consider_masks() {
    const Algebra inside = form(best_.algebra, Rewrite::Masks, false);
    if (inside == best_.algebra || !changes(Rewrite::Masks, best_.algebra)) return;
    const auto lowered = unit_.forms.get(program_, context_, inside);
    if (!lowered || *lowered == best_.unscheduled || !may_scatter(*lowered, unit_)) return;
    FirstSchedule other = with_tile_kernels(*lowered, true, unit_);
    const double share = predicted_cost(other, unit_) / predicted_cost(best_, unit_);
    if (share >= 1) {
      best_.notes.push_back(
          fmt::format("sums over places in data are products of matrices: terms that go to their "
                      "places are predicted to take {:.2g} of the time",
                      share));
      return;
    }
    other.notes.insert(
        other.notes.begin(),
        fmt::format("terms of sums over places in data go to their places: predicted to take "
                    "{:.2g} of the time of products of matrices",
                    share));
    keep_notes_of_forms(other);
    other.algebra = inside;
    best_ = std::move(other);
  }

  // Elements that are asked for by their rank are looked for in pieces first where the axis is
  // long.
  void consider_ranks() {
    const Algebra divided = form(best_.algebra, Rewrite::Ranks);
    if (divided == best_.algebra || !changes(Rewrite::Ranks, divided)) return;
    const auto lowered = unit_.forms.get(program_, context_, divided);
    FirstSchedule other = with_tile_kernels(*lowered, true, unit_);
    const double share = predicted_cost(other, unit_) / predicted_cost(best_, unit_);
    if (share >= 1) {
      best_.notes.push_back(
          fmt::format("ranks are counted along the whole axis: pieces first are predicted to take "
                      "{:.2g} of the time",
                      share));
      return;
    }
    other.notes.insert(other.notes.begin(),
                       fmt::format("elements of few ranks are looked for in pieces of the axis "
                                   "first: predicted to take {:.2g} of the time without",
                                   share));
    keep_notes_of_forms(other);
    other.algebra = divided;
    best_ = std::move(other);
  }

  // What was said about forms that were taken before holds for another schedule with them, too.
  void keep_notes_of_forms(FirstSchedule& other) const {
    for (const std::string& note : best_.notes) {
      if (std::ranges::any_of(kTakenForms,
                              [&](const TakenForm& f) { return note.starts_with(f.what); }))
        other.notes.insert(other.notes.begin(), note);
    }
  }

  // Another form, as far as the lines leave it open.
  Algebra form(const Algebra& from, Rewrite rewrite, bool is_taken = true) const {
    return as_given(given_, from.with(rewrite, is_taken));
  }

  bool changes(Rewrite rewrite, const Algebra& form) {
    return unit_.forms.changes(compile::pass_of(rewrite), program_, context_, form);
  }

  // Takes the form if it gives kernels that are worth it.
  void consider(const Algebra& form, std::string_view note) {
    const auto lowered = unit_.forms.get(program_, context_, form);
    const Rewrite tried = form.has(Rewrite::Chunks)   ? Rewrite::Chunks
                          : form.has(Rewrite::Gather) ? Rewrite::Gather
                          : form.has(Rewrite::Limbs)  ? Rewrite::Limbs
                                                      : Rewrite::Groups;
    if (!lowered || *lowered == best_.unscheduled ||
        lowered == unit_.forms.get(program_, context_, form.without(tried)))
      return;
    FirstSchedule other = with_tile_kernels(*lowered, true, unit_);
    // Sums of groups are scalar code, too, whose points share what they load.
    const bool has_groups = form.has(Rewrite::Groups);
    const bool is_scalar = has_groups && best_.kernels.empty() && other.kernels.empty();
    // More products may stand in as many kernels: a form of attention has both in one. Groups are
    // for sums that have no tiles yet, and those that are fused stand in fewer kernels.
    const bool has_more_kernels = other.kernels.size() > best_.kernels.size();
    const bool has_more_products = counts(other).products > counts(best_).products;
    const bool has_more =
        has_groups ? has_more_kernels && has_more_products : has_more_kernels || has_more_products;
    if (!is_scalar && !has_more) return;
    const double share = predicted_cost(other, unit_) / predicted_cost(best_, unit_);
    const bool has_new_limbs = form.has(Rewrite::Limbs) && !best_.algebra.has(Rewrite::Limbs);
    const double worth =
        has_new_limbs || is_scalar ? ir::target_of(best_.program).algebra.worth_limbs : 1;
    share >= worth ? note_left(form, share, has_new_limbs)
                   : take(std::move(other), form, share, note);
  }

  void note_left(const Algebra& form, double share, bool has_new_limbs) {
    if (share < 1 && has_new_limbs)
      best_.notes.push_back(
          fmt::format("products of f32 operands are scalar code: products of 16-bit limbs are "
                      "predicted to take {:.2g} of the time, and usually take longer",
                      share));
    if (form.has(Rewrite::Chunks))
      best_.notes.push_back(
          fmt::format("scans are computed one step after the other: chunks of their steps are "
                      "predicted to take {:.2g} of the time",
                      share));
  }

  // Why numbers have fewer limbs than f32 needs.
  std::string_view licence_text() const {
    switch (ir::numerics_of(program_).rounding) {
      case ir::Rounding::Licensed:
      case ir::Rounding::Exact:
        return "";
      case ir::Rounding::Bf16:
        return ", one of each number (`numerics bf16`)";
      case ir::Rounding::Tf32:
        return ", two of each number (`numerics tf32`)";
    }
    return "";
  }

  void take(FirstSchedule other, const Algebra& form, double share, std::string_view note) {
    const auto put_first = [&](std::string text) {
      other.notes.insert(other.notes.begin(), std::move(text));
    };
    if (!note.empty()) put_first(std::string(note));
    for (const TakenForm& taken : kTakenForms) {
      if (form.has(taken.rewrite))
        put_first(fmt::format("{}{}: predicted to take {:.2g} of the time {}", taken.what,
                              taken.rewrite == Rewrite::Limbs ? licence_text() : "", share,
                              taken.otherwise));
    }
    other.algebra = form;
    best_ = std::move(other);
  }

  const ir::Program& program_;
  const schedule::Schedule& given_;
  ir::PassContext& context_;
  Unit& unit_;
  Algebra algebra_;
  FirstSchedule best_;
};

}  // namespace

std::optional<FirstSchedule> first_schedule(const ir::Program& program, Unit& unit) {
  if (!decision::lines(program.body).empty()) return schedule_with_own_lines(program, unit);
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto lowered = unit.forms.get(program, context);
  if (!lowered) return std::nullopt;
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  const schedule::Schedule nothing;
  FirstSchedule out = FormChooser(program, nothing, *lowered, context, unit).run();
  for (std::string& why : sequential_scans(program, unit)) out.notes.push_back(std::move(why));
  describe(out, program, unit);
  complete(out, unit);
  return out;
}

std::optional<Algebra> chosen_forms(const ir::Program& program, const schedule::Schedule& given,
                                    Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  const auto lowered = unit.forms.get(program, context, as_given(given, {}));
  if (!lowered) return std::nullopt;
  return FormChooser(program, given, *lowered, context, unit).run().algebra;
}

}  // namespace nautilus::driver
