// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/chunks/chunk_equations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algebra/contraction.h"
#include "expr/walk.h"
#include "ir/decl.h"

namespace nautilus::spec {

namespace {

using expr::Expr;
using expr::Substitution;
using ChunkTermOp = expr::Op;

// The axes with those of a chunk in place of that of the steps.
ir::Axes in_chunks(ir::Axes axes, size_t along, const ir::Axes& chunk) {
  axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(along));
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(along), chunk.begin(), chunk.end());
  return axes;
}

}  // namespace

ChunkEquations::ChunkEquations(const ir::Program& program, TensorNames& names, expr::ExprPool& pool)
    : pool_(pool), simplifier_(pool), facts_(ir::facts_of(program, pool)), names_(names) {}

Let ChunkEquations::finished(Let let) {
  expr::Facts facts = facts_;
  for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
  let.body = simplifier_.simplify(let.body, &facts);
  return let;
}

Expr ChunkEquations::times(Expr a, Expr b) {
  return !a ? b : !b ? a : pool_.binary(ChunkTermOp::Mul, a, b);
}

Expr ChunkEquations::product(const std::vector<Expr>& factors, const Substitution& at, Expr step,
                             const Chunks& chunks, Expr place) {
  Expr out;
  for (Expr f : factors) {
    Substitution all = at;
    all.insert_or_assign(step, chunks.place(place, pool_));
    const Expr moved = expr::substitute(pool_, f, all);
    const bool is_read = !expr::tensors_read(f).empty() && expr::depends_on(f, step);
    out = times(out, is_read ? pool_.select(chunks.is_inside(place, pool_), moved,
                                            pool_.floating(0, f.dtype()))
                             : moved);
  }
  return out;
}

Substitution ChunkEquations::own_axes(const Let& let) {
  Substitution at;
  for (const ir::Axis& a : let.axes) at.emplace(pool_.index(a.name), pool_.index(a.name));
  return at;
}

ir::Axes ChunkEquations::used(const ir::Axes& axes, Expr value) {
  ir::Axes out;
  for (const ir::Axis& a : axes) {
    if (expr::depends_on(value, pool_.index(a.name))) out.push_back(a);
  }
  return out;
}

Let ChunkEquations::scale_of(const ReadScan& scan, const Chunks& chunks, std::vector<Let>& before) {
  if (scan.u.empty()) return {};
  const Let& let = *scan.let;
  Let out;
  out.body = product(scan.u, own_axes(let), pool_.index(chunks.steps.name), chunks, chunks.key);
  out.axes = used(in_chunks(let.axes, scan.step.along,
                            {{chunks.chunk.name(), chunks.count},
                             {chunks.key.name(), pool_.integer(chunks.length)}}),
                  out.body);
  out.name = names_.fresh(fmt::format("{}.scale", let.name.str()));
  before.push_back(finished(out));
  return before.back();
}

Let ChunkEquations::added_in_chunks(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays,
                                    std::vector<Let>& before) {
  const Let& let = *scan.let;
  const Substitution own = own_axes(let);
  const Expr t = pool_.index(chunks.steps.name);
  const ir::Axes of_steps = in_chunks(
      let.axes, scan.step.along,
      {{chunks.chunk.name(), chunks.count}, {chunks.key.name(), pool_.integer(chunks.length)}});
  // One weight for each step: how much of it is left at the end of its chunk.
  // Behind the last step its power has no meaning.
  Let weight;
  const Expr left = decays.to_end(own);
  weight.body = times(left ? pool_.select(chunks.is_inside(chunks.key, pool_), left,
                                          pool_.floating(0, expr::DType::F32))
                           : left,
                      product(scan.u, own, t, chunks, chunks.key));
  if (weight.body) {
    weight.axes = used(of_steps, weight.body);
    weight.name = names_.fresh(fmt::format("{}.weight", let.name.str()));
    before.push_back(finished(weight));
  }
  Let out{names_.fresh(fmt::format("{}.chunks", let.name.str())),
          in_chunks(let.axes, scan.step.along, {{chunks.chunk.name(), chunks.count}}),
          expr::DType::F32,
          {}};
  Expr term = product(scan.k, own, t, chunks, chunks.key);
  if (weight.body) term = times(term, element(weight, pool_));
  term = times(term, product(scan.v, own, t, chunks, chunks.key));
  out.body = pool_.reduce(expr::Reducer::Sum, term, std::array{chunks.key},
                          std::array{pool_.integer(chunks.length)});
  // Rows of the product are those of the side that has the weights' axes: keys that heads share
  // have no weights of their own.
  if (weight.body && !has_axes_of(scan.k, weight.axes, chunks))
    std::swap(out.axes[scan.depth], out.axes[scan.column]);
  return finished(out);
}

bool ChunkEquations::has_axes_of(const std::vector<Expr>& factors, const ir::Axes& axes,
                                 const Chunks& chunks) {
  return std::all_of(axes.begin(), axes.end(), [&](const ir::Axis& a) {
    const Expr axis = pool_.index(a.name);
    return axis == chunks.chunk || axis == chunks.key ||
           std::any_of(factors.begin(), factors.end(),
                       [&](Expr f) { return expr::depends_on(f, axis); });
  });
}

// Loads are under conditions of their own, so that they need not wait for the state.
Let ChunkEquations::states_of(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays,
                              const Let& added) {
  Let out = added;
  out.dtype = expr::DType::F32;
  out.name = names_.fresh(fmt::format("{}.states", scan.let->name.str()));
  const Expr is_later = pool_.binary(ChunkTermOp::Ge, chunks.chunk, pool_.integer(1));
  const Expr last = pool_.binary(ChunkTermOp::Add, chunks.chunk, pool_.integer(-1));
  const auto before = [&](Expr e, Expr other) {
    return pool_.select(is_later, expr::substitute(pool_, e, {{chunks.chunk, last}}), other);
  };
  out.body = pool_.binary(
      ChunkTermOp::Add,
      times(decays.whole_before(own_axes(*scan.let)),
            before(element(out, pool_), scan.step.initial)),
      before(pool_.cast(out.dtype, element(added, pool_)), pool_.floating(0, out.dtype)));
  return finished(out);
}

Expr ChunkEquations::behind_chunk(const ReadScan& scan, ChunkDecays& decays, const Let& states,
                                  const Let& added) {
  return pool_.binary(ChunkTermOp::Add,
                      times(decays.whole(own_axes(*scan.let)), element(states, pool_)),
                      pool_.cast(expr::DType::F32, element(added, pool_)));
}

Let ChunkEquations::starts_of(const ReadScan& scan, const Let& states) {
  Let out = states;
  out.name = names_.fresh(fmt::format("{}.starts", scan.let->name.str()));
  out.dtype = scan.half;
  out.body = pool_.cast(scan.half, element(states, pool_));
  return out;
}

std::vector<Let> ChunkEquations::of_reader(const ReadScan& scan, const ScanReader& reader,
                                           const Chunks& chunks, ChunkDecays& decays,
                                           const Let& scale, const Let& starts) {
  const Let& let = *reader.let;
  const Expr s = pool_.index(let.axes[reader.steps].name);
  const std::string stem(let.name.str());
  const ir::Axis of_chunks{chunks.chunk.name(), chunks.count};
  const ir::Axis of_rows{chunks.row.name(), pool_.integer(chunks.length)};
  const ir::Axis of_keys{chunks.key.name(), pool_.integer(chunks.length)};
  const ir::Axes rows = in_chunks(let.axes, reader.steps, {of_chunks, of_rows});
  Substitution at;
  for (size_t k = 0; k < scan.let->axes.size(); ++k)
    at.emplace(pool_.index(scan.let->axes[k].name), reader.at[k]);
  const Expr t = pool_.index(chunks.steps.name);
  const Expr q = product(reader.q, {}, s, chunks, chunks.row);
  const auto sum = [&](Expr body, Expr axis, Expr extent) {
    return pool_.reduce(expr::Reducer::Sum, body, std::array{axis}, std::array{extent});
  };
  const Expr depth = let.body.extent(0);
  Let scores;
  scores.name = names_.fresh(stem + ".scores");
  scores.body = sum(times(q, product(scan.k, at, t, chunks, chunks.key)), reader.depth, depth);
  scores.axes = used(in_chunks(let.axes, reader.steps, {of_chunks, of_rows, of_keys}), scores.body);
  // The condition is around the scores alone: decays of rows and of keys are each computed once.
  const Expr is_known =
      pool_.binary(reader.is_before ? ChunkTermOp::Lt : ChunkTermOp::Le, chunks.key, chunks.row);
  Expr weight = pool_.select(is_known, element(scores, pool_), pool_.floating(0, expr::DType::F32));
  weight = times(weight, decays.between(at, reader.is_before));
  if (scale.body) weight = times(weight, at_places(scale, at));
  Let inside{names_.fresh(stem + ".inside"), rows, expr::DType::F32, {}};
  inside.body =
      sum(times(weight, product(scan.v, at, t, chunks, chunks.key)), chunks.key, of_keys.extent);
  Let before{names_.fresh(stem + ".before"), rows, expr::DType::F32, {}};
  const Expr start = pool_.cast(expr::DType::F32, at_places(starts, at));
  const bool is_short = depth.op() == ChunkTermOp::IntConst && depth.integer() < chunks.length;
  before.body = is_short ? padded_sum(reader, q, start, depth, of_keys.extent)
                         : sum(times(q, start), reader.depth, depth);
  Let both{names_.fresh(stem + ".chunks"), rows, expr::DType::F32, {}};
  both.body = pool_.binary(ChunkTermOp::Add, element(inside, pool_),
                           times(element(before, pool_), decays.up_to(at, reader.is_before)));
  Let out = let;
  out.body = expr::substitute(
      pool_, element(both, pool_),
      {{chunks.chunk, pool_.binary(ChunkTermOp::FloorDiv, s, pool_.integer(chunks.length))},
       {chunks.row, pool_.binary(ChunkTermOp::Mod, s, pool_.integer(chunks.length))}});
  return {finished(scores), finished(inside), finished(before), finished(both), out};
}

Expr ChunkEquations::padded_sum(const ScanReader& reader, Expr q, Expr start, Expr depth,
                                Expr extent) {
  const Expr is_inside = pool_.binary(ChunkTermOp::Lt, reader.depth, depth);
  const auto guarded = [&](Expr e) {
    Expr out;
    for (Expr f : algebra::factors(e)) {
      const Expr none = pool_.floating(0, f.dtype());
      const bool is_guarded = f.op() == ChunkTermOp::Select && f[2] == none;
      if (expr::depends_on(f, reader.depth))
        f = is_guarded ? pool_.select(pool_.binary(ChunkTermOp::And, f[0], is_inside), f[1], none)
                       : pool_.select(is_inside, f, none);
      out = times(out, f);
    }
    return out;
  };
  return pool_.reduce(expr::Reducer::Sum, times(guarded(q), guarded(start)),
                      std::array{reader.depth}, std::array{extent});
}

Expr ChunkEquations::at_places(const Let& let, const Substitution& at) {
  Substitution places = at;
  return expr::substitute(pool_, element(let, pool_), places);
}

}  // namespace nautilus::spec
