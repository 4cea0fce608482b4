// SPDX-License-Identifier: Apache-2.0
#include "plan/workspace.h"

#include <gtest/gtest.h>

#include "ir/decl.h"
#include "matile/ops.h"

namespace nautilus::plan {
namespace {

class WorkspaceTest : public testing::Test {
 protected:
  // Scratch of 3 * M counters and a temp of M x 5 halves, in the other order.
  WorkspaceTest() {
    const auto size = pool_.index("M");
    const auto add = [&](const char* name, expr::DType dtype, ir::Exprs dims,
                         matile::TensorRole role) {
      program_.body.push_back(
          ir::make(matile::Tensor{pool_.name(name), {dtype, std::move(dims)}, role}, {}));
    };
    program_.level = &matile::level();
    program_.body.push_back(ir::make(ir::Dim{pool_.name("M"), 7}, {}));
    add("T", expr::DType::BF16, {size, pool_.integer(5)}, matile::TensorRole::Temp);
    add("X", expr::DType::F32, {size}, matile::TensorRole::Input);
    add("S", expr::DType::I32, {pool_.binary(expr::Op::Mul, size, pool_.integer(3))},
        matile::TensorRole::Scratch);
    plan_ = std::make_unique<Prepared>(program_, std::vector<emit::KernelText>());
  }

  expr::ExprPool pool_;
  ir::Program program_;
  std::unique_ptr<Prepared> plan_;
  std::string error_;
};

TEST_F(WorkspaceTest, WhatMustBeZeroComesFirst) {
  Frame frame(*plan_);
  Workspace workspace(*plan_);
  frame.set(plan_->value("M"), expr::int_value(100));
  ASSERT_TRUE(frame.evaluate(1, &error_)) << error_;
  ASSERT_TRUE(workspace.lay_out(frame, &error_)) << error_;
  EXPECT_EQ(workspace.zero_bytes(), 1280u);  // 300 counters, rounded up
  EXPECT_EQ(workspace.bytes(), 1280u + 1024u);
  workspace.bind(frame, 0x10000);
  EXPECT_EQ(frame.view(plan_->tensor("S")).address, 0x10000u);
  const TensorView temp = frame.view(plan_->tensor("T"));
  EXPECT_EQ(temp.address, 0x10000u + 1280u);
  EXPECT_EQ(temp.strides[0], 5);
  EXPECT_FALSE(frame.is_bound(plan_->tensor("X")));
}

TEST_F(WorkspaceTest, ALargerCallNeedsMore) {
  Frame frame(*plan_);
  Workspace workspace(*plan_);
  size_t last = 0;
  for (const int64_t size : {0, 1, 1000, 100000}) {
    frame.forget();
    frame.set(plan_->value("M"), expr::int_value(size));
    ASSERT_TRUE(frame.evaluate(1, &error_) && workspace.lay_out(frame, &error_)) << error_;
    EXPECT_EQ(workspace.bytes() == 0, size == 0);
    EXPECT_GE(workspace.bytes(), last);
    last = workspace.bytes();
  }
}

TEST_F(WorkspaceTest, WhatDoesNotFitIsNamed) {
  Frame frame(*plan_);
  Workspace workspace(*plan_);
  frame.set(plan_->value("M"), expr::int_value(int64_t{1} << 61));
  ASSERT_TRUE(frame.evaluate(1, &error_)) << error_;
  EXPECT_FALSE(workspace.lay_out(frame, &error_));
  EXPECT_NE(error_.find("`S`"), std::string::npos) << error_;
}

}  // namespace
}  // namespace nautilus::plan
