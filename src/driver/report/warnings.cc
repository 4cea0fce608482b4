// SPDX-License-Identifier: Apache-2.0
#include "driver/report/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decision/decisions.h"
#include "driver/report/scalar_products.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "page/html.h"
#include "schedule/fusion/statement.h"
#include "spec/ops.h"

namespace nautilus::driver {
namespace {

std::string bytes_text(double bytes) { return page::prefixed_text(bytes, "B"); }

class WarningReporter {
 public:
  WarningReporter(const ir::Program& program, const Kernels& kernels, const ProgramFacts* facts,
                  const WarningRequest& request, Unit& unit)
      : program_(program),
        kernels_(kernels),
        facts_(facts),
        request_(request),
        target_(ir::target_of(kernels.program)),
        unit_(unit) {}

  void run() {
    products();
    if (!facts_ || !has_sizes_that_matter(*facts_, target_)) return;
    intermediates();
    for (const LaunchFacts& l : facts_->launches) {
      few_threads(l);
      empty_tiles(l);
    }
  }

 private:
  diag::Diagnostic& report(diag::Code code, std::string_view statement, std::string message) {
    return unit_.sink.report(code, place_of(program_, statement), std::move(message));
  }

  // W0101. A product smaller than one instruction of the matrix unit has nothing to gain.
  void products() {
    for (const ScalarProduct& p : scalar_products(kernels_, unit_.pool)) {
      if (work_of(p) < static_cast<double>(target_.matrix.rows) * target_.matrix.column_step *
                           target_.matrix.depth)
        continue;
      auto& d = report(
          diag::Code::ScalarProduct, p.statement,
          fmt::format("a product of matrices in `{}` is scalar code, without the matrix unit",
                      equation_of(program_, p.statement)));
      if (!p.why.empty()) d.label(p.why);
      if (!p.cure.empty()) d.with_help(p.cure);
    }
  }

  // Multiplications; as many as there can be where a size is not known.
  double work_of(const ScalarProduct& p) const {
    double work = 1;
    for (const ir::Axes* axes : {&p.axes, &p.reduce}) {
      for (const ir::Axis& a : *axes) work *= extent(a.extent);
    }
    return work;
  }

  double extent(expr::Expr e) const {
    for (expr::Expr v : expr::free_vars(e)) {
      if (!facts_ || !facts_->sizes.sizes.contains(v.name().str())) return INFINITY;
    }
    static const ir::Environment none;
    return static_cast<double>(ir::evaluate_size(e, facts_ ? facts_->sizes : none));
  }

  // W0102.
  void intermediates() {
    const double most = request_.intermediate_bytes > 0 ? request_.intermediate_bytes
                                                        : target_.cliffs.intermediate_bytes;
    const std::vector<PassedTensor>& all = facts_->passed;
    for (size_t k = 0; k < all.size(); ++k) {
      const PassedTensor& t = all[k];
      if (t.bytes <= most) continue;
      // One warning for the limbs of a tensor, and for other tensors between the same kernels.
      std::vector<std::string> names;
      for (const PassedTensor& other : all) {
        if (go_the_same_way(t, other)) names.push_back(fmt::format("`{}`", other.name));
      }
      if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k),
                      [&](const PassedTensor& before) { return go_the_same_way(t, before); }))
        continue;
      const bool is_one = names.size() == 1;
      auto& d =
          report(diag::Code::LargeIntermediate, t.name,
                 fmt::format("{} pass{} through memory: {} {}{}, written by {} and read by {}",
                             fmt::join(names, ", "), is_one ? "es" : "", ir::print(t.type),
                             bytes_text(t.bytes), is_one ? "" : " each", fmt::join(t.writers, ", "),
                             fmt::join(t.readers, ", ")));
      for (const std::string& r : t.reasons) d.with_help(r);
    }
  }

  static bool go_the_same_way(const PassedTensor& a, const PassedTensor& b) {
    return a.type == b.type && a.writers == b.writers && a.readers == b.readers;
  }

  // W0103.
  void few_threads(const LaunchFacts& l) {
    double bytes = 0;
    for (const auto& [tensor, walks] : l.use.reads) bytes += walks * facts_->bytes_of(tensor);
    const int64_t threads = l.all_threads();
    if (l.use.has_products || !l.note || threads >= target_.cliffs.few_threads ||
        bytes < target_.cliffs.thread_bytes * static_cast<double>(threads))
      return;
    const bool is_rows = l.note->form == decision::Form::Rows;
    report(diag::Code::FewThreads, l.note->statement,
           fmt::format("kernel {} reads {} with {} threads, {} each: most of the machine waits",
                       l.kernel, bytes_text(bytes), threads,
                       bytes_text(bytes / static_cast<double>(threads))))
        .with_help(is_rows
                       ? "few long rows are in pieces where the program says how many there are "
                         "and how long (`static M = 4`), or a schedule does: `inner j pieces "
                         "4096 of s`"
                       : "a reduction with few results needs parts: `nautilus schedule` shows "
                         "its lines, and `nautilus tune` tries others");
  }

  // W0104.
  void empty_tiles(const LaunchFacts& l) {
    if (!l.note || l.note->form != decision::Form::Tile) return;
    const auto extents = extents_of(l.note->statement);
    double filled = 1;
    std::string what;
    for (const ir::Op& line : l.note->lines) {
      const auto* tile = line.get<decision::Tile>();
      if (!tile || !tile->size) continue;
      const auto it = extents.find(std::string(tile->axis.str()));
      if (it == extents.end() || it->second <= 0) continue;
      const auto size = static_cast<double>(*tile->size);
      const double share = it->second / (std::ceil(it->second / size) * size);
      filled *= share;
      if (share < 0.5)
        what += fmt::format("{}`{}` has {} of {}", what.empty() ? "" : ", ", tile->axis.str(),
                            it->second, *tile->size);
    }
    // Where memory takes longer than all work of the tiles, empty tiles cost nothing.
    if (filled >= target_.cliffs.filled_tiles || facts_->products_us < facts_->bytes_us * filled)
      return;
    report(diag::Code::EmptyTiles, l.note->statement,
           fmt::format("tiles of kernel {} are filled to {:.1f} % at these sizes", l.kernel,
                       100 * filled))
        .label(what)
        .with_help(
            "an axis that lies beside the short one in memory can take its place: `[B, N, C]` as "
            "`[R, C]` with R = B*N; or give the sizes that matter by `hint` or --shape");
  }

  // Of the axes of a statement, at the sizes.
  std::map<std::string, double> extents_of(const std::string& statement) const {
    std::map<std::string, double> out;
    if (!kernels_.origin) return out;
    const auto list = schedule::statements_of(kernels_.origin->statements, unit_.pool);
    const auto* s = list.producer(unit_.pool.name(statement));
    if (!s) return out;
    for (const ir::Axes* axes : {&s->axes, &s->reduce}) {
      for (const ir::Axis& a : *axes) out.emplace(a.name.str(), extent(a.extent));
    }
    return out;
  }

  const ir::Program& program_;
  const Kernels& kernels_;
  const ProgramFacts* facts_;
  const WarningRequest& request_;
  const target::Target& target_;
  Unit& unit_;
};

}  // namespace

bool has_sizes_that_matter(const ProgramFacts& facts, const target::Target& target) {
  return facts.guessed.empty() &&
         facts.least_us() >= target.costs.launch_cycles / (1e3 * target.board.clock_ghz);
}

namespace {

const ir::Op* find_equation(const ir::Program& program, std::string_view statement) {
  // `O.sum_2` is a part of `O`; the most of the name that an equation has.
  for (std::string_view name = statement; !name.empty();) {
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<spec::Let>();
      if (let && let->name.str() == name) return &op;
    }
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) break;
    name = name.substr(0, dot);
  }
  for (const ir::Op& op : program.body) {
    if (op.is<spec::Let>()) return &op;
  }
  return nullptr;
}

}  // namespace

diag::Span place_of(const ir::Program& program, std::string_view statement) {
  const ir::Op* equation = find_equation(program, statement);
  return equation ? equation->span() : diag::Span{};
}

std::string equation_of(const ir::Program& program, std::string_view statement) {
  const ir::Op* equation = find_equation(program, statement);
  return std::string(equation ? equation->as<spec::Let>().name.str() : statement);
}

void report_large_kernels(const ir::Program& program, const std::vector<CodeSize>& kernels,
                          Unit& unit) {
  const target::Target& target = ir::target_of(program);
  for (const CodeSize& k : kernels) {
    if (k.bytes <= target.cliffs.code_bytes) continue;
    unit.sink
        .report(diag::Code::LargeKernel, place_of(program, k.statement),
                fmt::format("kernel {} has {} of machine code, more than the caches of "
                            "instructions hold",
                            k.kernel, bytes_text(static_cast<double>(k.bytes))))
        .with_help(
            "functions that are long code (sines, powers) in a loop over tiles are computed once "
            "if an equation of their own has their values");
  }
}

void report_warnings(const ir::Program& program, const Kernels& kernels,
                     const WarningRequest& request, Unit& unit) {
  const auto facts = program_facts(program, kernels, unit);
  WarningReporter(program, kernels, facts ? &*facts : nullptr, request, unit).run();
  if (facts && request.tries_static &&
      has_sizes_that_matter(*facts, ir::target_of(kernels.program)))
    report_static_fusion(program, *facts, unit);
}

}  // namespace nautilus::driver
