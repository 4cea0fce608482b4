// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/drop_unused_tiles.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/walk.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using ir::Block;
using ir::Name;
using ir::Op;

Name definition(const Op& op) {
  if (const auto* l = op.get<Let>()) return l->name;
  return defined(op);
}

Block kept(const Block& block, const std::unordered_set<Name>& live) {
  Block out;
  for (const Op& op : block) {
    if (const Name n = definition(op); n && !live.contains(n)) continue;
    const Block* body = body_of(op);
    if (!body) {
      out.push_back(op);
      continue;
    }
    Block inner = kept(*body, live);
    // Par loops stay: a program says what its kernels are.
    bool has_effect = op.is<Par>() && !inner.empty();
    ir::for_each_op(inner, [&](const Op& x) { has_effect |= x.is<Store>() || x.is<Carry>(); });
    if (has_effect) out.push_back(with_body(op, std::move(inner)));
  }
  return out;
}

}  // namespace

std::optional<ir::Program> drop_unused_tiles(const ir::Program& program, ir::PassContext&) {
  // Neighbouring blocks may share names; all definitions of a name stay or are removed together.
  std::unordered_multimap<Name, Op> definitions;
  std::unordered_set<Name> live;
  std::vector<Name> work;
  auto use = [&](Name n) {
    if (live.insert(n).second) work.push_back(n);
  };
  ir::for_each_op(program.body, [&](const Op& op) {
    if (const Name n = definition(op)) {
      definitions.emplace(n, op);
    } else {
      for_each_use(op, use);
    }
  });
  while (!work.empty()) {
    const Name n = work.back();
    work.pop_back();
    const auto [begin, end] = definitions.equal_range(n);
    for (auto it = begin; it != end; ++it) for_each_use(it->second, use);
  }
  return ir::Program{program.level, program.name, kept(program.body, live)};
}

}  // namespace nautilus::vrtile
