// SPDX-License-Identifier: Apache-2.0
//
// The emulated matrix unit against a real one: where it reads operands of all types, and every bit
// of its sums. test/capture/hopper_operands.txt holds what a Hopper GPU answered.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "emulator/product.h"
#include "layout/swizzle.h"
#include "test/capture/operand_questions.h"

namespace nautilus::emulator {
namespace {

constexpr std::pair<Operand, Operand> kOperands[capture::kKindCount] = {
    {Operand::BF16, Operand::BF16},     {Operand::F16, Operand::F16},
    {Operand::TF32, Operand::TF32},     {Operand::F8E4M3, Operand::F8E4M3},
    {Operand::F8E5M2, Operand::F8E5M2}, {Operand::F8E4M3, Operand::F8E5M2},
    {Operand::F8E5M2, Operand::F8E4M3}};

uint64_t descriptor(uint64_t fields, int start) {
  return fields | (SharedMemory::kBase + static_cast<uint32_t>(start)) >> 4;
}

// The four warps of a group, one after the other.
void emulate(int kind, capture::Product& asked) {
  SharedMemory memory(sizeof asked.smem);
  std::memcpy(memory.at(SharedMemory::kBase), asked.smem, sizeof asked.smem);
  Product product;
  product.n = 64;
  product.a_operand = kOperands[kind].first;
  product.b_operand = kOperands[kind].second;
  product.a = descriptor(asked.a, asked.a_start);
  product.b = descriptor(asked.b, asked.b_start);
  Accumulator accumulator;
  product.accumulator = &accumulator;
  for (int warp = 0; warp < 4; ++warp) {
    float* sums = asked.sums + warp * kRows * 64;
    accumulator.values.assign(sums, sums + kRows * 64);
    product.granules = a_pieces(product, warp);
    const std::vector<uint32_t> b = b_pieces(product);
    product.granules.insert(product.granules.end(), b.begin(), b.end());
    multiply(product, memory);
    std::copy(accumulator.values.begin(), accumulator.values.end(), sums);
  }
}

TEST(OperandCapture, EmulatedOperandsLieInPanels) {
  for (int index = 0; index < capture::kKindCount; ++index) {
    const capture::Kind& kind = capture::kKinds[index];
    for (const bool is_a : {true, false}) {
      for (const int span : {128, 64}) {
        for (int step = 0; step < 4; ++step) {
          const auto swizzle = span == 128 ? layout::Swizzle::B128 : layout::Swizzle::B64;
          const layout::PanelTile tile = {64, 128 / kind.a.bytes, swizzle, kind.a.bytes};
          const std::vector<int> places = capture::read_places(emulate, index, is_a, span, step);
          for (int i = 0; i < 64 * kind.depth(); ++i) {
            const int k = step * kind.depth() + i % kind.depth();
            const auto offset = static_cast<int>(tile.offset(i / kind.depth(), k));
            ASSERT_EQ(places[static_cast<size_t>(i)], offset / kind.a.bytes)
                << kind.name << " " << span << " step " << step << " element " << i;
          }
        }
      }
    }
  }
}

// The words of a line behind those that both have, so that long lines can be told apart.
std::string tail_of(const std::string& line, const std::string& other) {
  size_t i = 0;
  while (i < line.size() && i < other.size() && line[i] == other[i]) ++i;
  const size_t begin = line.rfind(' ', i);
  return line.substr(begin == std::string::npos ? 0 : begin, 60);
}

// Cases are a line with few words; of the others the first ones say which it is.
std::string name_of(const std::string& line) {
  return line.starts_with("case") ? line.substr(0, line.rfind(' ')) : line.substr(0, 30);
}

TEST(OperandCapture, TheEmulatedUnitAnswersAsTheRealOne) {
  const char* path = NAUTILUS_SOURCE_DIR "/test/capture/hopper_operands.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not captured yet";
  std::string error;
  std::istringstream text(base::read_file(path, &error).value_or(""));
  ASSERT_EQ(error, "");
  std::vector<std::string> captured;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("#") && !line.starts_with("map ")) captured.push_back(line);
  }
  const std::vector<std::string> emulated = capture::answers(emulate);
  ASSERT_EQ(emulated.size(), captured.size());
  for (size_t i = 0; i < captured.size(); ++i) {
    EXPECT_TRUE(emulated[i] == captured[i])
        << name_of(captured[i]) << "\n  the unit:    " << tail_of(captured[i], emulated[i])
        << "\n  the emulator:" << tail_of(emulated[i], captured[i]);
  }
}

// A map of type FLOAT32 copies bits as they are.
TEST(OperandCapture, MapsOfF32CopyBits) {
  const char* path = NAUTILUS_SOURCE_DIR "/test/capture/hopper_operands.txt";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not captured yet";
  std::string error;
  std::istringstream text(base::read_file(path, &error).value_or(""));
  int copied = 0;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("map FLOAT32 ")) continue;
    std::istringstream words(line.substr(12));
    for (std::string word; words >> word; ++copied) {
      const size_t colon = word.find(':');
      EXPECT_EQ(word.substr(0, colon), word.substr(colon + 1));
    }
  }
  EXPECT_EQ(copied, 64);
}

}  // namespace
}  // namespace nautilus::emulator
