// SPDX-License-Identifier: Apache-2.0
#include "ir/op.h"

#include <algorithm>
#include <functional>

namespace nautilus::ir {
namespace {

size_t mix(size_t h, size_t v) { return (h ^ v) * 0x9E3779B97F4A7C15ULL + (h >> 29); }

bool fields_equal(const Field& f, const void* a, const void* b) {
  auto same = [&]<class T>(const T*) { return field_value<T>(a, f) == field_value<T>(b, f); };
  switch (f.kind) {
    case FieldKind::Name:
      return same(static_cast<const Name*>(nullptr));
    case FieldKind::NameList:
      return same(static_cast<const Names*>(nullptr));
    case FieldKind::Int:
      return same(static_cast<const OptionalInt*>(nullptr));
    case FieldKind::Number:
      return same(static_cast<const OptionalNumber*>(nullptr));
    case FieldKind::Expr:
      return same(static_cast<const Expr*>(nullptr));
    case FieldKind::ExprList:
      return same(static_cast<const Exprs*>(nullptr));
    case FieldKind::DType:
      return same(static_cast<const DType*>(nullptr));
    case FieldKind::Type:
      return same(static_cast<const TensorType*>(nullptr));
    case FieldKind::AxisList:
      return same(static_cast<const Axes*>(nullptr));
    case FieldKind::Enum:
      return same(static_cast<const uint8_t*>(nullptr));
    case FieldKind::Text:
      return same(static_cast<const std::string*>(nullptr));
    case FieldKind::Body:
      return same(static_cast<const Block*>(nullptr));
  }
  return false;
}

size_t hash_exprs(size_t h, const Exprs& exprs) {
  for (Expr e : exprs) h = mix(h, std::hash<Expr>()(e));
  return h;
}

size_t field_hash(const Field& f, const void* data) {
  switch (f.kind) {
    case FieldKind::Name:
      return std::hash<Name>()(field_value<Name>(data, f));
    case FieldKind::NameList: {
      size_t h = 1;
      for (Name n : field_value<Names>(data, f)) h = mix(h, std::hash<Name>()(n));
      return h;
    }
    case FieldKind::Int: {
      const auto& v = field_value<OptionalInt>(data, f);
      return v ? mix(1, static_cast<size_t>(*v)) : 0;
    }
    case FieldKind::Number: {
      const auto& v = field_value<OptionalNumber>(data, f);
      return v ? mix(1, std::hash<double>()(*v)) : 0;
    }
    case FieldKind::Expr:
      return std::hash<Expr>()(field_value<Expr>(data, f));
    case FieldKind::ExprList:
      return hash_exprs(1, field_value<Exprs>(data, f));
    case FieldKind::DType:
      return static_cast<size_t>(field_value<DType>(data, f));
    case FieldKind::Type: {
      const auto& t = field_value<TensorType>(data, f);
      return hash_exprs(static_cast<size_t>(t.dtype), t.dims);
    }
    case FieldKind::AxisList: {
      size_t h = 1;
      for (const Axis& a : field_value<Axes>(data, f)) {
        h = mix(mix(h, std::hash<Name>()(a.name)), std::hash<Expr>()(a.extent));
      }
      return h;
    }
    case FieldKind::Enum:
      return field_value<uint8_t>(data, f);
    case FieldKind::Text:
      return std::hash<std::string>()(field_value<std::string>(data, f));
    case FieldKind::Body: {
      size_t h = 1;
      for (const Op& op : field_value<Block>(data, f)) h = mix(h, hash(op));
      return h;
    }
  }
  return 0;
}

void copy_field(const Field& f, const void* from, void* to) {
  auto copy = [&]<class T>(const T*) { field_value<T>(to, f) = field_value<T>(from, f); };
  switch (f.kind) {
    case FieldKind::Name:
      return copy(static_cast<const Name*>(nullptr));
    case FieldKind::NameList:
      return copy(static_cast<const Names*>(nullptr));
    case FieldKind::Int:
      return copy(static_cast<const OptionalInt*>(nullptr));
    case FieldKind::Number:
      return copy(static_cast<const OptionalNumber*>(nullptr));
    case FieldKind::Expr:
      return copy(static_cast<const Expr*>(nullptr));
    case FieldKind::ExprList:
      return copy(static_cast<const Exprs*>(nullptr));
    case FieldKind::DType:
      return copy(static_cast<const DType*>(nullptr));
    case FieldKind::Type:
      return copy(static_cast<const TensorType*>(nullptr));
    case FieldKind::AxisList:
      return copy(static_cast<const Axes*>(nullptr));
    case FieldKind::Enum:
      return copy(static_cast<const uint8_t*>(nullptr));
    case FieldKind::Text:
      return copy(static_cast<const std::string*>(nullptr));
    case FieldKind::Body:
      return copy(static_cast<const Block*>(nullptr));
  }
}

}  // namespace

size_t Level::position_of(const Op& op) const {
  const auto it = std::find(ops.begin(), ops.end(), &op.info());
  NAUT_CHECK(it != ops.end(), "{} is no op of the {} level", op.info().name, name);
  return static_cast<size_t>(it - ops.begin());
}

bool operator==(const Op& a, const Op& b) {
  if (&a.info() != &b.info()) return false;
  if (a.data() == b.data()) return true;
  for (const Field& f : a.info().fields) {
    if (!fields_equal(f, a.data(), b.data())) return false;
  }
  return true;
}

size_t hash(const Op& op) {
  size_t h = std::hash<const void*>()(&op.info());
  for (const Field& f : op.info().fields) h = mix(h, field_hash(f, op.data()));
  return h;
}

std::shared_ptr<void> copy_data(const Op& op) {
  auto data = op.info().create();
  for (const Field& f : op.info().fields) copy_field(f, op.data(), data.get());
  return data;
}

}  // namespace nautilus::ir
