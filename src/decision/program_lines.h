// SPDX-License-Identifier: Apache-2.0
// Lines about the program as a whole: which equations it has and what its temporaries are.
#pragma once

#include "decision/shared_words.h"
#include "ir/op.h"

namespace nautilus::decision {

enum class Rewrite : uint8_t {
  DistributeRowShift,
  Gather,
  Limbs,
  Residues,
  Groups,
  Narrow,
  Chunks,
  Sums,
  Extremes,
  Pieces,
  Tables,
  Masks,
  Ranks
};
const std::vector<std::string_view>& words(Rewrite);

struct Algebra {
  static constexpr std::string_view kFormat = "algebra $rewrite $use{ $by}";
  static constexpr std::string_view kDoc =
      "Program: an optional rewrite of the equations. distribute_row_shift: differences from a "
      "value of a "
      "row "
      "leave the products that they stand in. gather: operands that no box can bring as they lie "
      "are copied first. limbs: operands of f32 products are sums of three bf16 numbers, or of "
      "fewer that a licence leaves. "
      "residues: sums with terms at every n-th place of an axis are sums over those places. "
      "groups: sums that are products of matrices within groups of an axis are products of each "
      "group. narrow: operands of products that 16 bits hold exactly are rounded to them, whatever "
      "expression makes them. chunks: scans with matrices as states are products of matrices for "
      "each chunk of their steps. sums: short axes of products over several are written out, one "
      "product for each of their points. extremes: positions of extremes along rows are reductions "
      "of floats. pieces: reductions along an axis of a product are taken in pieces first, by the "
      "kernel of the product. tables: costly values that are the same for many elements are "
      "computed once. masks: a condition around a product is one of its operand, so that sums of "
      "it are products of matrices. ranks: elements with few before them in an order are looked "
      "for in pieces of their axis first.";
  Rewrite rewrite = Rewrite::DistributeRowShift;
  Switch use = Switch::Off;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("rewrite", s.rewrite);
    f("use", s.use);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Chunk {
  static constexpr std::string_view kFormat = "chunk $tensor $length{ $by}";
  static constexpr std::string_view kDoc =
      "Program, with `algebra chunks on`: how many steps of a scan are computed together by "
      "products "
      "of matrices.";
  ir::Name tensor;
  ir::OptionalInt length;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("length", s.length);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Piece {
  static constexpr std::string_view kFormat = "piece $tensor $length{ $by}";
  static constexpr std::string_view kDoc =
      "Program, with `algebra pieces on`: how many elements of a product, along the axis that all "
      "its readers reduce, are reduced by the kernel of the product. With `algebra ranks on`: "
      "among how many elements of an axis a place in an order is counted first.";
  ir::Name tensor;
  ir::OptionalInt length;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("length", s.length);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Depth {
  static constexpr std::string_view kFormat = "depth $tensor{ of $axes}{ $by}";
  static constexpr std::string_view kDoc =
      "Program: axes of the sum of an f32 product that are one axis of its limbs, the depth of the "
      "matrix instructions; the last one is the fastest. Without axes each stays for itself.";
  ir::Name tensor;
  ir::Names axes;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("axes", s.axes);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// The elements in which an operand is stored, if it is.
enum class StoredAs : uint8_t { Off, BF16, F16, TF32, F8E4M3, F8E5M2, I8, U8 };
const std::vector<std::string_view>& words(StoredAs);

struct Store {
  static constexpr std::string_view kFormat = "store $tensors $as{ order $axes}{ $by}";
  static constexpr std::string_view kDoc =
      "Program: an operand of products that is made before them and stored in elements that the "
      "matrix unit takes: one that is computed, a copy that boxes can bring, limbs of f32 numbers "
      "(up to three tensors that lie alike), or a tensor that holds 16-bit numbers. off: it stays "
      "as the equations have it. order: its "
      "axes as they lie in memory, the last one along it; axes of one element may be left out.";
  ir::Names tensors;
  StoredAs as = StoredAs::Off;
  ir::Names axes;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensors", s.tensors);
    f("as", s.as);
    f("axes", s.axes);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Round {
  static constexpr std::string_view kFormat = "round $tensor $dtype{ $by}";
  static constexpr std::string_view kDoc =
      "Program: an f32 temporary that is an operand of a product is stored in the dtype of the "
      "other operand.";
  ir::Name tensor;
  ir::DType dtype = ir::DType::F32;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("dtype", s.dtype);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

struct Locate {
  static constexpr std::string_view kFormat = "locate $tensor{ $by}";
  static constexpr std::string_view kDoc =
      "Program: the position of an extreme is found by reductions in the kernel that rolls the "
      "extreme.";
  ir::Name tensor;
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("tensor", s.tensor);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

// The sizes of a schedule that is one of several in a text (schedule/text/sized_schedules.h).
struct At {
  static constexpr std::string_view kFormat = "at $dims = $sizes{ within $factor}{ $by}";
  static constexpr std::string_view kDoc =
      "Program, of several schedules in a text: a launch takes the schedule whose sizes are the "
      "nearest to its own. How far sizes are is the product of their ratios; within: beyond this "
      "factor they do not count. The first of the text is also taken where no sizes count.";
  ir::Names dims;
  ir::Exprs sizes;
  ir::OptionalInt factor = {};
  By by = By::Auto;
  static void fields(auto& s, auto&& f) {
    f("dims", s.dims);
    f("sizes", s.sizes);
    f("factor", s.factor);
    f("by", s.by);
  }
  static const ir::OpInfo& info();
};

}  // namespace nautilus::decision
