// SPDX-License-Identifier: Apache-2.0
#include "compile/levels.h"

#include "matile/ops.h"
#include "scalar/ops.h"
#include "spec/ops.h"
#include "vrtile/ops.h"

namespace nautilus::compile {

const std::vector<const ir::Level*>& levels() {
  static const std::vector<const ir::Level*> all = {&spec::level(), &scalar::level(),
                                                    &vrtile::level(), &matile::level()};
  return all;
}

const ir::Level* find_level(std::string_view name) {
  for (const ir::Level* l : levels()) {
    if (l->name == name) return l;
  }
  return nullptr;
}

bool verify(const ir::Program& program, diag::Sink& sink) {
  if (program.level == &spec::level()) return spec::verify(program, sink);
  if (program.level == &scalar::level()) return scalar::verify(program, sink);
  if (program.level == &vrtile::level()) return vrtile::verify(program, sink);
  return matile::verify(program, sink);
}

}  // namespace nautilus::compile
