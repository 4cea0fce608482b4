// SPDX-License-Identifier: Apache-2.0
#include "lower/vrtile_to_matile.h"

#include <gtest/gtest.h>

#include "driver/load.h"
#include "expr/print.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "vrtile/ops.h"

namespace nautilus::lower {
namespace {

constexpr const char* kProduct = R"(vrtile.program @product
  dim M hint 64
  dim N hint 64
  dim K hint 64
  fact K >= 1
  tensor A : bf16[M, K] input
  tensor B : bf16[N, K] input
  tensor C : bf16[M, N] temp
  par m < (M + 63) / 64, n < (N + 63) / 64 grid
    set c_init[i < 64, j < 64] = 0.0
    for k from 0 up (K + 63) / 64
      carry c : f32[64, 64] from c_init next c_next
      load a[i < 64, q < 64] = A[64 * m + i, 64 * k + q] when 64 * m + i < M and 64 * k + q < K else bf16(0.0)
      load b[j < 64, q < 64] = B[64 * n + j, 64 * k + q] when 64 * n + j < N and 64 * k + q < K else bf16(0.0)
      dot c_next : f32[64, 64] = a, b trans onto c
    store [i < 64, j < 64] C[64 * m + i, 64 * n + j] = bf16(c[i, j]) when 64 * m + i < M and 64 * n + j < N
)";

// One nest, with a result that another kernel reads, becomes a finished kernel with its plan.
TEST(VrtileToMatile, NestAlone) {
  driver::Unit unit;
  const auto program = driver::load_text("product.vrtile", kProduct, {}, unit);
  ASSERT_TRUE(program);
  ir::PassContext context{unit.pool, unit.sink, {}};
  FreshNames names(unit.pool);
  for (const char* taken : {"M", "N", "K", "A", "B", "C", "sms", "k"}) names.take(taken);
  std::string why;
  const auto parts =
      lower_tile_nest(*program, program->body.back(), "product_kernel", names, context, &why);
  ASSERT_TRUE(parts) << why;
  EXPECT_EQ(parts->kernel.as<matile::Kernel>().form, matile::KernelForm::Final);
  EXPECT_EQ(parts->launch.as<matile::Launch>().kernel.str(), "product_kernel");
  for (const ir::Op& op : parts->plan)
    EXPECT_TRUE(op.is<matile::Let>() || op.is<matile::Map>()) << ir::print(op);
  std::string guard;
  expr::print(guard, copies_guard(*program, *parts, unit.pool));
  EXPECT_EQ(guard, "M >= 1 and K % 8 == 0 and N >= 1 and N % 8 == 0");
}

}  // namespace
}  // namespace nautilus::lower
