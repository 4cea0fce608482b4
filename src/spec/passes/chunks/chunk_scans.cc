// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/chunks/chunk_scans.h"

#include <fmt/format.h>

#include "decision/length_line.h"
#include "decision/lines.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/facts/read_scan.h"
#include "spec/passes/algebra/without_moves.h"
#include "spec/passes/chunks/chunk_equations.h"

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
        signs_(program),
        names_(program, context.pool),
        equations_(program, names_, context.pool) {}

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
    chunks.count = equations_.simplified(
        pool_.binary(ChunkOp::FloorDiv,
                     pool_.binary(ChunkOp::Add, steps.extent, pool_.integer(chunks.length - 1)),
                     pool_.integer(chunks.length)));
    ChunkDecays decays(scan.step.decay, let.axes, chunks, signs_, pool_);
    std::vector<Let> before;
    decays.add(let.name.str(), names_, before);
    const Let scale = equations_.scale_of(scan, chunks, before);
    Let added = equations_.added_in_chunks(scan, chunks, decays, before);
    // Only readers that round states to 16 bits see the sums: half of the bytes will do.
    if (!scan.has_last) {
      before.push_back(added);
      added.name = names_.fresh(fmt::format("{}.added", let.name.str()));
      added.dtype = scan.half;
      added.body = pool_.cast(scan.half, element(before.back(), pool_));
    }
    const Let states = equations_.states_of(scan, chunks, decays, added);
    const Let starts = equations_.starts_of(scan, states);
    std::vector<Made>& out = instead_[let.name];
    for (const Let& l : before) out.push_back({l});
    out.push_back({added});
    out.push_back({states, true, static_cast<int64_t>(scan.step.along)});
    out.push_back({starts});
    last_states_.emplace(let.name, LastState{let.axes, scan.step.along, chunks.chunk, chunks.count,
                                             equations_.behind_chunk(scan, decays, states, added)});
    for (const ScanReader& r : scan.readers) {
      std::vector<Made>& made = instead_[r.let->name];
      for (Let& l : equations_.of_reader(scan, r, chunks, decays, scale, starts))
        made.push_back({std::move(l)});
      moved_.insert(r.let->name);
    }
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
  algebra::Signs signs_;
  TensorNames names_;
  ChunkEquations equations_;
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
