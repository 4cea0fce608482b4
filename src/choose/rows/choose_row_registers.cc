// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/choose_row_registers.h"

#include "choose/rows/named_rows.h"
#include "choose/rows/row_rules.h"
#include "ir/target_of.h"
#include "lower/rows/row_lines.h"
#include "lower/rows/row_lowering.h"
#include "matile/passes/memory/prefetch_rows.h"

namespace nautilus::choose {
namespace {

using ir::Op;

// The lines that each alternative of a kernel lacks; nothing if one of those it has is refused.
std::optional<std::vector<ir::Block>> missing_lines(const std::vector<ir::Block>& alternatives,
                                                    const lower::RowContext& rows,
                                                    ir::PassContext& context) {
  diag::Sink ignored(context.sink.sources());
  ir::PassContext silent{context.pool, ignored, {}};
  std::vector<lower::RowShape> shapes;
  for (size_t k = 0; k < alternatives.size(); ++k) {
    const auto shape = lower::RowLines(alternatives[k], k == 0, rows, silent).read();
    if (!shape) return std::nullopt;
    shapes.push_back(*shape);
  }
  ir::Block plan;
  size_t unreached = 0;
  const auto launched = lower::row_alternatives(shapes, rows, plan, &unreached);
  if (!launched) return std::nullopt;
  std::vector<ir::Block> out;
  for (size_t k = 0; k < alternatives.size(); ++k) {
    RowRules rules(*rows.group.target, alternatives[k]);
    const matile::Kernel kernel =
        lower::RowLowering(rows, (*launched)[k], context.pool.name(lower::row_stem(rows.group)),
                           rules)
            .run();
    out.push_back(rules.chosen());
    const auto ahead = matile::usual_rows_ahead(kernel, rows.choice(), rows.pool);
    if (ahead && !shapes[k].ahead) out.back().push_back(ir::make(decision::Ahead{*ahead, {}}));
  }
  return out;
}

// Of the kernel at `begin`: its consecutive alternatives.
size_t alternatives_from(const ir::Block& body, size_t begin) {
  const auto& first = body[begin].as<decision::Kernel>();
  size_t end = begin + 1;
  for (; end < body.size(); ++end) {
    const auto* next = body[end].get<decision::Kernel>();
    if (!next || next->name != first.name || next->form != first.form) break;
  }
  return end - begin;
}

}  // namespace

std::optional<ir::Program> choose_row_registers(const ir::Program& program,
                                                ir::PassContext& context) {
  NamedRows named(program, context.pool);
  ir::Program out = program;
  for (size_t k = 0; k < out.body.size();) {
    const auto* kernel = out.body[k].get<decision::Kernel>();
    if (!kernel || kernel->form != decision::Form::Rows) {
      ++k;
      continue;
    }
    const lower::AskedKernel& asked = named.find(kernel->name);
    // Another kernel may name the statement, too, which lowering refuses.
    const size_t count = alternatives_from(out.body, k);
    const bool is_own = asked.name == kernel->name && asked.form == kernel->form &&
                        asked.alternatives.size() == count;
    auto rows = is_own ? named.rows(asked) : std::nullopt;
    const auto missing =
        rows ? missing_lines(asked.alternatives, named.context(*rows), context) : std::nullopt;
    for (size_t n = 0; n < count && missing; ++n) {
      decision::Kernel completed = out.body[k + n].as<decision::Kernel>();
      completed.body.insert(completed.body.end(), (*missing)[n].begin(), (*missing)[n].end());
      out.body[k + n] = ir::make(std::move(completed));
    }
    k += count;
  }
  return out;
}

}  // namespace nautilus::choose
