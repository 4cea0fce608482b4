// SPDX-License-Identifier: Apache-2.0
// What every level's verifier needs: the names in scope with their types, checked against the
// expressions that use them.
//
// A level's verifier walks its ops in order, declares names here and checks expressions; the rules
// of the level itself are its own. The same rules apply to programs made by passes and to programs
// read from text.
#pragma once

#include <map>
#include <set>
#include <string>

#include "diag/diagnostic.h"
#include "ir/op.h"

namespace nautilus::ir {

class Verifier {
 public:
  explicit Verifier(diag::Sink& sink) : sink_(sink) {}

  void set_op(const Op& op) { span_ = op.span(); }
  void fail(std::string message);

  // False (and reported) if the name is taken.
  bool declare_var(Name name, DType dtype, bool is_axis = false);
  bool declare_tensor(Name name, const TensorType& type);
  const TensorType* tensor(Name name) const;

  // Variables are in scope with the dtype they are used with, reads fit their tensors, reduction
  // axes are new names.
  void check(Expr e, std::string_view what);
  void check_dtype(Expr e, DType dtype, std::string_view what);
  // As check, and only sizes and scalars occur: no axes, tensors or reductions.
  void check_closed(Expr e, DType dtype, std::string_view what);
  // Dim, Static, Param, Fact, Numerics, Target; false if the op is none of these.
  bool check_decl(const Op& op);
  // Declares the axes; extents must be i64 over sizes. Returns what leave_axes needs.
  size_t enter_axes(const Axes& axes);
  void leave_axes(size_t mark);
  // A name of the open block: leave_axes removes it together with the block's axes.
  bool declare_local(Name name, DType dtype);
  bool is_defined(Name name) const {
    return vars_.contains(std::string(name.str())) || tensors_.contains(std::string(name.str()));
  }
  size_t mark() const { return axes_.size(); }
  void forget_tensor(Name name) { tensors_.erase(std::string(name.str())); }
  void check_type(const TensorType& type);

 private:
  diag::Sink& sink_;
  diag::Span span_;
  struct Var {
    DType dtype;
    bool is_axis;
  };
  std::map<std::string, Var, std::less<>> vars_;
  std::vector<std::string> axes_;  // declared by enter_axes, innermost last
  std::map<std::string, TensorType, std::less<>> tensors_;
  std::set<std::string> statics_;
  bool has_numerics_ = false;
  bool has_target_ = false;
};

}  // namespace nautilus::ir
