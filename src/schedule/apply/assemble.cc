// SPDX-License-Identifier: Apache-2.0
// Kernels and remaining statements as one program, in an order in which every value is there when
// it is read.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "decision/lines.h"
#include "ir/machine.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/kernel.h"
#include "schedule/nest/cost.h"

namespace nautilus::schedule {
namespace {

// A kernel can hand out what it has one value of per row, after its loop.
bool can_store(const Fusion& fusion, const Member& m) {
  return !m.has(fusion.stream) && m.has(fusion.row);
}

// For each statement, the kernel that stores it, or -1.
std::vector<int> providers(const StatementList& list, const std::vector<Kernel>& kernels) {
  std::vector<int> out(list.statements.size(), -1);
  std::vector<size_t> order(kernels.size());
  for (size_t k = 0; k < order.size(); ++k) order[k] = k;
  // Of several kernels that have it, the one that is needed first.
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return kernels[a].fusion.seed < kernels[b].fusion.seed; });
  for (size_t k : order) {
    for (const Member& m : kernels[k].fusion.members) {
      int& p = out[static_cast<size_t>(m.statement)];
      if (p < 0 && can_store(kernels[k].fusion, m)) p = static_cast<int>(k);
    }
  }
  return out;
}

}  // namespace

std::set<int> remaining(const StatementList& list, std::vector<Kernel>& kernels) {
  const std::vector<int> provider = providers(list, kernels);
  for (Kernel& k : kernels) k.stored.clear();
  std::set<int> plain;
  std::vector<int> work;
  for (const Statement& s : list.statements) {
    if (s.role == scalar::Role::Output) work.push_back(s.id);
  }
  std::set<int> seen;
  while (!work.empty()) {
    const int id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    const int p = provider[static_cast<size_t>(id)];
    if (p < 0) {
      plain.insert(id);
      for (int r : list.statements[static_cast<size_t>(id)].reads_from) work.push_back(r);
      continue;
    }
    Kernel& k = kernels[static_cast<size_t>(p)];
    k.stored.insert(id);
    for (int r : needs_of(k.fusion, list, k.stored)) work.push_back(r);
  }
  return plain;
}

namespace {

template <class D>
bool has_line(const ir::Block& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const ir::Op& line) { return line.is<D>(); });
}

// The lines that passes read, in the nests of the kernel's alternatives. Which steps a loop runs
// was read when the nests were built; such a line of a user stays, so that a refusal can name it.
// `costs`: of nests that are alternatives, by their places.
void add_lines(const Kernel& kernel, const std::map<size_t, Expr>& costs, BuiltKernel& built) {
  for (size_t n = 0; n < built.nests.size(); ++n) {
    const auto* nest = built.nests[n].get<scalar::For>();
    if (!nest || nest->kind != scalar::LoopKind::Grid) continue;
    const TileConfig* sizes = &kernel.sizes;
    for (const WholeNest& w : built.wholes) {
      if (w.nest == n) sizes = &w.sizes;
    }
    ir::Block lines = sizes->lines;
    std::erase_if(lines, [](const ir::Op& line) {
      return line.is<decision::Live>() && !decision::is_kept_for_messages(line);
    });
    if (sizes->cluster > 1 && !has_line<decision::Cluster>(lines))
      lines.push_back(ir::make(decision::Cluster{sizes->cluster, {}}));
    if (sizes->resident > 1 && !has_line<decision::Resident>(lines))
      lines.push_back(ir::make(decision::Resident{sizes->resident, {}}));
    if (const auto cost = costs.find(n); cost != costs.end())
      lines.push_back(ir::make(decision::Cost{cost->second}));
    scalar::For with = *nest;
    with.body = decision::with_lines(std::move(with.body), lines);
    built.nests[n] = ir::make(std::move(with), built.nests[n].span());
  }
}

struct Unit {
  int kernel = -1;     // or
  int statement = -1;  // one of both
  int key = 0;
  std::set<int> needs;  // statements
  std::set<int> gives;
  bool is_done = false;
};

// Kernels that store something and the remaining statements, each after those it needs; nothing if
// two kernels need each other's results. Chooses what the kernels store.
std::optional<std::vector<Unit>> in_order(const StatementList& list, std::vector<Kernel>& kernels) {
  const std::set<int> plain = remaining(list, kernels);
  std::vector<Unit> units;
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (kernels[k].stored.empty()) continue;
    const Kernel& kernel = kernels[k];
    units.push_back({static_cast<int>(k), -1, kernel.fusion.seed,
                     needs_of(kernel.fusion, list, kernel.stored), kernel.stored, false});
  }
  for (int id : plain) {
    const auto& reads = list.statements[static_cast<size_t>(id)].reads_from;
    units.push_back({-1, id, id, {reads.begin(), reads.end()}, {id}, false});
  }
  std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.key < b.key; });
  std::vector<Unit> out;
  std::set<int> there;
  while (out.size() < units.size()) {
    const auto next = std::find_if(units.begin(), units.end(), [&](const Unit& u) {
      return !u.is_done && std::all_of(u.needs.begin(), u.needs.end(),
                                       [&](int id) { return there.contains(id); });
    });
    if (next == units.end()) return std::nullopt;
    next->is_done = true;
    there.insert(next->gives.begin(), next->gives.end());
    out.push_back(*next);
  }
  return out;
}

// A program of kernels while it is put together.
class Assembler {
 public:
  Assembler(const ir::Program& program, const StatementList& list, expr::ExprPool& pool)
      : program_(program),
        list_(list),
        pool_(pool),
        signs_(program),
        target_(ir::target_of(program)) {
    out_.program = {program.level, program.name, {}};
  }

  Outcome<Scheduled> run(const std::vector<Unit>& units, const std::vector<Kernel>& kernels) {
    declare(units);
    for (const Unit& unit : units) {
      if (unit.statement >= 0) {
        for (size_t k : list_.statements[static_cast<size_t>(unit.statement)].ops)
          code_.push_back(program_.body[k]);
        continue;
      }
      if (const auto refused = add(kernels[static_cast<size_t>(unit.kernel)])) return *refused;
    }
    const bool has_machine = std::any_of(out_.program.body.begin(), out_.program.body.end(),
                                         [](const ir::Op& op) { return op.is<ir::Machine>(); });
    if (!sizes_.empty() && !has_machine)
      out_.program.body.push_back(ir::make(ir::Machine{ir::machine_name(program_, pool_)}));
    for (ir::Block* block : {&sizes_, &locals_, &code_}) {
      for (ir::Op& op : *block) out_.program.body.push_back(std::move(op));
    }
    return std::move(out_);
  }

 private:
  // What the program declares, but for buffers that no unit writes any more.
  void declare(const std::vector<Unit>& units) {
    std::set<int> kept;
    for (const Unit& u : units) kept.insert(u.gives.begin(), u.gives.end());
    for (const ir::Op& op : program_.body) {
      if (const auto* d = op.get<ir::Dim>()) names_.take(d->name);
      if (const auto* d = op.get<ir::Static>()) names_.take(d->name);
      if (const auto* p = op.get<ir::Param>()) names_.take(p->name);
      if (const auto* m = op.get<ir::Machine>()) names_.take(m->name);
      if (const auto* b = op.get<scalar::Buffer>()) {
        const auto writer = list_.writer.find(b->name.str());
        const bool is_kept = b->role == scalar::Role::Input || writer == list_.writer.end() ||
                             kept.contains(writer->second);
        if (!is_kept) continue;
        names_.take(b->name);
        out_.program.body.push_back(op);
      } else if (!op.is<scalar::For>() && !op.is<scalar::Loop>() && !op.is<scalar::Store>() &&
                 !op.is<scalar::Init>()) {
        out_.program.body.push_back(op);
      }
    }
    for (const Statement& s : list_.statements) {
      for (const ir::Axes* axes : {&s.axes, &s.reduce}) {
        for (const ir::Axis& a : *axes) names_.variables.insert(std::string(a.name.str()));
      }
    }
  }

  // Why the kernel cannot be built; nothing if it is there.
  std::optional<Rejection> add(const Kernel& kernel) {
    BuiltKernel built = build_kernel({kernel.fusion, program_, signs_, pool_}, kernel.sizes,
                                     kernel.others, kernel.split, kernel.stored, names_);
    if (built.refused) return *built.refused;
    // Of several nests for the same results the plan runs the one with the least cost.
    std::map<size_t, Expr> costs;
    for (const WholeNest& whole : built.wholes) {
      if (built.wholes.size() == 1) break;
      costs.emplace(whole.nest,
                    cycles_of(cost_of(built, whole, program_, target_, pool_), target_, pool_));
    }
    add_lines(kernel, costs, built);
    for (ir::Op& op : built.sizes) sizes_.push_back(std::move(op));
    for (scalar::Buffer& b : built.summaries) out_.program.body.push_back(ir::make(std::move(b)));
    for (ir::Op& op : built.before) code_.push_back(std::move(op));
    for (scalar::Buffer& b : built.locals) locals_.push_back(ir::make(std::move(b)));
    note_nests(kernel, built);
    for (ir::Op& op : built.nests) code_.push_back(std::move(op));
    note(kernel, built);
    return std::nullopt;
  }

  // Where the grid nests of the program come from.
  void note_nests(const Kernel& kernel, const BuiltKernel& built) {
    const std::string seed(list_.statements[static_cast<size_t>(kernel.fusion.seed)].target.str());
    auto decided = built.decided.begin();
    for (size_t n = 0; n < built.nests.size(); ++n) {
      const auto* nest = built.nests[n].get<scalar::For>();
      if (!nest || nest->kind != scalar::LoopKind::Grid) continue;
      const bool is_whole = std::any_of(built.wholes.begin(), built.wholes.end(),
                                        [&](const WholeNest& w) { return w.nest == n; });
      out_.nests.push_back({seed, is_whole, *decided++});
    }
  }

  void note(const Kernel& kernel, const BuiltKernel& built) {
    std::string stored;
    for (int id : kernel.stored)
      stored += fmt::format("{}{}", stored.empty() ? "" : ", ",
                            list_.statements[static_cast<size_t>(id)].target.str());
    out_.notes.push_back(fmt::format("kernel gives {}: rows {}, streams {}", stored,
                                     kernel.fusion.row.name().str(),
                                     kernel.fusion.stream.name().str()));
    for (const std::string& n : kernel.fusion.notes) out_.notes.push_back("  " + n);
    for (const std::string& n : built.notes) out_.notes.push_back("  " + n);
  }

  const ir::Program& program_;
  const StatementList& list_;
  expr::ExprPool& pool_;
  algebra::Signs signs_;
  const Target& target_;
  Names names_;
  ir::Block code_;
  ir::Block locals_;
  ir::Block sizes_;
  Scheduled out_;
};

}  // namespace

bool have_order(const StatementList& list, std::vector<Kernel>& kernels) {
  return in_order(list, kernels).has_value();
}

Outcome<Scheduled> assemble(const ir::Program& program, const StatementList& list,
                            std::vector<Kernel> kernels, expr::ExprPool& pool) {
  const auto units = in_order(list, kernels);
  if (!units) return Rejection{"cycle", "two kernels need each other's results"};
  return Assembler(program, list, pool).run(*units, kernels);
}

}  // namespace nautilus::schedule
