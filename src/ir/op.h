// SPDX-License-Identifier: Apache-2.0
// Ops: one plain struct per operation, described once, handled generically.
//
//   struct Store {
//     static constexpr std::string_view kFormat = "store $target[$indices] = $value";
//     static constexpr std::string_view kDoc = "Writes one element. ...";
//     Name target;
//     Exprs indices;
//     Expr value;
//     static void fields(auto& s, auto&& f) { f("target", s.target); f("indices", s.indices);
//     f("value", s.value); } static const OpInfo& info();
//   };
//
// Printer, parser, equality, hash and traversal follow from the format string and the field list
// (print.h, parse.h, walk.h). The first word of the format is the op's mnemonic; `{...}` is printed
// only if its field is present. An Op is an immutable shared value: a pass copies the struct,
// changes a field and makes a new Op. There are no parent pointers and no use lists; analyses are
// functions that return maps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "diag/source.h"
#include "expr/build.h"
#include "expr/expr.h"

namespace nautilus::ir {

using expr::DType;
using expr::Expr;
using expr::Name;
using Exprs = std::vector<Expr>;

class Op;
using Block = std::vector<Op>;

struct TensorType {
  DType dtype = DType::F32;
  Exprs dims;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// `i < M`: a variable that runs over 0 .. M-1.
struct Axis {
  Name name;
  Expr extent;
  friend bool operator==(const Axis&, const Axis&) = default;
};
using Axes = std::vector<Axis>;

// The closed set of field types. A new one needs a case in print.cc, parse.cc, walk.cc, nowhere
// else.
enum class FieldKind : uint8_t {
  Name,
  NameList,
  Int,
  Number,
  Expr,
  ExprList,
  DType,
  Type,
  AxisList,
  Enum,
  Text,
  Body
};
using Names = std::vector<Name>;
using OptionalInt = std::optional<int64_t>;
using OptionalNumber = std::optional<double>;

// An enum is a field if words(E) gives its spellings.
inline const std::vector<std::string_view>& words(expr::Reducer) { return expr::reducer_names(); }

struct Field {
  std::string_view name;
  FieldKind kind;
  size_t offset;
  const std::vector<std::string_view>* words;  // Enum
};

struct OpInfo {
  std::string_view name;  // "Store"
  std::string_view format;
  std::string_view doc;
  std::vector<Field> fields;
  std::shared_ptr<void> (*create)();
  // Ops allowed in the op's block, if they are not those of the level around it.
  const std::vector<const OpInfo*>* vocabulary = nullptr;

  std::string_view mnemonic() const { return format.substr(0, format.find_first_of(" {$")); }
};

class Op {
 public:
  Op(const OpInfo& info, diag::Span span, std::shared_ptr<const void> data)
      : info_(&info), span_(span), data_(std::move(data)) {}

  const OpInfo& info() const { return *info_; }
  diag::Span span() const { return span_; }
  const void* data() const { return data_.get(); }

  template <class T>
  bool is() const {
    return info_ == &T::info();
  }
  template <class T>
  const T& as() const {
    NAUT_CHECK(is<T>(), "a {} where {} is expected", info_->name, T::info().name);
    return *static_cast<const T*>(data_.get());
  }
  template <class T>
  const T* get() const {
    return is<T>() ? static_cast<const T*>(data_.get()) : nullptr;
  }

 private:
  const OpInfo* info_;
  diag::Span span_;
  std::shared_ptr<const void> data_;
};

template <class T>
Op make(T value, diag::Span span = {}) {
  return Op(T::info(), span, std::make_shared<const T>(std::move(value)));
}

bool operator==(const Op& a, const Op& b);
size_t hash(const Op& op);

// A level of the compiler: its name in text (`spec`), its ops, and the names an op defines for the
// text after it.
struct Level {
  std::string_view name;
  std::string_view file_suffix;
  std::vector<const OpInfo*> ops;
  void (*declare)(const Op& op, expr::Scope& scope);
  // Names that the op defines for its own block, given the fields read so far; null if axes are the
  // only such names of the level.
  void (*open)(const OpInfo& info, const void* data, expr::Scope& scope) = nullptr;

  // In `ops`, which is the order of the level's enum of kinds. The op must be one of them.
  size_t position_of(const Op& op) const;
};

struct Program {
  const Level* level = nullptr;
  std::string name;
  Block body;
  // Of a program between two passes: the pass that it comes from, `lazy_reference`, or `merge_equal
  // 2` where a pass runs several times. Empty for a program that a person wrote.
  std::string after = {};

  friend bool operator==(const Program& a, const Program& b) {
    return a.level == b.level && a.name == b.name && a.body == b.body && a.after == b.after;
  }
};

// --- reflection: from a struct to its OpInfo
// -------------------------------------------------------------------------

template <class T>
Field describe(std::string_view name, size_t offset, const T&) {
  Field f{name, FieldKind::Name, offset, nullptr};
  if constexpr (std::is_same_v<T, Name>) {
    f.kind = FieldKind::Name;
  } else if constexpr (std::is_same_v<T, Names>) {
    f.kind = FieldKind::NameList;
  } else if constexpr (std::is_same_v<T, OptionalInt>) {
    f.kind = FieldKind::Int;
  } else if constexpr (std::is_same_v<T, OptionalNumber>) {
    f.kind = FieldKind::Number;
  } else if constexpr (std::is_same_v<T, Expr>) {
    f.kind = FieldKind::Expr;
  } else if constexpr (std::is_same_v<T, Exprs>) {
    f.kind = FieldKind::ExprList;
  } else if constexpr (std::is_same_v<T, DType>) {
    f.kind = FieldKind::DType;
  } else if constexpr (std::is_same_v<T, TensorType>) {
    f.kind = FieldKind::Type;
  } else if constexpr (std::is_same_v<T, Axes>) {
    f.kind = FieldKind::AxisList;
  } else if constexpr (std::is_same_v<T, std::string>) {
    f.kind = FieldKind::Text;
  } else if constexpr (std::is_same_v<T, Block>) {
    f.kind = FieldKind::Body;
  } else {
    static_assert(std::is_enum_v<T> && sizeof(T) == 1, "not a field type: see FieldKind");
    f.kind = FieldKind::Enum;
    f.words = &words(T{});
  }
  return f;
}

template <class T>
OpInfo make_info(std::string_view name) {
  OpInfo info{name, T::kFormat, T::kDoc, {}, []() -> std::shared_ptr<void> {
                return std::make_shared<T>();
              }};
  if constexpr (requires { T::vocabulary(); }) info.vocabulary = &T::vocabulary();
  T sample{};
  const auto* base = reinterpret_cast<const char*>(&sample);
  T::fields(sample, [&](std::string_view field, const auto& member) {
    info.fields.push_back(describe(
        field, static_cast<size_t>(reinterpret_cast<const char*>(&member) - base), member));
  });
  return info;
}

// One line per op in a level's ops.cc.
#define NAUT_DEFINE_OP(Type)                                                           \
  const ::nautilus::ir::OpInfo& Type::info() {                                         \
    static const ::nautilus::ir::OpInfo info = ::nautilus::ir::make_info<Type>(#Type); \
    return info;                                                                       \
  }

// Typed access to a field of an op's struct.
template <class T>
const T& field_value(const void* data, const Field& field) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(data) + field.offset);
}
template <class T>
T& field_value(void* data, const Field& field) {
  return *reinterpret_cast<T*>(static_cast<char*>(data) + field.offset);
}

// The struct of an op, copied so that its fields can be changed.
std::shared_ptr<void> copy_data(const Op& op);

}  // namespace nautilus::ir
