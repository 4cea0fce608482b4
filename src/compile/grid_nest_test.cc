// SPDX-License-Identifier: Apache-2.0
#include "compile/grid_nest.h"

#include <gtest/gtest.h>

#include "compile/levels.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "lower/tiles/tile_loads.h"
#include "matile/ops.h"
#include "vrtile/ops.h"

namespace nautilus::compile {
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

// One nest, with a result that another kernel reads, becomes a finished kernel with its plan; the
// trace has the nest as a program of its own after each pass that changed it.
TEST(GridNest, Alone) {
  diag::SourceMap sources;
  diag::Sink sink{sources};
  expr::ExprPool pool;
  const auto program = ir::parse(sources.add("product.vrtile", kProduct), levels(), pool, sink);
  ASSERT_TRUE(program && verify(*program, sink));
  ir::PassTrace trace;
  ir::PassContext context{pool, sink, {}, &trace};
  lower::FreshNames names(pool);
  for (const char* taken : {"M", "N", "K", "A", "B", "C", "sms", "k"}) names.take(taken);
  lower::NoKernel refused;
  const ir::Program unit = tile_unit(*program, program->body.back(), "product_kernel");
  const auto parts = lower_tiles(unit, "", names, context, &refused);
  ASSERT_TRUE(parts) << refused.why;
  EXPECT_EQ(parts->kernel.as<matile::Kernel>().form, matile::KernelForm::Final);
  EXPECT_EQ(parts->launch.as<matile::Launch>().kernel.str(), "product_kernel");
  for (const ir::Op& op : parts->plan)
    EXPECT_TRUE(op.is<matile::Let>() || op.is<matile::Map>()) << ir::print(op);
  ASSERT_FALSE(trace.steps.empty());
  bool has_roles = false;
  for (const ir::PassTrace::Step& step : trace.steps) {
    EXPECT_EQ(step.unit, "product_kernel");
    EXPECT_EQ(step.program.after, step.pass);
    EXPECT_TRUE(verify(step.program, sink)) << ir::print(step.program);
    EXPECT_EQ(vrtile::tensors(step.program, vrtile::TensorRole::Temp).size(), 0u);
    has_roles |= step.pass == "split_roles";
  }
  EXPECT_TRUE(has_roles);
}

// What is known of a second operand before passes run is what lowering says in the end.
TEST(GridNest, OperandsThatNoBoxHasAreKnownBefore) {
  struct {
    std::string from;
    std::string to;
    bool is_refused;
  } cases[] = {{"B[64 * n + j, 64 * k + q]", "B[64 * n + j, 64 * k + q]", false},
               {"B[64 * n + j, 64 * k + q]", "B[64 * n + j, 128 * k + 2 * q]", true},
               {"B[64 * n + j, 64 * k + q]", "B[1024 * n + 16 * j, 64 * k + q]", true},
               {"B[64 * n + j, 64 * k + q] when 64 * n + j < N",
                "B[320 * n + 5 * j, 64 * k + q] when 320 * n + 5 * j < N", true},
               // No pass makes a load of what is computed.
               {"      dot c_next : f32[64, 64] = a, b trans",
                "      set masked[j < 64, q < 64] = where(q < 10, b[j, q], bf16(0.0))\n"
                "      dot c_next : f32[64, 64] = a, masked trans",
                true},
               // A first operand may come from registers.
               {"A[64 * m + i, 64 * k + q]", "A[64 * m + i, 128 * k + 2 * q]", false}};
  for (const auto& [from, to, is_refused] : cases) {
    std::string text = kProduct;
    text.replace(text.find(from), from.size(), to);
    diag::SourceMap sources;
    diag::Sink sink{sources};
    expr::ExprPool pool;
    const auto program = ir::parse(sources.add("product.vrtile", text), levels(), pool, sink);
    ASSERT_TRUE(program) << to;
    ir::PassContext context{pool, sink, {}};
    lower::FreshNames names(pool);
    for (const char* taken : {"M", "N", "K", "A", "B", "C", "sms", "k"}) names.take(taken);
    const std::string why = lower::refuse_second_operands(*program, program->body.back(), pool);
    EXPECT_EQ(!why.empty(), is_refused) << to << ": " << why;
    lower::NoKernel refused;
    const ir::Program unit = tile_unit(*program, program->body.back(), "product_kernel");
    EXPECT_EQ(!lower_tiles(unit, "", names, context, &refused), is_refused) << to;
    EXPECT_EQ(refused.why, why) << to;
  }
}

// An attempt that a pass refuses leaves nothing in the trace.
TEST(GridNest, RefusedLeavesNoSteps) {
  diag::SourceMap sources;
  diag::Sink sink{sources};
  expr::ExprPool pool;
  const auto program = ir::parse(sources.add("sum.vrtile",
                                             "vrtile.program @sum\n"
                                             "  tensor X : f32[64] input\n"
                                             "  tensor Y : f32[64] output\n"
                                             "  par b < 1 grid\n"
                                             "    load x[i < 64] = X[i]\n"
                                             "    store [i < 64] Y[i] = x[i] + 1.0\n"),
                                 levels(), pool, sink);
  ASSERT_TRUE(program && verify(*program, sink));
  ir::PassTrace trace;
  ir::PassContext context{pool, sink, {}, &trace};
  lower::FreshNames names(pool);
  lower::NoKernel refused;
  EXPECT_FALSE(lower_tiles(*program, "", names, context, &refused));
  EXPECT_EQ(refused.why, "it has no matrix product");
  EXPECT_TRUE(trace.steps.empty());
}

}  // namespace
}  // namespace nautilus::compile
