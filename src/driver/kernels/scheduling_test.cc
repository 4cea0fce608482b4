// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/scheduling.h"
#include "schedule/apply/apply.h"
#include "schedule/text/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "compile/kernels.h"
#include "decision/lines.h"
#include "ir/print.h"
#include "matile/ops.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kAttention = R"(
dims M, N            static D = 16
hint M = 20, N = 30
Q: bf16[M, D]
K, V: bf16[N, D]
S[i,j] = sum[d] Q[i,d] * K[j,d]
O[i,e] = sum[j] softmax[j](S[i,j]) * V[j,e]  -> bf16
)";

class SchedulingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    program_ = load_text("a.naut", std::string(kAttention), {}, unit_);
    ASSERT_TRUE(program_);
    first_ = first_schedule(*program_, unit_);
    ASSERT_TRUE(first_);
    text_ = schedule::print(first_->decisions);
  }

  // The kernels of a scheduled program as text; why there are none.
  std::string kernels_of(const ir::Program& scheduled) {
    ir::PassContext context{unit_.pool, unit_.sink, {}};
    const auto kernels = compile::nests_to_kernels(scheduled, context);
    return kernels ? ir::print(*kernels) : unit_.sink.all().back().message;
  }

  static void replace(std::string& text, std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in\n" << text;
    text.replace(at, from.size(), to);
  }

  // The text with one part replaced, or two; the replay's error, or nothing.
  std::string error_of(std::string_view from, std::string_view to, std::string_view second = {},
                       std::string_view to_second = {}) {
    std::string edited = text_;
    replace(edited, from, to);
    if (!second.empty()) replace(edited, second, to_second);
    std::string error;
    const auto again = replay_schedule(*program_, edited, unit_, &error);
    edited_ = again ? ir::print(again->program) : "";
    return error;
  }

  Unit unit_;
  std::optional<ir::Program> program_;
  std::optional<FirstSchedule> first_;
  std::string text_;
  std::string edited_;
};

TEST_F(SchedulingTest, ReplayGivesTheSameProgram) {
  const auto parsed = schedule::parse_schedule(text_, unit_.pool);
  ASSERT_TRUE(parsed) << parsed.rejection().message;
  EXPECT_EQ(schedule::print(*parsed), text_);
  std::string error;
  const auto again = replay_schedule(*program_, text_, unit_, &error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(kernels_of(again->program), kernels_of(first_->program));
}

TEST_F(SchedulingTest, EditedDecisionsAreTaken) {
  EXPECT_EQ(error_of("tile j 176", "tile j 64 user"), "");
  EXPECT_NE(edited_.find("(N + 63) / 64"), std::string::npos) << edited_;
  EXPECT_EQ(error_of("tile i 64", "tile i 192 user", "groups 1", "groups 3"), "");
  EXPECT_NE(edited_.find("for w < 3 group"), std::string::npos) << edited_;
}

TEST_F(SchedulingTest, WhatIsNotLegalIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("tile j 176", "tile j 100"),
            "`tile j 100`: a step is a multiple of 16 up to 256");
  EXPECT_EQ(error_of("tile i 64", "tile i 100"),
            "`groups 1 sharing`: a tile of 100 rows: groups that share it have 64 rows each, 1 to "
            "4; one that alternates 64 to 192");
  EXPECT_EQ(error_of("roll O.max", "fuse O.max; roll O.max"),
            "`fuse O.max`: `O.max` is a reduction over the streamed axis: `roll`");
  EXPECT_EQ(error_of("fuse S", "fuse Z"), "`fuse Z, O.e, O.sum_2, O`: there is no statement `Z`");
  EXPECT_EQ(error_of("tile j 176", "tile q 128"), "`tile q 128`: it is not an axis of a tile");
  EXPECT_EQ(error_of("kernel O.sum_2.acc", "kernel O"), "`kernel O`: `O` is no reduction");
  EXPECT_EQ(error_of("stream j", "stream d"), "`stream d`: this kernel streams `j`");
}

TEST_F(SchedulingTest, WhatIsNoScheduleIsRefusedWithItsLine) {
  EXPECT_EQ(error_of("version 2", "version 3"),
            "line 1: a header with a hash is of version 2, not 3");
  EXPECT_EQ(error_of("fuse S", "melt S"),
            "line 4: `melt S, O.e, O.sum_2, O`: `melt` is not a decision");
  EXPECT_EQ(error_of(text_.substr(0, text_.find('\n')), "schedule @b version 2 equations 0123"),
            "the schedule is for @b, the program is @a");
  std::string error;
  EXPECT_FALSE(replay_schedule(*program_, "", unit_, &error));
  EXPECT_EQ(error, "line 0: the schedule is empty");
}

TEST_F(SchedulingTest, ALineThatNothingReadsIsAnError) {
  ir::PassContext context{unit_.pool, unit_.sink, {}};
  auto kernels = compile::nests_to_kernels(first_->program, context);
  ASSERT_TRUE(kernels);
  EXPECT_TRUE(matile::verify_final(*kernels, unit_.sink));
  for (ir::Op& op : kernels->body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    matile::Kernel with = *kernel;
    with.body = decision::with_lines(std::move(with.body), {ir::make(decision::LoopOrder{})});
    op = ir::make(std::move(with));
  }
  EXPECT_FALSE(matile::verify_final(*kernels, unit_.sink));
  EXPECT_EQ(unit_.sink.all().back().code, diag::Code::DecisionRefused);
}

TEST_F(SchedulingTest, PartsOfTheStreamedAxis) {
  const auto with = [&](const std::string& split) {
    return error_of("tile j 176", "tile j 176; " + split);
  };
  EXPECT_EQ(with("split j into 3 combine kernel user"), "");
  EXPECT_NE(edited_.find("size j_parts ="), std::string::npos) << edited_;
  EXPECT_EQ(with("split j combine last"), "");
  EXPECT_EQ(with("split i into 3 combine kernel"),
            "`split i into 3 combine kernel`: only the streamed axis has parts");
  EXPECT_EQ(
      with("split j into many combine kernel"),
      "line 5: `split j into many combine kernel`: expected an integer (parts), found `many`");
  EXPECT_EQ(with("split j into 3 combine first"),
            "line 5: `split j into 3 combine first`: expected one of kernel, last, found `first`");
}

// Every kernel of a program in three parts of steps of 16, against the definition.
std::string difference_in_parts(std::string_view text,
                                const std::map<std::string, int64_t>& sizes) {
  Unit unit;
  const auto program = load_text("p.naut", std::string(text), {}, unit);
  if (!program) return "it does not load";
  const auto first = first_schedule(*program, unit);
  if (!first) return "it has no schedule";
  schedule::Schedule edited = first->decisions;
  edited.kernels = schedule::to_schedule(first->kernels, schedule::By::Auto);
  for (size_t k = 0; k < edited.kernels.size(); ++k) {
    const ir::Name stream = first->kernels[k].fusion.stream.name();
    edited.kernels[k].alternatives.resize(1);
    schedule::complete(
        edited.kernels[k].alternatives[0],
        {ir::make(decision::Tile{stream, 16, {}}),
         ir::make(decision::Split{.axis = stream, .parts = 3, .by = decision::By::User})});
  }
  std::string error;
  const auto again = replay_schedule(*program, schedule::print(edited), unit, &error);
  if (!again) return error;
  if (ir::print(again->program).find(".parts") == std::string::npos) return "nothing is split";
  RunRequest request;
  request.given.sizes.insert(sizes.begin(), sizes.end());
  return check_scheduled(*program, again->program, request, unit).value_or("it does not run");
}

TEST(Parts, AgreeWithTheDefinition) {
  EXPECT_EQ(difference_in_parts(kAttention, {{"M", 3}, {"N", 75}}), "");
  EXPECT_EQ(difference_in_parts(kAttention, {{"M", 3}, {"N", 1}}), "");
  // A window, an initial element, a second output of the reference.
  EXPECT_EQ(difference_in_parts(R"(
dims M, N            static D = 16
hint M = 5, N = 90
Q: bf16[M, D]
K, V: bf16[N, D]
z: f32[M]
S[i,j] = sum[d] Q[i,d] * K[j,d] * 9.0
T[i,j] = where(j >= 40 + i and j < 60 + i, S[i,j], -inf)
O[i,e] = sum[j] softmax_sink[j](T[i,j], z[i]) * V[j,e]  -> bf16
L[i] = logsumexp[j](T[i,j])                            -> f32
)",
                                {}),
            "");
  // A row's own reduction before the steps, which is an output, too.
  EXPECT_EQ(difference_in_parts(R"(
dims M, N            static D = 16
hint M = 5, N = 90
Q: bf16[M, D]
K, V: bf16[N, D]
n[i] = sum[d] f32(Q[i,d]) * f32(Q[i,d])  -> f32
S[i,j] = sum[d] Q[i,d] * K[j,d] / (1.0 + n[i])
O[i,e] = sum[j] softmax[j](S[i,j]) * V[j,e]  -> bf16
)",
                                {}),
            "");
}

TEST_F(SchedulingTest, AStatementLeftOutIsReadFromMemory) {
  EXPECT_EQ(error_of("fuse S, O", "fuse O"), "");
  EXPECT_NE(edited_.find("buffer S : f32[M, N] temp"), std::string::npos) << edited_;
}

// Products that make operands pass through memory if a kernel has no room for them. The line `fuse`
// says so: it does not name such a product.
TEST(ProductsApart, FuseSaysWhereAnOperandsProductIs) {
  Unit unit;
  const auto program = load_text("a.naut", R"(
dims M
static C = 256, F = 128
hint M = 70
X: bf16[M, C]
W1: bf16[C, F]
W2: bf16[F, C]
gamma: bf16[C]
U[i, f] = gelu(sum[c] rmsnorm[c](X[i, c], gamma[c], 1e-5) * W1[c, f])
Y[i, c] = sum[f] U[i, f] * W2[f, c] -> bf16
)",
                                 {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  const std::string text = schedule::print(first->decisions);
  ASSERT_EQ(first->kernels.size(), 2) << text;
  // Asked to have it, the kernel is refused with what it lacks.
  schedule::Schedule together = first->decisions;
  std::erase_if(together.kernels, [](const auto& k) { return k.name != "Y.sum.acc"; });
  ASSERT_EQ(together.kernels.size(), 1) << text;
  ir::Names products;
  for (const char* name : {"U.sum.acc", "U.sum", "U.sum.sum"})
    products.push_back(unit.pool.name(name));
  together.kernels[0].alternatives = {{ir::make(decision::Fuse{products, decision::By::User})}};
  std::string error;
  const auto built = replay(*program, together, unit, &error);
  ASSERT_TRUE(built) << error;
  EXPECT_NE(refused_lines(*built, unit).find("more than 240"), std::string::npos)
      << refused_lines(*built, unit);
}

// Sizes of kernels that are chosen by rule may say more than passes could follow: groups that
// alternate. Where they are replayed, what came of them counts.
TEST(KernelsByRule, AreThoseOfTheFirstSchedule) {
  Unit unit;
  const auto program = load_text("a.naut", R"(
dims M, N
static D = 64
hint M = 100, N = 90
Q: bf16[M, D]
K: f8e4m3[N, D]
S[i, j] = sum[d] Q[i, d] * K[j, d] -> bf16
)",
                                 {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  schedule::Schedule given = first->decisions;
  given.kernels.clear();
  for (const bool has_lines : {true, false}) {
    if (!has_lines) given.lines.clear();
    std::string error;
    auto again = replay_schedule(*program, schedule::print(given), unit, &error);
    ASSERT_TRUE(again) << error;
    EXPECT_EQ(refused_lines(*again, unit), "");
    complete(*again, unit);
    EXPECT_EQ(schedule::print(again->decisions), schedule::print(first->decisions));
  }
}

// An operand that its kernel computes has a line, but is never in memory: it has an order only if
// `fuse` leaves it out.
TEST(OperandsOnTheWay, HaveNoOrder) {
  Unit unit;
  const auto program = load_text("a.naut", R"(
dims M, N
static D = 64
hint M = 300, N = 290
Q: bf16[M, D]
K: bf16[N, D]
S[i, j] = sum[d] max(Q[i, d], 0) * K[j, d] -> bf16
)",
                                 {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  std::string text = schedule::print(first->decisions);
  const std::string line = "store S.sum.operand bf16\n";
  ASSERT_NE(text.find(line), std::string::npos) << text;
  text.replace(text.find(line), line.size(), "store S.sum.operand bf16 order d, i\n");
  std::string lines = text.substr(0, text.find("kernel "));
  for (const std::string& given : {text, lines}) {
    std::string error;
    EXPECT_FALSE(replay_schedule(*program, given, unit, &error));
    EXPECT_EQ(error,
              "`store S.sum.operand bf16 order d, i`: its kernel computes it on the way (`fuse`), "
              "so it lies in no order in memory");
  }
  std::string error;
  const auto apart =
      replay_schedule(*program, lines + "kernel S.sum tile\n  rows i; fuse S\n", unit, &error);
  ASSERT_TRUE(apart) << error;
  const std::string scheduled = ir::print(apart->program);
  EXPECT_NE(scheduled.find("buffer S.sum.operand : bf16[64, M] temp"), std::string::npos)
      << scheduled;
  EXPECT_EQ(refused_lines(*apart, unit), "");
}

// A program between passes that still has lines about operands continues with them.
TEST(OwnLines, AreThoseOfTheFirstSchedule) {
  constexpr std::string_view kLines = "    store B.high, B.middle, B.low bf16 order j, k user\n";
  constexpr std::string_view kProgram = R"(  dim M hint 33
  dim N hint 40
  dim K hint 50
  input A : f32[M, K]
  input B : f32[K, N]
  let C[i < M, j < N] : f32 = sum[k < K] A[i, k] * B[k, j]
  output C
)";
  const auto text_of = [&](std::string_view lines) {
    return fmt::format("spec.program @a after split_reductions\n  decisions\n{}{}", lines,
                       kProgram);
  };
  Unit unit;
  const auto program = load_text("a.spec", text_of(kLines), {}, unit);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit);
  ASSERT_TRUE(first);
  EXPECT_NE(schedule::print(first->decisions)
                .find("algebra limbs on\n"
                      "store A.high, A.middle, A.low bf16 order i, k\n"
                      "store B.high, B.middle, B.low bf16 order j, k user\n"
                      "kernel"),
            std::string::npos)
      << schedule::print(first->decisions);
  EXPECT_EQ(refused_lines(*first, unit), "");
  const auto wrong = load_text("a.spec", text_of("    store D.high bf16\n"), {}, unit);
  ASSERT_TRUE(wrong);
  EXPECT_FALSE(first_schedule(*wrong, unit));
  ASSERT_FALSE(unit.sink.all().empty());
  EXPECT_EQ(
      unit.sink.all().back().message,
      "`store D.high bf16`: no operand of products has this name or depth, with the other lines as "
      "they are");
}

}  // namespace
}  // namespace nautilus::driver
