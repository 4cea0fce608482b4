// SPDX-License-Identifier: Apache-2.0
// The line `live`: whichever steps of a masked axis a loop runs, the results are those of the
// definition; what a mask cannot give is refused.
#include <gtest/gtest.h>

#include "driver/check/emulated_check.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "schedule/apply/apply.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {
namespace {

using decision::LiveKind;

// An attention with masked scores; `also`: further tensors that the mask reads.
std::string attention(std::string_view mask, std::string_view also = "") {
  return fmt::format(R"(
dims M, N            static D = 16
hint M = 150, N = 400
Q: bf16[M, D]
K, V: bf16[N, D]
{}
S[i,j] = sum[d] Q[i,d] * K[j,d]
T[i,j] = where({}, S[i,j], -inf)
O[i,e] = sum[j] softmax[j](T[i,j]) * V[j,e]  -> bf16
)",
                     also, mask);
}

// The emulator's report for the program with this line (empty: none), or why the line is refused.
std::string outcome(const std::string& text, LiveKind alternative) {
  Unit unit;
  const auto program = load_text("a.naut", text, {}, unit);
  const auto first = program ? first_schedule(*program, unit) : std::nullopt;
  if (!first || first->kernels.size() != 1) return "not one kernel";
  schedule::Schedule changed = first->decisions;
  // The passes decide anew: what they chose for the steps of the rule need not fit.
  changed.kernels = schedule::to_schedule(first->kernels, schedule::By::Auto);
  changed.kernels[0].alternatives.resize(1);
  changed.kernels[0].alternatives[0].push_back(
      ir::make(decision::Live{unit.pool.name("j"), alternative, decision::By::User}));
  std::string error;
  const auto kernels = lower_with_schedule(*program, schedule::print(changed), unit, &error);
  if (!kernels) return unit.sink.all().empty() ? error : unit.sink.all().back().message;
  return check_emulated(*program, *kernels, {}, unit).value_or("it does not run");
}

TEST(Live, MasksOfPositionsBoundARange) {
  for (const char* mask : {"j <= i + 100", "j >= i + 130 and j < i + 170"}) {
    for (const LiveKind alternative : {LiveKind::All, LiveKind::Range, LiveKind::List})
      EXPECT_EQ(outcome(attention(mask), alternative), "")
          << mask << ", " << static_cast<int>(alternative);
    EXPECT_EQ(outcome(attention(mask), LiveKind::DataRange),
              "`live j data_range`: no mask compares data of a row with data or positions of `j`");
  }
}

TEST(Live, MasksOfDataBoundARangeOrMakeAList) {
  const std::string documents =
      attention("of_query[i] == of_key[j]", "of_query: i32[M]\nof_key: i32[N]");
  for (const LiveKind alternative : {LiveKind::All, LiveKind::DataRange, LiveKind::List})
    EXPECT_EQ(outcome(documents, alternative), "") << static_cast<int>(alternative);
  EXPECT_EQ(outcome(documents, LiveKind::Range), "`live j range`: no mask bounds `j` by positions");
}

// The mask is worth a list where several heads share it.
TEST(Live, AMaskOfPointsMakesAList) {
  const std::string table = R"(
dims H, M, N         static D = 16
hint H = 2, M = 150, N = 400
Q: bf16[H, M, D]
K, V: bf16[H, N, D]
keep: i32[M, N]
S[h,i,j] = sum[d] Q[h,i,d] * K[h,j,d]
T[h,i,j] = where(keep[i,j] > 5, S[h,i,j], -inf)
O[h,i,e] = sum[j] softmax[j](T[h,i,j]) * V[h,j,e]  -> bf16
)";
  for (const LiveKind alternative : {LiveKind::All, LiveKind::List})
    EXPECT_EQ(outcome(table, alternative), "") << static_cast<int>(alternative);
  EXPECT_EQ(outcome(table, LiveKind::DataRange),
            "`live j data_range`: no mask compares data of a row with data or positions of `j`");
}

// A range of positions together with a mask on data.
TEST(Live, BothKindsOfMasksLeaveEveryChoice) {
  const std::string both =
      attention("j <= i + 100 and of_query[i] == of_key[j]", "of_query: i32[M]\nof_key: i32[N]");
  for (const LiveKind alternative :
       {LiveKind::All, LiveKind::Range, LiveKind::DataRange, LiveKind::List})
    EXPECT_EQ(outcome(both, alternative), "") << static_cast<int>(alternative);
}

TEST(Live, WithoutAMaskThereIsNoChoice) {
  const std::string plain = attention("true");
  EXPECT_EQ(outcome(plain, LiveKind::All), "`live j all`: no mask hides whole steps of `j`");
  EXPECT_EQ(outcome(plain, LiveKind::Range), "`live j range`: no mask bounds `j` by positions");
}

}  // namespace
}  // namespace nautilus::driver
