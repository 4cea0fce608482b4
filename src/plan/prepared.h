// SPDX-License-Identifier: Apache-2.0
// The plan of a program with every name resolved: what frame.h evaluates for each launch. Made once
// per program and never changed, so that several frames may share it.
#pragma once

#include <string>
#include <vector>

#include "emit/emit.h"
#include "plan/code.h"
#include "runtime/tensor_map.h"

namespace nautilus::plan {

// Numbers are indices of the lists below; a slot is a place among the frame's values.
struct Prepared {
  // `kernels` are those of emit_kernels. The program must outlive the result: messages print its
  // expressions.
  Prepared(const ir::Program& program, const std::vector<emit::KernelText>& kernels);

  struct Tensor {
    std::string name;
    expr::DType dtype = expr::DType::F32;
    matile::TensorRole role = matile::TensorRole::Input;
    ir::Exprs dims;
    std::vector<Code> extents;
    int first = 0;  // of its shape and of its strides among those of all tensors
    int rank() const { return static_cast<int>(dims.size()); }
  };
  // Values that a caller may set: sizes and scalars, in the order of the text.
  struct Value {
    std::string name;
    bool is_size = false;
    expr::DType dtype = expr::DType::I64;
    int slot = 0;
    ir::OptionalInt hint;  // of a size
    bool has_default = false;
    Code default_value;  // of a scalar
  };
  // coefficient * size + rest is the extent of a dimension.
  struct SizeEquation {
    int slot = 0;
    Code coefficient;
    Code rest;
  };
  // A dimension that may determine a size: the one of `sizes` that is not known yet, if there is an
  // equation for it.
  struct Solve {
    int tensor = 0;
    int dimension = 0;
    std::vector<int> sizes;  // slots
    std::vector<SizeEquation> equations;
  };
  struct Check {
    Code condition;
    ir::Expr text;
  };
  struct Let {
    int slot = 0;
    expr::DType dtype = expr::DType::I64;
    Code value;
  };
  // What a step of a map's axis adds to the index of a dimension of the tensor.
  struct Term {
    int axis = 0;
    int dimension = 0;
    Code coefficient;
  };
  struct Map {
    std::string name;
    int tensor = 0;
    int bytes = 0;                // of an element
    bool is_stored = false;       // of an output
    runtime::TensorMapView view;  // everything that is the same for all launches
    std::vector<Code> extents;
    std::vector<Term> terms;
    std::vector<Term> origin;  // of the element at 0, 0, ...; the axis is not used
  };
  struct Param {
    emit::KernelParam::Kind kind = emit::KernelParam::Kind::Int;
    int source = 0;  // map, tensor or slot
    int dimension = 0;
    int offset = 0;
    std::string name;
  };
  struct Launch {
    size_t kernel = 0;
    Code grid;
    std::vector<Param> params;
    std::vector<int> vectors;  // tensors that are moved 16 bytes at a time
    int other = -1;            // the launch that runs instead if one of them is not aligned
    bool is_other = false;     // it runs only in that case
    int param_bytes = 0;
    int cluster = 1;  // the grid is rounded up to whole clusters
  };

  std::vector<Tensor> tensors;
  std::vector<int> by_name;  // inputs and outputs, sorted by name: the order of messages
  std::vector<Value> values;
  std::vector<Solve> solves;
  std::vector<Check> facts;
  std::vector<int> machine;  // slots that hold the number of multiprocessors
  std::vector<Let> lets;
  std::vector<Map> maps;
  std::vector<Launch> launches;
  int slots = 0;
  int dimensions = 0;  // of all tensors
  int depth = 1;       // of the deepest code

  // -1 if there is none.
  int tensor(std::string_view name) const;
  int value(std::string_view name) const;
};

}  // namespace nautilus::plan
