// SPDX-License-Identifier: Apache-2.0
#include "bundle/c_code.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "bundle/launcher_text.h"
#include "expr/print.h"
#include "plan/code_test_util.h"

namespace nautilus::bundle {
namespace {

// What the support text expects of the file that includes it.
constexpr std::string_view kTypes = R"text(
#include <stddef.h>
#include <stdint.h>
typedef struct { int status; char text[1020]; } Error;
typedef struct { void* data; int rank; const int64_t* shape; const int64_t* strides; } Tensor;
typedef struct { void* stream; void* workspace; size_t workspace_bytes; int is_workspace_kept; } Call;
#define BUNDLE test_bundle
)text";

// The function of the n-th expression; every third one, from the second on, is real.
std::string c_function(int n, const plan::Code& code) {
  const std::vector<SlotText> texts = {{"a", false}, {"b", false}, {"x", true}, {"c", false}};
  return fmt::format(
      "{0} e{1}(int64_t a, int64_t b, double x, int64_t c);\n"
      "{0} e{1}(int64_t a, int64_t b, double x, int64_t c) {{\n"
      "  (void)a, (void)b, (void)x, (void)c;\n  return {2};\n}}\n",
      n % 3 == 1 ? "double" : "int64_t", n, c_expression(code, texts));
}

// The C compiler's answer to every expression is the plan's own.
TEST(BundleCode, CComputesWhatThePlanDoes) {
  expr::ExprPool pool;
  plan::RandomExpressions generator(pool, 11);
  base::Random random(12);
  const plan::Slots slots = {{"a", 0}, {"b", 1}, {"x", 2}, {"c", 3}};
  constexpr int kCount = 400;
  std::vector<expr::Expr> expressions;
  std::string source(kTypes);
  source += "#include \"support.h\"\n";
  for (int n = 0; n < kCount; ++n) {
    const int depth = static_cast<int>(random.integer(0, 5));
    expressions.push_back(n % 3 == 0   ? generator.integer(depth)
                          : n % 3 == 1 ? generator.real(depth)
                                       : generator.condition(depth));
    source += c_function(n, plan::Code::of(expressions.back(), slots));
  }
  const std::string folder = testing::TempDir() + fmt::format("/bundle_code_{}", getpid());
  std::filesystem::create_directories(folder);
  std::string error;
  ASSERT_TRUE(base::write_file_atomic(folder + "/support.h", support_text(), &error)) << error;
  ASSERT_TRUE(base::write_file_atomic(folder + "/code.c", source, &error)) << error;
  const std::string library = folder + "/code.so";
  ASSERT_EQ(std::system(fmt::format("cc -std=c11 -Wall -Wextra -Werror -O1 -shared -fPIC -o {} {} "
                                    "-lm",
                                    library, folder + "/code.c")
                            .c_str()),
            0);
  void* handle = dlopen(library.c_str(), RTLD_NOW);
  ASSERT_TRUE(handle) << dlerror();
  for (int n = 0; n < kCount; ++n) {
    void* symbol = dlsym(handle, fmt::format("e{}", n).c_str());
    ASSERT_TRUE(symbol);
    const plan::Code code = plan::Code::of(expressions[static_cast<size_t>(n)], slots);
    std::vector<expr::Value> stack(static_cast<size_t>(code.depth()));
    for (int k = 0; k < 8; ++k) {
      const int64_t a = random.integer(-20, 20);
      const int64_t b = k == 7 ? INT64_MAX - random.integer(0, 2) : random.integer(-3, 5);
      const auto x = static_cast<double>(static_cast<float>(random.normal()));
      const int64_t c = k % 2;
      const expr::Value values[] = {expr::int_value(a), expr::int_value(b), expr::float_value(x),
                                    expr::int_value(c)};
      const expr::Value want = code.run(values, stack.data());
      const std::string text = expr::to_string(expressions[static_cast<size_t>(n)]);
      if (n % 3 == 1) {
        const double got =
            reinterpret_cast<double (*)(int64_t, int64_t, double, int64_t)>(symbol)(a, b, x, c);
        EXPECT_TRUE((std::isnan(got) && std::isnan(want.f)) || expr::float_value(got).i == want.i)
            << text << ": " << got << ", not " << want.f;
      } else {
        EXPECT_EQ(
            reinterpret_cast<int64_t (*)(int64_t, int64_t, double, int64_t)>(symbol)(a, b, x, c),
            want.i)
            << text;
      }
    }
  }
  dlclose(handle);
  std::filesystem::remove_all(folder);
}

TEST(BundleCode, NamesAndStringsAreThoseOfC) {
  EXPECT_EQ(c_name("O_sum.acc"), "O_sum_acc");
  EXPECT_EQ(c_name("int"), "int_");
  EXPECT_EQ(c_name("2d-conv"), "_2d_conv");
  EXPECT_EQ(c_string("a\"b\\\n?\xc3"), "\"a\\042b\\134\\012\\077\\303\"");
}

}  // namespace
}  // namespace nautilus::bundle
