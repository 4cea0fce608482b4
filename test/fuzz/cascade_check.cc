// SPDX-License-Identifier: Apache-2.0
#include "cascade_check.h"
#include "schedule/text/schedule.h"

#include <fmt/format.h>

#include "base/random.h"
#include "compile/manager.h"
#include "diag/render.h"
#include "driver/check/kernel_check.h"
#include "driver/kernels/scheduling.h"
#include "driver/oracle/oracle_check.h"
#include "ir/print.h"
#include "scalar/ops.h"

namespace nautilus::fuzz {
namespace {

using driver::RunRequest;
using driver::Unit;

constexpr int kVariants = 2;

class ScheduleChecker {
 public:
  explicit ScheduleChecker(uint64_t seed) : random_(seed) {}

  Verdict schedules(const std::string& text) {
    const auto program = load(text);
    if (!program) return verdict_;
    const auto first = driver::first_schedule(*program, unit_);
    if (!first) return fail("scheduling reports", rendered());
    if (!is_right(*program, first->program, "first schedule", "")) return verdict_;
    for (int k = 0; k < kVariants; ++k) {
      const std::string edited = variant(first->decisions);
      std::string error;
      const auto replayed = driver::replay_schedule(*program, edited, unit_, &error);
      if (!replayed && error.empty()) return fail("a schedule is refused silently", edited);
      if (replayed && !is_right(*program, replayed->program, "another schedule", edited))
        return verdict_;
    }
    return verdict_;
  }

  Verdict kernels(const std::string& text, driver::RunsOn on) {
    const auto program = load(text);
    if (!program) return verdict_;
    const auto difference = driver::check_kernels(*program, request_, unit_, {on, false, {}});
    if (!difference) return fail("compiling reports", rendered());
    if (!difference->empty()) return fail("kernels: " + kind_of(*difference), *difference);
    return verdict_;
  }

 private:
  std::string rendered() const { return diag::render_all(unit_.sink); }

  std::optional<ir::Program> load(const std::string& text) {
    auto program = driver::load_text("program.naut", text, {}, unit_);
    verdict_.is_accepted = program.has_value();
    request_.must_judge = false;
    request_.seed = random_.next() % 1000000;
    if (program) return program;
    for (const diag::Diagnostic& d : unit_.sink.all()) {
      if (d.is_error() && !verdict_.code) verdict_.code = d.code;
    }
    if (!verdict_.code) fail("refused without a message", "");
    return std::nullopt;
  }

  Verdict& fail(std::string key, std::string message) {
    verdict_.key = std::move(key);
    verdict_.message = std::move(message);
    return verdict_;
  }

  // From "`Y`: element 3 is nan, ..." the part that is the same for all elements.
  static std::string kind_of(const std::string& difference) {
    const size_t tick = difference.find("`: ");
    const size_t begin = tick == std::string::npos ? 0 : tick + 3;
    return difference.substr(begin, difference.find_first_of("0123456789", begin) - begin);
  }

  bool is_right(const ir::Program& program, const ir::Program& scheduled, std::string_view what,
                const std::string& decisions) {
    auto difference = driver::check_scheduled(program, scheduled, request_, unit_);
    if (!difference) return verdict_.code || !rendered().empty();  // values that lead to a message
    if (!difference->empty()) {
      fail(fmt::format("{}: {}", what, kind_of(*difference)),
           *difference + "\n" + decisions + ir::print(scheduled));
      return false;
    }
    return tiles_are_right(program, scheduled, what, decisions);
  }

  // Programs of kernels alone have tiles as a whole.
  bool tiles_are_right(const ir::Program& program, const ir::Program& scheduled,
                       std::string_view what, const std::string& decisions) {
    for (const ir::Op& op : scheduled.body) {
      const auto* f = op.get<scalar::For>();
      if (f && f->kind != scalar::LoopKind::Grid) return true;
      if (op.is<scalar::Store>() || op.is<scalar::Init>()) return true;
    }
    diag::Sink refusals(unit_.sources);
    ir::PassContext context{unit_.pool, refusals, {}};
    auto tiles = compile::lower_to("vrtile", scheduled, context);
    for (const compile::PassInfo* pass : compile::passes_of(compile::Stage::Tiles)) {
      if (tiles) tiles = compile::apply(*pass, *tiles, context);
    }
    if (!tiles) return true;
    const auto difference = driver::check_against(program, *tiles, request_, unit_);
    if (!difference || difference->empty()) return true;
    fail(fmt::format("tiles of {}: {}", what, kind_of(*difference)),
         *difference + "\n" + decisions + ir::print(*tiles));
    return false;
  }

  // The same decisions with other sizes, and without some of the fusions.
  std::string variant(const schedule::Schedule& decisions) {
    schedule::Schedule out = decisions;
    // Small tiles: interpreting large ones takes seconds.
    for (schedule::KernelSchedule& k : out.kernels) {
      ir::Name rows;
      for (ir::Block& alternative : k.alternatives) {
        // What passes decided was for other sizes.
        std::erase_if(alternative, [](const ir::Op& op) {
          return decision::topic(op.info()) > decision::Topic::Sizes || op.is<decision::Groups>();
        });
        for (ir::Op& op : alternative) {
          if (const auto* r = op.get<decision::Rows>()) rows = r->axis;
          if (const auto* f = op.get<decision::Fuse>()) {
            decision::Fuse fuse = *f;
            std::erase_if(fuse.statements, [&](ir::Name) { return random_.chance(0.3); });
            if (!fuse.statements.empty()) op = ir::make(fuse);
          }
          const auto* t = op.get<decision::Tile>();
          if (!t) continue;
          decision::Tile tile = *t;
          tile.size = tile.axis == rows ? 64 * random_.integer(1, 2) : 16 * random_.integer(1, 4);
          op = ir::make(tile);
        }
      }
    }
    return schedule::print(out);
  }

  base::Random random_;
  Unit unit_;
  RunRequest request_;
  Verdict verdict_;
};

}  // namespace

Verdict check_schedules(const std::string& text, uint64_t seed) {
  return ScheduleChecker(seed).schedules(text);
}

Verdict check_cascade_kernels(const std::string& text, uint64_t seed) {
  return ScheduleChecker(seed).kernels(text, driver::RunsOn::Emulator);
}

Verdict check_cascade_on_device(const std::string& text, uint64_t seed) {
  return ScheduleChecker(seed).kernels(text, driver::RunsOn::Device);
}

}  // namespace nautilus::fuzz
