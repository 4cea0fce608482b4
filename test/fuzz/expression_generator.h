// SPDX-License-Identifier: Apache-2.0
// Random expressions of the math language, directed by type.
//
// Every value() is data of exactly the compute dtype asked for, so that operands always promote;
// numbers and indices, which get the dtype of the other operand, appear only together with such
// data. Floats are kept tame (tanh before exp, an offset before a division) most of the time,
// because a program that is all NaN tests nothing.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "expr/dtype.h"
#include "world.h"

namespace nautilus::fuzz {

struct Axis {
  std::string name;
  int extent = 0;
  int direct_uses = 0;  // none: its extent has to be written
};

class ExpressionGenerator {
 public:
  ExpressionGenerator(const World& world, base::Random& random) : world_(world), random_(random) {}

  // Adds an axis that is visible from now on, by a name that no visible axis has.
  void push_axis(int extent);
  Axis pop_axis();
  // `i`, or `i < N` where no direct use tells the extent (and sometimes where one does).
  std::string written(const Axis& axis);
  // Parameters of a function, visible as values.
  void add_value(std::string name, expr::DType dtype) { values_.push_back({name, dtype}); }

  std::string value(expr::DType dtype, int depth);
  // A number written in the text, of a kind that goes with `dtype`.
  std::string literal(expr::DType dtype);

 private:
  struct Named {
    std::string name;
    expr::DType dtype;
  };

  // expression_generator.cc
  std::string floating(expr::DType dtype, int depth);
  std::string elementary(expr::DType dtype, int depth);
  std::string integer(expr::DType dtype, int depth);
  std::string boolean(int depth);
  std::string leaf(expr::DType dtype);
  std::string operand(expr::DType dtype, int depth);
  std::string choice(expr::DType dtype, int depth);
  std::string let(expr::DType dtype, int depth);
  std::string tame(expr::DType dtype, int depth);
  std::string pick(std::initializer_list<std::string_view> words);
  bool chance(double probability) { return random_.chance(probability); }

  // expression_calls.cc
  std::string reduction(expr::DType dtype, int depth);
  std::string arg_reduction(int depth);
  std::string bound(const std::string& axis);
  std::string pointwise_call(expr::DType dtype, int depth);
  std::string axis_call(expr::DType dtype, int depth);
  std::string user_call(int depth);
  std::string over_axis(size_t axis, expr::DType dtype, int depth);
  int small_extent();
  int64_t points() const;

  // expression_reads.cc
  std::string read(const Tensor& tensor);
  // `axis` stands alone in one position.
  std::string read_along(const Tensor& tensor, size_t axis);
  std::string element(const Tensor& tensor, size_t fixed_position, int fixed_axis);
  std::string position(int extent, std::vector<std::string>& guards, int depth);
  std::string inside(int extent);
  std::string guarded(int extent, std::vector<std::string>& guards);
  std::string gathered(int extent, std::vector<std::string>& guards, int depth);
  std::string index_value(int depth);
  std::vector<size_t> axes_of(int extent) const;
  const Tensor* tensor_of(expr::DType compute);

  const World& world_;
  base::Random& random_;
  std::vector<Axis> axes_;
  std::vector<Named> values_;
  int lets_ = 0;
};

}  // namespace nautilus::fuzz
