// SPDX-License-Identifier: Apache-2.0
#include "vrtile/passes/hoist_invariant.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/walk.h"
#include "vrtile/walk.h"

namespace nautilus::vrtile {
namespace {

using ir::Block;
using ir::Name;
using ir::Op;

// A name that neighbouring blocks share must stay where it is.
std::unordered_map<Name, int> definition_counts(const Block& block) {
  std::unordered_map<Name, int> counts;
  ir::for_each_op(block, [&](const Op& op) {
    if (const auto* l = op.get<Let>()) ++counts[l->name];
    if (const Name n = defined(op)) ++counts[n];
  });
  return counts;
}

Block hoisted(const Block& block, const std::unordered_map<Name, int>& counts) {
  Block out;
  for (const Op& op : block) {
    if (!op.is<For>()) {
      out.push_back(op);
      continue;
    }
    const auto& loop = op.as<For>();
    std::unordered_set<Name> varying = {loop.var};
    ir::for_each_op(loop.body, [&](const Op& inner) {
      if (const auto* s = inner.get<Store>()) varying.insert(s->target);
    });
    Block rest;
    for (const Op& inner : loop.body) {
      const Name name = inner.is<Let>() ? inner.as<Let>().name : defined(inner);
      bool is_varying = inner.is<Carry>() || inner.is<Store>() || inner.is<For>() ||
                        (name && counts.at(name) > 1);
      if (!is_varying) for_each_use(inner, [&](Name n) { is_varying |= varying.contains(n); });
      if (!is_varying) {
        out.push_back(inner);
        continue;
      }
      rest.push_back(inner);
      if (name) varying.insert(name);
      if (!inner.is<For>()) continue;
      for (const Op& x : inner.as<For>().body) {
        if (x.is<Carry>()) varying.insert(x.as<Carry>().name);
      }
    }
    if (!rest.empty()) out.push_back(with_body(op, std::move(rest)));
  }
  return out;
}

}  // namespace

std::optional<ir::Program> hoist_invariant(const ir::Program& program, ir::PassContext&) {
  const auto counts = definition_counts(program.body);
  return ir::Program{program.level, program.name, rebuild_blocks(program.body, [&](const Block& b) {
                       return hoisted(b, counts);
                     })};
}

}  // namespace nautilus::vrtile
