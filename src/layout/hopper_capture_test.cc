// SPDX-License-Identifier: Apache-2.0
//
// The layouts against the hardware: test/capture/hopper_layouts.txt holds what a Hopper GPU
// answered when it was asked where its matrix unit, copy engine and stmatrix put every element
// (test/capture/capture.cu). Every captured number is checked.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "base/files.h"
#include "layout/descriptor.h"
#include "layout/fragments.h"
#include "layout/stmatrix.h"
#include "layout/swizzle.h"

namespace nautilus::layout {
namespace {

// Lines of the capture by their first word; the rest of each line as words.
const std::map<std::string, std::vector<std::vector<std::string>>>& capture() {
  static const auto lines = [] {
    std::map<std::string, std::vector<std::vector<std::string>>> out;
    std::string error;
    std::istringstream text(
        base::read_file(NAUTILUS_SOURCE_DIR "/test/capture/hopper_layouts.txt", &error)
            .value_or(""));
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      std::string name;
      words >> name;
      std::vector<std::string> rest;
      for (std::string w; words >> w;) rest.push_back(w);
      if (name != "#") out[name].push_back(rest);
    }
    return out;
  }();
  return lines;
}

int number(const std::string& word) { return std::stoi(word); }

TEST(HopperCapture, AccumulatorRegistersHoldTheElementsOfAcc) {
  const Layout layout = acc(64);
  int checked = 0;
  for (const auto& words : capture().at("acc64")) {  // thread T r,c r,c ...
    const int thread = number(words[1]);
    for (size_t i = 2; i < words.size(); ++i) {
      const size_t comma = words[i].find(',');
      const Place place =
          layout.owner_of({number(words[i].substr(0, comma)), number(words[i].substr(comma + 1))});
      EXPECT_EQ(place.warp * 32 + place.lane, thread);
      EXPECT_EQ(place.reg, static_cast<int>(i) - 2);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 64 * 64);
}

TEST(HopperCapture, OperandRegistersHoldTheElementsOfAfrag) {
  const Layout layout = afrag(16);
  int checked = 0;
  for (const auto& words : capture().at("afrag16")) {  // step 0 row R origin...
    for (size_t k = 4; k < words.size(); ++k) {
      const Place place = layout.owner_of({number(words[3]), static_cast<int>(k) - 4});
      EXPECT_EQ((place.warp * 32 + place.lane) * 8 + place.reg, number(words[k]));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 64 * 16);
}

// The address the matrix unit reads for element (mn, k) of a k-step, in units of two bytes from the
// tile's start.
void expect_operand(const std::string& name, const Operand& operand) {
  int checked = 0;
  for (const auto& words : capture().at(name)) {  // step S row R address...
    for (size_t k = 4; k < words.size(); ++k) {
      const uint32_t address =
          operand_address(operand, number(words[1]), number(words[3]), static_cast<int>(k) - 4);
      EXPECT_EQ(address, static_cast<uint32_t>(2 * number(words[k])))
          << name << " step " << words[1] << " row " << words[3];
      ++checked;
    }
  }
  EXPECT_EQ(checked, 4 * 64 * 16);
}

TEST(HopperCapture, MatrixUnitReadsPanelsWhereDescriptorsSay) {
  const PanelTile tile{64, 64, Swizzle::B128, 2};
  expect_operand("a_kmajor", {tile, Major::K, 0, 0});
  expect_operand("b_kmajor", {tile, Major::K, 0, 0});
  expect_operand("b_mnmajor", {tile, Major::MN, 0, 0});
}

TEST(HopperCapture, StmatrixPutsRegistersWhereTheModelSays) {
  for (const bool transposed : {false, true}) {
    int checked = 0;
    for (const auto& words :
         capture().at(transposed ? "stmatrix_x4_trans" : "stmatrix_x4")) {  // row R origin...
      const int row = number(words[1]);                                     // 8 rows per matrix
      for (size_t c = 2; c < words.size(); ++c) {
        const int origin = number(words[c]);
        const int lane = origin / 8;
        const int matrix = origin % 8 / 2;
        const auto element = matrix_element(lane, origin % 2, transposed);
        EXPECT_EQ(matrix, row / 8);
        EXPECT_EQ(element.row, row % 8);
        EXPECT_EQ(element.col, static_cast<int>(c) - 2);
        ++checked;
      }
    }
    EXPECT_EQ(checked, 256);
  }
}

void expect_box(const std::string& name, Swizzle swizzle, int width) {
  // A 40 x 200 tensor of row * 256 + column; elements outside are filled with 0.
  int checked = 0;
  std::vector<int> smem;
  int x = 0;
  int y = 0;
  for (const auto& words : capture().at(name)) {  // at X,Y row R value...
    const size_t comma = words[1].find(',');
    x = number(words[1].substr(0, comma));
    y = number(words[1].substr(comma + 1));
    for (size_t c = 4; c < words.size(); ++c) smem.push_back(number(words[c]));
  }
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < width; ++column) {
      const bool is_inside = y + row < 40 && x + column < 200;
      const int box[] = {width, 16};
      const int at[] = {column, row};
      const uint32_t offset = tma_box_offset(box, at, swizzle, 2);
      EXPECT_EQ(smem[offset / 2], is_inside ? (y + row) * 256 + x + column : 0)
          << name << " " << row << "," << column;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 16 * width);
}

TEST(HopperCapture, CopyEngineWritesBoxesWhereTheModelSays) {
  expect_box("tma128", Swizzle::B128, 64);
  expect_box("tma64", Swizzle::B64, 32);
  expect_box("tma32", Swizzle::B32, 16);
  expect_box("tma128_edge", Swizzle::B128, 64);
}

}  // namespace
}  // namespace nautilus::layout
