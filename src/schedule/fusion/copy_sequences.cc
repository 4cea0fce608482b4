// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/copy_sequences.h"

#include <unordered_set>

#include "expr/walk.h"

namespace nautilus::schedule {

int copy_sequences(const Fusion& fusion) {
  std::unordered_set<Expr> loaded;
  int count = 0;
  for (const Dot& d : fusion.dots) {
    bool is_new = false;
    for (const Expr element : {d.row_element, d.column_element}) {
      const bool is_streamed =
          element && expr::depends_on(element, fusion.stream) && !fusion.by_name(element.name());
      if (is_streamed) is_new |= loaded.insert(element).second;
    }
    count += is_new ? 1 : 0;
  }
  return count;
}

}  // namespace nautilus::schedule
