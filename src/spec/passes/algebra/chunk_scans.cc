// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/chunk_scans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "algebra/contraction.h"
#include "decision/length_line.h"
#include "decision/lines.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/facts/read_scan.h"
#include "spec/passes/algebra/chunk_decays.h"
#include "spec/passes/algebra/without_moves.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Substitution;
using ChunkOp = expr::Op;

class ScanChunker {
 public:
  ScanChunker(const ir::Program& program, ir::PassContext& context)
      : program_(program),
        target_(ir::target_of(program)),
        context_(context),
        lines_(decision::lines(program.body)),
        pool_(context.pool),
        simplifier_(context.pool),
        facts_(ir::facts_of(program, context.pool)),
        signs_(program),
        names_(program, context.pool) {}

  // Nothing if a line was refused.
  std::optional<ir::Program> run() {
    for (const EquationGroup& g : computing_order(program_)) {
      if (!g.is_scan()) continue;
      if (const auto scan = read_scan(g, program_, pool_)) divide(*scan);
    }
    if (is_refused_) return std::nullopt;
    if (instead_.empty()) return program_;
    ir::Program out{program_.level, program_.name, {}};
    for (const ir::Op& op : program_.body) {
      const auto* state = op.get<State>();
      const auto* let = op.get<Let>();
      if (state && last_states_.contains(state->name)) continue;
      const auto it = let ? instead_.find(let->name) : instead_.end();
      if (it == instead_.end()) {
        out.body.push_back(let ? ir::make(with_last_states(*let), op.span()) : op);
        continue;
      }
      for (const Made& made : it->second) {
        if (made.is_state)
          out.body.push_back(ir::make(
              State{made.let.name, made.let.type(), made.along, Direction::Up}, op.span()));
        out.body.push_back(ir::make(made.let, op.span()));
      }
    }
    out = without_moves(out, moved_, pool_);
    out.body = decision::with_lines(std::move(out.body), lines_);
    return out;
  }

 private:
  // An equation in place of another one.
  struct Made {
    Let let;
    bool is_state = false;
    int64_t along = 0;
  };

  void divide(const ReadScan& scan) {
    const Let& let = *scan.let;
    const ir::Axis steps = let.axes[scan.step.along];
    Chunks chunks{steps};
    const auto length = length_of(scan);
    is_refused_ |= !length;
    if (!length) return;
    chunks.length = *length;
    const std::string stem(steps.name.str());
    chunks.chunk = pool_.index(stem + ".chunk");
    chunks.row = pool_.index(stem + ".row");
    chunks.key = pool_.index(stem + ".key");
    chunks.count = simplified(
        pool_.binary(ChunkOp::FloorDiv,
                     pool_.binary(ChunkOp::Add, steps.extent, pool_.integer(chunks.length - 1)),
                     pool_.integer(chunks.length)));
    ChunkDecays decays(scan.step.decay, let.axes, chunks, signs_, pool_);
    std::vector<Let> before;
    decays.add(let.name.str(), names_, before);
    const Let scale = scale_of(scan, chunks, before);
    Let added = added_in_chunks(scan, chunks, decays, before);
    // Only readers that round states to 16 bits see the sums: half of the bytes will do.
    if (!scan.has_last) {
      before.push_back(added);
      added.name = names_.fresh(fmt::format("{}.added", let.name.str()));
      added.dtype = scan.half;
      added.body = pool_.cast(scan.half, element(before.back(), pool_));
    }
    const Let states = states_of(scan, chunks, decays, added);
    const Let starts = starts_of(scan, states);
    std::vector<Made>& out = instead_[let.name];
    for (const Let& l : before) out.push_back({l});
    out.push_back({added});
    out.push_back({states, true, static_cast<int64_t>(scan.step.along)});
    out.push_back({starts});
    last_states_.emplace(let.name, LastState{let.axes, scan.step.along, chunks.chunk, chunks.count,
                                             behind_chunk(scan, decays, states, added)});
    for (const ScanReader& r : scan.readers) read(scan, r, chunks, decays, scale, starts);
  }

  // Long chunks: fewer states pass through memory. A product that is less deep than a chunk is
  // padded to it, and decays that are data are loaded and summed for each step of a chunk: such
  // chunks are shorter.
  int64_t usual_length(const ReadScan& scan) {
    const target::Algebra& rule = target_.algebra;
    const Expr depth = scan.let->axes[scan.depth].extent;
    const bool is_deep = depth.op() == ChunkOp::IntConst && depth.integer() >= rule.chunk_steps &&
                         depth.integer() <= rule.long_chunk &&
                         depth.integer() % target_.matrix.depth == 0;
    if (!is_deep) return rule.chunk_steps;
    const Expr steps = pool_.index(scan.let->axes[scan.step.along].name);
    const bool has_data = scan.step.decay && expr::depends_on(scan.step.decay, steps);
    return has_data ? depth.integer() : rule.long_chunk;
  }

  // As the line about the scan says, else by rule. Nothing if the line is refused.
  std::optional<int64_t> length_of(const ReadScan& scan) {
    const decision::Lengths lengths{usual_length(scan), target_.matrix.depth,
                                    target_.algebra.most_chunk, "a chunk", "steps"};
    return decision::read_length<decision::Chunk>(lines_, scan.let->name, lengths, context_);
  }

  Expr simplified(Expr e) { return simplifier_.simplify(e, &facts_); }

  Let finished(Let let) {
    expr::Facts facts = facts_;
    for (const ir::Axis& a : let.axes) facts.add_axis(pool_.index(a.name), a.extent);
    let.body = simplifier_.simplify(let.body, &facts);
    return let;
  }

  Expr times(Expr a, Expr b) { return !a ? b : !b ? a : pool_.binary(ChunkOp::Mul, a, b); }

  // The factors at a step of a chunk, 0 after the last one.
  Expr product(const std::vector<Expr>& factors, const Substitution& at, Expr step,
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

  // Axes of the scan's state, unchanged.
  Substitution own_axes(const Let& let) {
    Substitution at;
    for (const ir::Axis& a : let.axes) at.emplace(pool_.index(a.name), pool_.index(a.name));
    return at;
  }

  // The axes with those of a chunk in place of that of the steps.
  static ir::Axes in_chunks(ir::Axes axes, size_t along, const ir::Axes& chunk) {
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(along));
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(along), chunk.begin(), chunk.end());
    return axes;
  }

  // Those of the axes that the value has.
  ir::Axes used(const ir::Axes& axes, Expr value) {
    ir::Axes out;
    for (const ir::Axis& a : axes) {
      if (expr::depends_on(value, pool_.index(a.name))) out.push_back(a);
    }
    return out;
  }

  // The factors of a term other than keys and values; an empty name if there are none.
  Let scale_of(const ReadScan& scan, const Chunks& chunks, std::vector<Let>& before) {
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

  Let added_in_chunks(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays,
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

  bool has_axes_of(const std::vector<Expr>& factors, const ir::Axes& axes, const Chunks& chunks) {
    return std::all_of(axes.begin(), axes.end(), [&](const ir::Axis& a) {
      const Expr axis = pool_.index(a.name);
      return axis == chunks.chunk || axis == chunks.key ||
             std::any_of(factors.begin(), factors.end(),
                         [&](Expr f) { return expr::depends_on(f, axis); });
    });
  }

  // The initial states of chunks: a scan over chunks. Loads are under conditions of their own, so
  // that they need not wait for the state.
  Let states_of(const ReadScan& scan, const Chunks& chunks, ChunkDecays& decays, const Let& added) {
    Let out = added;
    out.dtype = expr::DType::F32;
    out.name = names_.fresh(fmt::format("{}.states", scan.let->name.str()));
    const Expr is_later = pool_.binary(ChunkOp::Ge, chunks.chunk, pool_.integer(1));
    const Expr last = pool_.binary(ChunkOp::Add, chunks.chunk, pool_.integer(-1));
    const auto before = [&](Expr e, Expr other) {
      return pool_.select(is_later, expr::substitute(pool_, e, {{chunks.chunk, last}}), other);
    };
    out.body = pool_.binary(
        ChunkOp::Add,
        times(decays.whole_before(own_axes(*scan.let)),
              before(element(out, pool_), scan.step.initial)),
        before(pool_.cast(out.dtype, element(added, pool_)), pool_.floating(0, out.dtype)));
    return finished(out);
  }

  // The state after a chunk.
  Expr behind_chunk(const ReadScan& scan, ChunkDecays& decays, const Let& states,
                    const Let& added) {
    return pool_.binary(ChunkOp::Add,
                        times(decays.whole(own_axes(*scan.let)), element(states, pool_)),
                        pool_.cast(expr::DType::F32, element(added, pool_)));
  }

  // The same as the operand of products.
  Let starts_of(const ReadScan& scan, const Let& states) {
    Let out = states;
    out.name = names_.fresh(fmt::format("{}.starts", scan.let->name.str()));
    out.dtype = scan.half;
    out.body = pool_.cast(scan.half, element(states, pool_));
    return out;
  }

  void read(const ReadScan& scan, const ScanReader& reader, const Chunks& chunks,
            ChunkDecays& decays, const Let& scale, const Let& starts) {
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
    scores.axes =
        used(in_chunks(let.axes, reader.steps, {of_chunks, of_rows, of_keys}), scores.body);
    // The condition is around the scores alone: decays of rows and of keys are each computed once.
    const Expr is_known =
        pool_.binary(reader.is_before ? ChunkOp::Lt : ChunkOp::Le, chunks.key, chunks.row);
    Expr weight =
        pool_.select(is_known, element(scores, pool_), pool_.floating(0, expr::DType::F32));
    weight = times(weight, decays.between(at, reader.is_before));
    if (scale.body) weight = times(weight, at_places(scale, at));
    Let inside{names_.fresh(stem + ".inside"), rows, expr::DType::F32, {}};
    inside.body =
        sum(times(weight, product(scan.v, at, t, chunks, chunks.key)), chunks.key, of_keys.extent);
    Let before{names_.fresh(stem + ".before"), rows, expr::DType::F32, {}};
    const Expr start = pool_.cast(expr::DType::F32, at_places(starts, at));
    const bool is_short = depth.op() == ChunkOp::IntConst && depth.integer() < chunks.length;
    before.body = is_short ? padded_sum(reader, q, start, depth, of_keys.extent)
                           : sum(times(q, start), reader.depth, depth);
    Let both{names_.fresh(stem + ".chunks"), rows, expr::DType::F32, {}};
    both.body = pool_.binary(ChunkOp::Add, element(inside, pool_),
                             times(element(before, pool_), decays.up_to(at, reader.is_before)));
    Let out = let;
    out.body = expr::substitute(
        pool_, element(both, pool_),
        {{chunks.chunk, pool_.binary(ChunkOp::FloorDiv, s, pool_.integer(chunks.length))},
         {chunks.row, pool_.binary(ChunkOp::Mod, s, pool_.integer(chunks.length))}});
    std::vector<Made>& made = instead_[let.name];
    for (const Let& l : {scores, inside, before, both}) made.push_back({finished(l)});
    made.push_back({out});
    moved_.insert(let.name);
  }

  // A sum over the depth, padded with zeros to the length of a chunk: sums over axes of one length
  // are steps of one loop.
  Expr padded_sum(const ScanReader& reader, Expr q, Expr start, Expr depth, Expr extent) {
    const Expr is_inside = pool_.binary(ChunkOp::Lt, reader.depth, depth);
    const auto guarded = [&](Expr e) {
      Expr out;
      for (Expr f : algebra::factors(e)) {
        const Expr none = pool_.floating(0, f.dtype());
        const bool is_guarded = f.op() == ChunkOp::Select && f[2] == none;
        if (expr::depends_on(f, reader.depth))
          f = is_guarded ? pool_.select(pool_.binary(ChunkOp::And, f[0], is_inside), f[1], none)
                         : pool_.select(is_inside, f, none);
        out = times(out, f);
      }
      return out;
    };
    return pool_.reduce(expr::Reducer::Sum, times(guarded(q), guarded(start)),
                        std::array{reader.depth}, std::array{extent});
  }

  // The element at these places of the state's axes; those of a chunk are unchanged.
  Expr at_places(const Let& let, const Substitution& at) {
    Substitution places = at;
    return expr::substitute(pool_, element(let, pool_), places);
  }

  // The state after all chunks, by the axes of the scan.
  struct LastState {
    ir::Axes axes;
    size_t along = 0;
    Expr chunk;
    Expr count;
    Expr value;
  };

  Let with_last_states(const Let& let) {
    return map_reads(let, pool_, [&](Expr read) {
      const auto it = last_states_.find(read.name());
      if (it == last_states_.end()) return read;
      const LastState& last = it->second;
      if (!is_last_step(read[last.along], last.axes[last.along].extent)) return read;
      Substitution at{{last.chunk, pool_.binary(ChunkOp::Add, last.count, pool_.integer(-1))}};
      for (size_t k = 0; k < last.axes.size(); ++k) {
        if (k != last.along) at.emplace(pool_.index(last.axes[k].name), read[k]);
      }
      return expr::substitute(pool_, last.value, at);
    });
  }

  const ir::Program& program_;
  const target::Target& target_;
  ir::PassContext& context_;
  ir::Block lines_;  // that are not read yet
  bool is_refused_ = false;
  expr::ExprPool& pool_;
  expr::Simplifier simplifier_;
  expr::Facts facts_;
  algebra::Signs signs_;
  TensorNames names_;
  std::unordered_map<ir::Name, std::vector<Made>> instead_;
  std::unordered_map<ir::Name, LastState> last_states_;
  std::unordered_set<ir::Name> moved_;
};

}  // namespace

std::optional<ir::Program> chunk_scans(const ir::Program& program, ir::PassContext& context) {
  if (!has_scans(program)) return program;
  return ScanChunker(program, context).run();
}

std::vector<std::string> chunk_refusals(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<std::string> out;
  for (const EquationGroup& g : computing_order(program)) {
    if (!g.is_scan()) continue;
    const auto scan = read_scan(g, program, pool);
    if (!scan)
      out.push_back(fmt::format("`{}` is computed one step after the other: {}",
                                g.equations[0]->as<Let>().name.str(), scan.rejection().message));
  }
  return out;
}

}  // namespace nautilus::spec
