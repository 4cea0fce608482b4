// SPDX-License-Identifier: Apache-2.0
// The rules of scalar code: names, dtypes, and that a kernel writes what it may.
#include <fmt/format.h>

#include <set>

#include "expr/walk.h"
#include "ir/verify.h"
#include "matile/verify_rules.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using expr::Expr;
using ir::Op;

class PointsVerifier {
 public:
  PointsVerifier(const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v)
      : roles_(roles), v_(v) {}

  void run(const Points& points) {
    const size_t mark = v_.enter_axes(points.axes);
    if (points.axes.empty()) v_.fail("`points` needs an axis");
    block(points.body);
    v_.leave_axes(mark);
  }

 private:
  void block(const ir::Block& ops) {
    const size_t mark = v_.mark();
    const auto values = values_;
    for (const Op& op : ops) {
      v_.set_op(op);
      statement(op);
    }
    values_ = values;
    v_.leave_axes(mark);
  }

  void number(Expr e, DType dtype, std::string_view what) {
    v_.check(e, what);
    v_.check_dtype(e, dtype, what);
    if (expr::has_reduce(e)) v_.fail(fmt::format("{} has a reduction; scalar code loops", what));
  }

  void statement(const Op& op) {
    switch (kind(op)) {
      case Kind::Value: {
        const auto& v = op.as<Value>();
        number(v.init, v.dtype, "the value");
        if (v_.declare_local(v.name, v.dtype)) values_.emplace(v.name.str(), v.dtype);
        return;
      }
      case Kind::Let:
        number(op.as<Let>().value, op.as<Let>().value.dtype(), "the value");
        v_.declare_local(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Assign: {
        const auto& a = op.as<Assign>();
        const auto it = values_.find(std::string(a.name.str()));
        if (it == values_.end()) return v_.fail(fmt::format("`{}` is no value", a.name.str()));
        return number(a.value, it->second, "the value");
      }
      case Kind::Write:
        return write(op.as<Write>());
      case Kind::If:
        number(op.as<If>().condition, DType::Bool, "the condition");
        return block(op.as<If>().body);
      case Kind::Loop: {
        const auto& l = op.as<Loop>();
        number(l.from, DType::I64, "the first value");
        number(l.to, DType::I64, "the last value");
        const size_t mark = v_.mark();
        v_.declare_local(l.var, DType::I64);
        block(l.body);
        v_.leave_axes(mark);
        return;
      }
      default:
        v_.fail(fmt::format("`{}` does not stand in scalar code", op.info().mnemonic()));
    }
  }

  void write(const Write& w) {
    const ir::TensorType* type = v_.tensor(w.target);
    const auto role = roles_.find(w.target.str());
    if (!type || role == roles_.end())
      return v_.fail(fmt::format("there is no tensor `{}`", w.target.str()));
    if (role->second == TensorRole::Input)
      v_.fail(fmt::format("the input `{}` is written", w.target.str()));
    if (type->dims.size() != w.indices.size())
      v_.fail(fmt::format("`{}` has {} dimensions, {} given", w.target.str(), type->dims.size(),
                          diag::counted(w.indices.size(), "index is", "indices are")));
    for (Expr i : w.indices) number(i, DType::I64, "an index");
    number(w.value, type->dtype, "the value");
  }

  const std::map<std::string, TensorRole, std::less<>>& roles_;
  ir::Verifier& v_;
  std::map<std::string, DType> values_;
};

}  // namespace

void verify_points(const Points& points,
                   const std::map<std::string, TensorRole, std::less<>>& roles, ir::Verifier& v) {
  PointsVerifier(roles, v).run(points);
}

}  // namespace nautilus::matile
