// SPDX-License-Identifier: Apache-2.0
#include "plan/variants.h"

#include "matile/ops.h"
#include "matile/passes/memory/repack.h"

namespace nautilus::plan {

Executable::VariantMaker repacked_variants(const ir::Program& program, expr::ExprPool& pool,
                                           runtime::Device& device, std::string architecture) {
  return
      [&program, &pool, &device, architecture = std::move(architecture)](
          const std::set<std::string>& tensors, std::string* error) -> std::unique_ptr<Executable> {
        auto other = std::make_unique<ir::Program>(matile::repack(program, tensors, pool));
        auto kernels = compile_device(*other, pool, architecture, true, error);
        if (!kernels) return nullptr;
        auto executable = Executable::load(*other, std::move(*kernels), device, error);
        if (executable) executable->keep(std::move(other));
        return executable;
      };
}

std::set<std::string> repackable_tensors(const ir::Program& program) {
  std::set<std::string> names;
  for (const matile::TensorRole role :
       {matile::TensorRole::Input, matile::TensorRole::Output, matile::TensorRole::Temp}) {
    for (const auto& [name, type] : matile::tensors(program, role)) names.insert(name);
  }
  return names;
}

}  // namespace nautilus::plan
