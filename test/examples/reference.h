// SPDX-License-Identifier: Apache-2.0
//
// Independent formulas for every program in examples/: fp64 loops from the textbook definition.
// They share no code and no structure with the compiler or its evaluator, so an error in a library
// function or in the language's semantics shows as a difference and cannot cancel.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace nautilus::examples {

// Row-major; integers are held as doubles. No indices name the single element of an array without
// axes.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;

  double at(std::initializer_list<int64_t> index) const;
  double& ref(std::initializer_list<int64_t> index);
};

Array zeros(std::vector<int64_t> shape);

using Arrays = std::map<std::string, Array>;
using Sizes = std::map<std::string, int64_t>;  // values of dims and statics
using Scalars = std::map<std::string, double>;

// Inputs are already rounded to their storage dtype; outputs are fp64 values before the rounding of
// the store.
struct Reference {
  const char* example;  // "attention" for examples/attention.naut
  Arrays (*compute)(const Arrays& inputs, const Sizes& sizes, const Scalars& scalars);
};

// One row for every file in examples/.
const std::vector<Reference>& references();

// The parts of that table, one per reference_*.cc.
std::vector<Reference> attention_references();
std::vector<Reference> gemm_references();
std::vector<Reference> normalise_references();
std::vector<Reference> other_references();
std::vector<Reference> scan_references();

}  // namespace nautilus::examples
