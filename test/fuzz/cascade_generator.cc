// SPDX-License-Identifier: Apache-2.0
#include "cascade_generator.h"

#include <fmt/format.h>

#include <vector>

#include "base/random.h"

namespace nautilus::fuzz {
namespace {

// Rows are i, columns j, features e. Values are kept within a few units, so that rounding does not
// grow without limit.
class CascadeGenerator {
 public:
  explicit CascadeGenerator(uint64_t seed) : random_(seed) {}

  std::string run() {
    declare();
    scores();
    const int64_t steps = draw(2, 6);
    for (int64_t k = 0; k < steps; ++k) step();
    if (features_.empty()) contraction();
    if (chance(0.5)) behind();
    outputs();
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  int64_t draw(int64_t low, int64_t high) { return random_.integer(low, high); }
  bool chance(double p) { return random_.chance(p); }
  template <class T>
  T any_of(std::initializer_list<T> items) {
    return items.begin()[random_.next() % items.size()];
  }
  const std::string& any(const std::vector<std::string>& items) {
    return items[random_.next() % items.size()];
  }
  std::string fresh(std::string_view stem) { return fmt::format("{}{}", stem, ++count_); }
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    lines_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  void declare() {
    const bool is_f32 = chance(0.25);
    stored_ = is_f32 ? "f32" : chance(0.7) ? "bf16" : "f16";
    depth_ = any_of<int64_t>({16, 24, 32});
    width_ = any_of<int64_t>({16, 24, 32});
    line("dims M, N");
    line("static D = {}, E = {}", depth_, width_);
    line("hint M = {}, N = {}", any_of<int64_t>({0, 1, 5, 17, 64, 66}),
         any_of<int64_t>({0, 1, 7, 16, 33, 65}));
    line("A: {}[M, D]", stored_);
    line("B: {}[{}]", stored_, is_turned_ ? "D, N" : "N, D");
    line("V: {}[N, E]", stored_);
    line("x: f32[M]");
    line("y: f32[N]");
    line("G: f32[M, N]");
    line("id: i32[N]");
    line("c: f32 = 0.5");
    if (chance(0.5)) line("fact c > 0");
    // Operands of f32 become those of 16 bits, one or two of each.
    if (is_f32) line("numerics {}", chance(0.8) ? "bf16" : "tf32");
  }

  void scores() {
    line("S[i,j] = sum[d] A[i,d] * B[{}] * {}", is_turned_ ? "d,j" : "j,d",
         any_of<std::string_view>({"0.125", "c", "0.05"}));
    tiles_.push_back("S");
  }

  void step() {
    switch (draw(0, 7)) {
      case 0:
        return elementwise();
      case 6:
      case 7:
        return statistic();
      case 1:
      case 2:
        return row_reduction();
      case 3:
        return normalised();
      case 4:
        return contraction();
      default:
        return chance(0.3) ? column_reduction() : elementwise();
    }
  }

  std::string tile() { return any(tiles_) + "[i,j]"; }
  std::string row() {
    return rows_.empty() || chance(0.3) ? std::string("x[i]") : any(rows_) + "[i]";
  }
  std::string column() {
    return columns_.empty() || chance(0.5) ? std::string("y[j]") : any(columns_) + "[j]";
  }
  std::string condition() {
    return any_of<std::string_view>({"j <= i", "j <= i + N - M", "j > i - 9 and j < i + 20",
                                     "id[j] > 0", "(i + j) % 3 == 0", "j < 40 or j <= i",
                                     "G[i,j] > 0", "j >= i / 2"})
        .data();
  }

  // A tame function of a tile, of row values and of column values.
  std::string value() {
    const std::string t = tile();
    switch (draw(0, 12)) {
      case 0:
        return chance(0.2) ? fmt::format("expm1(min({}, 2))", t) : fmt::format("tanh({})", t);
      case 1:
        return fmt::format("sigmoid({} - {})", t, row());
      case 2:
        return fmt::format("relu({})", t);
      case 3:
        return fmt::format("{} * 0.5 + {} * 0.25", t, column());
      case 4:
        return fmt::format("where({}, {}, 0)", condition(), t);
      case 5:
        return fmt::format("clamp({} - {}, -4, 4)", t, row());
      case 6:
        return fmt::format("{} / (1 + abs({}))", t, row());
      case 7:
        return fmt::format("min({}, {} + 1)", t, column());
      case 8:
        return fmt::format("softcap({}, 3.0)", t);
      case 9:
        return fmt::format("{} + 0.25 * G[i,j]", t);
      case 10:
        return fmt::format("{} * 0.5 - {} * 0.5", t, tile());
      case 11:
        return fmt::format("{} {} {}", t, any_of<std::string_view>({"+", "-"}), row());
      default:
        return fmt::format("{} * {}", t, any_of<std::string_view>({"c", "0.75", "-1.5"}));
    }
  }

  void elementwise() {
    const std::string name = fresh("T");
    line("{}[i,j] = {}", name, value());
    tiles_.push_back(name);
  }

  void row_reduction() {
    const std::string name = fresh("r");
    switch (draw(0, 5)) {
      case 0:
        line("{}[i] = max[j] {}", name, tile());
        break;
      case 1:
        line("{}[i] = min[j] ({})", name, value());
        break;
      case 2:
        line("{}[i] = (sum[j] ({})) / (N + 1)", name, value());
        break;
      case 3:
        line("{}[i] = sqrt(sum[j] square({})) / (N + 1)", name, tile());
        break;
      case 4:
        line("{}[i] = max[j from {}] ({})", name, row(), value());
        break;
      default:
        line("{}[i] = mean[j] abs({})", name, tile());
        break;
    }
    rows_.push_back(name);
  }

  // Values of a row that are taken against other values of it.
  void statistic() {
    const std::string t = tile();
    const std::string a = fresh("r");
    const std::string b = fresh("r");
    switch (draw(0, 7)) {
      case 0:
        line("{}[i] = mean[j] {}", a, t);
        line("{}[i] = mean[j] square({} - {}[i])", b, t, a);
        break;
      case 1:
        line("{}[i] = (sum[j] {}) / (N + 1)", a, t);
        line("{}[i] = (sum[j] ({} - {}[i]) * ({} - {})) / (N + 1)", b, t, a, tile(), row());
        break;
      case 2:
        line("{}[i] = logsumexp[j]({})", a, t);
        line("{}[i] = sum[j] softmax[j]({}) * ({} - finite({}[i]))", b, t, t, a);
        break;
      case 3:
        line("{}[i] = sum[j] where({}, 1.0, 0.0) * exp(-abs({}))", a, condition(), t);
        line("{}[i] = (sum[j] where({}, square({} - {}[i]), 0)) / (N + 1)", b, condition(), t, a);
        break;
      case 4:
        line("{}[i] = {}[j] {}", a, any_of<std::string_view>({"argmax", "argmin"}), t);
        line("{}[i] = f32({}[i]) * 0.01", b, a);
        rows_.push_back(b);
        return;
      case 5:
        line("{}[i] = {}[j] {}", a, any_of<std::string_view>({"max", "min"}), t);
        line("{}[i] = (sum[j] where({} == {}[i], {}, 0)) / (N + 1)", b, t, a, column());
        break;
      case 6:
        line("{}[i] = sqrt(sum[j] square({})) + 0.5", a, t);
        line("{}[i] = {}[j] {} / {}[i]", b, any_of<std::string_view>({"max", "min"}), t, a);
        break;
      default:
        line("{}[i] = max[j] softmax[j]({})", a, t);
        line("{}[i] = min[j] softmax[j]({})", b, t);
        break;
    }
    rows_.push_back(a);
    rows_.push_back(b);
  }

  // Exponentials relative to an extreme value of the row, perhaps masked.
  void normalised() {
    const std::string masked = fresh("T");
    const std::string m = fresh("r");
    const std::string e = fresh("T");
    const bool is_masked = chance(0.6);
    if (is_masked)
      line("{}[i,j] = where({}, {}, -inf)", masked, condition(), tile());
    else
      line("{}[i,j] = {}", masked, value());
    if (chance(0.25)) {
      line("{}[i,j] = softmax[j]({}[i,j])", e, masked);
    } else {
      line("{}[i] = max[j{}] {}[i,j]", m, chance(0.2) ? " from x[i]" : "", masked);
      line("{}[i,j] = exp({}[i,j] - finite({}[i]))", e, masked, m);
      if (!is_masked) rows_.push_back(m);
      const std::string l = fresh("r");
      if (chance(0.7)) {
        line("{}[i] = sum[j] {}[i,j]", l, e);
        if (chance(0.5)) {
          const std::string p = fresh("T");
          line("{}[i,j] = {}[i,j] / nonzero({}[i])", p, e, l);
          tiles_.push_back(p);
        }
      }
    }
    tiles_.push_back(e);
    if (chance(0.6)) contraction(e);
  }

  void contraction(const std::string& preferred = "") {
    const std::string name = fresh("O");
    const std::string term = !preferred.empty() ? preferred + "[i,j]"
                             : chance(0.5)      ? tile()
                                                : "(" + value() + ")";
    line("{}[i,e] = sum[j] {} * V[j,e]{}", name, term, chance(0.3) ? " * 0.1" : "");
    features_.push_back(name);
  }

  void column_reduction() {
    const std::string name = fresh("k");
    line("{}[j] = (sum[i] {}) / (M + 1)", name, tile());
    columns_.push_back(name);
  }

  // What follows the products: an epilogue, or a product again.
  void behind() {
    const std::string o = any(features_);
    const std::string name = fresh("O");
    switch (draw(0, 3)) {
      case 0:
        line("{}[i,e] = {}[i,e] / (1 + abs({}))", name, o, row());
        break;
      case 1:
        line("{}[i,e] = gelu({}[i,e] * 0.1) + {}", name, o, row());
        break;
      case 2:
        line("{}[i,e] = {}[i,e] * rsqrt(0.5 + mean[f] square({}[i,f]))", name, o, o);
        break;
      default:
        line("W: {}[E, 32]", stored_);
        line("{}[i,g] = (sum[e] {}[i,e] * W[e,g]) * 0.1 -> f32", name, o);
        return;
    }
    features_.push_back(name);
  }

  void outputs() {
    line("Out[i,e] = {}[i,e] -> {}", features_.back(), chance(0.5) ? stored_ : "f32");
    if (!rows_.empty() && chance(0.6)) line("Row[i] = {}[i] -> f32", any(rows_));
    if (!columns_.empty()) line("Col[j] = {}[j] -> f32", columns_.back());
    if (chance(0.2)) line("Tile[i,j] = {} -> f32", tile());
  }

  base::Random random_;
  std::vector<std::string> lines_;
  std::vector<std::string> tiles_;     // [i, j]
  std::vector<std::string> rows_;      // [i]
  std::vector<std::string> columns_;   // [j]
  std::vector<std::string> features_;  // [i, e]
  std::string stored_;
  int64_t depth_ = 16;
  int64_t width_ = 16;
  bool is_turned_ = random_.chance(0.2);
  int count_ = 0;
};

}  // namespace

std::string generate_cascade(uint64_t seed) { return CascadeGenerator(seed).run(); }

}  // namespace nautilus::fuzz
