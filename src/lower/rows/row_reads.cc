// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_reads.h"

#include <algorithm>

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

void RowReads::collect(Expr e, bool is_always) {
  if (!visited_.emplace(e, is_always).second) return;
  if (e.op() == EK::Read && values_.element(e)) return collect(*values_.element(e), is_always);
  if (!values_.is_own(e) && scope_.is_along_row(e) && (is_always || is_inside(e))) {
    if (std::find(reads_.begin(), reads_.end(), e) == reads_.end()) reads_.push_back(e);
    return;
  }
  const bool is_lazy = e.op() == EK::Select || e.op() == EK::And || e.op() == EK::Or;
  for (size_t k = 0; k < e.args().size(); ++k) collect(e[k], is_always && !(is_lazy && k > 0));
}

bool RowReads::is_inside(Expr read) const {
  const auto it = scope_.buffers.find(std::string(read.name().str()));
  if (it == scope_.buffers.end()) return false;
  expr::Facts facts = scope_.facts;
  for (const ir::Axis& a : scope_.group.rows) facts.add_axis(scope_.pool.index(a.name), a.extent);
  for (const ir::Axis& a : scope_.group.outer) facts.add_axis(scope_.pool.index(a.name), a.extent);
  facts.add_axis(scope_.pool.index(scope_.group.column.name), scope_.group.column.extent);
  if (scope_.group.exists) facts.assume(scope_.group.exists);
  for (size_t k = 0; k < read.args().size(); ++k) {
    const Expr low = scope_.pool.binary(EK::Ge, read[k], scope_.pool.integer(0));
    const Expr high = scope_.pool.binary(EK::Lt, read[k], it->second.dims[k]);
    if (facts.prove(low) != expr::Truth::True || facts.prove(high) != expr::Truth::True)
      return false;
  }
  return true;
}

}  // namespace nautilus::lower
