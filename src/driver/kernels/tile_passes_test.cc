// SPDX-License-Identifier: Apache-2.0
// Random scheduled programs: the tile program after every pass computes what the loops compute.
//
// The programs are cascades over a streamed axis: a product, element-wise steps, a mask, running
// references with the accumulators relative to them or none, further products and sums, and
// outputs that are normalised, logarithmic or raw. Nothing in them is named after a known operator;
// combinations that a pass must leave alone are drawn as often as those it may change.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "compile/manager.h"
#include "driver/load/load.h"
#include "ir/environment.h"
#include "ir/print.h"
#include "lower/to_vrtile/scalar_to_vrtile.h"
#include "scalar/interp.h"
#include "vrtile/interp.h"

namespace nautilus::driver {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string text;
  std::map<std::string, int64_t> sizes;

  void make() {
    choose();
    declare();
    line(1, fmt::format("for i0 < (M + {}) / {} grid", rows_ * groups_ - 1, rows_ * groups_));
    int in = 2;
    if (groups_ > 1) line(in++, fmt::format("for w < {} group", groups_));
    begin_loop(in++);
    write_scores(in);
    write_values(in);
    write_sums(in);
    write_outputs(in - 1);
  }

 private:
  // Everything is drawn in one order, so that a seed says which program it is.
  void choose() {
    rows_ = pick({16, 32});
    keys_ = pick({8, 16, 24});
    depth_ = pick({4, 8, 16});
    width_ = pick({8, 16});
    groups_ = pick({1, 2});
    has_max_ = !chance(4);
    has_sum_ = chance(2);
    has_extra_ = chance(3);
    is_down_ = chance(2);
    mask_ = pick({0, 1, 2, 3});
    sizes = {{"M", pick({1, 7, 20, 33})}, {"N", pick({0, 1, 9, 25, 40})}, {"W", pick({1, 6, 19})}};
    first_ = groups_ > 1 ? fmt::format("{} * i0 + {} * w", rows_ * groups_, rows_)
                         : fmt::format("{} * i0", rows_);
    key_ = fmt::format("{} * n + j", keys_);
    row_ = fmt::format("for i < {} map", rows_);
    tile_ = fmt::format("for i < {}, j < {} map", rows_, keys_);
    wide_ = fmt::format("for i < {}, e < {} map", rows_, width_);
    over_ = fmt::format("for j < {} reduce", keys_);
  }

  void declare() {
    line(0, "scalar.program @cascade");
    for (const auto& [name, size] : sizes) line(1, fmt::format("dim {} hint {}", name, size));
    if (sizes.at("N") > 0 && chance(2)) line(1, "fact N >= 1");
    line(1, "param c : f32 = 0.5");
    if (chance(2)) line(1, "fact c > 0.0");
    line(1, fmt::format("buffer Q : bf16[M, {}] input", depth_));
    line(1, fmt::format("buffer K : bf16[N, {}] input", depth_));
    line(1, fmt::format("buffer V : bf16[N, {}] input", width_));
    line(1, "buffer bias : f32[N] input");
    line(1, fmt::format("buffer O : f32[M, {}] output", width_));
    line(1, "buffer L : f32[M] output");
    for (const char* name : {"s", "t", "p"}) local(name, {rows_, keys_});
    for (const char* name : {"mt", "m1", "m", "l", "a", "x"}) local(name, {rows_});
    local("u", {rows_, width_});
  }

  void begin_loop(int in) {
    nest(in, row_, has_max_ && chance(4) ? "init m[i] = 0.25" : "init m[i] = -inf");
    nest(in, row_, "init l[i] = 0.0");
    nest(in, row_, "init x[i] = 0.0");
    nest(in, wide_, "init u[i, e] = 0.0");
    std::string last = fmt::format("(N + {}) / {}", keys_ - 1, keys_);
    if (mask_ == 1 || mask_ == 2)
      last = fmt::format("max(1, (min(N, {} + {} + N - M) + {}) / {})", first_, rows_, keys_ - 1,
                         keys_);
    line(in, is_down_ ? fmt::format("loop n from {} - 1 down 0", last)
                      : fmt::format("loop n from 0 up {}", last));
  }

  void write_scores(int in) {
    const std::string at = fmt::format("{} + i + N - M", first_);
    line(in, tile_);
    line(in + 1, "init s[i, j] = 0.0");
    line(in + 1, fmt::format("for d < {} reduce", depth_));
    line(in + 2,
         fmt::format("update s[i, j] sum f32(where({0} + i < M, Q[{0} + i, d], bf16(0.0))) * "
                     "f32(where({1} < N, K[{1}, d], bf16(0.0)))",
                     first_, key_));
    std::string score = "s[i, j]";
    if (chance(3)) score = fmt::format("tanh({})", score);
    if (chance(3)) score = fmt::format("{} + where({} < N, bias[{}], 0.0)", score, key_, key_);
    condition_ = fmt::format("{} < N", key_);
    if (mask_ == 1) condition_ = fmt::format("{} <= {} and {}", key_, at, condition_);
    if (mask_ == 2)
      condition_ = fmt::format("{} <= {} and {} < {} + W and {}", key_, at, at, key_, condition_);
    if (mask_ == 3)
      condition_ = fmt::format("({} + i + {}) % 3 > 0 and {}", first_, key_, condition_);
    nest(in, tile_, fmt::format("store t[i, j] = where({}, {}, -inf)", condition_, score));
  }

  void write_values(int in) {
    scale_ = pick({0, 1}) ? "c" : "(c * 1.5)";
    is_exp2_ = chance(2);
    const std::string exp = is_exp2_ ? "exp2" : "exp";
    const std::string reference = "where(m1[i] == -inf, 0.0, m1[i])";
    if (!has_max_)
      return nest(in, tile_, fmt::format("store p[i, j] = sigmoid(t[i, j] * {})", scale_));
    line(in, row_);
    line(in + 1, "init mt[i] = -inf");
    line(in + 1, over_);
    line(in + 2, "update mt[i] max t[i, j]");
    nest(in, row_, "store m1[i] = max(m[i], mt[i])");
    nest(in, row_, fmt::format("store a[i] = {}((m[i] - {}) * {})", exp, reference, scale_));
    nest(in, tile_,
         fmt::format("store p[i, j] = {0}(t[i, j] * {1} - {2} * {1})", exp, scale_, reference));
    nest(in, row_, "store l[i] = l[i] * a[i]");
    nest(in, wide_, "store u[i, e] = u[i, e] * a[i]");
    // Forgetting this factor makes x depend on the sequence of references.
    if (has_extra_ && chance(2)) nest(in, row_, "store x[i] = x[i] * a[i]");
  }

  void write_sums(int in) {
    if (has_sum_ || has_max_) sum(in, row_, over_, "l", "p[i, j]");
    if (has_extra_)
      sum(in, row_, over_, "x", fmt::format("where({}, p[i, j] * s[i, j], 0.0)", condition_));
    line(in, wide_);
    line(in + 1, over_);
    line(in + 2,
         fmt::format("update u[i, e] sum p[i, j] * f32(where({0} < N, V[{0}, e], bf16(0.0)))",
                     key_));
    if (has_max_) nest(in, row_, "store m[i] = m1[i]");
  }

  void write_outputs(int in) {
    const std::string guard = fmt::format("if {} + i < M", first_);
    const bool is_normal = !chance(3);
    output(in, wide_, guard,
           fmt::format("store O[{} + i, e] = {}", first_,
                       is_normal ? "u[i, e] / where(l[i] == 0.0, 1.0, l[i])" : "u[i, e]"));
    std::string other = "l[i]";
    const std::string log = is_exp2_ ? "log2" : "log";
    switch (pick({0, 1, 2, 3})) {
      case 0:
        if (has_max_) other = fmt::format("m[i] * {} + {}(l[i])", scale_, log);
        break;
      case 1:
        if (has_max_) other = "m[i]";
        break;
      case 2:
        if (has_extra_) other = "x[i] / where(l[i] == 0.0, 1.0, l[i])";
        break;
      default:
        other = "1.0";
    }
    output(in, row_, guard, fmt::format("store L[{} + i] = {}", first_, other));
  }

  int64_t pick(std::vector<int64_t> values) {
    return values[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(values.size()) - 1))];
  }
  bool chance(int64_t in) { return random_.integer(1, in) == 1; }
  void line(int depth, const std::string& s) {
    text += std::string(static_cast<size_t>(2 * depth), ' ') + s + "\n";
  }
  void nest(int depth, const std::string& loop, const std::string& s) {
    line(depth, loop);
    line(depth + 1, s);
  }
  void sum(int depth, const std::string& loop, const std::string& over, const char* target,
           const std::string& value) {
    line(depth, loop);
    line(depth + 1, over);
    line(depth + 2, fmt::format("update {}[i] sum {}", target, value));
  }
  void output(int depth, const std::string& loop, const std::string& guard, const std::string& s) {
    line(depth, loop);
    line(depth + 1, guard);
    line(depth + 2, s);
  }
  void local(const char* name, std::vector<int64_t> shape) {
    line(1, fmt::format("buffer {} : f32[{}] local", name, fmt::join(shape, ", ")));
  }

  base::Random random_;
  int64_t rows_ = 0;
  int64_t keys_ = 0;
  int64_t depth_ = 0;
  int64_t width_ = 0;
  int64_t groups_ = 0;
  bool has_max_ = false;
  bool has_sum_ = false;
  bool has_extra_ = false;
  bool is_down_ = false;
  bool is_exp2_ = false;
  int64_t mask_ = 0;
  std::string first_;  // row of a tile
  std::string key_;
  std::string row_;  // heads of loops
  std::string tile_;
  std::string wide_;
  std::string over_;
  std::string scale_;
  std::string condition_;
};

using Outputs = std::map<std::string, expr::Tensor>;

// The largest difference, relative to the larger of 1 and the value; infinite if only one of two
// is a number.
double difference(const Outputs& want, const Outputs& got) {
  double worst = 0;
  for (const auto& [name, tensor] : want) {
    const expr::Tensor& other = got.at(name);
    for (int64_t k = 0; k < tensor.size(); ++k) {
      const double x = tensor.number(k);
      const double y = other.number(k);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double d = std::fabs(x - y) / std::max(1.0, std::fabs(x));
      worst = std::max(worst, std::isnan(d) ? INFINITY : d);
    }
  }
  return worst;
}

struct Counts {
  int made_lazy = 0;
  int pipelined = 0;
  int split = 0;
};

void check(uint64_t seed, Counts& counts) {
  Generator g(seed);
  g.make();
  Unit unit;
  const auto program = load_text("cascade.scalar", g.text, {}, unit);
  ASSERT_TRUE(program) << unit.sink.all()[0].message << "\n" << g.text;
  ir::Environment env;
  for (const auto& [name, size] : g.sizes) env.sizes.emplace(name, size);
  const auto inputs = scalar::buffers(*program, scalar::Role::Input);
  ASSERT_TRUE(ir::complete(*program, inputs, env, unit.sink));
  base::Random random(seed + 1000);
  for (const auto& [name, type] : inputs) {
    expr::Tensor t = expr::Tensor::zeros(type.dtype, *ir::evaluate_shape(type.dims, env));
    const double spread = random.integer(0, 3) == 0 ? 8 : 1;
    for (expr::Value& v : t.data)
      v.f = expr::round_to(type.dtype, spread * (random.uniform() * 2 - 1));
    env.tensors.emplace(name, std::move(t));
  }
  const auto want = scalar::interpret(*program, env, scalar::Arithmetic::Oracle, unit.sink);
  ASSERT_TRUE(want);
  ir::PassContext context{unit.pool, unit.sink, {}};
  auto current = lower::scalar_to_vrtile(*program, context);
  ASSERT_TRUE(current) << unit.sink.all()[0].message << "\n" << g.text;
  double allowed = 1e-9;
  auto compare = [&](std::string_view after) {
    ASSERT_TRUE(verify(*current, unit.sink)) << after << ": " << unit.sink.all()[0].message << "\n"
                                             << ir::print(*current);
    const auto got =
        vrtile::interpret(*current, env, scalar::Arithmetic::Oracle, unit.pool, unit.sink);
    ASSERT_TRUE(got) << after;
    ASSERT_LE(difference(*want, *got), allowed) << "seed " << seed << " after " << after << "\n"
                                                << ir::print(*current);
  };
  compare("scalar_to_vrtile");
  for (const compile::PassInfo* row : compile::passes_of(compile::Stage::Tiles)) {
    const compile::PassInfo& pass = *row;
    // Every other program is compared exactly, without the rounding of operands.
    if (pass.name == "operand_cast" && seed % 2 == 0) continue;
    const std::string before = ir::print(*current);
    current = pass.run(*current, context);
    ASSERT_TRUE(current) << pass.name;
    if (pass.name == "operand_cast") allowed = 0.25;
    const bool is_changed = ir::print(*current) != before;
    if (is_changed && pass.name == "lazy_reference") ++counts.made_lazy;
    if (is_changed && pass.name == "pipeline_loops") ++counts.pipelined;
    if (is_changed && pass.name == "specialise_segments") ++counts.split;
    if (is_changed) compare(pass.name);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(TilePasses, OneNestOfAProgram) {
  Unit unit;
  const auto program = load_text("two.scalar",
                                 "scalar.program @two\n"
                                 "  buffer X : f32[64] input\n"
                                 "  buffer T : f32[64] temp\n"
                                 "  buffer Y : f32[64] output\n"
                                 "  for i < 64 map\n"
                                 "    store T[i] = X[i]\n"
                                 "  for b < 1 grid\n"
                                 "    for i < 64 map\n"
                                 "      store Y[i] = T[i] + 1.0\n",
                                 {}, unit);
  ASSERT_TRUE(program);
  ir::PassContext context{unit.pool, unit.sink, {}};
  EXPECT_FALSE(lower::scalar_to_vrtile(*program, context));
  const auto tiles = lower::nest_to_vrtile(*program, program->body.back(), context);
  ASSERT_TRUE(tiles);
  EXPECT_EQ(ir::print(*tiles),
            "vrtile.program @two\n"
            "  tensor X : f32[64] input\n"
            "  tensor T : f32[64] temp\n"
            "  tensor Y : f32[64] output\n"
            "  par b < 1 grid\n"
            "    load t[i < 64] = T[i]\n"
            "    store [i < 64] Y[i] = t[i] + 1.0\n");
}

TEST(TilePasses, RandomCascadesKeepTheirResults) {
  Counts counts;
  constexpr int kPrograms = 60;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    check(seed, counts);
    if (HasFatalFailure()) return;
  }
  // The test would show nothing if the passes never acted, or always.
  EXPECT_GT(counts.made_lazy, 5);
  EXPECT_LT(counts.made_lazy, kPrograms * 2 / 3);
  EXPECT_GT(counts.pipelined, kPrograms / 2);
  EXPECT_GT(counts.split, kPrograms / 4);
}

}  // namespace
}  // namespace nautilus::driver
