// SPDX-License-Identifier: Apache-2.0
// Compares the estimated registers and shared memory of candidates (schedule/fusion/tile_use.h)
// with the verifier's count for the kernels that lowering makes of them, over all candidates of all
// examples. Registers are an upper bound. So are the bytes of operands, with as many slots as the
// candidate was counted with: lowering gives rings more where there is room, and may give results a
// place of their own instead of that of an operand.
#include "schedule/fusion/tile_use.h"
#include "schedule/apply/apply.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "compile/grid_nest.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"
#include "ir/target_of.h"
#include "matile/resources.h"
#include "schedule/choose/candidates.h"
#include "target/target.h"

namespace nautilus::driver {
namespace {

std::vector<std::string> example_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(NAUTILUS_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class TileUseTest : public ::testing::TestWithParam<std::string> {
 protected:
  // The finished kernel of the k-th group alone, with these sizes.
  std::optional<ir::Op> lowered(const FirstSchedule& first, size_t k,
                                const schedule::TileConfig& sizes, std::string* why) {
    std::vector<schedule::Kernel> kernels = first.kernels;
    kernels[k].sizes = sizes;
    kernels[k].others.clear();
    kernels[k].split = {};
    const auto list = schedule::statements_of(first.rounded, unit_.pool);
    const auto built = schedule::assemble(first.rounded, list, kernels, unit_.pool);
    if (!built) {
      *why = built.rejection().message;
      return std::nullopt;
    }
    const int seed = first.kernels[k].fusion.seed;
    const std::string name(list.statements[static_cast<size_t>(seed)].target.str());
    size_t n = 0;
    for (const ir::Op& op : built->program.body) {
      const auto* nest = op.get<scalar::For>();
      if (!nest || nest->kind != scalar::LoopKind::Grid) continue;
      if (built->nests[n++].seed != name) continue;
      lower::FreshNames names(unit_.pool);
      for (const ir::Op& declared : built->program.body) {
        if (const auto* d = declared.get<ir::Dim>()) names.take(d->name.str());
        if (const auto* p = declared.get<ir::Param>()) names.take(p->name.str());
        if (const auto* b = declared.get<scalar::Buffer>()) names.take(b->name.str());
      }
      ir::PassContext context{unit_.pool, unit_.sink, {}};
      lower::NoKernel refused;
      const auto parts =
          compile::lower_grid_nest(built->program, op, "kernel", names, context, &refused);
      *why = refused.why;
      return parts ? std::optional(parts->kernel) : std::nullopt;
    }
    *why = "it has no nest";
    return std::nullopt;
  }

  Unit unit_;
};

// Bytes of the tiles in rings, with at most this many slots. Pieces of rows are small and not
// counted.
int64_t operand_bytes(const matile::Resources& r, int64_t slots) {
  int64_t bytes = 0;
  for (const matile::RingInfo& ring : r.rings) {
    for (const matile::SlotTileInfo& slot_tile : ring.slot_tiles) {
      if (slot_tile.tile.bytes() <= r.target->tiles.small_slot_bytes) continue;
      const int64_t tile = estimate::bytes_to_next_tile(slot_tile.tile.bytes(), r.target->copies);
      bytes += estimate::RingUse{tile, std::min<int64_t>(ring.slots(), slots), ring.copies}.bytes();
    }
  }
  return bytes;
}

constexpr size_t kOneOf = 3;  // candidates: neighbours differ by a step of the streamed axis

// Results that are wider than what a box brings do not lie where the first operand was.
constexpr std::string_view kDeepAttention = "deep_attention";
constexpr std::string_view kDeepAttentionText =
    "dims H, M, N\nstatic D = 320\nQ: bf16[H,M,D]  K, V: bf16[H,N,D]\n"
    "S[h,i,j] = where(causal(i, j, N - M), sum[e] Q[h,i,e] * K[h,j,e] * 0.05, -inf)\n"
    "P[h,i,j] = softmax[j](S[h,i,j])\n"
    "O[h,i,d] = sum[j] P[h,i,j] * V[h,j,d] -> bf16\n";

TEST_P(TileUseTest, IsNotLessThanWhatTheKernelHas) {
  std::string error;
  const auto text = GetParam() == kDeepAttention ? std::optional(std::string(kDeepAttentionText))
                                                 : base::read_file(GetParam(), &error);
  ASSERT_TRUE(text) << error;
  const auto program = load_text(GetParam(), *text, {}, unit_);
  ASSERT_TRUE(program);
  const auto first = first_schedule(*program, unit_);
  ASSERT_TRUE(first);
  for (size_t k = 0; k < first->kernels.size(); ++k) {
    const schedule::Fusion& group = first->kernels[k].fusion;
    size_t compared = 0;
    const auto candidates = schedule::candidate_sizes(group);
    for (size_t c = 0; c < candidates.size(); c += kOneOf) {
      const schedule::TileConfig& s = candidates[c];
      SCOPED_TRACE(fmt::format("kernel {}: {} groups, rows {}, step {}, column {}, resident {}", k,
                               s.warp_groups, s.rows, s.step, s.column, s.resident));
      std::string why;
      const auto op = lowered(*first, k, s, &why);
      if (!op) {
        // A candidate that fits by the estimate is never refused for its resources.
        EXPECT_EQ(why.find("shared memory"), std::string::npos) << why;
        EXPECT_EQ(why.find("registers"), std::string::npos) << why;
        continue;
      }
      ++compared;
      const auto& kernel = op->as<matile::Kernel>();
      const matile::Resources r = matile::resources_of(kernel, *group.target);
      int64_t early = 0;
      int64_t slots = 0;
      for (const estimate::RingUse& ring : schedule::shared_use(group, s).rings) {
        early += ring.bytes();
        slots = std::max(slots, ring.slots);
      }
      EXPECT_LE(operand_bytes(r, slots), early);
      for (const matile::RoleInfo& role : r.roles) {
        if (role.is_compute()) {
          EXPECT_LE(matile::product_registers(*role.op, role.op->body),
                    schedule::tile_registers(group, s).all());
        }
      }
    }
    EXPECT_GT(compared, 0u) << "kernel " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Small, TileUseTest, ::testing::Values(std::string(kDeepAttention)));
INSTANTIATE_TEST_SUITE_P(Examples, TileUseTest, ::testing::ValuesIn(example_files()),
                         [](const auto& example) {
                           return std::filesystem::path(example.param).stem().string();
                         });

}  // namespace
}  // namespace nautilus::driver
