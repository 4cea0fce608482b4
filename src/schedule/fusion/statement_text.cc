// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/statement_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"
#include "expr/walk.h"

namespace nautilus::schedule {
namespace {

struct NamedLoop {
  ir::Axis axis;
  scalar::LoopKind kind;
};

// The text of one statement's ops, in order, also of those that are opaque to scheduling.
class Shown {
 public:
  Shown(const ir::Program& program, const Statement& s) : target_(s.target) {
    for (const size_t k : s.ops) visit(program.body[k]);
  }

  std::vector<NamedLoop> loops;  // outermost first, of the innermost assignment
  std::vector<Expr> reads;       // without repetition, and without the statement's own
  std::optional<expr::Reducer> reducer;

 private:
  void visit(const ir::Op& op) {
    if (const auto* loop = op.get<scalar::For>()) {
      for (const ir::Axis& a : loop->axes) around_.push_back({a, loop->kind});
      for (const ir::Op& inner : loop->body) visit(inner);
      around_.resize(around_.size() - loop->axes.size());
    } else if (const auto* branch = op.get<scalar::If>()) {
      for (const ir::Op& inner : branch->body) visit(inner);
    } else if (const auto* s = op.get<scalar::Store>()) {
      add({s->value}, s->indices);
    } else if (const auto* i = op.get<scalar::Init>()) {
      add({i->value}, i->indices);
    } else if (const auto* u = op.get<scalar::Update>()) {
      add({u->value}, u->indices);
      reducer = u->reducer;
    } else if (const auto* a = op.get<scalar::UpdateArg>()) {
      add({a->value, a->position}, a->indices);
      reducer = a->reducer;
    }
  }

  void add(std::vector<Expr> values, const ir::Exprs& indices) {
    if (around_.size() > loops.size()) loops = around_;
    values.insert(values.end(), indices.begin(), indices.end());
    for (Expr v : values) {
      expr::for_each(v, [&](Expr e) {
        if (e.op() != expr::Op::Read || e.name() == target_) return;
        if (std::find(reads.begin(), reads.end(), e) == reads.end()) reads.push_back(e);
      });
    }
  }

  ir::Name target_;
  std::vector<NamedLoop> around_;
};

std::string loops_text(const std::vector<NamedLoop>& loops) {
  std::string out;
  const NamedLoop* previous = nullptr;
  for (const NamedLoop& l : loops) {
    const bool is_same = previous && previous->kind == l.kind;
    const auto kind = words(l.kind)[static_cast<size_t>(l.kind)];
    out += fmt::format("{}{}{} < {}", previous ? ", " : "", is_same ? "" : fmt::format("{} ", kind),
                       l.axis.name.str(), expr::to_string(l.axis.extent));
    previous = &l;
  }
  return out.empty() ? "once" : out;
}

}  // namespace

std::string block_graph(const ir::Program& program, expr::ExprPool& pool) {
  const StatementList list = statements_of(program, pool);
  std::string out = fmt::format("graph @{}\n", program.name);
  for (const Statement& s : list.statements) {
    const Shown shown(program, s);
    out += fmt::format("  s{} {} : {}{}{}\n", s.id, s.target.str(), loops_text(shown.loops),
                       shown.reducer ? fmt::format(" {}", expr::name(*shown.reducer)) : "",
                       s.role == scalar::Role::Output ? " -> output" : "");
    for (Expr read : shown.reads) {
      const Statement* producer = list.producer(read.name());
      out += fmt::format("    reads {} from {}\n", expr::to_string(read),
                         producer ? fmt::format("s{}", producer->id) : "input");
    }
  }
  return out;
}

}  // namespace nautilus::schedule
