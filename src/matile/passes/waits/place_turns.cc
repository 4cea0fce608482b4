// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/waits/place_turns.h"

#include <algorithm>

#include "decision/choice.h"
#include "ir/walk.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using ir::Op;

bool contains_dot(const Op& op) {
  bool found = false;
  ir::for_each_op({op}, [&](const Op& o) { found |= o.is<Dot>(); });
  return found;
}

bool contains_get(const Op& op) {
  bool found = false;
  ir::for_each_op({op}, [&](const Op& o) { found |= o.is<Get>(); });
  return found;
}

// A loop that issues consecutive products and then reads their results. Register work between two
// products would be inside the turn, which defeats the purpose of turns.
bool is_ordered_loop(const Op& op) {
  const auto* loop = op.get<Loop>();
  if (!loop) return false;
  Names accumulators;
  size_t first = loop->body.size();
  size_t last = 0;
  for (size_t k = 0; k < loop->body.size(); ++k) {
    const auto* d = loop->body[k].get<Dot>();
    if (!d) continue;
    accumulators.emplace(d->acc.str());
    first = std::min(first, k);
    last = k;
  }
  bool reads = false;
  for (size_t k = 0; k < loop->body.size(); ++k) {
    const Op& inner = loop->body[k];
    if (inner.is<Dot>() || inner.is<Get>()) continue;
    if (k > first && k < last) return false;
    for (const std::string& name : touched_by(inner).reads) reads |= accumulators.contains(name);
  }
  return reads;
}

bool is_skip_loop(const Op& op) {
  const auto* loop = op.get<Loop>();
  return loop && !loop->body.empty() &&
         std::all_of(loop->body.begin(), loop->body.end(),
                     [](const Op& o) { return o.is<Skip>(); });
}

// The ring that every ordered loop gets once an iteration, before its first product; skips of it
// count turns. Empty if no ring qualifies.
ir::Name counting_ring(const ir::Block& tile) {
  ir::Name ring;
  for (const Op& op : tile) {
    if (!is_ordered_loop(op)) continue;
    ir::Name first;
    int count = 0;
    for (const Op& inner : op.as<Loop>().body) {
      const auto* g = inner.get<Get>();
      if (!g) continue;
      if (!first) first = g->ring;
      count += g->ring == first ? 1 : 0;
    }
    if (!first || count != 1 || (ring && ring != first)) return {};
    ring = first;
  }
  return ring;
}

ir::Block ordered_body(const ir::Block& body, ir::Name turn) {
  size_t first = body.size();
  size_t last = 0;
  for (size_t k = 0; k < body.size(); ++k) {
    if (!body[k].is<Dot>()) continue;
    first = std::min(first, k);
    last = k;
  }
  ir::Block out;
  for (size_t k = 0; k < body.size(); ++k) {
    if (k == first) out.push_back(ir::make(Enter{turn}));
    out.push_back(body[k]);
    if (k == last) out.push_back(ir::make(Leave{turn}));
  }
  return out;
}

ir::Block ordered_tile(const ir::Block& tile, ir::Name turn, ir::Name ring) {
  ir::Block out;
  for (const Op& op : tile) {
    if (is_ordered_loop(op)) {
      out.push_back(with_block(op, ordered_body(op.as<Loop>().body, turn)));
    } else if (is_skip_loop(op)) {
      ir::Block body;
      for (const Op& inner : op.as<Loop>().body) {
        body.push_back(inner);
        if (inner.as<Skip>().ring != ring) continue;
        body.push_back(ir::make(Enter{turn}));
        body.push_back(ir::make(Leave{turn}));
      }
      out.push_back(with_block(op, std::move(body)));
    } else {
      out.push_back(op);
    }
  }
  return out;
}

// From the first slot to the last product.
ir::Block enclosed_tile(const ir::Block& tile, ir::Name turn) {
  size_t first = tile.size();
  size_t last = 0;
  for (size_t k = 0; k < tile.size(); ++k) {
    if (contains_get(tile[k])) first = std::min(first, k);
    if (contains_dot(tile[k])) last = k;
  }
  ir::Block out;
  for (size_t k = 0; k < tile.size(); ++k) {
    if (k == first) out.push_back(ir::make(Enter{turn}));
    out.push_back(tile[k]);
    if (k == last) out.push_back(ir::make(Leave{turn}));
  }
  return out;
}

// The first and the last op of the gets after a tile's products; nothing where all slots are got
// before them.
std::optional<std::pair<size_t, size_t>> later_gets(const ir::Block& tile) {
  size_t product = 0;
  for (size_t k = 0; k < tile.size(); ++k) {
    if (contains_dot(tile[k])) product = k;
  }
  std::optional<std::pair<size_t, size_t>> found;
  for (size_t k = product + 1; k < tile.size(); ++k) {
    if (contains_get(tile[k])) found = {found ? found->first : k, k};
  }
  return found;
}

ir::Block enclosed(const ir::Block& tile, std::pair<size_t, size_t> range, ir::Name turn) {
  ir::Block out;
  for (size_t k = 0; k < tile.size(); ++k) {
    if (k == range.first) out.push_back(ir::make(Enter{turn}));
    out.push_back(tile[k]);
    if (k == range.second) out.push_back(ir::make(Leave{turn}));
  }
  return out;
}

}  // namespace

std::optional<ir::Program> place_turns(const ir::Program& program, ir::PassContext& context) {
  Names taken = names_of(program);
  using decision::Switch;
  decision::Choice<decision::Turns> choice(context);
  return map_kernels(
      program, KernelForm::Roles, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        choice.begin(out.body);
        ir::Block turns;
        for (Op& op : out.body) {
          const auto* role = op.get<Role>();
          if (!role || role->unit != RoleUnit::Groups || role->count.value_or(1) < 2) continue;
          Role changed = *role;
          for (Op& inner : changed.body) {
            const auto* each = inner.get<Each>();
            if (!each) continue;
            const bool alternates = each->alternate.value_or(1) > 1;
            const bool is_ordered =
                std::any_of(each->body.begin(), each->body.end(), is_ordered_loop);
            const bool skips = std::any_of(each->body.begin(), each->body.end(), is_skip_loop);
            const ir::Name ring = counting_ring(each->body);
            if (!alternates) {
              if (!is_ordered || (skips && !ring)) continue;
              const bool is_on = !choice.asked() || choice.asked()->use == Switch::On;
              choice.took({is_on ? Switch::On : Switch::Off, {}});
              if (!is_on) continue;
            }
            const ir::Name turn = fresh_name("issue", taken, context.pool);
            turns.push_back(ir::make(Turn{turn, role->name}));
            ir::Block tile = each->body;
            if (const auto later = later_gets(tile); alternates && later) {
              const ir::Name rest = fresh_name("rest", taken, context.pool);
              turns.push_back(ir::make(Turn{rest, role->name}));
              tile = enclosed(tile, *later, rest);
            }
            inner = with_block(
                inner, alternates ? enclosed_tile(tile, turn) : ordered_tile(tile, turn, ring));
          }
          op = ir::make(std::move(changed), op.span());
        }
        // Behind the rings, before stages and roles.
        const auto at = std::find_if(out.body.begin(), out.body.end(), [](const Op& op) {
          return !op.is<Decisions>() && !op.is<Tiles>() && !op.is<Cta>() && !op.is<Ring>();
        });
        out.body.insert(at, turns.begin(), turns.end());
        if (!choice.end("no groups share loops whose products could be issued in turns"))
          return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile
