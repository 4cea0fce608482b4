// SPDX-License-Identifier: Apache-2.0
//
// Matrix products and what is fused to them. Everything is built from dot products of two gathered
// vectors; the epilogues are the definitions (erf, the logistic function), not the library's text.
#include <algorithm>
#include <cmath>

#include "reference.h"

namespace nautilus::examples {
namespace {

using Vector = std::vector<double>;

Vector row(const Array& a, int64_t i) {
  Vector v;
  for (int64_t k = 0; k < a.shape[1]; ++k) v.push_back(a.at({i, k}));
  return v;
}

Vector column(const Array& a, int64_t j) {
  Vector v;
  for (int64_t k = 0; k < a.shape[0]; ++k) v.push_back(a.at({k, j}));
  return v;
}

double row_dot(const Vector& a, const Vector& b) {
  double total = 0;
  for (size_t k = 0; k < a.size(); ++k) total += a[k] * b[k];
  return total;
}

Array product(const Array& a, const Array& b) {
  Array c = zeros({a.shape[0], b.shape[1]});
  for (int64_t j = 0; j < b.shape[1]; ++j) {
    const Vector right = column(b, j);
    for (int64_t i = 0; i < a.shape[0]; ++i) c.ref({i, j}) = row_dot(row(a, i), right);
  }
  return c;
}

double gelu(double x) {
  const double normal_cdf = 0.5 * std::erfc(-x / std::sqrt(2.0));
  return x * normal_cdf;
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

Arrays gemm(const Arrays& in, const Sizes&, const Scalars&) {
  return {{"C", product(in.at("A"), in.at("B"))}};
}

Arrays gemm_batched(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &a = in.at("A"), &b = in.at("B");
  Array c = zeros({n.at("Z"), n.at("M"), n.at("N")});
  for (int64_t z = 0; z < n.at("Z"); ++z)
    for (int64_t i = 0; i < n.at("M"); ++i)
      for (int64_t j = 0; j < n.at("N"); ++j)
        for (int64_t k = 0; k < n.at("K"); ++k)
          c.ref({z, i, j}) += a.at({z, i, k}) * b.at({z, j, k});
  return {{"C", c}};
}

Arrays gemm_bias_gelu(const Arrays& in, const Sizes&, const Scalars&) {
  Array y = product(in.at("X"), in.at("W"));
  for (int64_t i = 0; i < y.shape[0]; ++i)
    for (int64_t j = 0; j < y.shape[1]; ++j)
      y.ref({i, j}) = gelu(y.at({i, j}) + in.at("bias").at({j}));
  return {{"Y", y}};
}

Arrays gemm_fp8(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& a = in.at("A");
  const Array& b = in.at("B");
  Array c = zeros({a.shape[0], b.shape[0]});
  for (int64_t i = 0; i < c.shape[0]; ++i)
    for (int64_t j = 0; j < c.shape[1]; ++j)
      c.ref({i, j}) = row_dot(row(a, i), row(b, j)) * in.at("row_scale").at({i}) *
                      in.at("column_scale").at({j});
  return {{"C", c}};
}

Arrays gemm_fp8_blocks(const Arrays& in, const Sizes&, const Scalars&) {
  constexpr int64_t kBlock = 128;
  const Array &a = in.at("A"), &b = in.at("B");
  Array c = zeros({a.shape[0], b.shape[0]});
  for (int64_t i = 0; i < c.shape[0]; ++i)
    for (int64_t j = 0; j < c.shape[1]; ++j)
      for (int64_t k = 0; k < a.shape[1]; ++k)
        c.ref({i, j}) += a.at({i, k}) * in.at("a_scale").at({i, k / kBlock}) * b.at({j, k}) *
                         in.at("b_scale").at({j / kBlock, k / kBlock});
  return {{"C", c}};
}

Arrays gemm_swiglu(const Arrays& in, const Sizes&, const Scalars&) {
  const Array gate = product(in.at("X"), in.at("Wg"));
  const Array up = product(in.at("X"), in.at("Wu"));
  Array y = zeros(gate.shape);
  for (size_t p = 0; p < y.data.size(); ++p) y.data[p] = silu(gate.data[p]) * up.data[p];
  return {{"Y", y}};
}

Arrays linear_f32(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& x = in.at("X");
  const Array& w = in.at("W");
  Array y = zeros({x.shape[0], w.shape[0]});
  for (int64_t i = 0; i < y.shape[0]; ++i)
    for (int64_t j = 0; j < y.shape[1]; ++j)
      y.ref({i, j}) = std::max(row_dot(row(x, i), row(w, j)) + in.at("bias").at({j}), 0.0);
  return {{"Y", y}};
}

Arrays rmsnorm_matmul(const Arrays& in, const Sizes&, const Scalars& s) {
  Array x = in.at("X");
  const Vector gamma = in.at("gamma").data;
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const Vector v = row(x, i);
    const double rms = std::sqrt(row_dot(v, v) / static_cast<double>(v.size()) + s.at("eps"));
    for (int64_t k = 0; k < x.shape[1]; ++k) x.ref({i, k}) *= gamma[static_cast<size_t>(k)] / rms;
  }
  return {{"Y", product(x, in.at("W"))}};
}

}  // namespace

std::vector<Reference> gemm_references() {
  return {
      {"gemm", gemm},
      {"gemm_batched", gemm_batched},
      {"gemm_bias_gelu", gemm_bias_gelu},
      {"gemm_fp8", gemm_fp8},
      {"gemm_fp8_blocks", gemm_fp8_blocks},
      {"gemm_swiglu", gemm_swiglu},
      {"linear_f32", linear_f32},
      {"rmsnorm_matmul", rmsnorm_matmul},
  };
}

}  // namespace nautilus::examples
