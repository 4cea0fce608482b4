// SPDX-License-Identifier: Apache-2.0
#include "spec/scans.h"

#include <algorithm>
#include <unordered_map>

#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;

class Ordering {
 public:
  explicit Ordering(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      if (const auto* state = op.get<State>()) states_.push_back(state);
      const auto* let = op.get<Let>();
      if (!let) continue;
      place_.emplace(let->name, equations_.size());
      equations_.push_back(&op);
    }
    reads_.resize(equations_.size());
    read_by_.resize(equations_.size());
    for (size_t k = 0; k < equations_.size(); ++k) {
      for (ir::Name n : expr::tensors_read(let(k).body)) {
        const auto it = place_.find(n);
        if (it == place_.end()) continue;
        reads_[k].push_back(it->second);
        read_by_[it->second].push_back(k);
      }
    }
    scan_of_.assign(equations_.size(), -1);
    for (const State* s : states_) add_scan(*s);
  }

  std::vector<EquationGroup> run() {
    done_.assign(equations_.size(), false);
    for (size_t k = 0; k < equations_.size(); ++k) compute(k);
    return std::move(out_);
  }

 private:
  const Let& let(size_t k) const { return equations_[k]->as<Let>(); }

  static std::vector<bool> reached(size_t from, const std::vector<std::vector<size_t>>& edges) {
    std::vector<bool> seen(edges.size(), false);
    std::vector<size_t> open = edges[from];
    while (!open.empty()) {
      const size_t k = open.back();
      open.pop_back();
      if (seen[k]) continue;
      seen[k] = true;
      open.insert(open.end(), edges[k].begin(), edges[k].end());
    }
    return seen;
  }

  // What the state needs and what needs it.
  void add_scan(const State& state) {
    const auto own = place_.find(state.name);
    if (own == place_.end() || scan_of_[own->second] >= 0) return;
    const auto needed = reached(own->second, reads_);
    const auto needing = reached(own->second, read_by_);
    EquationGroup scan;
    scan.direction = state.direction;
    for (size_t k = 0; k < equations_.size(); ++k) {
      if (k != own->second && !(needed[k] && needing[k])) continue;
      scan_of_[k] = static_cast<int>(scans_.size());
      scan.equations.push_back(equations_[k]);
    }
    scan.along.assign(scan.equations.size(), SIZE_MAX);
    find_axes(scan);
    scans_.push_back(std::move(scan));
  }

  // States say along which of their axes; an equation that reads one in a place that an axis of it
  // runs along has that axis.
  void find_axes(EquationGroup& scan) const {
    std::unordered_map<ir::Name, size_t> known;
    for (const State* s : states_) known.emplace(s->name, s->along());
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (size_t m = 0; m < scan.equations.size(); ++m) {
        if (scan.along[m] != SIZE_MAX) continue;
        const Let& let = scan.equations[m]->as<Let>();
        const auto own = known.find(let.name);
        scan.along[m] = own != known.end() ? own->second : axis_of(let, known);
        if (scan.along[m] == SIZE_MAX) continue;
        known.emplace(let.name, scan.along[m]);
        is_changed = true;
      }
    }
    for (size_t& a : scan.along) {
      NAUT_CHECK(a != SIZE_MAX, "an equation of a scan has no axis along it");
    }
  }

  size_t axis_of(const Let& let, const std::unordered_map<ir::Name, size_t>& known) const {
    size_t found = SIZE_MAX;
    expr::for_each(let.body, [&](Expr e) {
      const auto it = e.op() == expr::Op::Read ? known.find(e.name()) : known.end();
      if (it == known.end() || !place_.contains(e.name())) return;
      if (scan_of_[place_.at(e.name())] != static_cast<int>(scans_.size())) return;
      for (Expr v : expr::free_vars(e[it->second])) {
        for (size_t a = 0; a < let.axes.size(); ++a) {
          if (let.axes[a].name == v.name()) found = a;
        }
      }
    });
    return found;
  }

  void compute(size_t k) {
    if (done_[k]) return;
    if (scan_of_[k] < 0) {
      done_[k] = true;
      for (size_t r : reads_[k]) compute(r);
      out_.push_back({{equations_[k]}, {}});
      return;
    }
    const int scan = scan_of_[k];
    for (size_t m = 0; m < equations_.size(); ++m) {
      if (scan_of_[m] == scan) done_[m] = true;
    }
    for (size_t m = 0; m < equations_.size(); ++m) {
      if (scan_of_[m] != scan) continue;
      for (size_t r : reads_[m]) compute(r);
    }
    out_.push_back(scans_[static_cast<size_t>(scan)]);
  }

  std::vector<const State*> states_;
  std::vector<const ir::Op*> equations_;
  std::unordered_map<ir::Name, size_t> place_;
  std::vector<std::vector<size_t>> reads_;
  std::vector<std::vector<size_t>> read_by_;
  std::vector<int> scan_of_;  // of each equation; -1: none
  std::vector<EquationGroup> scans_;
  std::vector<bool> done_;
  std::vector<EquationGroup> out_;
};

}  // namespace

bool has_scans(const ir::Program& program) {
  return std::any_of(program.body.begin(), program.body.end(),
                     [](const ir::Op& op) { return op.is<State>(); });
}

std::vector<EquationGroup> computing_order(const ir::Program& program) {
  return Ordering(program).run();
}

std::unordered_set<ir::Name> scanned_tensors(const ir::Program& program) {
  std::unordered_set<ir::Name> out;
  if (!has_scans(program)) return out;
  for (const EquationGroup& g : computing_order(program)) {
    if (!g.is_scan()) continue;
    for (const ir::Op* op : g.equations) out.insert(op->as<Let>().name);
  }
  return out;
}

}  // namespace nautilus::spec
