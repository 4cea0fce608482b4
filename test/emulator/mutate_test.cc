// SPDX-License-Identifier: Apache-2.0
#include "emulator/mutate.h"

#include <gtest/gtest.h>

#include "base/parallel.h"
#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {
namespace {

std::vector<std::string> descriptions(std::string_view body) {
  std::vector<std::string> out;
  for (const Mutant& mutant : mutants(body)) out.push_back(mutant.description);
  return out;
}

using Strings = std::vector<std::string>;

TEST(Mutants, OnePerStatement) {
  EXPECT_EQ(descriptions("AB.get();\nwgmma_fence();\n  wgmma_wait<1>(S, P);"),
            (Strings{"line 1: deleted `AB.get();`", "line 2: deleted `wgmma_fence();`",
                     "line 3: deleted `wgmma_wait<1>(S, P);`"}));
}

TEST(Mutants, KeepTheRestOfTheText) {
  const std::vector<Mutant> all =
      mutants("if (thread % 128 == 0) tma_wait_read<0>();\n{ tma_commit(); } Qr[w].get();");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].body, "if (thread % 128 == 0) ;\n{ tma_commit(); } Qr[w].get();");
  EXPECT_EQ(all[1].body, "if (thread % 128 == 0) tma_wait_read<0>();\n{ ; } Qr[w].get();");
  EXPECT_EQ(all[2].body, "if (thread % 128 == 0) tma_wait_read<0>();\n{ tma_commit(); } ;");
  EXPECT_EQ(all[2].line, 2);
}

TEST(Mutants, KeepLineNumbers) {
  const std::vector<Mutant> all = mutants("AB.release(1,\n           lane);\nx = 1;");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].body, "\n;\nx = 1;");
}

TEST(Mutants, AFillLosesOneOfItsEffects) {
  const std::vector<Mutant> all = mutants("const u32 full = AB.fill(49152);");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].description, "line 1: deleted the wait of `AB.fill(49152)`");
  EXPECT_EQ(all[0].body, "const u32 full = AB.fill_without_wait(49152);");
  EXPECT_EQ(all[1].description, "line 1: deleted the announcement of `AB.fill(49152)`");
  EXPECT_EQ(all[1].body, "const u32 full = AB.fill_without_expect(49152);");
  EXPECT_EQ(mutants("tma_load(q, &p.Q, Q.fill_copy(1, 64), 0, 0);").at(1).body,
            "tma_load(q, &p.Q, Q.fill_copy_without_expect(1, 64), 0, 0);");
}

TEST(Mutants, MethodsAndInitialisation) {
  EXPECT_EQ(descriptions("Ring<4>::init(smem + (8), 8); A.enter(); A.leave(); R.jump(n); R.skip();"
                         "R.advance();"
                         "Tr.claim(); Tr.publish(); bar_sync(1 + w, 128); bar_arrive(2, 256);"
                         "sync_cta(); mbar_init_fence(); fence_async(); mbar_arrive(x);")
                .size(),
            14u);
}

TEST(Mutants, NotInCommentsStringsDefinitionsOrOtherNames) {
  EXPECT_EQ(descriptions("// AB.get();\n/* wgmma_fence();\n*/ ROLE(\"AB.get();\"); my_sync_cta();"
                         "forget(); x.get_slot(); int y = map.get(3) + 1; struct get { };"),
            Strings{});
}

TEST(Mutants, AfterHeadsOfStatements) {
  EXPECT_EQ(descriptions("for (int i = 0; i < 3; ++i) AB.get();\nelse AB.get();\nUNROLL AB.get();")
                .size(),
            3u);
}

// Each of the calls in a GEMM is needed, and a few runs show it.
TEST(Mutants, OfAGemmAreAllCaught) {
  const std::vector<Mutant> all = mutants(kGemm);
  EXPECT_EQ(all.size(), 24u);
  std::vector<char> is_caught(all.size());
  base::parallel_for(static_cast<int64_t>(all.size()), base::default_threads(), [&](int64_t i) {
    const auto index = static_cast<size_t>(i);
    const auto body = compile_for_test(all[index].body);
    if (body == nullptr) return;
    for (uint64_t seed = 1; seed <= 4 && !is_caught[index]; ++seed) {
      const GemmResult result = run_gemm(*body, 130, 260, 328, 1, seed);
      is_caught[index] = !result.report.empty() || result.wrong > 0;
    }
  });
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(is_caught[i]) << all[i].description;
}

}  // namespace
}  // namespace nautilus::emulator
