// SPDX-License-Identifier: Apache-2.0
// Reads and their indices: provably inside, guarded, or through another tensor.
#include <fmt/format.h>

#include <algorithm>

#include "expression_generator.h"

namespace nautilus::fuzz {

using expr::DType;
using expr::is_int;

namespace {

std::string_view zero(DType dtype) { return dtype == DType::Bool ? "false" : "0"; }

}  // namespace

std::vector<size_t> ExpressionGenerator::axes_of(int extent) const {
  std::vector<size_t> out;
  for (size_t k = 0; k < axes_.size(); ++k) {
    if (axes_[k].extent == extent) out.push_back(k);
  }
  return out;
}

// Tensors with an axis of the surroundings are preferred: a read that varies tests more.
const Tensor* ExpressionGenerator::tensor_of(DType compute) {
  std::vector<const Tensor*> all;
  std::vector<const Tensor*> related;
  for (const Tensor& t : world_.tensors) {
    if (expr::compute_dtype(t.dtype) != compute) continue;
    all.push_back(&t);
    if (std::any_of(t.dims.begin(), t.dims.end(), [&](int d) { return !axes_of(d).empty(); }))
      related.push_back(&t);
  }
  if (!related.empty() && chance(0.8)) all = related;
  return all.empty() ? nullptr : all[random_.next() % all.size()];
}

std::string ExpressionGenerator::read(const Tensor& tensor) {
  return element(tensor, tensor.dims.size(), 0);
}

std::string ExpressionGenerator::read_along(const Tensor& tensor, size_t axis) {
  std::vector<size_t> fitting;
  for (size_t k = 0; k < tensor.dims.size(); ++k) {
    if (tensor.dims[k] == axes_[axis].extent) fitting.push_back(k);
  }
  return element(tensor, fitting[random_.next() % fitting.size()], static_cast<int>(axis));
}

std::string ExpressionGenerator::element(const Tensor& tensor, size_t fixed_position,
                                         int fixed_axis) {
  std::string indices;
  std::vector<std::string> guards;
  for (size_t k = 0; k < tensor.dims.size(); ++k) {
    if (k) indices += ", ";
    if (k == fixed_position) {
      Axis& axis = axes_[static_cast<size_t>(fixed_axis)];
      ++axis.direct_uses;
      indices += axis.name;
    } else {
      indices += position(tensor.dims[k], guards, 2);
    }
  }
  std::string text = fmt::format("{}[{}]", tensor.name, indices);
  if (guards.empty()) return text;
  std::string condition;
  for (const std::string& g : guards) condition += (condition.empty() ? "" : " and ") + g;
  if (tensor.dtype == DType::Bool && chance(0.4)) {
    return chance(0.5) ? fmt::format("({} and {})", condition, text)
                       : fmt::format("(not ({}) or {})", condition, text);
  }
  if (chance(0.15)) {
    return fmt::format("where(not ({}), {}, {})", condition, zero(tensor.dtype), text);
  }
  return fmt::format(
      "where({}, {}, {})", condition, text,
      chance(0.7) ? std::string(zero(tensor.dtype)) : literal(expr::compute_dtype(tensor.dtype)));
}

// An index for a dimension; what has to hold for it to lie inside is added to `guards`.
std::string ExpressionGenerator::position(int extent, std::vector<std::string>& guards, int depth) {
  const std::vector<size_t> fitting = axes_of(extent);
  if (!fitting.empty() && chance(0.75)) {
    Axis& axis = axes_[fitting[random_.next() % fitting.size()]];
    ++axis.direct_uses;
    return axis.name;
  }
  if (chance(0.2)) {
    if (std::string text = gathered(extent, guards, depth); !text.empty()) return text;
  }
  if (chance(0.7)) {
    if (std::string text = inside(extent); !text.empty()) return text;
  }
  return guarded(extent, guards);
}

// Provably inside, or empty.
std::string ExpressionGenerator::inside(int extent) {
  const Extent& e = world_.extents[static_cast<size_t>(extent)];
  std::vector<std::string> options;
  for (const Axis& axis : axes_) {
    const Extent& other = world_.extents[static_cast<size_t>(axis.extent)];
    if (axis.extent == extent) {
      options.push_back(fmt::format("{} - 1 - {}", e.text, axis.name));
      options.push_back(fmt::format("({} - {}) - 1", e.text, axis.name));
      options.push_back(fmt::format("{} / 2", axis.name));
      options.push_back(fmt::format("{0} / 2 * 2", axis.name));
    }
    if (e.form == Extent::Form::Scaled && axis.extent == e.base) {
      options.push_back(fmt::format("{} * {}", axis.name, e.factor_text));
      options.push_back(fmt::format("{} * {} + {}", e.factor_text, axis.name, e.factor - 1));
      for (const Axis& minor : axes_) {
        const Extent& m = world_.extents[static_cast<size_t>(minor.extent)];
        if (m.form == Extent::Form::Constant && m.value == e.factor) {
          options.push_back(fmt::format("{} * {} + {}", axis.name, e.factor_text, minor.name));
        }
      }
    }
    if (e.form == Extent::Form::Shifted && axis.extent == e.base) {
      options.push_back(fmt::format("{} + {}", axis.name, random_.integer(0, e.factor)));
    }
    if (other.form == Extent::Form::Scaled && other.base == extent) {
      options.push_back(fmt::format("{} / {}", axis.name, other.factor_text));
    }
    if (e.form == Extent::Form::Quotient && axis.extent == e.base)
      options.push_back(fmt::format("{} / {}", axis.name, e.factor_text));
    if (other.form == Extent::Form::Quotient && other.base == extent)
      options.push_back(fmt::format("{} * {}", axis.name, other.factor_text));
    for (const Extent& q : world_.extents) {
      if (q.form != Extent::Form::Quotient || axis.extent != q.base) continue;
      if (q.divisor == extent) options.push_back(fmt::format("{} / ({})", axis.name, q.text));
      if (&q == &e) options.push_back(fmt::format("{} % ({})", axis.name, q.text));
    }
    if (e.form == Extent::Form::Constant) {
      options.push_back(fmt::format("{} % {}", axis.name, e.text));
      options.push_back(fmt::format("({} * 2 + 1) % {}", axis.name, e.value));
    }
  }
  if (e.form == Extent::Form::Constant) {
    options.push_back(fmt::format("{}", random_.integer(0, e.value - 1)));
  }
  return options.empty() ? "" : options[random_.next() % options.size()];
}

std::string ExpressionGenerator::guarded(int extent, std::vector<std::string>& guards) {
  const Extent& e = world_.extents[static_cast<size_t>(extent)];
  if (axes_.empty() || chance(0.1)) {
    const int64_t at = random_.integer(0, 2);
    guards.push_back(fmt::format("{} > {}", e.text, at));
    return fmt::format("{}", at);
  }
  const Axis& a = axes_[random_.next() % axes_.size()];
  const Axis& b = axes_[random_.next() % axes_.size()];
  std::string index;
  switch (random_.integer(0, 6)) {
    case 0:
      index = fmt::format("{} - {}", a.name, random_.integer(1, 2));
      break;
    case 1:
      index = fmt::format("{} + {}", a.name, random_.integer(0, 2));
      break;
    case 2:
      index = fmt::format("2 * {} - {}", a.name, b.name);
      break;
    case 3:
      index = fmt::format("{} - {} + {}", a.name, b.name, random_.integer(0, 2));
      break;
    case 4:
      index = fmt::format("({} + {}) / 2", a.name, b.name);
      break;
    case 5:
      guards.push_back(fmt::format("{} > 0", e.text));
      if (chance(0.5)) return fmt::format("{} % ({})", a.name, e.text);
      return fmt::format("min({} * 1, {} - 1)", a.name, e.text);
    default: {
      for (const Scalar& s : world_.scalars) {
        if (is_int(s.dtype)) index = fmt::format("{} - {}", a.name, s.name);
      }
      if (index.empty()) index = fmt::format("{} * 3 - {}", a.name, random_.integer(0, 3));
    }
  }
  guards.push_back(chance(0.5) ? fmt::format("{} >= 0", index) : fmt::format("0 <= {}", index));
  guards.push_back(fmt::format("{} < {}", index, e.text));
  if (chance(0.3)) std::swap(guards[guards.size() - 1], guards[guards.size() - 2]);
  return index;
}

// Through an integer tensor: as it is (the drawn inputs stay inside), or limited by arithmetic.
std::string ExpressionGenerator::gathered(int extent, std::vector<std::string>& guards, int depth) {
  const Extent& e = world_.extents[static_cast<size_t>(extent)];
  std::vector<const Tensor*> tables;
  for (const Tensor& t : world_.tensors) {
    if (is_int(t.dtype)) tables.push_back(&t);
  }
  if (tables.empty() || depth <= 0 || (e.value == 0 && chance(0.9))) return "";
  const Tensor& table = *tables[random_.next() % tables.size()];
  std::string indices;
  const size_t outer = guards.size();
  for (size_t k = 0; k < table.dims.size(); ++k) {
    indices += (k ? ", " : "") + position(table.dims[k], guards, depth - 1);
  }
  const std::string entry = fmt::format("{}[{}]", table.name, indices);
  if (table.is_input && chance(0.4)) return entry;
  if (e.form == Extent::Form::Constant && chance(0.5)) {
    return fmt::format("{} % {}", entry, e.value);
  }
  // A condition guards what `where` chooses, not its own other half.
  if (guards.size() == outer && outer == 0 && chance(0.3)) {
    guards.push_back(fmt::format("{} >= 0", entry));
    guards.push_back(fmt::format("{} < {}", entry, e.text));
    return entry;
  }
  return fmt::format("max(0, min({}, {} - 1))", entry, e.text);
}

// Integers over axes, sizes and numbers.
std::string ExpressionGenerator::index_value(int depth) {
  if (depth > 0 && chance(0.5)) {
    switch (random_.integer(0, 3)) {
      case 0:
        return fmt::format("({} {} {})", index_value(depth - 1), pick({"/", "%"}),
                           pick({"2", "3", "4"}));
      case 1:
        return fmt::format("{}({}, {})", pick({"min", "max"}), index_value(depth - 1),
                           index_value(depth - 1));
      default:
        return fmt::format("({} {} {})", index_value(depth - 1), pick({"+", "-", "*"}),
                           index_value(depth - 1));
    }
  }
  if (!axes_.empty() && chance(0.7)) return axes_[random_.next() % axes_.size()].name;
  if (!world_.extents.empty() && chance(0.6)) {
    return fmt::format("({})", world_.extents[random_.next() % world_.extents.size()].text);
  }
  return pick({"0", "1", "2", "3"});
}

}  // namespace nautilus::fuzz
