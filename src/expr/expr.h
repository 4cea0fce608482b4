// SPDX-License-Identifier: Apache-2.0
// Scalar expressions: one immutable, hash-consed DAG shared by all levels.
//
// An Expr is a pointer to a node in an ExprPool. Equal expressions of one pool are the same node,
// so `==` is identity, memo tables are keyed by pointer, and common subexpressions are shared by
// construction. A pool lives as long as one unit of work (one file, one test, one candidate); pools
// are never shared between threads, IR crosses them as text.
//
// Canonical by construction: a cast or a negation of a constant is a constant, subtracting an
// integer constant is adding its negative, and operands have the dtypes their operator needs. There
// are no implicit conversions in this representation; the math front end inserts casts.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "expr/dtype.h"

namespace nautilus::expr {

enum class Op : uint8_t {
#define OP(name, text, arity, form) name,
#include "expr/ops.def"
#undef OP
};

enum class Form : uint8_t { Leaf, Prefix, Infix, Function, Special };

struct OpInfo {
  std::string_view name;  // "FloorDiv"
  std::string_view text;  // "/"
  int arity;
  Form form;
};
const OpInfo& info(Op op);

bool is_comparison(Op op);
// bit_and ... shift_right: operators of integers alone.
bool is_bitwise(Op op);
bool is_commutative(Op op);

// ArgMax and ArgMin give the position of the first extreme element.
enum class Reducer : uint8_t { Sum, Prod, Max, Min, Any, All, ArgMax, ArgMin };
std::string_view name(Reducer reducer);
const std::vector<std::string_view>& reducer_names();
inline bool is_arg(Reducer r) { return r == Reducer::ArgMax || r == Reducer::ArgMin; }

// An interned string; `==` is identity within a pool.
class Name {
 public:
  Name() = default;
  std::string_view str() const { return text_ ? std::string_view(*text_) : std::string_view(); }
  explicit operator bool() const { return text_ != nullptr; }
  friend bool operator==(Name, Name) = default;

 private:
  friend class ExprPool;
  friend class Expr;
  friend struct std::hash<Name>;
  explicit Name(const std::string* text) : text_(text) {}
  const std::string* text_ = nullptr;
};

class Expr;

struct ReduceShape {
  Reducer reducer;
  bool has_init;
  uint16_t axes;
  friend bool operator==(const ReduceShape&, const ReduceShape&) = default;
};

struct Node;

class Expr {
 public:
  Expr() = default;
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Expr, Expr) = default;

  Op op() const;
  DType dtype() const;
  std::span<const Expr> args() const;
  Expr operator[](size_t i) const { return args()[i]; }
  // Longest path to a leaf, and number of nodes of the expression written out as a tree
  // (saturating).
  uint32_t depth() const;
  uint32_t tree_size() const;

  int64_t integer() const;  // IntConst, BoolConst
  double number() const;    // FloatConst
  Name name() const;        // Var, Read

  // Reduce: the body, axes with their extents, and the initial element (null if it is the reducer's
  // identity).
  Reducer reducer() const;
  size_t axis_count() const;
  Expr body() const { return args()[0]; }
  Expr axis(size_t k) const { return args()[1 + 2 * k]; }
  Expr extent(size_t k) const { return args()[2 + 2 * k]; }
  Expr init() const;

  bool is_const() const {
    return op() == Op::IntConst || op() == Op::FloatConst || op() == Op::BoolConst;
  }
  bool is_int(int64_t value) const { return op() == Op::IntConst && integer() == value; }
  bool is_true() const { return op() == Op::BoolConst && integer() != 0; }

  const Node* node() const { return node_; }

 private:
  friend class ExprPool;
  explicit Expr(const Node* node) : node_(node) {}
  const Node* node_ = nullptr;
};

union Payload {
  int64_t integer;
  double number;
  const std::string* name;
  ReduceShape reduce;
};

struct RuleTable;  // rules/rules.cc

struct Node {
  Op op;
  DType dtype;
  uint32_t arg_count;
  uint32_t depth;
  uint32_t tree_size;
  size_t hash;
  Payload payload;
  const Expr* args;
};

class ExprPool {
 public:
  ExprPool();
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  Name name(std::string_view text);

  Expr integer(int64_t value, DType dtype = DType::I64);
  Expr floating(double value, DType dtype = DType::F32);
  Expr boolean(bool value);
  // A number of any numeric dtype.
  Expr constant(double value, DType dtype);
  Expr var(Name name, DType dtype);
  Expr index(Name name) { return var(name, DType::I64); }
  Expr index(std::string_view text) { return var(name(text), DType::I64); }
  Expr read(Name tensor, DType dtype, std::span<const Expr> indices);
  Expr unary(Op op, Expr x);
  Expr binary(Op op, Expr x, Expr y);
  Expr select(Expr condition, Expr x, Expr y);
  Expr cast(DType dtype, Expr x);
  Expr reduce(Reducer reducer, Expr body, std::span<const Expr> axes, std::span<const Expr> extents,
              Expr init = {});
  // Same operator, dtype and payload as `like`, with other operands (re-canonicalised).
  Expr with_args(Expr like, std::span<const Expr> args);

  size_t size() const { return nodes_.size(); }

 private:
  struct Key {
    Op op;
    DType dtype;
    Payload payload;
    std::span<const Expr> args;
    size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Node* n) const { return n->hash; }
    size_t operator()(const Key& k) const { return k.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Node* a, const Node* b) const { return a == b; }
    bool operator()(const Key& k, const Node* n) const;
    bool operator()(const Node* n, const Key& k) const { return (*this)(k, n); }
  };
  Expr make(Op op, DType dtype, std::span<const Expr> args, Payload payload);

  friend class RuleSet;
  std::shared_ptr<const RuleTable> rules_;  // its patterns are expressions of this pool
  std::pmr::monotonic_buffer_resource arena_;
  std::unordered_set<const Node*, Hash, Equal> nodes_;
  std::unordered_set<std::string> names_;
};

// A total order that depends only on the expressions' content, not on creation order.
int compare(Expr a, Expr b);

}  // namespace nautilus::expr

template <>
struct std::hash<nautilus::expr::Expr> {
  size_t operator()(nautilus::expr::Expr e) const { return std::hash<const void*>()(e.node()); }
};
template <>
struct std::hash<nautilus::expr::Name> {
  size_t operator()(nautilus::expr::Name n) const { return std::hash<const void*>()(n.text_); }
};
