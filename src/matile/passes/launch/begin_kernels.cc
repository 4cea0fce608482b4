// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/launch/begin_kernels.h"

#include "ir/walk.h"
#include "matile/passes/launch/last_choice.h"
#include "matile/results.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using decision::Moment;

// Kernels with others in front of them, by the order of launches. Those that write the same are
// alternatives: one of them runs.
class Fronts {
 public:
  explicit Fronts(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      if (const auto* k = op.get<Kernel>()) {
        results_.emplace(k->name.str(), results_of(k->body, program.body));
        ir::for_each_op(k->body, [&](const ir::Op& inner) {
          if (inner.is<Scatter>()) scatters_.emplace(k->name.str());
        });
      }
      if (const auto* launch = op.get<Launch>()) launches_.push_back(*launch);
    }
  }

  bool is_behind_another(ir::Name kernel) const {
    if (scatters_.contains(kernel.str())) return true;
    const Names& own = results_.find(kernel.str())->second;
    for (const Launch& launch : launches_) {
      if (launch.kernel == kernel || launch.unaligned_fallback == kernel) return false;
      if (results_.find(launch.kernel.str())->second != own) return true;
    }
    return false;
  }

 private:
  std::map<std::string, Names, std::less<>> results_;
  Names scatters_;  // kernels behind another that writes what their results begin with
  std::vector<Launch> launches_;
};

}  // namespace

std::optional<ir::Program> begin_kernels(const ir::Program& program, ir::PassContext& context) {
  const Fronts fronts(program);
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        LastChoice<decision::Begin> choice(out, context);
        if (fronts.is_behind_another(kernel.name)) {
          const Moment moment = choice.asked() ? choice.asked()->moment : Moment::Early;
          out.begins = moment == Moment::Early ? Begins::Early : Begins::Late;
          if (out.begins == Begins::Early) out.reads = decision::ReadOrder::Ordered;
          choice.took({moment, {}});
        }
        if (!choice.end("no other kernel is in front of it")) return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile
