// SPDX-License-Identifier: Apache-2.0
#include "matile/outline.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

class Outliner {
 public:
  Outliner(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), simplifier_(pool), facts_(ir::facts_of(program, pool)) {
    for (const Op& op : program.body)
      if (const auto* dim = op.get<ir::Dim>()) sizes_.emplace(dim->name.str());
    for (const Op& op : program.body)
      if (const auto* machine = op.get<Machine>()) sizes_.emplace(machine->name.str());
  }

  std::string run(std::string_view kernel) {
    ir::Program out{program_.level, "outline", {}};
    Scope scope;
    for (const Op& op : program_.body) {
      if (const auto* let = op.get<Let>()) {
        define(let->name, written_out(let->value, scope), scope);
      } else if (const auto* map = op.get<Map>()) {
        maps_.emplace(map->name.str(), *map);
      } else if (const auto* k = op.get<Kernel>()) {
        if (k->form != KernelForm::Final || (!kernel.empty() && k->name.str() != kernel)) continue;
        Scope inner = scope;
        declare(*k, inner);
        const ir::Block maps = maps_of(*k, inner);
        out.body.insert(out.body.end(), maps.begin(), maps.end());
        out.body.push_back(renamed(op, inner, 0));
      } else if (const auto* launch = op.get<Launch>()) {
        if (!kernel.empty() && launch->kernel.str() != kernel) continue;
        Scope inner = scope;
        rename(launch->kernel, "kernel", inner);
        out.body.push_back(renamed(op, inner, 0));
      }
    }
    return ir::print(out);
  }

 private:
  // The replacement of a name: another name in fields and reads, an expression for scalars.
  struct Scope {
    Renaming names;
    expr::Substitution scalars;
  };

  void define(ir::Name name, Expr value, Scope& scope) {
    for (const expr::DType dtype : {expr::DType::I64, expr::DType::F32, expr::DType::Bool})
      scope.scalars.insert_or_assign(pool_.var(name, dtype), value);
  }

  void rename_scalar(ir::Name name, const std::string& to, Scope& scope) {
    rename(name, to, scope);
    for (const expr::DType dtype : {expr::DType::I64, expr::DType::Bool})
      scope.scalars.insert_or_assign(pool_.var(name, dtype), pool_.var(pool_.name(to), dtype));
  }

  void rename(ir::Name name, const std::string& to, Scope& scope) {
    scope.names.insert_or_assign(std::string(name.str()), pool_.name(to));
  }

  Expr written_out(Expr e, const Scope& scope) {
    expr::Substitution all = scope.scalars;
    int bound = 0;
    expr::for_each(e, [&](Expr x) {
      if (x.op() != expr::Op::Reduce) return;
      for (size_t k = 0; k < x.axis_count(); ++k) {
        const ir::Name name = pool_.name(fmt::format("r{}", ++bound));
        all.insert_or_assign(x.axis(k), pool_.var(name, x.axis(k).dtype()));
      }
    });
    const Expr named = expr::rebuild(pool_, e, [&](Expr x) {
      if (x.op() != expr::Op::Read) return x;
      const auto it = scope.names.find(x.name().str());
      return it == scope.names.end() ? x : pool_.read(it->second, x.dtype(), x.args());
    });
    const Expr out = expr::substitute(pool_, named, all);
    // Proofs about the numbers of tiles, written out, would take minutes.
    const Expr simple = simplifier_.simplify(out, is_of_sizes(out) ? &facts_ : nullptr);
    return abbreviated(simple);
  }

  // In an index, every term that depends only on the number of the tile and on sizes is written as
  // `at`; the rest is in canonical form.
  Expr abbreviated(Expr e) {
    if (e.args().empty()) return e;
    if (e.dtype() == expr::DType::I64) {
      if (is_of_tile(e)) return at();
      if (const auto poly = expr::Poly::of(e)) {
        expr::Poly own;  // terms of sizes and the tile
        expr::Poly rest;
        for (const auto& [monomial, factor] : poly->terms()) {
          const bool is_own = std::all_of(monomial.begin(), monomial.end(),
                                          [&](Expr x) { return is_of_sizes(x) || is_of_tile(x); });
          (is_own ? own : rest).add(monomial, factor);
        }
        const Expr place = abbreviated_place(own);
        e = pool_.binary(expr::Op::Add, place, expr::to_expr(pool_, rest));
        e = expr::canonical_index(pool_, e);
      }
    }
    std::vector<Expr> args(e.args().begin(), e.args().end());
    for (Expr& a : args) a = abbreviated(a);
    return pool_.with_args(e, args);
  }

  Expr abbreviated_place(const expr::Poly& own) {
    const Expr e = expr::to_expr(pool_, own);
    return is_of_tile(e) ? at() : e;
  }

  Expr at() { return pool_.index("at"); }

  bool is_of_tile(Expr e) const {
    bool has_tile = false;
    for (Expr v : expr::free_vars(e)) {
      const bool is_tile = v.name().str() == "t" || v == pool_.index("at");
      has_tile |= is_tile;
      if (!is_tile && !sizes_.contains(v.name().str())) return false;
    }
    return has_tile;
  }

  bool is_of_sizes(Expr e) const {
    const auto vars = expr::free_vars(e);
    return std::all_of(vars.begin(), vars.end(),
                       [&](Expr v) { return sizes_.contains(v.name().str()); });
  }

  void declare(const Kernel& kernel, Scope& scope) {
    rename(kernel.name, "kernel", scope);
    if (kernel.rank) rename_scalar(kernel.rank, "rank", scope);
    int rings = 0;
    int slot_tiles = 0;
    int turns = 0;
    int stages = 0;
    int roles = 0;
    ir::for_each_op(kernel.body, [&](const Op& op) {
      if (const auto* x = op.get<Ring>()) rename(x->name, fmt::format("ring{}", ++rings), scope);
      if (const auto* x = op.get<SlotTile>())
        rename(x->name, fmt::format("slot_tile{}", ++slot_tiles), scope);
      if (const auto* x = op.get<Turn>()) rename(x->name, fmt::format("turn{}", ++turns), scope);
      if (const auto* x = op.get<Stage>()) rename(x->name, fmt::format("stage{}", ++stages), scope);
      if (const auto* x = op.get<Role>()) rename(x->name, fmt::format("role{}", ++roles), scope);
      if (const auto* x = op.get<Tiles>()) {
        rename(x->name, "tiles", scope);
        if (x->counter) rename(x->counter, "counter", scope);
      }
      if (const auto* x = op.get<Tile>()) rename(x->name, tile_name(*x), scope);
    });
  }

  std::string tile_name(const Tile& tile) const {
    std::string text(words(tile.spread)[static_cast<size_t>(tile.spread)]);
    if (tile.by) text += fmt::format("{}", *tile.by);
    text += fmt::format("_{}", expr::name(tile.type.dtype));
    for (Expr d : tile.type.dims) text += fmt::format("_{}", d.integer());
    return text;
  }

  // The maps that a kernel uses, in order of use.
  ir::Block maps_of(const Kernel& kernel, Scope& scope) {
    ir::Block out;
    std::map<std::string, int> of_tensor;
    ir::for_each_op(kernel.body, [&](const Op& op) {
      ir::Name name;
      if (const auto* copy = op.get<Copy>()) name = copy->map;
      if (const auto* store = op.get<Store>()) name = store->map;
      const auto it = name ? maps_.find(name.str()) : maps_.end();
      if (it == maps_.end() || scope.names.contains(name.str())) return;
      const std::string tensor(it->second.value.name().str());
      const int number = ++of_tensor[tensor];
      rename(name, number > 1 ? fmt::format("{}_map{}", tensor, number) : tensor + "_map", scope);
      out.push_back(renamed(ir::make(it->second), scope, 0));
    });
    return out;
  }

  // The op with everything inside; `depth`: how many loops are around it.
  Op renamed(const Op& op, Scope scope, int depth) {
    const ir::Block* block = block_of(op);
    if (const auto* each = op.get<Each>()) rename_scalar(each->var, "t", scope);
    if (const auto* role = op.get<Role>(); role && role->index)
      rename_scalar(role->index, "w", scope);
    if (const auto* fill = op.get<Fill>(); fill && fill->group)
      rename_scalar(fill->group, "g", scope);
    const Scope outside = scope;
    if (const auto* loop = op.get<Loop>())
      rename_scalar(loop->var, depth ? fmt::format("i{}", depth + 1) : "i", scope);
    if (op.is<Loop>() || op.is<Unroll>()) ++depth;
    const Op header = block ? with_block(op, {}) : op;
    auto data = ir::copy_data(header);
    int axes = 0;
    for (const ir::Field& field : header.info().fields) {
      if (field.kind != ir::FieldKind::AxisList) continue;
      for (ir::Axis& axis : ir::field_value<ir::Axes>(data.get(), field)) {
        const std::string to = fmt::format("{}{}", op.is<Unroll>() ? "u" : "a", ++axes);
        rename_scalar(axis.name, to, scope);
        axis.name = pool_.name(to);
      }
    }
    const Op with_axes(header.info(), header.span(), std::move(data));
    // The bounds of a loop do not see its variable.
    const Op mapped = ir::map_exprs(
        with_axes, [&](Expr e) { return written_out(e, op.is<Loop>() ? outside : scope); });
    if (const auto* vote = op.get<Vote>()) rename(vote->name, "vote", scope);
    if (const auto* ticket = op.get<Ticket>()) rename(ticket->name, "ticket", scope);
    const Op out = rename_fields(mapped, scope.names);
    return block ? with_block(out, inside(*block, scope, depth)) : out;
  }

  ir::Block inside(const ir::Block& block, Scope scope, int depth) {
    ir::Block out;
    for (const Op& op : block) {
      if (op.is<Tile>()) continue;
      if (const auto* let = op.get<Let>()) {
        define(let->name, written_out(let->value, scope), scope);
        continue;
      }
      out.push_back(renamed(op, scope, depth));
      if (const auto* vote = op.get<Vote>()) rename_scalar(vote->name, "vote", scope);
      if (const auto* ticket = op.get<Ticket>()) rename_scalar(ticket->name, "ticket", scope);
    }
    return out;
  }

  // Names in the fields of an op without its block.
  static Op rename_fields(const Op& op, const Renaming& names) {
    auto data = ir::copy_data(op);
    for (const ir::Field& f : op.info().fields) {
      if (f.kind != ir::FieldKind::Name) continue;
      auto& name = ir::field_value<ir::Name>(data.get(), f);
      if (!name) continue;
      if (const auto it = names.find(name.str()); it != names.end()) name = it->second;
    }
    return Op(op.info(), op.span(), std::move(data));
  }

  const ir::Program& program_;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  Names sizes_;
  std::map<std::string, Map, std::less<>> maps_;
};

}  // namespace

std::string outline(const ir::Program& program, expr::ExprPool& pool, std::string_view kernel) {
  return Outliner(program, pool).run(kernel);
}

}  // namespace nautilus::matile
