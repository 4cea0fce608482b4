// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/merge_equal_tiles.h"

#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "ir/print.h"
#include "ir/walk.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using ir::Block;
using ir::Name;
using ir::Op;

class Merger {
 public:
  Merger(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
    // A tensor that this program writes may differ from one load to the next.
    ir::for_each_op(program.body, [&](const Op& op) {
      if (const auto* s = op.get<Store>()) written_.insert(s->target);
    });
  }

  Block block(const Block& ops) {
    const auto known = known_;
    const auto merged = merged_;
    Block out;
    for (const Op& original : ops) {
      // Carries use their next, which is defined after them.
      const Op op = original.is<For>() ? original : rename(original, merged_, pool_);
      if (const Block* body = body_of(op)) {
        const Op head = renamed_head(op);
        out.push_back(with_body(head, block(*body)));
        continue;
      }
      const Name name = defined(op);
      if (!name || op.is<Carry>() || reads_written(op)) {
        out.push_back(op);
        continue;
      }
      const auto [it, is_new] = known_.emplace(key(op), name);
      if (is_new) {
        out.push_back(op);
      } else {
        merged_.insert_or_assign(name, it->second);
      }
    }
    for (Op& op : out) {
      if (op.is<Carry>()) op = rename(op, merged_, pool_);
    }
    known_ = known;
    merged_ = merged;
    return out;
  }

 private:
  Op renamed_head(const Op& op) {
    const auto* loop = op.get<For>();
    if (!loop) return op;
    For head = *loop;
    head.from = rename(loop->from, merged_, pool_);
    head.to = rename(loop->to, merged_, pool_);
    return ir::make(std::move(head), op.span());
  }

  bool reads_written(const Op& op) const {
    bool is_written = false;
    for_each_use(op, [&](Name n) { is_written |= written_.contains(n); });
    return is_written;
  }

  // The op as text with its own name left out and its axes numbered.
  std::string key(const Op& op) {
    expr::Substitution map;
    auto data = ir::copy_data(op);
    for (const ir::Field& f : op.info().fields) {
      if (f.name == "name") ir::field_value<Name>(data.get(), f) = pool_.name("$");
      if (f.kind != ir::FieldKind::AxisList) continue;
      for (ir::Axis& a : ir::field_value<ir::Axes>(data.get(), f)) number(a.name, map);
    }
    if (const auto* r = op.get<Reduce>()) {
      for (size_t k = 0; k < r->value.axis_count(); ++k) {
        Name name = r->value.axis(k).name();
        number(name, map);
      }
    }
    return ir::print(substitute(Op(op.info(), op.span(), std::move(data)), map, pool_));
  }

  void number(Name& name, expr::Substitution& map) {
    const Name to = pool_.name(fmt::format("${}", map.size()));
    map.emplace(pool_.index(name), pool_.index(to));
    name = to;
  }

  expr::ExprPool& pool_;
  std::map<std::string, Name> known_;
  Renaming merged_;
  std::unordered_set<Name> written_;
};

}  // namespace

std::optional<ir::Program> merge_equal_tiles(const ir::Program& program, ir::PassContext& context) {
  return ir::Program{program.level, program.name,
                     Merger(program, context.pool).block(program.body)};
}

}  // namespace nautilus::vrtile
