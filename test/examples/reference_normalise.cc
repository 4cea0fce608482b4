// SPDX-License-Identifier: Apache-2.0
//
// Operators along a row. Sums of exponentials are taken in long double without subtracting the
// maximum: its exponent range makes the textbook formula safe, and the library's way of avoiding
// overflow is not repeated here.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference.h"

namespace nautilus::examples {
namespace {

using Row = std::vector<double>;

Row row_of(const Array& a, int64_t i) {
  const auto begin = a.data.begin() + i * a.shape[1];
  return Row(begin, begin + a.shape[1]);
}

long double sum_of_exponentials(const Row& x) {
  long double total = 0;
  for (const double v : x) total += std::exp(static_cast<long double>(v));
  return total;
}

double mean_of(const Row& x) {
  double total = 0;
  for (const double v : x) total += v;
  return total / static_cast<double>(x.size());
}

Arrays softmax(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& x = in.at("X");
  Array y = zeros(x.shape);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const long double total = sum_of_exponentials(row_of(x, i));
    if (total == 0) continue;  // nothing, or -inf everywhere: zeros
    for (int64_t j = 0; j < x.shape[1]; ++j)
      y.ref({i, j}) = static_cast<double>(std::exp(static_cast<long double>(x.at({i, j}))) / total);
  }
  return {{"Y", y}};
}

Arrays logsumexp(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& x = in.at("X");
  Array y = zeros({x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i)
    y.ref({i}) =
        static_cast<double>(std::log(sum_of_exponentials(row_of(x, i))));  // log(0) is -inf
  return {{"Y", y}};
}

Arrays layernorm(const Arrays& in, const Sizes&, const Scalars& s) {
  const Array &x = in.at("X"), &gamma = in.at("gamma"), &beta = in.at("beta");
  Array y = zeros(x.shape);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    Row v = row_of(x, i);
    const double mean = mean_of(v);
    for (double& e : v) e = (e - mean) * (e - mean);
    const double deviation = std::sqrt(mean_of(v) + s.at("eps"));
    for (int64_t k = 0; k < x.shape[1]; ++k)
      y.ref({i, k}) = (x.at({i, k}) - mean) / deviation * gamma.at({k}) + beta.at({k});
  }
  return {{"Y", y}};
}

Arrays rmsnorm(const Arrays& in, const Sizes&, const Scalars& s) {
  const Array &x = in.at("X"), &gamma = in.at("gamma");
  Array y = zeros(x.shape);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    Row v = row_of(x, i);
    for (double& e : v) e *= e;
    const double rms = std::sqrt(mean_of(v) + s.at("eps"));
    for (int64_t k = 0; k < x.shape[1]; ++k) y.ref({i, k}) = x.at({i, k}) / rms * gamma.at({k});
  }
  return {{"Y", y}};
}

Arrays cross_entropy(const Arrays& in, const Sizes&, const Scalars&) {
  const Array &x = in.at("X"), &target = in.at("target");
  Array nll = zeros({x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const auto chosen = static_cast<int64_t>(target.at({i}));
    const long double exponential = std::exp(static_cast<long double>(x.at({i, chosen})));
    const long double probability = exponential / sum_of_exponentials(row_of(x, i));
    nll.ref({i}) = static_cast<double>(-std::log(probability));
  }
  Array loss = zeros({});
  loss.ref({}) = mean_of(nll.data);
  return {{"nll", nll}, {"loss", loss}};
}

Arrays argmax_row(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& x = in.at("X");
  Array position = zeros({x.shape[0]}), value = zeros({x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    const Row v = row_of(x, i);
    const auto best = std::max_element(v.begin(), v.end());  // the first of equal ones
    position.ref({i}) = v.empty() ? -1.0 : static_cast<double>(best - v.begin());
    value.ref({i}) = v.empty() ? -std::numeric_limits<double>::infinity() : *best;
  }
  return {{"position", position}, {"value", value}};
}

// By sorting: the support is the longest run of largest elements above its own threshold.
Arrays sparsemax(const Arrays& in, const Sizes&, const Scalars&) {
  const Array& x = in.at("X");
  Array y = zeros(x.shape);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    Row v = row_of(x, i);
    std::sort(v.rbegin(), v.rend());
    double total = 0, threshold = 0;
    for (size_t k = 0; k < v.size(); ++k) {
      total += v[k];
      const double next = (total - 1) / static_cast<double>(k + 1);
      if (v[k] <= next) break;
      threshold = next;
    }
    for (int64_t j = 0; j < x.shape[1]; ++j)
      y.ref({i, j}) = std::max(x.at({i, j}) - threshold, 0.0);
  }
  return {{"Y", y}};
}

Arrays quantise_fp8(const Arrays& in, const Sizes&, const Scalars&) {
  constexpr double kLargest = 448;  // of f8e4m3
  const Array& x = in.at("X");
  Array y = zeros(x.shape), scale = zeros({x.shape[0]});
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    double largest = 0;
    for (const double v : row_of(x, i)) largest = std::max(largest, std::abs(v));
    scale.ref({i}) = largest == 0 ? 1 : largest / kLargest;
    for (int64_t k = 0; k < x.shape[1]; ++k) y.ref({i, k}) = x.at({i, k}) / scale.at({i});
  }
  return {{"Y", y}, {"scale", scale}};
}

}  // namespace

std::vector<Reference> normalise_references() {
  return {
      {"softmax", softmax},           {"logsumexp", logsumexp},         {"layernorm", layernorm},
      {"rmsnorm", rmsnorm},           {"cross_entropy", cross_entropy}, {"argmax_row", argmax_row},
      {"quantise_fp8", quantise_fp8}, {"sparsemax", sparsemax},
  };
}

}  // namespace nautilus::examples
