// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel/plan_by_sizes.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "decision/decisions.h"
#include "expr/walk.h"
#include "ir/decl.h"
#include "ir/flat_name.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "matile/rename_names.h"

namespace nautilus::lower {
namespace {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

constexpr int64_t kUnit = 1024;             // the distance of equal sizes
constexpr int64_t kFar = int64_t{1} << 30;  // the largest distance
constexpr int64_t kNever = kFar + 1;        // of sizes that do not count

bool is_of_plan(const Op& op) {
  const auto* tensor = op.get<matile::Tensor>();
  if (tensor)
    return tensor->role == matile::TensorRole::Temp || tensor->role == matile::TensorRole::Scratch;
  return op.is<matile::Let>() || op.is<matile::Map>() || op.is<matile::Kernel>() ||
         op.is<matile::Launch>();
}

class Joiner {
 public:
  explicit Joiner(expr::ExprPool& pool) : pool_(pool) {}

  PlanBySizes run(const std::vector<SizedPlan>& plans) {
    PlanBySizes out;
    out.program.level = plans[0].program.level;
    out.program.name = plans[0].program.name;
    declare(plans, out.program.body);
    const Expr nearest = choice(plans, out.program.body);
    for (size_t k = 0; k < plans.size(); ++k) {
      out.kernels.emplace_back();
      const Expr is_taken =
          nearest ? pool_.binary(EK::Eq, nearest, pool_.integer(static_cast<int64_t>(k))) : Expr();
      add(plans[k].program, is_taken, out.program.body, out.kernels.back());
    }
    drop_unused_maps(out.program.body);
    return out;
  }

 private:
  // Of kernels that are those of an earlier plan.
  static void drop_unused_maps(ir::Block& body) {
    matile::Names used;
    for (const Op& op : body) {
      if (op.is<matile::Kernel>()) used.merge(matile::names_of({&matile::level(), "", {op}}));
    }
    std::erase_if(body, [&](const Op& op) {
      const auto* map = op.get<matile::Map>();
      return map && !used.contains(map->name.str());
    });
  }

  // What the plans have in common.
  void declare(const std::vector<SizedPlan>& plans, ir::Block& body) {
    for (const SizedPlan& plan : plans) {
      for (const Op& op : plan.program.body) {
        if (!is_of_plan(op) && std::find(body.begin(), body.end(), op) == body.end())
          body.push_back(op);
      }
    }
    shared_ = matile::defined_names(body);
    for (const std::string& name : shared_) taken_.insert(ir::flat_name(name));
    for (const SizedPlan& plan : plans) {
      for (const std::string& name : matile::defined_names(plan.program.body))
        meant_.insert(ir::flat_name(name));
    }
  }

  ir::Name fresh(std::string_view stem) {
    const std::string base = ir::flat_name(stem);
    std::string name = base;
    for (int n = 2; taken_.contains(name) || meant_.contains(name); ++n)
      name = base + "_" + std::to_string(n);
    taken_.insert(name);
    return pool_.name(name);
  }

  Expr let(std::string_view stem, Expr value, ir::Block& body) {
    const ir::Name name = fresh(stem);
    body.push_back(ir::make(matile::Let{name, value}));
    return pool_.index(name);
  }

  // A size of the launch within the numbers that distances are computed with.
  Expr size_of(ir::Name dim, ir::Block& body) {
    const auto known = sizes_.find(std::string(dim.str()));
    if (known != sizes_.end()) return known->second;
    const Expr size =
        pool_.binary(EK::Max, pool_.binary(EK::Min, pool_.index(dim), pool_.integer(kLargestSize)),
                     pool_.integer(1));
    return sizes_.emplace(dim.str(), let(std::string(dim.str()) + "_near", size, body))
        .first->second;
  }

  // From the sizes of one line.
  Expr distance(const decision::At& at, ir::Block& body) {
    Expr product = pool_.integer(kUnit);
    for (size_t k = 0; k < at.dims.size(); ++k) {
      const Expr size = size_of(at.dims[k], body);
      const Expr larger = pool_.binary(EK::Max, size, at.sizes[k]);
      const Expr smaller = pool_.binary(EK::Min, size, at.sizes[k]);
      const Expr ratio =
          pool_.binary(EK::FloorDiv, pool_.binary(EK::Mul, product, larger), smaller);
      product = pool_.binary(EK::Min, ratio, pool_.integer(kFar));
    }
    const Expr far = let("far", product, body);
    if (!at.factor) return far;
    const int64_t most = std::min(*at.factor, kFar / kUnit) * kUnit;
    return pool_.select(pool_.binary(EK::Le, far, pool_.integer(most)), far, pool_.integer(kNever));
  }

  // The number of the plan that is taken; nothing if there is one only.
  Expr choice(const std::vector<SizedPlan>& plans, ir::Block& body) {
    if (plans.size() == 1) return {};
    std::vector<Expr> far;
    for (const SizedPlan& plan : plans) {
      Expr least;
      for (const Op& line : plan.at) {
        const Expr d = distance(line.as<decision::At>(), body);
        least = least ? pool_.binary(EK::Min, least, d) : d;
      }
      far.push_back(let("near", least ? least : pool_.integer(kNever), body));
    }
    Expr taken = pool_.integer(static_cast<int64_t>(plans.size()) - 1);
    Expr rest = far.back();  // the least of those behind
    for (size_t k = plans.size() - 1; k-- > 0;) {
      taken = pool_.select(pool_.binary(EK::Le, far[k], rest),
                           pool_.integer(static_cast<int64_t>(k)), taken);
      rest = pool_.binary(EK::Min, far[k], rest);
    }
    return let("nearest", taken, body);
  }

  // Names of a plan that earlier ones have as well. Temporary tensors of the same type stay what
  // they are: only one of the plans runs.
  matile::Renaming renaming_of(const ir::Program& plan) {
    std::set<std::string> kept;
    for (const Op& op : plan.body) {
      const auto* tensor = op.get<matile::Tensor>();
      const auto before = tensor ? temps_.find(std::string(tensor->name.str())) : temps_.end();
      if (before != temps_.end() && before->second == op) kept.insert(before->first);
    }
    matile::Renaming out;
    for (const std::string& name : matile::defined_names(plan.body)) {
      if (shared_.contains(name) || kept.contains(name)) continue;
      const bool is_free = taken_.insert(ir::flat_name(name)).second;
      if (!is_free) out.emplace(name, fresh(name));
    }
    return out;
  }

  // Sizes of the type are the program's own.
  bool is_for_all(const matile::Tensor& tensor) const {
    return std::all_of(tensor.type.dims.begin(), tensor.type.dims.end(), [&](Expr dim) {
      const auto vars = expr::free_vars(dim);
      return std::all_of(vars.begin(), vars.end(),
                         [&](Expr v) { return shared_.contains(v.name().str()); });
    });
  }

  // Kernels with the same text are one: the kernel without its name and what it uses of the plan,
  // names of the plan as numbers. Empty for one that shares memory or launches with other kernels
  // of its plan.
  std::string text_of(const matile::Kernel& kernel, const ir::Program& plan) const {
    std::map<std::string, const Op*, std::less<>> definitions;
    for (const Op& op : plan.body) {
      if (const auto* launch = op.get<matile::Launch>();
          launch && launch->unaligned_fallback &&
          (launch->unaligned_fallback == kernel.name || launch->kernel == kernel.name))
        return "";
      const auto* let = op.get<matile::Let>();
      const auto* map = op.get<matile::Map>();
      const auto* tensor = op.get<matile::Tensor>();
      if (let) definitions.emplace(let->name.str(), &op);
      if (map) definitions.emplace(map->name.str(), &op);
      if (tensor && is_of_plan(op)) definitions.emplace(tensor->name.str(), &op);
    }
    matile::Kernel unnamed = kernel;
    unnamed.name = pool_.name("kernel");
    std::string text = ir::print(ir::make(std::move(unnamed)));
    std::map<std::string, size_t, std::less<>> numbers;
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const auto is_word = [&](size_t k) {
        return k < text.size() && (std::isalnum(static_cast<unsigned char>(text[k])) ||
                                   text[k] == '_' || text[k] == '.');
      };
      size_t end = i;
      while (is_word(end)) ++end;
      if (end == i || std::isdigit(static_cast<unsigned char>(text[i]))) {
        end = std::max(end, i + 1);
        out += text.substr(i, end - i);
      } else if (const std::string word = text.substr(i, end - i); shared_.contains(word)) {
        out += word;
      } else {
        const auto [number, is_new] = numbers.emplace(word, numbers.size());
        out += "$" + std::to_string(number->second);
        const auto it = definitions.find(word);
        if (is_new && it != definitions.end()) {
          const auto* tensor = it->second->get<matile::Tensor>();
          if (tensor && tensor->role == matile::TensorRole::Temp) return "";
          text += "\n" + ir::print(*it->second);
        }
      }
      i = end;
    }
    return out;
  }

  void add(const ir::Program& plan, Expr is_taken, ir::Block& body,
           std::map<std::string, std::string>& kernels) {
    matile::Renaming renaming = renaming_of(plan);
    std::set<std::string> known;  // kernels of earlier plans
    for (const Op& op : plan.body) {
      const auto* kernel = op.get<matile::Kernel>();
      const std::string text = kernel ? text_of(*kernel, plan) : "";
      if (text.empty()) continue;
      const std::string name(kernel->name.str());
      const auto it = renaming.find(name);
      const auto [first, is_new] =
          texts_.emplace(text, it == renaming.end() ? kernel->name : it->second);
      if (is_new) continue;
      known.insert(name);
      renaming.insert_or_assign(name, first->second);
    }
    for (const Op& old : plan.body) {
      if (!is_of_plan(old)) continue;
      Op op = matile::rename_names(old, renaming, pool_);
      if (const auto* tensor = op.get<matile::Tensor>()) {
        const std::string name(tensor->name.str());
        if (temps_.contains(name)) continue;  // of an earlier plan
        if (tensor->role == matile::TensorRole::Temp && is_for_all(*tensor))
          temps_.emplace(name, op);
      }
      if (const auto* kernel = old.get<matile::Kernel>()) {
        kernels.emplace(kernel->name.str(), op.as<matile::Kernel>().name.str());
        if (known.contains(std::string(kernel->name.str()))) continue;
      }
      if (const auto* launch = op.get<matile::Launch>(); launch && is_taken) {
        matile::Launch guarded = *launch;
        const Expr grid = launch->grid;
        const bool has_condition = grid.op() == EK::Select && grid[2].is_int(0);
        guarded.grid =
            pool_.select(has_condition ? pool_.binary(EK::And, is_taken, grid[0]) : is_taken,
                         has_condition ? grid[1] : grid, pool_.integer(0));
        op = ir::make(std::move(guarded), op.span());
      }
      body.push_back(std::move(op));
    }
  }

  expr::ExprPool& pool_;
  matile::Names shared_;                   // of declarations
  std::set<std::string> taken_;            // as emitted text has them
  std::set<std::string> meant_;            // of all plans: a new name is none of them
  std::map<std::string, Expr> sizes_;      // of the launch, by dim
  std::map<std::string, Op> temps_;        // whose sizes are the program's own
  std::map<std::string, ir::Name> texts_;  // of kernels
};

}  // namespace

PlanBySizes plan_by_sizes(const std::vector<SizedPlan>& plans, expr::ExprPool& pool) {
  return Joiner(pool).run(plans);
}

}  // namespace nautilus::lower
