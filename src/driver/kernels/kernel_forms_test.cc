// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/kernel_forms.h"

#include <gtest/gtest.h>

#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "target/target.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kNorm = R"(
dims M, N
hint M = 64, N = 512
X: f32[M, N]
mu[i] = (sum[j] X[i,j]) / N
Y[i,j] = X[i,j] - mu[i]  -> f32
)";

class KernelFormsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto program = load_text("norm.naut", std::string(kNorm), {}, unit_);
    ASSERT_TRUE(program);
    program_ = with_hints(std::move(*program), {{"M", 64}, {"N", 512}});
    first_ = first_schedule(*program_, unit_);
    ASSERT_TRUE(first_);
    forms_ = kernel_forms(*first_, unit_);
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::optional<FirstSchedule> first_;
  std::vector<KernelForms> forms_;
};

TEST_F(KernelFormsTest, TheFirstOneIsTheFirstSchedule) {
  ASSERT_GT(forms_.size(), 3u);
  std::string error;
  auto replayed = replay(*program_, forms_[0].swept.schedule, unit_, &error);
  ASSERT_TRUE(replayed) << error;
  complete(*replayed, unit_);
  EXPECT_EQ(schedule::print(replayed->decisions), schedule::print(first_->decisions));
}

TEST_F(KernelFormsTest, EachIsAnotherScheduleThatComputesTheSame) {
  std::set<std::string> names;
  std::set<std::string> forms;
  for (const KernelForms& f : forms_) {
    std::string error;
    const auto replayed = replay(*program_, f.swept.schedule, unit_, &error);
    ASSERT_TRUE(replayed) << f.swept.name << ": " << error;
    EXPECT_EQ(refused_lines(*replayed, unit_), "") << f.swept.name;
    EXPECT_EQ(check_scheduled(*program_, replayed->program, {}, unit_), "") << f.swept.name;
    names.insert(f.swept.name);
    forms.insert(f.swept.name.substr(0, f.swept.name.find(' ')));
  }
  EXPECT_EQ(names.size(), forms_.size());
  EXPECT_EQ(forms, (std::set<std::string>{"points", "rows"}));
}

TEST_F(KernelFormsTest, TheSameKernelsAreCountedOnAMachineWithOtherCosts) {
  target::Target slow = target::sm_90a();
  slow.costs.next_kernel_cycles *= 10;
  for (const KernelForms& f : forms_) {
    EXPECT_EQ(f.cycles_on(target::sm_90a()), f.swept.cycles);
    EXPECT_GT(f.cycles_on(slow), f.swept.cycles);
  }
  // A kernel more is more expensive there.
  const auto by_name = [&](std::string_view name) -> const KernelForms& {
    return *std::find_if(forms_.begin(), forms_.end(),
                         [&](const KernelForms& f) { return f.swept.name == name; });
  };
  const KernelForms& one = by_name("rows Y");
  const KernelForms& two = by_name("points mu; rows Y");
  EXPECT_GT(two.cycles_on(slow) - one.cycles_on(slow), two.swept.cycles - one.swept.cycles);
}

}  // namespace
}  // namespace nautilus::driver
