// SPDX-License-Identifier: Apache-2.0
#include "scalar/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "expr/print.h"
#include "expr/walk.h"
#include "ir/walk.h"

namespace nautilus::scalar {
namespace {

class GraphBuilder {
 public:
  Graph run(const ir::Program& program) {
    graph_.name = program.name;
    for (const ir::Op& op : program.body) {
      if (const auto* b = op.get<Buffer>()) roles_.emplace(b->name.str(), b->role);
    }
    ir::for_each_op(program.body, [&](const ir::Op& op) {
      if (const auto* a = op.get<UpdateArg>()) best_of_.emplace(a->best.str(), a->target);
    });
    block(program.body);
    for (const Statement& s : graph_.statements) {
      for (const GraphRead& r : s.reads) {
        if (r.producer < 0) continue;
        auto& consumers = graph_.statements[static_cast<size_t>(r.producer)].consumers;
        if (consumers.empty() || consumers.back() != s.id) consumers.push_back(s.id);
      }
    }
    return std::move(graph_);
  }

 private:
  void block(const ir::Block& ops) {
    for (const ir::Op& op : ops) {
      if (const auto* loop = op.get<For>()) {
        for (const ir::Axis& a : loop->axes) loops_.push_back({a.name, a.extent, loop->kind});
        block(loop->body);
        loops_.resize(loops_.size() - loop->axes.size());
      } else if (const auto* steps = op.get<Loop>()) {
        block(steps->body);
      } else if (const auto* branch = op.get<If>()) {
        block(branch->body);
      } else if (const auto* s = op.get<Store>()) {
        add(s->target, {s->value}, s->indices);
      } else if (const auto* i = op.get<Init>()) {
        add(i->target, {i->value}, i->indices);
      } else if (const auto* u = op.get<Update>()) {
        Statement& statement = add(u->target, {u->value}, u->indices);
        statement.is_reduction = true;
        statement.reducer = u->reducer;
      } else if (const auto* a = op.get<UpdateArg>()) {
        Statement& statement = add(a->target, {a->value, a->position}, a->indices);
        statement.is_reduction = true;
        statement.reducer = a->reducer;
      }
    }
  }

  // The best value of an argmax belongs to the statement that defines its position.
  Statement& add(ir::Name written, std::vector<ir::Expr> values, const ir::Exprs& indices) {
    const auto owner = best_of_.find(std::string(written.str()));
    const ir::Name target = owner == best_of_.end() ? written : owner->second;
    const std::string name(target.str());
    const auto [it, is_new] = writer_.emplace(name, static_cast<int>(graph_.statements.size()));
    if (is_new)
      graph_.statements.push_back({it->second, target, roles_[name], {}, false, {}, {}, {}});
    Statement& s = graph_.statements[static_cast<size_t>(it->second)];
    if (loops_.size() > s.loops.size()) s.loops = loops_;
    values.insert(values.end(), indices.begin(), indices.end());
    for (ir::Expr v : values) {
      expr::for_each(v, [&](ir::Expr e) {
        if (e.op() != expr::Op::Read || e.name() == target) return;
        const bool is_known = std::any_of(s.reads.begin(), s.reads.end(),
                                          [&](const GraphRead& r) { return r.access == e; });
        if (is_known) return;
        const auto producer = writer_.find(std::string(e.name().str()));
        s.reads.push_back({e, producer == writer_.end() ? -1 : producer->second});
      });
    }
    return s;
  }

  Graph graph_;
  std::map<std::string, Role> roles_;
  std::map<std::string, int> writer_;
  std::map<std::string, ir::Name> best_of_;
  std::vector<GraphLoop> loops_;
};

}  // namespace

Graph block_graph(const ir::Program& program) { return GraphBuilder().run(program); }

std::string print(const Graph& graph) {
  std::string out = fmt::format("graph @{}\n", graph.name);
  for (const Statement& s : graph.statements) {
    std::string loops;
    const GraphLoop* previous = nullptr;
    for (const GraphLoop& l : s.loops) {
      const bool is_same = previous && previous->kind == l.kind;
      loops +=
          fmt::format("{}{}{} < {}", previous ? ", " : "",
                      is_same ? "" : fmt::format("{} ", words(l.kind)[static_cast<size_t>(l.kind)]),
                      l.name.str(), expr::to_string(l.extent));
      previous = &l;
    }
    out += fmt::format("  s{} {} : {}{}{}\n", s.id, s.target.str(), loops.empty() ? "once" : loops,
                       s.is_reduction ? fmt::format(" {}", name(s.reducer)) : "",
                       s.role == Role::Output ? " -> output" : "");
    for (const GraphRead& r : s.reads) {
      out += fmt::format("    reads {} from {}\n", expr::to_string(r.access),
                         r.producer < 0 ? "input" : fmt::format("s{}", r.producer));
    }
  }
  return out;
}

}  // namespace nautilus::scalar
