// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/rank_memo.h"

#include <algorithm>
#include <cstdint>

namespace nautilus::schedule {
namespace {

class KeyWriter {
 public:
  void add(Expr e) { key_.push_back(e.node()); }
  void add(int64_t n) { key_.push_back(reinterpret_cast<const void*>(static_cast<intptr_t>(n))); }
  void add(const std::vector<Expr>& list) {
    add(static_cast<int64_t>(list.size()));
    for (Expr e : list) add(e);
  }
  std::vector<const void*> take() { return std::move(key_); }

 private:
  std::vector<const void*> key_;
};

}  // namespace

const std::vector<Ranked>& RankMemo::rank(const Kernel& kernel, const ir::Program& program,
                                          const Target& target, expr::ExprPool& pool) {
  const auto known = std::find_if(programs_.begin(), programs_.end(), [&](const OfProgram& p) {
    return p.target == &target && p.program == program;
  });
  OfProgram& own =
      known == programs_.end() ? programs_.emplace_back(OfProgram{program, &target, {}}) : *known;
  const Fusion& f = kernel.fusion;
  KeyWriter key;
  key.add(f.seed);
  key.add(f.stream);
  key.add(f.row);
  key.add(f.row_block);
  key.add(f.block_rows);
  key.add(f.outer);
  key.add(f.axis_order);
  for (Expr a : f.axis_order) key.add(f.extents.at(a));
  for (const Dot& d : f.dots) {
    key.add(static_cast<int64_t>(d.member));
    key.add(d.a);
    key.add(d.b);
    key.add(d.scales);
    key.add(d.column);
    key.add(d.depth);
  }
  for (const Member& m : f.members) {
    key.add(m.statement);
    key.add(m.axes);
    key.add(m.inner);
    key.add((m.is_rolled ? 1 : 0) + (m.is_closing ? 2 : 0));
    key.add(m.init);
    key.add(m.value);
  }
  for (int id : kernel.stored) key.add(id);
  const auto [it, is_new] = own.known.try_emplace(key.take());
  if (is_new) {
    it->second = rank_candidates(kernel, program, target, pool);
    ++count_;
  }
  return it->second;
}

}  // namespace nautilus::schedule
