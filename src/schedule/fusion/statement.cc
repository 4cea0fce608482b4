// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/statement.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "schedule/fusion/split_axes.h"

namespace nautilus::schedule {
namespace {

using scalar::For;
using scalar::Init;
using scalar::LoopKind;
using scalar::Store;
using scalar::Update;

std::vector<Expr> reads_of(Expr e) {
  std::vector<Expr> out;
  expr::for_each(e, [&](Expr x) {
    if (x.op() == expr::Op::Read) out.push_back(x);
  });
  return out;
}

class Collector {
 public:
  Collector(const ir::Program& program, expr::ExprPool& pool) : pool_(pool) {
    for (const ir::Op& op : program.body) {
      if (const auto* b = op.get<scalar::Buffer>()) buffers_.emplace(b->name.str(), *b);
    }
    ir::for_each_op(program.body, [&](const ir::Op& op) {
      if (const auto* a = op.get<scalar::UpdateArg>())
        owner_of_best_.emplace(a->best.str(), a->target);
    });
    for (size_t k = 0; k < program.body.size(); ++k) top(program.body[k], k);
    for (Statement& s : out_.statements) {
      for (size_t k : s.ops) {
        ir::for_each_expr(program.body[k], [&](Expr e) {
          for (ir::Name n : expr::tensors_read(e)) {
            const auto it = out_.writer.find(n.str());
            if (it == out_.writer.end() || it->second == s.id) continue;
            if (std::find(s.reads_from.begin(), s.reads_from.end(), it->second) ==
                s.reads_from.end())
              s.reads_from.push_back(it->second);
          }
        });
      }
    }
    for (const auto& [name, id] : out_.writer) out_.writer_of.emplace(pool.name(name), id);
    for (Statement& s : out_.statements) {
      if (s.value) s.reads = reads_of(s.value);
      if (s.init) s.init_reads = reads_of(s.init);
      for (int r : s.reads_from) out_.statements[static_cast<size_t>(r)].read_by.push_back(s.id);
    }
    for (Statement& s : out_.statements) {
      if (split_axes(s, out_, pool_)) s.reads = reads_of(s.value);
    }
  }

  StatementList take() { return std::move(out_); }

 private:
  void top(const ir::Op& op, size_t position) {
    if (const auto* loop = op.get<For>(); loop && loop->kind == LoopKind::Map) {
      ir::Axes axes = loop->axes;
      if (nest(loop->body, axes, position)) return;
    } else if (op.is<Store>()) {
      if (nest({op}, {}, position)) return;
    } else if (const auto* init = op.get<Init>()) {
      // A reduction to a single element: its loop follows.
      Statement& s = statement(init->target, position);
      s.init = init->value;
      s.is_opaque = true;
      return;
    } else if (const auto* steps = op.get<For>(); steps && steps->kind == LoopKind::Reduce) {
      const auto* update = steps->body.size() == 1 ? steps->body[0].get<Update>() : nullptr;
      if (update) {
        Statement& s = statement(update->target, position);
        s.reduce = steps->axes;
        s.reducer = update->reducer;
        s.value = update->value;
        s.is_opaque = !s.init || !update->indices.empty();
        return;
      }
    }
    opaque(op, position);
  }

  bool nest(const ir::Block& body, const ir::Axes& axes, size_t position) {
    if (body.size() == 1) {
      const auto* store = body[0].get<Store>();
      if (!store || !is_plain(store->indices, axes)) return false;
      Statement& s = statement(store->target, position);
      s.axes = axes;
      s.value = store->value;
      return true;
    }
    if (body.size() != 2) return false;
    const auto* init = body[0].get<Init>();
    const auto* loop = body[1].get<For>();
    if (!init || !loop || loop->kind != LoopKind::Reduce || loop->body.size() != 1) return false;
    const auto* update = loop->body[0].get<Update>();
    if (!update || update->target != init->target || !is_plain(init->indices, axes) ||
        !is_plain(update->indices, axes))
      return false;
    Statement& s = statement(init->target, position);
    s.axes = axes;
    s.reduce = loop->axes;
    s.reducer = update->reducer;
    s.init = init->value;
    s.value = update->value;
    return true;
  }

  bool is_plain(const ir::Exprs& indices, const ir::Axes& axes) {
    if (indices.size() != axes.size()) return false;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (indices[k] != pool_.index(axes[k].name)) return false;
    }
    return true;
  }

  void opaque(const ir::Op& op, size_t position) {
    int first = -1;
    ir::for_each_op({op}, [&](const ir::Op& o) {
      ir::Name target;
      if (const auto* x = o.get<Store>()) target = x->target;
      if (const auto* x = o.get<Init>()) target = x->target;
      if (const auto* x = o.get<scalar::UpdateArg>()) target = x->best;
      if (!target) return;
      if (first < 0) {
        Statement& s = statement(target, position);
        s.is_opaque = true;
        first = s.id;
      } else {
        out_.writer.emplace(target.str(), first);
        // It is needed if any of its results is.
        if (buffers_.at(std::string(target.str())).role == scalar::Role::Output)
          out_.statements[static_cast<size_t>(first)].role = scalar::Role::Output;
      }
    });
  }

  // The best value of an argmax belongs to the statement that gives its position.
  Statement& statement(ir::Name written, size_t position) {
    const auto owner = owner_of_best_.find(written.str());
    const ir::Name target = owner == owner_of_best_.end() ? written : owner->second;
    const auto it = out_.writer.find(target.str());
    if (it != out_.writer.end()) {
      Statement& s = out_.statements[static_cast<size_t>(it->second)];
      s.ops.push_back(position);
      return s;
    }
    const int id = static_cast<int>(out_.statements.size());
    out_.writer.emplace(target.str(), id);
    const scalar::Buffer& b = buffers_.at(std::string(target.str()));
    Statement s;
    s.id = id;
    s.target = target;
    s.dtype = b.type.dtype;
    s.role = b.role;
    s.ops.push_back(position);
    out_.statements.push_back(std::move(s));
    return out_.statements.back();
  }

  expr::ExprPool& pool_;
  std::map<std::string, scalar::Buffer> buffers_;
  std::map<std::string, ir::Name, std::less<>> owner_of_best_;
  StatementList out_;
};

}  // namespace

StatementList statements_of(const ir::Program& program, expr::ExprPool& pool) {
  return Collector(program, pool).take();
}

}  // namespace nautilus::schedule
