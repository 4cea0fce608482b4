// SPDX-License-Identifier: Apache-2.0
//
// Operators that belong to no family. Each takes another road than its program: a padded copy for
// the convolution, a sort for the routing, complex numbers for the rotary embedding.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "reference.h"

namespace nautilus::examples {
namespace {

Arrays conv1d(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &x = in.at("X"), &w = in.at("W"), &bias = in.at("bias");
  const int64_t pad = n.at("pad"), taps = n.at("R"), stride = n.at("stride"),
                padded_size = n.at("N") + 2 * pad;
  Array padded = zeros({n.at("B"), n.at("C"), padded_size});
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t c = 0; c < n.at("C"); ++c)
      for (int64_t p = 0; p < n.at("N"); ++p) padded.ref({b, c, p + pad}) = x.at({b, c, p});

  int64_t steps = 0;  // as often as a window of `taps` elements fits
  while (steps * stride + taps <= padded_size) ++steps;
  Array y = zeros({n.at("B"), n.at("F"), steps});
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t f = 0; f < n.at("F"); ++f)
      for (int64_t t = 0; t < steps; ++t) {
        double total = bias.at({f});
        for (int64_t r = 0; r < taps; ++r)
          for (int64_t c = 0; c < n.at("C"); ++c)
            total += padded.at({b, c, t * stride + r}) * w.at({f, c, r});
        y.ref({b, f, t}) = total;
      }
  return {{"Y", y}};
}

Arrays moe_routing(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &x = in.at("X"), &w = in.at("W");
  const int64_t tokens = n.at("M"), experts = n.at("E");
  Array first = zeros({tokens}), second = zeros({tokens}), weight = zeros({tokens}),
        load = zeros({experts});
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<double> logit(static_cast<size_t>(experts), 0.0);
    for (int64_t e = 0; e < experts; ++e)
      for (int64_t k = 0; k < n.at("K"); ++k)
        logit[static_cast<size_t>(e)] += x.at({t, k}) * w.at({k, e});
    std::vector<size_t> order(logit.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return logit[a] > logit[b]; });
    first.ref({t}) = static_cast<double>(order.at(0));
    second.ref({t}) = static_cast<double>(order.at(1));
    weight.ref({t}) =
        1 / (1 + std::exp(logit[order[1]] - logit[order[0]]));  // the softmax of two logits
    load.ref({static_cast<int64_t>(order[0])}) += 1;
  }
  return {{"first", first}, {"second", second}, {"weight", weight}, {"load", load}};
}

Arrays topk(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array& score = in.at("score");
  const int64_t tokens = n.at("T"), experts = n.at("E"), chosen = 4;
  Array expert = zeros({tokens, chosen}), weight = zeros({tokens, chosen}), load = zeros({experts});
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<int64_t> order(static_cast<size_t>(experts));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return score.at({t, a}) > score.at({t, b});
    });
    double total = 0;
    for (int64_t r = 0; r < chosen; ++r) {
      const int64_t e = r < experts ? order[static_cast<size_t>(r)] : -1;
      expert.ref({t, r}) = static_cast<double>(e);
      if (e < 0) continue;
      load.ref({e}) += 1;
      weight.ref({t, r}) = std::exp(score.at({t, e}) - score.at({t, order[0]}));
      total += weight.at({t, r});
    }
    for (int64_t r = 0; r < chosen; ++r) weight.ref({t, r}) /= total;
  }
  return {{"expert", expert}, {"weight", weight}, {"load", load}};
}

Arrays embedding_gradient(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &token = in.at("token"), &terms = in.at("dY");
  Array rows = zeros({n.at("V"), n.at("E")}), count = zeros({n.at("V")});
  for (int64_t t = 0; t < n.at("T"); ++t) {
    const auto v = static_cast<int64_t>(token.at({t}));
    if (v < 0 || v >= n.at("V")) continue;
    count.ref({v}) += 1;
    for (int64_t e = 0; e < n.at("E"); ++e) rows.ref({v, e}) += terms.at({t, e});
  }
  return {{"dW", rows}, {"count", count}};
}

Arrays rope(const Arrays& in, const Sizes& n, const Scalars& s) {
  const Array& x = in.at("X");
  Array y = zeros(x.shape);
  for (int64_t p = 0; p < n.at("D") / 2; ++p) {
    const double frequency =
        1 / std::pow(s.at("base"), static_cast<double>(2 * p) / static_cast<double>(n.at("D")));
    for (int64_t b = 0; b < n.at("B"); ++b)
      for (int64_t i = 0; i < n.at("N"); ++i)
        for (int64_t h = 0; h < n.at("H"); ++h) {
          const std::complex<double> pair(x.at({b, i, h, 2 * p}), x.at({b, i, h, 2 * p + 1}));
          const std::complex<double> turned =
              pair * std::polar(1.0, static_cast<double>(i) * frequency);
          y.ref({b, i, h, 2 * p}) = turned.real();
          y.ref({b, i, h, 2 * p + 1}) = turned.imag();
        }
  }
  return {{"Y", y}};
}

}  // namespace

std::vector<Reference> other_references() {
  return {
      {"conv1d", conv1d}, {"moe_routing", moe_routing},
      {"topk", topk},     {"embedding_gradient", embedding_gradient},
      {"rope", rope},
  };
}

}  // namespace nautilus::examples
