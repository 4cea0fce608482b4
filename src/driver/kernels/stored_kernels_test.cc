// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/stored_kernels.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/files.h"
#include "driver/kernels/scheduling.h"
#include "emit/emit.h"
#include "ir/print.h"

namespace nautilus::driver {
namespace {

namespace fs = std::filesystem;

class StoredKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("nautilus_stored_" + std::to_string(::getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // In a unit of its own, as a new process would have.
  struct Made {
    std::string kernels;
    std::string cuda;
    std::string schedule;
    std::vector<std::string> notes;
    bool is_read = false;
    std::string origin;
  };
  Made make(const std::string& text, std::optional<std::string> schedule = {}) {
    Unit unit;
    const auto program = load_text("stored.naut", text, {}, unit);
    EXPECT_TRUE(program);
    std::string error;
    const auto kernels = stored_kernels(*program, {.schedule = std::move(schedule)},
                                        runtime::KernelCache(folder_.string()), unit, &error);
    EXPECT_TRUE(kernels) << error;
    if (!kernels) return {};
    Made out{ir::print(kernels->program),
             emit::device_source(emit::emit_kernels(kernels->program, unit.pool)),
             kernels->schedule,
             {},
             kernels->is_stored,
             ""};
    if (kernels->origin) {
      out.origin = ir::print(kernels->origin->statements);
      for (const std::string& name : kernels->origin->in_tiles) out.origin += name + "\n";
      for (const std::string& line : kernels->origin->derivation) out.origin += line + "\n";
    }
    for (const KernelNote& n : kernels->notes) {
      // The order of lines means nothing.
      std::set<std::string> lines;
      for (const ir::Op& line : n.lines) lines.insert(ir::print(line));
      out.notes.push_back(n.kernel + " " + n.statement + " " + std::to_string(n.alternative) +
                          " of " + std::to_string(n.alternatives));
      out.notes.insert(out.notes.end(), lines.begin(), lines.end());
    }
    return out;
  }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> out;
    for (const auto& e : fs::recursive_directory_iterator(folder_))
      if (e.is_regular_file()) out.push_back(e.path());
    return out;
  }

  static void expect_same(const Made& a, const Made& b) {
    EXPECT_EQ(a.kernels, b.kernels);
    EXPECT_EQ(a.cuda, b.cuda);
    EXPECT_EQ(a.schedule, b.schedule);
    EXPECT_EQ(a.notes, b.notes);
    EXPECT_EQ(a.origin, b.origin);
  }

  static constexpr const char* kProduct =
      "dims M, N, K  hint M = 64, N = 72, K = 80\n"
      "A: bf16[M, K]  B: bf16[K, N]\n"
      "C[i,j] = gelu(sum[k] A[i,k] * B[k,j]) -> bf16\n";

  fs::path folder_;
};

TEST_F(StoredKernels, AreReadWhenTheyWereMadeBefore) {
  const Made first = make(kProduct);
  EXPECT_FALSE(first.is_read);
  EXPECT_FALSE(first.notes.empty());
  EXPECT_FALSE(first.origin.empty());
  const Made again = make(kProduct);
  EXPECT_TRUE(again.is_read);
  expect_same(first, again);
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(StoredKernels, AreMadeAgainForWhatTheyDependOn) {
  make(kProduct);
  std::string other = kProduct;
  other.replace(other.find("gelu"), 4, "silu");
  EXPECT_FALSE(make(other).is_read) << "other equations";
  std::string hinted = kProduct;
  hinted.replace(hinted.find("M = 64"), 6, "M = 65");
  EXPECT_FALSE(make(hinted).is_read) << "other hints";
  EXPECT_TRUE(make(kProduct).is_read);
  Unit unit;
  const auto program = load_text("stored.naut", kProduct, {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  const std::string schedule = schedule::print(first->decisions);
  EXPECT_FALSE(make(kProduct, schedule).is_read) << "a schedule that was given";
  EXPECT_TRUE(make(kProduct, schedule).is_read);
}

TEST_F(StoredKernels, AnEntryThatCannotBeReadIsReplaced) {
  const Made first = make(kProduct);
  ASSERT_EQ(entries().size(), 1u);
  const fs::path entry = entries()[0];
  std::string error;
  // A file that ends too early.
  const auto whole = base::read_file(entry.string(), &error);
  ASSERT_TRUE(whole);
  ASSERT_TRUE(base::write_file_atomic(entry.string(), whole->substr(0, whole->size() / 2), &error));
  const Made cut = make(kProduct);
  EXPECT_FALSE(cut.is_read);
  expect_same(first, cut);
  EXPECT_EQ(base::read_file(entry.string(), &error), whole);
  // One that is whole, and says something else.
  const runtime::KernelCache cache(folder_.string());
  ASSERT_TRUE(cache.put(entry.filename().string(), "0\n20\nmatile.program @ {{{{", &error));
  const Made foreign = make(kProduct);
  EXPECT_FALSE(foreign.is_read);
  expect_same(first, foreign);
  EXPECT_TRUE(make(kProduct).is_read);
}

TEST_F(StoredKernels, AreTheSameForEveryExample) {
  const fs::path examples = fs::path(NAUTILUS_SOURCE_DIR) / "examples";
  for (const char* name : {"attention_causal", "attention_decode", "argmax_row", "layernorm",
                           "gemm_bias_gelu", "attention_documents"}) {
    std::string error;
    const auto text = base::read_file((examples / (std::string(name) + ".naut")).string(), &error);
    ASSERT_TRUE(text) << error;
    const Made first = make(*text);
    const Made again = make(*text);
    EXPECT_TRUE(again.is_read) << name;
    expect_same(first, again);
  }
}

}  // namespace
}  // namespace nautilus::driver
