// SPDX-License-Identifier: Apache-2.0
// The statements and the form of a row kernel that a program names, for passes that choose its
// lines.
#pragma once

#include <optional>

#include "lower/asked_kernels.h"
#include "lower/program_nests.h"
#include "lower/rows/row_shapes.h"

namespace nautilus::choose {

class NamedRows {
 public:
  NamedRows(const ir::Program& program, expr::ExprPool& pool);

  struct Rows {
    lower::RowGroup group;
    std::set<std::string> kept;
    std::map<std::string, ir::TensorType> buffers;
    lower::FreshNames names;
  };

  // The kernel that computes the statement.
  const lower::AskedKernel& find(ir::Name statement);
  // Nothing if the kernel has no row form.
  std::optional<Rows> rows(const lower::AskedKernel& asked) const;
  lower::RowContext context(Rows& rows) const {
    return {rows.group, rows.kept, rows.buffers, facts_, rows.names, pool_};
  }

 private:
  expr::ExprPool& pool_;
  const target::Target& target_;
  expr::Facts facts_;
  lower::ProgramNests nests_;
  lower::AskedKernels asked_;
};

}  // namespace nautilus::choose
