// SPDX-License-Identifier: Apache-2.0
//
// A proof never contradicts a point: random conditions under random facts, against all small
// values of the variables. And the proofs that accepted programs depend on succeed.
#include "expr/bounds/bounds.h"

#include <functional>

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

// Two sizes, two scalars without bounds, two axes.
class World {
 public:
  explicit World(Random& random) : random_(random) {
    facts_.add_size(n_);
    facts_.add_size(m_);
    extent_i_ = extent();
    extent_j_ = extent();
    facts_.add_axis(i_, extent_i_);
    facts_.add_axis(j_, extent_j_);
    for (int64_t k = random.in(0, 2); k > 0; --k) {
      Expr c = random.chance(25) ? divisibility() : condition(2);
      if (random.chance(30)) c = pool_.binary(Op::And, c, condition(1));
      const bool holds = random.chance(70);
      holds ? facts_.assume(c) : facts_.assume_not(c);
      assumed_.push_back(holds ? c : pool_.unary(Op::Not, c));
    }
  }

  Expr condition(int depth) {
    static const std::vector<Op> ops = {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};
    const Expr x = index(depth);
    const Expr y = random_.chance(40) ? pool_.integer(random_.in(-4, 12)) : index(depth);
    const Expr c = pool_.binary(random_.of(ops), x, y);
    if (random_.chance(10)) return pool_.unary(Op::Not, c);
    if (random_.chance(10)) return pool_.binary(Op::Or, c, condition(1));
    return c;
  }

  // One size divides the other, or a number does.
  Expr divisibility() {
    const bool is_n = random_.chance(50);
    const Expr divisor = random_.chance(50) ? number(1, 3) : is_n ? m_ : n_;
    const Expr rest = pool_.binary(Op::Mod, is_n ? n_ : m_, divisor);
    const Expr c = pool_.binary(Op::Eq, rest, pool_.integer(0));
    return pool_.binary(Op::And, c, pool_.binary(Op::Ge, divisor, pool_.integer(1)));
  }

  Truth prove(Expr c) const { return facts_.prove(c); }

  // Calls f at every small point where all that is known holds, until it returns false.
  void for_each_point(const std::function<bool(const Point&)>& f) const {
    Point p;
    for (int64_t n = 0; n <= 3; ++n) {
      for (int64_t m = 0; m <= 3; ++m) {
        for (int64_t st = 0; st < 25; ++st) {
          p[n_] = int_value(n);
          p[m_] = int_value(m);
          p[s_] = int_value(st / 5 - 2);
          p[t_] = int_value(st % 5 - 2);
          const int64_t ei = value_at(extent_i_, p).i;
          const int64_t ej = value_at(extent_j_, p).i;
          for (int64_t ij = 0; ei > 0 && ej > 0 && ij < ei * ej; ++ij) {
            p[i_] = int_value(ij / ej);
            p[j_] = int_value(ij % ej);
            const bool is_possible = std::all_of(assumed_.begin(), assumed_.end(),
                                                 [&](Expr c) { return value_at(c, p).i != 0; });
            if (is_possible && !f(p)) return;
          }
        }
      }
    }
  }

  std::string description() const {
    std::string out = "i < " + to_string(extent_i_) + ", j < " + to_string(extent_j_);
    for (Expr c : assumed_) out += ", " + to_string(c);
    return out;
  }

 private:
  Expr number(int64_t low, int64_t high) { return pool_.integer(random_.in(low, high)); }

  Expr extent() {
    switch (random_.in(0, 9)) {
      case 0:
        return number(1, 4);
      case 1:
        return n_;
      case 2:
        return m_;
      case 3:
        return pool_.binary(Op::Mul, n_, m_);
      case 4:
        return pool_.binary(Op::Mul, n_, number(2, 4));
      case 5:
        return pool_.binary(Op::Add, n_, number(-2, 2));
      case 6:
        return pool_.binary(Op::FloorDiv, pool_.binary(Op::Add, n_, number(0, 2)), number(1, 3));
      case 7:
        return pool_.binary(Op::Mul, s_, t_);
      case 8:
        return pool_.binary(Op::Min, n_, m_);
      default:
        return pool_.binary(Op::Sub, n_, m_);
    }
  }

  Expr index(int depth) {
    if (depth == 0 || random_.chance(15)) {
      return random_.chance(15) ? number(-3, 5)
                                : random_.of<Expr>({i_, i_, j_, j_, n_, m_, s_, t_});
    }
    switch (random_.in(0, 9)) {
      case 0:
      case 1:
        return pool_.binary(Op::FloorDiv, index(depth - 1), number(-1, 4));
      case 2:
        return pool_.binary(Op::Mod, index(depth - 1), number(-1, 4));
      case 3:
        return pool_.binary(random_.chance(50) ? Op::FloorDiv : Op::Mod, index(depth - 1),
                            random_.chance(50)   ? n_
                            : random_.chance(40) ? pool_.binary(Op::FloorDiv, n_, m_)
                                                 : index(0));
      case 4:
        return pool_.binary(random_.chance(50) ? Op::Min : Op::Max, index(depth - 1),
                            index(depth - 1));
      case 5:
        return pool_.binary(Op::Mul, index(depth - 1), number(-3, 4));
      case 6:
        return pool_.binary(Op::Mul, index(depth - 1), index(0));
      case 7:
        return pool_.binary(Op::Sub, index(depth - 1), index(depth - 1));
      default:
        return pool_.binary(Op::Add, index(depth - 1), index(depth - 1));
    }
  }

  Random& random_;
  ExprPool pool_;
  const Expr n_ = pool_.index("N");
  const Expr m_ = pool_.index("M");
  const Expr s_ = pool_.index("s");
  const Expr t_ = pool_.index("t");
  const Expr i_ = pool_.index("i");
  const Expr j_ = pool_.index("j");
  Facts facts_;
  Expr extent_i_;
  Expr extent_j_;
  std::vector<Expr> assumed_;
};

TEST(Bounds, NoProofContradictsAPoint) {
  Random random(3);
  int proofs = 0;
  int refutations = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    World world(random);
    for (int k = 0; k < 5; ++k) {
      const Expr c = world.condition(2);
      const Truth truth = world.prove(c);
      if (truth == Truth::Unknown) continue;
      ++(truth == Truth::True ? proofs : refutations);
      world.for_each_point([&](const Point& p) {
        const bool agrees = (value_at(c, p).i != 0) == (truth == Truth::True);
        EXPECT_TRUE(agrees) << to_string(c) << " where " << world.description() << "\nat "
                            << show(p);
        return agrees;
      });
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(proofs, 300);
  EXPECT_GT(refutations, 300);
}

struct Proof {
  std::vector<std::pair<const char*, const char*>> axes;
  const char* fact;  // empty: none
  const char* condition;
};

Truth prove(const Proof& proof) {
  ExprPool pool;
  Scope scope;
  Facts facts;
  for (const char* size : {"N", "M", "L", "Hk", "G", "W"}) {
    scope.add_var(size, DType::I64);
    facts.add_size(pool.index(size));
  }
  scope.add_var("s", DType::I64);
  scope.add_var("w", DType::I32);
  for (const auto& [axis, extent] : proof.axes) {
    facts.add_axis(pool.index(axis), parse_text(extent, scope, pool));
    scope.add_var(axis, DType::I64);
  }
  if (*proof.fact) facts.assume(parse_text(proof.fact, scope, pool));
  std::string messages;
  const Expr c = parse_text(proof.condition, scope, pool, &messages);
  EXPECT_TRUE(c) << messages;
  return facts.prove(c);
}

TEST(Bounds, ProvesWhatProgramsNeed) {
  static const Proof proofs[] = {
      {{{"i", "N"}}, "", "i >= 0"},
      {{{"i", "N"}}, "", "i < N"},
      {{{"i", "N"}}, "", "N >= 1"},
      {{{"i", "N - 1"}}, "", "i + 1 < N"},
      {{{"i", "N"}}, "", "N - 1 - i >= 0"},
      {{{"h", "Hk * 4"}}, "", "h / 4 < Hk"},
      {{{"h", "Hk * G"}}, "", "h / G < Hk"},
      {{{"h", "Hk * G"}}, "", "h % G < G"},
      {{{"i", "N"}, {"k", "M"}}, "i >= k", "i - k >= 0"},
      {{{"i", "N"}, {"k", "M"}}, "i >= k", "i - k < N"},
      {{{"i", "N"}, {"k", "M"}}, "i >= k and N >= M", "i - k < N"},
      {{{"j", "N"}}, "", "j % 16 < 16"},
      {{{"j", "N"}}, "", "j % 16 >= 0"},
      {{{"i", "N"}, {"c", "8"}}, "", "(i * 8 + c) / 8 < N"},
      {{{"i", "N"}, {"c", "8"}}, "", "i * 8 + c < N * 8"},
      {{{"t", "M"}, {"r", "3"}}, "t * 2 + r < N + 1", "t * 2 + r - 1 < N"},
      {{{"d", "64"}}, "", "d / 2 * 2 + 1 < 64"},
      {{{"d", "64"}}, "", "d / 2 * 2 <= d"},
      {{{"d", "N"}}, "", "d - d / 2 * 2 < 2"},
      {{{"d", "N * 2"}}, "", "d / 2 * 2 + 1 < N * 2"},
      {{{"d", "N"}}, "", "d / 2 * 2 < N"},
      {{{"d", "N"}}, "", "3 * d - 6 * (d / 2) >= 0"},
      {{{"d", "N"}}, "", "d % 4 <= d"},
      {{{"d", "s * 2"}}, "", "s >= 1"},
      {{{"j", "L * 16"}}, "", "j / 16 < L"},
      {{{"i", "N"}, {"j", "M"}}, "", "i * M + j < N * M"},
      {{{"i", "N"}}, "", "min(i + 5, N - 1) < N"},
      {{{"i", "N"}}, "", "max(i - 5, 0) < N"},
      {{}, "M >= 1", "(M + 63) / 64 >= 1"},
      {{}, "M <= 128", "(M + 63) / 64 <= 2"},
      {{}, "", "(M + 127) / 128 - 2 <= (M - 128) / 128"},
      {{}, "", "max((M + 127) / 128, 1) - 2 <= (M - 128) / 128"},
      {{{"i", "N"}, {"j", "M"}}, "", "min(i, j) <= i"},
      {{{"i", "N"}}, "N <= M", "i < M"},
      {{{"i", "N"}}, "N == M", "i < M"},
      {{{"i", "N"}}, "N <= M and M <= L", "i < L"},
      {{{"i", "N"}}, "M <= L and N <= M", "i < L"},
      {{{"i", "N"}}, "N <= M and M <= N", "N == M"},
      {{{"i", "N"}}, "not i >= 7", "i < 7"},
      {{{"i", "N"}}, "s >= 0 and s < W", "i + s < N + W"},
      {{}, "s >= 3", "s * s >= 9"},
      {{{"h", "Hk * G * 4"}}, "", "h / (G * 4) < Hk"},
      {{{"h", "Hk * G + 1"}}, "G >= 2", "h / G < Hk + 1"},
      {{{"d", "N / 4"}, {"u", "2"}}, "", "d * 2 + u < N / 2"},
      {{{"d", "N / 8"}, {"u", "2"}}, "", "d * 2 + u < N / 4"},
      {{{"d", "((N - 2) / 2 - 1) / 2 + 1"}, {"u", "2"}}, "", "d * 2 + u < (N - 2) / 2 + 1"},
      {{{"g", "G"}, {"r", "N / G"}}, "", "g * (N / G) + r < N"},
      // Quotients without remainder.
      {{{"j", "N"}}, "N % G == 0 and G >= 1", "j / (N / G) < G"},
      {{{"j", "N"}}, "N % G == 0 and G >= 1", "j % (N / G) < N / G"},
      {{{"j", "N"}}, "N % G == 0 and G >= 1", "N / G >= 1"},
      {{{"j", "N"}}, "N % G == 0 and G >= 1", "j / (N / G) * (N / G) + j % (N / G) < N"},
      {{{"j", "N"}}, "N % 4 == 0", "j / (N / 4) < 4"},
      {{{"j", "N"}}, "N % 8 == 0", "j / (N / 4) < 4"},
      {{}, "N % G == 0 and G >= 1", "N / G * G == N"},
      {{{"h", "N"}},
       "N % M == 0 and M % G == 0 and G >= 1 and M >= 1",
       "h / (N / M) / (M / G) < G"},
  };
  for (const Proof& p : proofs) EXPECT_EQ(prove(p), Truth::True) << p.condition;
}

TEST(Bounds, RefutesTheNegation) {
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i >= N"}), Truth::False);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i < 0"}), Truth::False);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i == N"}), Truth::False);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i != i"}), Truth::False);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i < N and i < 0"}), Truth::False);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i >= 0 or s > 3"}), Truth::True);
}

TEST(Bounds, ClaimsNothingThatMayFail) {
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i + 1 < N"}), Truth::Unknown);
  EXPECT_EQ(prove({{}, "", "N >= 1"}), Truth::Unknown);
  EXPECT_EQ(prove({{}, "", "s >= 0"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"i", "s * s"}}, "", "s >= 1"}), Truth::Unknown);
  EXPECT_EQ(prove({{}, "", "w < w + i32(1)"}), Truth::Unknown);  // i32 wraps
  EXPECT_EQ(prove({{}, "w + i32(1) > i32(0)", "w >= i32(0)"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"i", "N"}}, "", "i / s >= 0"}), Truth::Unknown);  // s may be negative
  EXPECT_EQ(prove({{}, "s >= i64(-inf)", "s >= 0"}), Truth::Unknown);
  // By 0 there is no quotient, and the remainder is 0.
  EXPECT_EQ(prove({{{"j", "N"}}, "N % G == 0", "j / (N / G) < G"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"j", "N"}}, "G >= 1", "j / (N / G) < G"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"j", "N"}}, "N % 2 == 0", "j / (N / 4) < 4"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"j", "N"}}, "", "j / (G * 4) < M"}), Truth::Unknown);
  EXPECT_EQ(prove({{{"d", "N / 4"}, {"u", "3"}}, "", "d * 2 + u < N / 2"}), Truth::Unknown);
}

}  // namespace
}  // namespace nautilus::expr
