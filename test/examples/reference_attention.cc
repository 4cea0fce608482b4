// SPDX-License-Identifier: Apache-2.0
//
// Attention one query at a time: collect the keys the query sees with their scores, weigh their
// values by exp(score - largest), divide by the sum of the weights. A masked key is never
// collected, so there is no -inf here.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "reference.h"

namespace nautilus::examples {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Vector = std::vector<double>;

struct Seen {  // a key that takes part, and its value
  double score;
  Vector value;
};

double dot(const Vector& a, const Vector& b) {
  double total = 0;
  for (size_t k = 0; k < a.size(); ++k) total += a[k] * b[k];
  return total;
}

// The last axis of `a` at the given leading indices.
Vector vector_at(const Array& a, std::initializer_list<int64_t> lead) {
  int64_t offset = 0;
  size_t axis = 0;
  for (const int64_t i : lead) {
    if (i < 0 || i >= a.shape[axis]) std::abort();
    offset = offset * a.shape[axis++] + i;
  }
  const auto begin = a.data.begin() + offset * a.shape.back();
  return Vector(begin, begin + a.shape.back());
}

struct Summary {
  Vector output;
  double log_sum;
};

// `sink` is the logit without a value; -inf when there is none.
Summary attend(const std::vector<Seen>& seen, int64_t width, double sink = -kInfinity) {
  Summary result{Vector(static_cast<size_t>(width), 0.0), -kInfinity};
  double largest = sink;
  for (const Seen& s : seen) largest = std::max(largest, s.score);
  if (largest == -kInfinity) return result;
  double total = std::exp(sink - largest);
  for (const Seen& s : seen) {
    const double weight = std::exp(s.score - largest);
    total += weight;
    for (size_t e = 0; e < result.output.size(); ++e) result.output[e] += weight * s.value[e];
  }
  for (double& e : result.output) e /= total;
  result.log_sum = largest + std::log(total);
  return result;
}

using Score = std::optional<double>;  // nothing: the key is not seen

struct Place {
  int64_t b, h, i, j;
};

struct Variant {
  std::function<Score(const Place&, double)> score;  // from q . k * scale
  std::function<double(int64_t h)> sink = [](int64_t) { return -kInfinity; };
  // What a value is multiplied with after its weight is known.
  std::function<double(const Place&)> factor = [](const Place&) { return 1.0; };
};

// Q[B, heads, M, D] against K, V[B, heads of keys, N, D]; consecutive query heads share a head of
// keys.
Arrays attention_of(const Arrays& in, const Scalars& scalars, const Variant& variant) {
  const Array &q = in.at("Q"), &k = in.at("K"), &v = in.at("V");
  const int64_t width = v.shape[3];
  Array out = zeros({q.shape[0], q.shape[1], q.shape[2], width});
  Array lse = zeros({q.shape[0], q.shape[1], q.shape[2]});
  for (int64_t b = 0; b < q.shape[0]; ++b)
    for (int64_t h = 0; h < q.shape[1]; ++h)
      for (int64_t i = 0; i < q.shape[2]; ++i) {
        const int64_t shared = h * k.shape[1] / q.shape[1];
        const Vector query = vector_at(q, {b, h, i});
        std::vector<Seen> seen;
        for (int64_t j = 0; j < k.shape[2]; ++j) {
          const double raw = dot(query, vector_at(k, {b, shared, j})) * scalars.at("scale");
          const auto score = variant.score({b, h, i, j}, raw);
          if (!score) continue;
          Vector value = vector_at(v, {b, shared, j});
          for (double& e : value) e *= variant.factor({b, h, i, j});
          seen.push_back({*score, std::move(value)});
        }
        const Summary row = attend(seen, width, variant.sink(h));
        for (int64_t e = 0; e < width; ++e)
          out.ref({b, h, i, e}) = row.output[static_cast<size_t>(e)];
        lse.ref({b, h, i}) = row.log_sum;
      }
  return {{"O", out}, {"LSE", lse}};
}

Arrays only_output(Arrays all) {
  all.erase("LSE");
  return all;
}

// How far key j lies behind query i when the last query meets the last key; negative: in the
// future.
int64_t distance(const Sizes& n, const Place& p) { return (n.at("N") - p.j) - (n.at("M") - p.i); }

Score plain(const Place&, double x) { return x; }

Arrays attention(const Arrays& in, const Sizes&, const Scalars& s) {
  return only_output(attention_of(in, s, {.score = plain}));
}

Arrays attention_lse(const Arrays& in, const Sizes&, const Scalars& s) {
  return attention_of(in, s, {.score = plain});
}

Arrays attention_causal(const Arrays& in, const Sizes& n, const Scalars& s) {
  const auto score = [&](const Place& p, double x) {
    return distance(n, p) < 0 ? Score() : Score(x);
  };
  return only_output(attention_of(in, s, {.score = score}));
}

Arrays attention_window(const Arrays& in, const Sizes& n, const Scalars& s) {
  const auto width = static_cast<int64_t>(s.at("width"));
  const auto score = [&](const Place& p, double x) {
    const int64_t behind = distance(n, p);
    return behind < 0 || behind >= width ? Score() : Score(x);
  };
  return only_output(attention_of(in, s, {.score = score}));
}

// Philox 2x32-10 as its paper has it, with words of 32 bits.
uint32_t philox(uint32_t key, uint64_t counter) {
  auto left = static_cast<uint32_t>(counter);
  auto right = static_cast<uint32_t>(counter >> 32U);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product = uint64_t{0xD256D193U} * left;
    left = static_cast<uint32_t>(product >> 32U) ^ key ^ right;
    right = static_cast<uint32_t>(product);
    key += 0x9E3779B9U;
  }
  return left;
}

Arrays attention_dropout(const Arrays& in, const Sizes& n, const Scalars& s) {
  const auto seed = static_cast<uint32_t>(static_cast<int64_t>(s.at("seed")));
  const double p = s.at("p");
  const auto factor = [&](const Place& at) {
    const int64_t index = ((at.b * n.at("H") + at.h) * n.at("M") + at.i) * n.at("N") + at.j;
    const double u = (philox(seed, static_cast<uint64_t>(index)) >> 8U) * 0x1p-24;
    return u + 0x1p-24 <= p ? 0.0 : 1 / (1 - p);
  };
  return only_output(attention_of(in, s, {.score = plain, .factor = factor}));
}

Arrays attention_documents(const Arrays& in, const Sizes&, const Scalars& s) {
  const Array& document = in.at("doc");
  const auto score = [&](const Place& p, double x) {
    const bool is_seen = p.j <= p.i && document.at({p.b, p.i}) == document.at({p.b, p.j});
    return is_seen ? Score(x) : Score();
  };
  return only_output(attention_of(in, s, {.score = score}));
}

Arrays attention_alibi(const Arrays& in, const Sizes& n, const Scalars& s) {
  const Array& slope = in.at("slope");
  const auto score = [&](const Place& p, double x) {
    const int64_t behind = distance(n, p);
    return behind < 0 ? Score() : Score(x - slope.at({p.h}) * static_cast<double>(behind));
  };
  return only_output(attention_of(in, s, {.score = score}));
}

Arrays attention_softcap(const Arrays& in, const Sizes& n, const Scalars& s) {
  const double cap = s.at("cap");
  const auto score = [&](const Place& p, double x) {
    return distance(n, p) < 0 ? Score() : Score(cap * std::tanh(x / cap));
  };
  return only_output(attention_of(in, s, {.score = score}));
}

Arrays attention_sink(const Arrays& in, const Sizes& n, const Scalars& s) {
  const auto score = [&](const Place& p, double x) {
    return distance(n, p) < 0 ? Score() : Score(x);
  };
  const auto sink = [&](int64_t h) { return in.at("sink").at({h}); };
  return only_output(attention_of(in, s, {.score = score, .sink = sink}));
}

Arrays attention_bias(const Arrays& in, const Sizes&, const Scalars& s) {
  const Array& bias = in.at("bias");
  const auto score = [&](const Place& p, double x) { return Score(x + bias.at({p.h, p.i, p.j})); };
  return only_output(attention_of(in, s, {.score = score}));
}

// A query without an axis of rows is one row.
Arrays attention_decode(const Arrays& in, const Sizes& n, const Scalars& s) {
  Arrays with_row = in;
  with_row.at("Q").shape = {n.at("B"), n.at("Hk") * n.at("G"), 1, n.at("D")};
  Arrays out = attention(with_row, n, s);
  out.at("O").shape = {n.at("B"), n.at("Hk") * n.at("G"), n.at("D")};
  return out;
}

// Walks each sequence page by page, as its table lists them, until `length` rows have been met.
Arrays attention_paged(const Arrays& in, const Sizes& n, const Scalars& s) {
  const Array &q = in.at("Q"), &k = in.at("K"), &v = in.at("V"), &page = in.at("page");
  Array out = zeros(q.shape);
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t h = 0; h < n.at("Hk") * n.at("G"); ++h) {
      const Vector query = vector_at(q, {b, h});
      auto left = static_cast<int64_t>(in.at("length").at({b}));
      std::vector<Seen> seen;
      for (int64_t l = 0; l < n.at("L"); ++l)
        for (int64_t r = 0; r < n.at("R") && left > 0; ++r, --left) {
          const auto where = static_cast<int64_t>(page.at({b, l}));
          const double score = dot(query, vector_at(k, {where, r, h / n.at("G")})) * s.at("scale");
          seen.push_back({score, vector_at(v, {where, r, h / n.at("G")})});
        }
      const Vector row = attend(seen, n.at("D")).output;
      for (int64_t e = 0; e < n.at("D"); ++e) out.ref({b, h, e}) = row[static_cast<size_t>(e)];
    }
  return {{"O", out}};
}

// The quadratic form: every pair of a query and a key has the weight phi(q) . phi(k).
Arrays linear_attention(const Arrays& in, const Sizes& n, const Scalars&) {
  const Array &q = in.at("Q"), &k = in.at("K"), &v = in.at("V");
  const auto phi = [](Vector x) {
    for (double& e : x) e = (e > 0 ? e : std::expm1(e)) + 1;
    return x;
  };
  Array out = zeros(q.shape);
  for (int64_t b = 0; b < n.at("B"); ++b)
    for (int64_t h = 0; h < n.at("H"); ++h)
      for (int64_t i = 0; i < n.at("M"); ++i) {
        const Vector query = phi(vector_at(q, {b, h, i}));
        double total = 0;
        for (int64_t j = 0; j < n.at("N"); ++j) {
          const double weight = dot(query, phi(vector_at(k, {b, h, j})));
          total += weight;
          for (int64_t e = 0; e < n.at("D"); ++e)
            out.ref({b, h, i, e}) += weight * v.at({b, h, j, e});
        }
        for (int64_t e = 0; total != 0 && e < n.at("D"); ++e) out.ref({b, h, i, e}) /= total;
      }
  return {{"O", out}};
}

}  // namespace

std::vector<Reference> attention_references() {
  return {
      {"attention", attention},
      {"attention_alibi", attention_alibi},
      {"attention_bias", attention_bias},
      {"attention_causal", attention_causal},
      {"attention_decode", attention_decode},
      {"attention_documents", attention_documents},
      {"attention_dropout", attention_dropout},
      {"attention_gqa", attention_causal},  // the shared heads follow from the shapes
      {"attention_lse", attention_lse},
      {"attention_paged", attention_paged},
      {"attention_sink", attention_sink},
      {"attention_softcap", attention_softcap},
      {"attention_window", attention_window},
      {"linear_attention", linear_attention},
  };
}

}  // namespace nautilus::examples
