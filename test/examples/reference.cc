// SPDX-License-Identifier: Apache-2.0
//
// The array type and the table. An index is checked on every access: a wrong reference must stop,
// not return a number.
#include "reference.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace nautilus::examples {
namespace {

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "reference: %s\n", what);
  std::abort();
}

size_t offset_of(const std::vector<int64_t>& shape, std::initializer_list<int64_t> index) {
  if (index.size() != shape.size()) stop("wrong number of indices");
  int64_t offset = 0;
  size_t axis = 0;
  for (const int64_t i : index) {
    if (i < 0 || i >= shape[axis]) stop("index outside the array");
    offset = offset * shape[axis] + i;
    ++axis;
  }
  return static_cast<size_t>(offset);
}

}  // namespace

double Array::at(std::initializer_list<int64_t> index) const {
  return data[offset_of(shape, index)];
}

double& Array::ref(std::initializer_list<int64_t> index) { return data[offset_of(shape, index)]; }

Array zeros(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return Array{std::move(shape), std::vector<double>(static_cast<size_t>(count), 0.0)};
}

const std::vector<Reference>& references() {
  static const std::vector<Reference> table = [] {
    std::vector<Reference> rows;
    for (const auto& part : {attention_references(), gemm_references(), normalise_references(),
                             other_references(), scan_references()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return table;
}

}  // namespace nautilus::examples
