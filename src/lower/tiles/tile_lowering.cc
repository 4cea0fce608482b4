// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/target_of.h"
#include "ir/walk.h"
#include "lower/tiles/used_names.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using Kind = TileValue::Kind;

NestLowering::NestLowering(const ir::Program& program, const Op& nest, std::string_view name,
                           FreshNames& names, ir::PassContext& context, OperandPath usual_path,
                           std::string* why, const CtaPacking& packing)
    : program_(program),
      target_(ir::target_of(program)),
      nest_(nest),
      kernel_name_(name),
      names_(names),
      pool_(context.pool),
      why_(why),
      tiles_(names, context.pool),
      simplifier_(context.pool),
      packing_(packing),
      usual_path_(usual_path),
      choices_(context) {
  for (const Op& op : program.body) {
    if (const auto* t = op.get<vrtile::Tensor>()) tensors_.emplace(t->name.str(), t->type);
    if (const auto* f = op.get<ir::Fact>()) expr::assume_divisor(f->condition, divisors_);
  }
}

std::optional<LoweredKernel> NestLowering::run() {
  const auto* grid = nest_.get<vrtile::Par>();
  if (!grid || grid->kind != vrtile::ParKind::Grid) return fail("the nest has no grid");
  ir::Block own_body = grid->body;
  choices_.begin(own_body);
  lines_ = decision::lines(own_body);
  own_body = decision::with_lines(std::move(own_body), {});
  const ir::Block* body = &own_body;
  // Scalars between the grid and the groups belong to every group.
  std::vector<Op> lets;
  const vrtile::Par* groups = nullptr;
  for (const Op& op : *body) {
    if (op.is<vrtile::Let>()) {
      lets.push_back(op);
    } else if (const auto* p = op.get<vrtile::Par>();
               p && p->kind == vrtile::ParKind::Group && !groups && &op == &body->back()) {
      groups = p;
    } else if (op.is<vrtile::Par>()) {
      return fail("groups stand directly in the grid, alone");
    }
  }
  if (groups && groups->axes.size() != 1) return fail("one axis numbers the groups");
  const ir::Block& work = groups ? groups->body : *body;
  if (!choose_groups(*grid, groups, work)) return std::nullopt;

  ir::Axes axes;
  for (const ir::Axis& a : grid->axes) {
    if (expr::depends_on(a.extent, pool_.index(a.name))) return fail("a grid axis bounds itself");
    axes.push_back({tiles_.define_scalar(a.name, DType::I64), tiles_.scalar(a.extent)});
  }
  tile_axes_ = axes;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Expr axis = pool_.index(grid->axes[k].name);
    bool is_used = false;
    for (const Op& op : *body)
      ir::for_each_expr(op, [&](Expr e) { is_used |= expr::depends_on(e, axis); });
    if (is_used) used_axes_.push_back(axes[k]);
  }
  if (!choose_grid(axes, grid_facts(grid->axes, *body))) return std::nullopt;
  group_index_ = groups ? tiles_.define_scalar(groups->axes[0].name, DType::I64) : names_.make("w");
  own_group_ = groups ? pool_.index(group_index_) : Expr();
  axis_[0] = pool_.index(names_.make("i"));
  axis_[1] = pool_.index(names_.make("j"));
  role_name_ = names_.make("compute");

  ir::Block out = grid_.decode;
  for (const Op& let : lets) scalar_let(let, out);
  if (!groups) {
    ir::Block rest;
    for (const Op& op : work) {
      if (!op.is<vrtile::Let>()) rest.push_back(op);
    }
    if (!block(rest, out, false)) return std::nullopt;
  } else if (!block(work, out, false)) {
    return std::nullopt;
  }
  if (!has_dot_) return fail("it has no matrix product");
  return assemble(std::move(out));
}

std::nullopt_t NestLowering::fail(std::string reason) {
  if (why_->empty()) *why_ = std::move(reason);
  return std::nullopt;
}

bool NestLowering::refuse(std::string reason) {
  fail(std::move(reason));
  return false;
}

bool NestLowering::has_only_product_loops(const ir::Block& block) {
  bool found = false;
  bool ok = true;
  for (const Op& op : block) {
    const auto* loop = op.get<vrtile::For>();
    if (!loop) continue;
    found = true;
    for (const Op& inner : loop->body)
      ok &= inner.is<vrtile::Carry>() || inner.is<vrtile::Load>() || inner.is<vrtile::Dot>() ||
            inner.is<vrtile::Let>();
  }
  return found && ok;
}

bool NestLowering::has_equal_tiles(const vrtile::Par& grid, const ir::Block& work) const {
  std::vector<Expr> of_tile;
  for (const ir::Axis& a : grid.axes) of_tile.push_back(pool_.index(a.name));
  const auto is_of_tile = [&](Expr e) {
    return std::any_of(of_tile.begin(), of_tile.end(),
                       [&](Expr v) { return expr::depends_on(e, v); });
  };
  bool ok = true;
  const auto look_at = [&](const ir::Block& block) {
    for (const Op& op : block) {
      if (const auto* let = op.get<vrtile::Let>(); let && is_of_tile(let->value))
        of_tile.push_back(pool_.var(let->name, let->value.dtype()));
      const auto* loop = op.get<vrtile::For>();
      ok &= !loop || (!is_of_tile(loop->from) && !is_of_tile(loop->to));
    }
  };
  look_at(grid.body);
  if (&work != &grid.body) look_at(work);
  return ok;
}

const TileValue& NestLowering::new_tile(ir::Name stem, const ir::TensorType& type) {
  TileValue value;
  value.name = new_register(stem.str(), type);
  value.type = type;
  tiles_.define(stem, value);
  return *tiles_.find(stem);
}

ir::Name NestLowering::new_register(std::string_view stem, const ir::TensorType& type) {
  const ir::Name name = names_.make(stem);
  declared_.push_back(ir::make(matile::Tile{name, type, matile::Spread::Unset, {}}));
  return name;
}

ir::Axes NestLowering::own_axes(const ir::TensorType& type) const {
  ir::Axes axes;
  for (size_t k = 0; k < type.dims.size(); ++k) axes.push_back({axis_[k].name(), type.dims[k]});
  return axes;
}

bool NestLowering::is_register_type(const ir::TensorType& type) {
  if (type.dims.size() == 2) return type.dtype == DType::F32 || is_half(type.dtype);
  return type.dims.size() == 1 && type.dtype == DType::F32;
}

expr::Substitution NestLowering::axes_to_own(const ir::Axes& axes) const {
  expr::Substitution out;
  for (size_t k = 0; k < axes.size(); ++k) out.emplace(pool_.index(axes[k].name), axis_[k]);
  return out;
}

void NestLowering::copy(ir::Name to, const ir::TensorType& type, ir::Name from,
                        ir::Block& out) const {
  const std::vector<Expr> own(axis_, axis_ + type.dims.size());
  out.push_back(ir::make(matile::Set{to, own_axes(type), pool_.read(from, type.dtype, own)}));
}

bool NestLowering::block(const ir::Block& ops, ir::Block& out, bool is_loop) {
  frames_.push_back({&ops, 0});
  bool ok = true;
  for (size_t k = 0; ok && k < ops.size(); ++k) {
    frames_.back().at = k;
    ok = visit(ops, k, out, is_loop);
  }
  frames_.pop_back();
  return ok;
}

bool NestLowering::visit(const ir::Block& ops, size_t k, ir::Block& out, bool is_loop) {
  const Op& op = ops[k];
  switch (vrtile::kind(op)) {
    case vrtile::Kind::Let:
      scalar_let(op, out);
      return true;
    case vrtile::Kind::Load:
      return load(op.as<vrtile::Load>(), ops, k, out, is_loop);
    case vrtile::Kind::Set:
      return set(op.as<vrtile::Set>(), ops, k, out);
    case vrtile::Kind::Reduce:
      return reduce(op.as<vrtile::Reduce>(), used_by(op), out);
    case vrtile::Kind::Dot:
      return dot(op.as<vrtile::Dot>(), out);
    case vrtile::Kind::For:
      return loop(op.as<vrtile::For>(), out);
    case vrtile::Kind::Carry:
      return true;
    case vrtile::Kind::Store:
      return store(op.as<vrtile::Store>(), used_by(op), out);
    default:
      return refuse(fmt::format("`{}` has no counterpart in a kernel", op.info().mnemonic()));
  }
}

void NestLowering::scalar_let(const Op& op, ir::Block& out) {
  const auto& let = op.as<vrtile::Let>();
  const Expr value = tiles_.scalar(let.value);
  const ir::Name name = tiles_.define_scalar(let.name, let.value.dtype());
  out.push_back(ir::make(matile::Let{name, value}));
}

bool NestLowering::loop(const vrtile::For& op, ir::Block& out) {
  if (!flush_deferred()) return false;
  struct Carried {
    ir::Name tile;
    ir::TensorType type;
    ir::Name next;
  };
  std::vector<Carried> carried;
  std::set<std::string> own_names;
  for (const Op& inner : op.body) {
    const auto* c = inner.get<vrtile::Carry>();
    if (!c) continue;
    if (!is_register_type(c->type))
      return refuse(fmt::format("`{}` is carried, but is no f32 or 16-bit tile", c->name.str()));
    const TileValue* init = tiles_.find(c->init);
    const bool is_element = init && (init->kind == Kind::Load || init->kind == Kind::Inline);
    if (is_element && init->axes.size() == c->type.dims.size()) {
      // Elements that are read where they are used are read here.
      const std::span<const Expr> own(axis_, c->type.dims.size());
      const Expr value = tiles_.written(pool_.read(c->init, c->type.dtype, own), {}, why_);
      if (!value) return false;
      const TileValue& tile = new_tile(c->name, c->type);
      out.push_back(ir::make(matile::Set{tile.name, own_axes(c->type), value}));
      carried.push_back({tile.name, c->type, c->next});
      own_names.emplace(c->name.str());
      continue;
    }
    if (!init || init->kind != Kind::Register)
      return refuse(fmt::format("`{}` is no register tile", c->init.str()));
    const ir::Name from = init->name;
    const TileValue& tile = new_tile(c->name, c->type);
    copy(tile.name, c->type, from, out);
    carried.push_back({tile.name, c->type, c->next});
    own_names.emplace(c->name.str());
  }
  matile::Loop result;
  result.from = tiles_.scalar(op.from);
  result.to = tiles_.scalar(op.to);
  result.direction =
      op.direction == vrtile::Direction::Up ? matile::Direction::Up : matile::Direction::Down;
  result.var = tiles_.define_scalar(op.var, DType::I64);
  loop_bounds_.emplace(pool_.index(result.var), std::pair<Expr, Expr>{result.from, result.to});
  const ir::Block* body = &op.body;
  if (fetches_early(op)) body = &reordered_.emplace_back(loads_first(op.body));
  if (!block(*body, result.body, true)) return false;
  // All carried values change at once: one that is the next of another is kept first.
  std::vector<ir::Name> next;
  for (const Carried& c : carried) {
    const TileValue* value = tiles_.find(c.next);
    if (!value || value->kind != Kind::Register)
      return refuse(fmt::format("`{}` is no register tile", c.next.str()));
    ir::Name name = value->name;
    if (own_names.contains(std::string(c.next.str())) && name != c.tile) {
      const ir::Name kept = new_register(std::string(c.next.str()) + "_kept", c.type);
      copy(kept, c.type, name, result.body);
      name = kept;
    }
    next.push_back(name);
  }
  for (size_t k = 0; k < carried.size(); ++k) {
    if (carried[k].tile != next[k]) copy(carried[k].tile, carried[k].type, next[k], result.body);
  }
  out.push_back(ir::make(std::move(result)));
  return true;
}

std::optional<LoweredKernel> NestLowering::assemble(ir::Block body) {
  if (!deferred_.empty() && !stored_panels_)
    return fail("a tile is computed for a store that does not come");
  choose_promotions();
  if (!choices_.end()) return fail("a line of its schedule is refused");
  const ir::Name name = names_.make(kernel_name_);
  matile::Kernel kernel{.name = name, .form = matile::KernelForm::Nest};
  if (grid_.rank) {
    kernel.cluster = packing_.cluster;
    kernel.rank = grid_.rank;
  }
  if (packing_.resident > 1) kernel.resident = packing_.resident;
  kernel.body.push_back(ir::make(grid_.op));
  for (Op& p : parts_) kernel.body.push_back(std::move(p));
  matile::Role role{role_name_, matile::RoleUnit::Groups, groups_, group_index_, {}, {}};
  role.body = declared_;
  matile::Each each{grid_.tile, grid_.op.name, {}, std::move(body)};
  if (alternates_) each.alternate = groups_;
  role.body.push_back(ir::make(std::move(each)));
  kernel.body.push_back(ir::make(std::move(role)));
  kernel.body = decision::with_lines(std::move(kernel.body), lines_);
  LoweredKernel out{grid_.plan,
                    ir::make(std::move(kernel)),
                    ir::make(matile::Launch{name, grid_.launch}),
                    tile_axes_,
                    own_group_ ? group_index_ : ir::Name(),
                    own_group_ ? groups_ : 1};
  for (Op& m : map_ops_) out.plan.push_back(std::move(m));
  return out;
}

}  // namespace nautilus::lower
