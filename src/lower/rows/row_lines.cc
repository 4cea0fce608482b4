// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_lines.h"

#include <fmt/format.h>

#include <bit>

#include "estimate/registers.h"

namespace nautilus::lower {

using decision::GroupKind;
using decision::HoldKind;

RowLines::RowLines(const ir::Block& alternative, bool is_first, const RowContext& rows,
                   ir::PassContext& context)
    : rows_(rows),
      is_first_(is_first),
      context_(context.with(context.sink, decided_)),
      body_(decision::with_lines({}, alternative)),
      columns_(context_),
      vector_(context_),
      hold_(context_),
      lanes_(context_),
      groups_(context_),
      cluster_(context_),
      each_(context_),
      registers_(context_),
      ahead_(context_),
      shared_(context_),
      keep_(context_),
      unpacked_(context_),
      moving_(context_) {
  read_last_ = decision::take_read_last(body_);
  columns_.begin(body_);
  vector_.begin(body_);
  hold_.begin(body_);
  lanes_.begin(body_);
  groups_.begin(body_);
  cluster_.begin(body_);
  each_.begin(body_);
  registers_.begin(body_);
  ahead_.begin(body_);
  shared_.begin(body_);
  keep_.begin(body_);
  unpacked_.begin(body_);
  moving_.begin(body_);
}

// The order matters: what is read first limits what follows.
std::optional<RowShape> RowLines::read() {
  if (!decision::refuse_all(decision::lines(body_), "kernels along rows have no such line",
                            context_))
    return std::nullopt;
  if (!columns_.asked()) {
    refuse("it has no line `columns`, which choose_row_shapes writes");
    return std::nullopt;
  }
  RowShape shape;
  const auto ok = [&](auto& choice, const std::string& why) {
    if (!why.empty()) choice.refuse(why);
    return why.empty();
  };
  if (!ok(vector_, read_vector(shape)) || !ok(hold_, read_hold(shape)) ||
      !ok(lanes_, read_lanes(shape)) || !ok(groups_, read_groups(shape)) ||
      !ok(cluster_, read_cluster(shape)) || !ok(columns_, read_columns(shape)) ||
      !ok(each_, read_each(shape)) || !ok(registers_, read_registers(shape)) ||
      !ok(ahead_, read_ahead(shape)))
    return std::nullopt;
  return shape;
}

std::string RowLines::read_vector(RowShape& shape) {
  if (!vector_.asked()) return "";
  const int64_t by = vector_.asked()->elements.value_or(0);
  const int64_t most = most_row_vector(rows_);
  if (by < 1 || by > most || !std::has_single_bit(static_cast<uint64_t>(by)))
    return fmt::format("a vector of these tensors has a power of two of elements up to {}", most);
  shape.by = by;
  shape.start = vector_.asked()->start;
  if (shape.is_shifted()) return refused_boundary(shape);
  if (is_first_ && by != 1)
    return "the first alternative takes tensors of any alignment, which is `vector 1` or "
           "`boundary`";
  for (const expr::Expr n : {rows_.columns(), rows_.length()}) {
    if (n.op() == expr::Op::IntConst && n.integer() % by != 0)
      return fmt::format("rows of {} columns have no whole vectors", n.integer());
  }
  return "";
}

std::string RowLines::refused_boundary(const RowShape& shape) const {
  const int64_t most = most_row_vector(rows_);
  if (shape.by != most) return fmt::format("boundaries are those of vectors of {}", most);
  if (!is_first_ && has_elements_only(rows_.group))
    return "the first alternative takes all rows of any alignment";
  if (are_whole_vectors(rows_, shape.by)) return "rows are whole vectors and begin at boundaries";
  if (!rows_.group.outer.empty())
    return "reductions over several axes count through their rows, which have no common boundary";
  return row_reference(rows_) ? "" : "where a row begins is known from values only";
}

std::string RowLines::read_hold(RowShape& shape) {
  if (has_elements_only(rows_.group)) return "";  // end() refuses a line
  if (hold_.asked()) shape.hold = hold_.asked()->kind;
  const bool is_known = rows_.columns().op() == expr::Op::IntConst;
  if (shape.hold == HoldKind::Filled && shape.is_shifted())
    return "rows that fill the tiles are whole vectors";
  if (shape.hold == HoldKind::Filled && is_known)
    return "the number of columns is known: `hold row`";
  if (shape.is_held() && !rows_.group.outer.empty())
    return "reductions over several axes walk over their rows, which is `hold steps`";
  if (!is_first_ && shape.is_shifted() && !shape.is_held())
    return "the first alternative takes all rows of any alignment that are not held";
  if (is_first_ && shape.is_held() && !is_known)
    return "the first alternative takes rows of any length, which is `hold steps`";
  return "";
}

// Lanes hold a row from its beginning, without a barrier between them.
std::string RowLines::read_lanes(RowShape& shape) {
  if (!lanes_.asked()) return "";
  const int64_t warp = rows_.group.target->limits.warp_threads;
  const int64_t lanes = lanes_.asked()->count.value_or(0);
  if (lanes < 1 || lanes > warp || !std::has_single_bit(static_cast<uint64_t>(lanes)))
    return fmt::format("lanes that share a row are a power of two up to {}", warp);
  if (!shape.is_held()) return "lanes share rows that are held";
  if (shape.hold != HoldKind::Row || shape.is_shifted())
    return "lanes have rows from their beginning on: `hold row`, without `boundary`";
  shape.lanes = lanes;
  return "";
}

std::string RowLines::read_groups(RowShape& shape) {
  if (shape.lanes > 0) return groups_.asked() ? "lanes of a warp share the row" : "";
  if (!shape.is_held()) {
    shape.groups = 1;
    return groups_.asked() ? "groups share rows that are held" : "";
  }
  if (!groups_.asked()) return "";
  const target::Limits& limits = rows_.group.target->limits;
  const int64_t most =
      std::min<int64_t>(limits.role_groups, limits.cta_threads / rows_.choice().threads);
  const int64_t groups = groups_.asked()->count.value_or(0);
  if (groups < 1 || groups > most || groups_.asked()->kind != GroupKind::Sharing)
    return fmt::format("1 to {} groups share a row", most);
  shape.groups = groups;
  return "";
}

std::string RowLines::read_cluster(RowShape& shape) {
  if (!cluster_.asked()) return "";
  if (!shape.is_held()) return "CTAs of a cluster share rows that are held";
  if (shape.lanes > 0) return "lanes of a warp share the row";
  const int64_t most = rows_.group.target->limits.cluster_ctas;
  const int64_t ctas = cluster_.asked()->tiles.value_or(0);
  if (ctas < 1 || ctas > most) return fmt::format("1 to {} CTAs share a row", most);
  shape.ctas = ctas;
  return "";
}

std::string RowLines::read_columns(RowShape& shape) {
  const int64_t parts = shape.ctas * shape.groups;
  const int64_t holders = shape.holders(rows_.choice());
  const int64_t unit = parts * holders * std::max<int64_t>(shape.by, 2);
  const int64_t all = columns_.asked()->count.value_or(0);
  if (all < unit || all % unit != 0)
    return shape.lanes > 0
               ? fmt::format("the columns of {} lanes are a multiple of {}", holders, unit)
               : fmt::format("the columns of {} groups of {} threads are a multiple of {}", parts,
                             holders, unit);
  if (shape.lanes == 1 && shape.by == 1 && all > unit)
    return "one lane has neighbours of its row: `vector 1` is for two lanes or more";
  shape.columns = all / parts;
  const expr::Expr n = rows_.columns();
  if (shape.is_held() && n.op() == expr::Op::IntConst && n.integer() + shape.most_lead() > all)
    return fmt::format(
        "rows have {} columns{}", n.integer(),
        shape.is_shifted() ? fmt::format(", with up to {} in front", shape.most_lead()) : "");
  const RowRoom room = row_room(rows_, shape);
  if (all > unit && room.needed > room.given)
    return fmt::format("they take {} registers of a thread, {} are there for them", room.needed,
                       room.given);
  return "";
}

std::string RowLines::read_each(RowShape& shape) {
  if (!each_.asked() || rows_.group.outer.empty()) return "";  // end() refuses a line
  shape.each = each_.asked()->points.value_or(0);
  const int64_t most = rows_.choice().most_walked_rows;
  return shape.each < 1 || shape.each > most
             ? fmt::format("a step loads 1 to {} rows at once", most)
             : "";
}

std::string RowLines::read_registers(RowShape& shape) {
  if (!registers_.asked()) return "";
  const target::Limits& limits = rows_.group.target->limits;
  const int64_t asked = registers_.asked()->compute.value_or(0);
  if (registers_.asked()->load) return "kernels along rows have no loader warps";
  const int64_t threads = shape.groups * rows_.choice().threads;
  const int64_t most = std::min<int64_t>(limits.launch_registers, limits.sm_registers / threads);
  if (asked % limits.register_step != 0 || asked < limits.least_role_registers || asked > most)
    return fmt::format("a thread of them has {} to {} registers, a multiple of {}",
                       limits.least_role_registers, most, limits.register_step);
  // The compiler of the text is told how many CTAs share a multiprocessor.
  const int64_t all = estimate::most_registers(threads, asked, limits);
  if (all != asked)
    return fmt::format("as many CTAs share a multiprocessor if a thread has {} registers", all);
  shape.registers = asked;
  return "";
}

std::string RowLines::read_ahead(RowShape& shape) {
  if (!ahead_.asked()) return "";
  // The shortest rows, of a byte each, take the bytes that are worth asking for.
  const int64_t most = rows_.choice().ahead_bytes / rows_.choice().least_columns;
  const int64_t rows = ahead_.asked()->rows.value_or(-1);
  if (rows < 0 || rows > most) return fmt::format("0 to {} rows are asked for ahead", most);
  shape.ahead = rows;
  return "";
}

void RowLines::refuse(std::string_view why) {
  columns_.refuse(why);
  if (!columns_.asked())
    context_.sink.report(diag::Code::DecisionRefused, {},
                         fmt::format("`kernel ... rows`: {}", why));
}

// The line of the operand, which is then taken. Null if it is missing.
template <class D>
const D* RowLines::line(decision::OperandChoice<D>& choice, ir::Name operand) {
  const D* asked = choice.asked(operand);
  if (!asked)
    missing_ = fmt::format("{} {}", D::info().name, operand.str());
  else
    choice.took(*asked);
  return asked;
}

bool RowLines::is_late(ir::Name tensor, const RowUse&, int64_t, int64_t) {
  const auto* asked = line(shared_, tensor);
  return asked && asked->moment == decision::Moment::Late;
}

bool RowLines::is_held(ir::Name statement, const RowUse&, int64_t) {
  const auto* asked = line(keep_, statement);
  return asked && asked->use == decision::Switch::On;
}

bool RowLines::stays_unpacked(ir::Name reduction, const RowUse&, int64_t) {
  const auto* asked = line(unpacked_, reduction);
  return asked && asked->use == decision::Switch::On;
}

bool RowLines::moves(ir::Name sum, const RowUse&) {
  const auto* asked = line(moving_, sum);
  return asked && asked->use == decision::Switch::On;
}

int64_t RowLines::registers(const RowUse& use, int64_t) {
  if (!use.shape.registers) missing_ = "registers";
  return use.shape.registers.value_or(0);
}

bool RowLines::end(const RowShape& shape, bool has_rows) {
  if (has_rows && !shape.ahead) missing_ = "ahead";
  if (!missing_.empty()) {
    refuse(fmt::format("it has no line `{}`, which choose_row_registers writes", missing_));
    return false;
  }
  columns_.took({shape.capacity(), {}});
  vector_.took({.elements = shape.by, .start = shape.start});
  if (!has_elements_only(rows_.group)) hold_.took({shape.hold, {}});
  if (shape.lanes > 0) lanes_.took({shape.lanes, {}});
  if (shape.is_held() && shape.lanes == 0) groups_.took({shape.groups, GroupKind::Sharing, {}});
  if (cluster_.asked()) cluster_.took({shape.ctas, {}});
  if (!rows_.group.outer.empty()) each_.took({shape.each, {}});
  registers_.took({*shape.registers, {}, {}});
  if (has_rows) ahead_.took({shape.ahead.value_or(0), {}});
  return columns_.end("") && vector_.end("") &&
         hold_.end("elements without reductions need no row") &&
         lanes_.end("elements without reductions need no row") &&
         groups_.end("groups share rows that are held") &&
         cluster_.end("CTAs of a cluster share rows that are held") &&
         each_.end("reductions over one axis have one row") && registers_.end("") &&
         shared_.end("the kernel loads no such tensor that all rows share, or not with its row") &&
         keep_.end("these elements are needed once, or are no work to compute again") &&
         unpacked_.end("no elements of 16 bits are unpacked for it and needed behind it") &&
         moving_.end("it is no sum that can be taken in the walk of the numbers it needs") &&
         ahead_.end("the kernel loads no whole rows by vectors");
}

}  // namespace nautilus::lower
