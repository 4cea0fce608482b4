// SPDX-License-Identifier: Apache-2.0
#include "driver/report/memory_use.h"

#include "expr/walk.h"
#include "matile/results.h"

namespace nautilus::driver {
namespace {

class UseCollector {
 public:
  explicit UseCollector(const ir::Program& program) {
    for (const ir::Op& op : program.body) {
      if (const auto* t = op.get<matile::Tensor>()) tensors_.emplace(t->name.str());
      const auto* map = op.get<matile::Map>();
      if (!map) continue;
      for (expr::Name n : expr::tensors_read(map->value)) of_map_.emplace(map->name.str(), n.str());
    }
  }

  MemoryUse run(const matile::Kernel& kernel) {
    visit(kernel.body, &kernel);
    for (const auto& [tensor, loops] : loops_) use_.reads[tensor] = static_cast<int>(loops.size());
    return std::move(use_);
  }

 private:
  // `loop`: what repeats the block, the kernel itself at first.
  void visit(const ir::Block& block, const void* loop) {
    for (const ir::Op& op : block) {
      const bool repeats = op.is<matile::Loop>() || op.is<matile::SharedLoop>() ||
                           op.is<matile::LaneLoop>() || op.is<matile::Sort>() ||
                           op.is<matile::Search>();
      use_.has_products |= op.is<matile::Dot>() || op.is<matile::WarpDot>();
      // Prefetched elements are counted when they are read.
      if (!op.is<matile::Prefetch>()) visit_fields(op, repeats ? op.data() : loop, loop);
    }
  }

  void visit_fields(const ir::Op& op, const void* inner, const void* loop) {
    if (const auto* copy = op.get<matile::Copy>()) read(copy->map.str(), loop);
    for (const ir::Field& f : op.info().fields) {
      if (f.kind == ir::FieldKind::Body) visit(ir::field_value<ir::Block>(op.data(), f), inner);
      if (f.kind == ir::FieldKind::Expr) read(ir::field_value<ir::Expr>(op.data(), f), loop);
      if (f.kind != ir::FieldKind::ExprList) continue;
      for (ir::Expr e : ir::field_value<ir::Exprs>(op.data(), f)) read(e, loop);
    }
  }

  void read(ir::Expr e, const void* loop) {
    if (!e) return;
    for (expr::Name n : expr::tensors_read(e)) read(n.str(), loop);
  }
  void read(std::string_view name, const void* loop) {
    if (const std::string tensor = tensor_of(name); !tensor.empty()) loops_[tensor].insert(loop);
  }

  // Of a tensor's own name, or of a map; empty for tiles.
  std::string tensor_of(std::string_view name) const {
    if (tensors_.contains(name)) return std::string(name);
    const auto it = of_map_.find(name);
    return it == of_map_.end() ? "" : it->second;
  }

  std::set<std::string, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> of_map_;
  std::map<std::string, std::set<const void*>> loops_;
  MemoryUse use_;
};

}  // namespace

MemoryUse memory_use(const matile::Kernel& kernel, const ir::Program& program) {
  MemoryUse out = UseCollector(program).run(kernel);
  for (const std::string& tensor : matile::results_of(kernel.body, program.body))
    out.writes.insert(tensor);
  return out;
}

}  // namespace nautilus::driver
