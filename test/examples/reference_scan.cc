// SPDX-License-Identifier: Apache-2.0
//
// Scans as the sums that they stand for, each element by itself: no state is carried here.
#include <algorithm>
#include <cmath>

#include "reference.h"

namespace nautilus::examples {
namespace {

Arrays cumsum(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array& x = in.at("X");
  Array y = zeros({n.at("N"), n.at("T")});
  for (int64_t i = 0; i < n.at("N"); ++i)
    for (int64_t t = 0; t < n.at("T"); ++t)
      for (int64_t s = 0; s <= t; ++s) y.ref({i, t}) += x.at({i, s});
  return {{"Y", y}};
}

// A mean with weights beta^(t - s).
Arrays ema(const Arrays& in, const Sizes& n, const Scalars& scalars) {
  const Array& x = in.at("X");
  const double beta = scalars.at("beta");
  Array y = zeros({n.at("N"), n.at("T")});
  for (int64_t i = 0; i < n.at("N"); ++i)
    for (int64_t t = 0; t < n.at("T"); ++t) {
      double weights = 0, sum = 0;
      for (int64_t s = 0; s <= t; ++s) {
        const double weight = std::pow(beta, static_cast<double>(t - s));
        weights += weight;
        sum += weight * x.at({i, s});
      }
      y.ref({i, t}) = sum / weights;
    }
  return {{"Y", y}};
}

Arrays gated_linear_attention(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &q = in.at("Q"), &k = in.at("K"), &v = in.at("V"), &g = in.at("g"),
              &first = in.at("S0");
  const int64_t steps = n.at("T"), keys = n.at("D"), values = n.at("E");
  Array o = zeros({n.at("B"), n.at("H"), steps, values}),
        last = zeros({n.at("B"), n.at("H"), keys, values});
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t h = 0; h < n.at("H"); ++h)
      for (int64_t d = 0; d < keys; ++d) {
        // What is left at step t of what came in behind step s.
        const auto decay = [&](int64_t s, int64_t t) {
          double product = 1;
          for (int64_t r = s + 1; r <= t; ++r) product /= 1 + std::exp(-g.at({b, h, r, d}));
          return product;
        };
        for (int64_t e = 0; e < values; ++e) {
          const auto state = [&](int64_t t) {
            double sum = decay(-1, t) * first.at({b, h, d, e});
            for (int64_t s = 0; s <= t; ++s)
              sum += decay(s, t) * k.at({b, h, s, d}) * v.at({b, h, s, e});
            return sum;
          };
          for (int64_t t = 0; t < steps; ++t) o.ref({b, h, t, e}) += q.at({b, h, t, d}) * state(t);
          last.ref({b, h, d, e}) = state(steps - 1);
        }
      }
  return {{"O", o}, {"SF", last}};
}

// Scores of all pairs of steps, weighted with the decay between them.
Arrays mamba2(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &x = in.at("X"), &raw = in.at("raw"), &bm = in.at("Bm"), &cm = in.at("Cm"),
              &a = in.at("A"), &skip = in.at("Dp");
  Array y = zeros({n.at("B"), n.at("T"), n.at("H"), n.at("P")});
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t h = 0; h < n.at("H"); ++h) {
      const auto dt = [&](int64_t t) {
        const double r = raw.at({b, t, h});
        return std::max(r, 0.0) + std::log1p(std::exp(-std::fabs(r)));
      };
      for (int64_t t = 0; t < n.at("T"); ++t)
        for (int64_t p = 0; p < n.at("P"); ++p) {
          double sum = skip.at({h}) * x.at({b, t, h, p});
          for (int64_t s = 0; s <= t; ++s) {
            double between = 0, score = 0;
            for (int64_t r = s + 1; r <= t; ++r) between += dt(r);
            for (int64_t k = 0; k < n.at("N"); ++k) score += cm.at({b, t, k}) * bm.at({b, s, k});
            sum += std::exp(-between * std::exp(a.at({h}))) * score * dt(s) * x.at({b, s, h, p});
          }
          y.ref({b, t, h, p}) = sum;
        }
    }
  return {{"Y", y}};
}

}  // namespace

std::vector<Reference> scan_references() {
  return {{"cumsum", cumsum},
          {"ema", ema},
          {"gated_linear_attention", gated_linear_attention},
          {"mamba2", mamba2}};
}

}  // namespace nautilus::examples
