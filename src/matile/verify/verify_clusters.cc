// SPDX-License-Identifier: Apache-2.0
// A slot that is filled by multicast is filled by all CTAs of the cluster: each copies its share of
// the same slot tile, and waits for the readers of all. So the CTAs must reach the same fills,
// equally often and in the same order, and mean the same slot tile. What differs between them is
// the rank and what is computed from it; such values may neither decide whether a multicast happens
// nor where it begins. `ctas` waits for all threads of the cluster, so the rank must not decide
// whether it is reached (nor the group's number: verify_groups.cc).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

using ir::Op;

class ClusterRules {
 public:
  ClusterRules(const Kernel& kernel, diag::Sink& sink) : kernel_(kernel), sink_(sink) {}

  void run() {
    for (const Op& op : kernel_.body) {
      if (const auto* tiles = op.get<Tiles>(); tiles && tiles->source == TileSource::Dynamic)
        fail(op, "dynamic tiles are given to single CTAs, not to clusters");
      if (const auto* role = op.get<Role>()) {
        if (kernel_.rank) differs_.emplace(kernel_.rank.str());
        block(role->body, false);
        differs_.clear();
      }
    }
  }

 private:
  void fail(const Op& op, std::string message) {
    sink_.report(diag::Code::NotVerified, op.span(), std::move(message));
  }

  bool depends_on_rank(ir::Expr e) const {
    const std::vector<ir::Expr> vars = expr::free_vars(e);
    return std::any_of(vars.begin(), vars.end(),
                       [&](ir::Expr v) { return differs_.contains(v.name().str()); });
  }

  void define(ir::Name name, bool differs) {
    if (differs)
      differs_.emplace(name.str());
    else
      differs_.erase(std::string(name.str()));
  }

  // `is_apart`: the CTAs of a cluster may come here a different number of times.
  void block(const ir::Block& ops, bool is_apart) {
    const auto before = differs_;
    for (const Op& op : ops) visit(op, is_apart);
    differs_ = before;
  }

  void visit(const Op& op, bool is_apart) {
    if (const auto* let = op.get<Let>()) return define(let->name, depends_on_rank(let->value));
    if (const auto* loop = op.get<Loop>()) {
      const bool differs = depends_on_rank(loop->from) || depends_on_rank(loop->to);
      const auto before = differs_;
      define(loop->var, differs);
      block(loop->body, is_apart || differs);
      differs_ = before;
      return;
    }
    if (const auto* branch = op.get<If>())
      return block(branch->body, is_apart || depends_on_rank(branch->condition));
    if (const auto* each = op.get<Each>()) return block(each->body, is_apart);
    if (const auto* unroll = op.get<Unroll>()) return block(unroll->body, is_apart);
    if (const auto* fill = op.get<Fill>()) this->fill(*fill, is_apart);
    if (const auto* ctas = op.get<Ctas>(); ctas && is_apart)
      fail(op, fmt::format("`ctas {}` stands where CTAs of a cluster may not all come: a CTA would "
                           "wait for one that does not",
                           ctas->tile.str()));
  }

  void fill(const Fill& fill, bool is_apart) {
    for (const Op& op : fill.body) {
      const auto* copy = op.get<Copy>();
      if (!copy || copy->reach == Reach::Own) continue;
      if (is_apart)
        fail(op, fmt::format("`{}` is multicast under a condition that depends on the rank; all "
                             "CTAs of a cluster take part",
                             copy->slot_tile.str()));
      for (ir::Expr at : copy->at) {
        if (!depends_on_rank(at)) continue;
        fail(op, fmt::format("where `{}` begins depends on the rank; CTAs that multicast load "
                             "shares of the same slot tile",
                             copy->slot_tile.str()));
        break;
      }
    }
  }

  const Kernel& kernel_;
  diag::Sink& sink_;
  std::set<std::string, std::less<>> differs_;  // names with values that depend on the rank
};

}  // namespace

void verify_clusters(const Kernel& kernel, diag::Sink& sink) {
  if (kernel.ctas() > 1) ClusterRules(kernel, sink).run();
}

}  // namespace nautilus::matile
