// SPDX-License-Identifier: Apache-2.0
//
// Ops of every field kind, in random nested blocks, read back from their text as equal ops with
// equal hashes; traversals share what they do not change; wrong text is answered by a message.
#include "ir/op.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diag/render.h"
#include "expr/expr_test_util.h"
#include "ir/decl.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/walk.h"

namespace nautilus::ir {
namespace {

using expr::ExprPool;
using expr::Random;
using Math = expr::Op;

enum class Kind : uint8_t { Plain, Fast, Slow };
const std::vector<std::string_view>& words(Kind) {
  static const std::vector<std::string_view> spellings = {"plain", "fast", "slow"};
  return spellings;
}

struct Buffer {
  static constexpr std::string_view kFormat = "buffer $name : $type{ as $kind}";
  static constexpr std::string_view kDoc = "";
  Name name;
  TensorType type;
  Kind kind = Kind::Plain;
  static void fields(auto& s, auto&& f) {
    f("name", s.name);
    f("type", s.type);
    f("kind", s.kind);
  }
  static const OpInfo& info();
};

struct Loop {
  static constexpr std::string_view kFormat = "loop [$axes] $kind$body";
  static constexpr std::string_view kDoc = "";
  Axes axes;
  Kind kind = Kind::Plain;
  Block body;
  static void fields(auto& s, auto&& f) {
    f("axes", s.axes);
    f("kind", s.kind);
    f("body", s.body);
  }
  static const OpInfo& info();
};

struct Put {
  static constexpr std::string_view kFormat =
      "put $target[$indices] $reducer $value{ at $position}{ scale $scale}{ $kind}";
  static constexpr std::string_view kDoc = "";
  Name target;
  Exprs indices;
  expr::Reducer reducer = expr::Reducer::Sum;
  Expr value;
  Expr position;
  OptionalNumber scale;
  Kind kind = Kind::Plain;
  static void fields(auto& s, auto&& f) {
    f("target", s.target);
    f("indices", s.indices);
    f("reducer", s.reducer);
    f("value", s.value);
    f("position", s.position);
    f("scale", s.scale);
    f("kind", s.kind);
  }
  static const OpInfo& info();
};

struct Mark {
  static constexpr std::string_view kFormat = "mark{ from $first to $last}{ type $dtype}";
  static constexpr std::string_view kDoc = "";
  OptionalInt first;
  OptionalInt last;
  DType dtype = DType::F32;
  static void fields(auto& s, auto&& f) {
    f("first", s.first);
    f("last", s.last);
    f("dtype", s.dtype);
  }
  static const OpInfo& info();
};

NAUT_DEFINE_OP(Buffer)
NAUT_DEFINE_OP(Loop)
NAUT_DEFINE_OP(Put)
NAUT_DEFINE_OP(Mark)

const Level& probe() {
  static const Level level = {
      "probe",
      ".probe",
      {&Dim::info(), &Static::info(), &Param::info(), &Fact::info(), &Numerics::info(),
       &Buffer::info(), &Loop::info(), &Put::info(), &Mark::info()},
      [](const Op& op, expr::Scope& scope) {
        if (declare_decl(op, scope)) return;
        if (const auto* b = op.get<Buffer>()) {
          scope.add_tensor(b->name.str(), b->type.dtype, b->type.dims.size());
        }
      }};
  return level;
}

class Generator {
 public:
  Generator(ExprPool& pool, Random& random) : pool_(pool), random_(random) {}

  Rounding rounding() {
    if (random_.chance(50)) return Rounding::Licensed;
    if (random_.chance(50)) return Rounding::Exact;
    return random_.chance(50) ? Rounding::Bf16 : Rounding::Tf32;
  }

  Program program() {
    Program p{&probe(), "p", {}};
    vars_ = {pool_.index("N")};
    p.body.push_back(
        make(Dim{pool_.name("N"), random_.chance(50) ? OptionalInt(7) : std::nullopt}));
    p.body.push_back(make(Static{pool_.name("D"), random_.any_size() / 2}));
    p.body.push_back(make(Numerics{rounding(), number(), number()}));
    p.body.push_back(make(Buffer{pool_.name("X.a1"), {DType::F32, {index(1), index(1)}}, kind()}));
    p.body.push_back(
        make(Param{pool_.name("s"), DType::F32, random_.chance(50) ? value(1) : Expr()}));
    p.body.push_back(make(Fact{pool_.binary(Math::Le, index(2), index(2))}));
    block(p.body, 0);
    return p;
  }

 private:
  Kind kind() { return static_cast<Kind>(random_.in(0, 2)); }

  OptionalNumber number() {
    static const std::vector<double> numbers = {0,      1,    -3,   0.1,      1e-9,     -2.5e300,
                                                5e-324, 1e15, 1e17, HUGE_VAL, -HUGE_VAL};
    return random_.chance(40) ? std::nullopt : OptionalNumber(random_.of(numbers));
  }

  Expr index(int depth) {
    if (depth == 0)
      return random_.chance(40) ? pool_.integer(random_.in(-9, 9)) : random_.of(vars_);
    static const std::vector<Math> ops = {Math::Add,      Math::Sub, Math::Mul,
                                          Math::FloorDiv, Math::Mod, Math::Min};
    return pool_.binary(random_.of(ops), index(depth - 1), index(depth - 1));
  }

  Expr value(int depth) {
    if (depth == 0) {
      const Expr indices[] = {index(1), index(0)};
      return random_.chance(30) ? pool_.floating(random_.unit() - 0.5)
                                : pool_.read(pool_.name("X.a1"), DType::F32, indices);
    }
    if (random_.chance(30)) {
      const Expr axis = pool_.index(fmt::format("r{}", ++axes_));
      const Expr extent = index(1);
      vars_.push_back(axis);
      const Expr body = value(depth - 1);
      vars_.pop_back();
      return pool_.reduce(expr::Reducer::Sum, body, {&axis, 1}, {&extent, 1});
    }
    return pool_.binary(random_.chance(50) ? Math::Mul : Math::Sub, value(depth - 1),
                        value(depth - 1));
  }

  void block(Block& out, int depth) {
    for (int64_t k = random_.in(0, 3); k > 0; --k) {
      if (depth < 4 && random_.chance(50)) {
        Loop loop{{}, kind(), {}};
        const size_t outer = vars_.size();
        for (int64_t a = random_.in(0, 2); a > 0; --a) {
          loop.axes.push_back({pool_.name(fmt::format("i{}_{}", depth, a)), index(1)});
        }
        for (const Axis& a : loop.axes) vars_.push_back(pool_.index(a.name));
        block(loop.body, depth + 1);
        vars_.resize(outer);
        out.push_back(make(std::move(loop)));
      } else if (random_.chance(20)) {
        Mark mark;
        if (random_.chance(50)) mark = {random_.any_size(), random_.any_size(), DType::F32};
        if (mark.first == INT64_MIN || mark.last == INT64_MIN) continue;
        mark.dtype = static_cast<DType>(random_.in(0, expr::kDTypeCount - 1));
        out.push_back(make(mark));
      } else {
        Put put{pool_.name("Y"), {},    static_cast<expr::Reducer>(random_.in(0, 7)), value(2), {},
                number(),        kind()};
        for (int64_t i = random_.in(0, 2); i > 0; --i) put.indices.push_back(index(1));
        if (random_.chance(50)) put.position = index(2);
        out.push_back(make(std::move(put)));
      }
    }
  }

  ExprPool& pool_;
  Random& random_;
  std::vector<Expr> vars_;
  int axes_ = 0;
};

std::optional<Program> read(const std::string& text, ExprPool& pool, std::string* messages) {
  diag::SourceMap sources;
  diag::Sink sink(sources);
  auto p = parse(sources.add("p", text), {&probe()}, pool, sink);
  *messages = diag::render_all(sink);
  return p;
}

TEST(Op, TextReadsBackAsTheSameProgram) {
  Random random(31);
  size_t longest = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    ExprPool pool;
    const Program p = Generator(pool, random).program();
    const std::string text = print(p);
    std::string messages;
    const auto again = read(text, pool, &messages);
    ASSERT_TRUE(again) << text << messages;
    ASSERT_TRUE(*again == p) << text << print(*again);
    ASSERT_EQ(print(*again), text);
    for (size_t i = 0; i < p.body.size(); ++i) {
      ASSERT_EQ(hash(again->body[i]), hash(p.body[i]));
      const Op& same = p.body[i];
      ASSERT_EQ(map_exprs(same, [](Expr e) { return e; }).data(), same.data());
    }
    longest = std::max(longest, text.size());
  }
  EXPECT_GT(longest, 2000u);
}

constexpr const char* kNested =
    "probe.program @p\n"
    "  dim N\n"
    "  buffer X : f32[N, 2 * N] as slow\n"
    "  loop [i < N] fast\n"
    "    put Y[i, 0] max X[i, i]\n"
    "    loop [] plain\n"
    "      put Y[] sum 1.0 at i + 1 scale 0.5 slow\n"
    "    put Y[1] sum 2.0\n"
    "  mark type f16\n";

TEST(Op, MappingChangesOnlyWhatContainsTheExpression) {
  ExprPool pool;
  std::string messages;
  const auto p = read(kNested, pool, &messages);
  ASSERT_TRUE(p) << messages;
  ASSERT_EQ(print(*p), kNested);
  int count = 0;
  for (const Op& op : p->body) for_each_expr(op, [&](Expr) { ++count; });
  EXPECT_EQ(count, 10);
  std::vector<std::string_view> names;
  for_each_op(p->body, [&](const Op& op) { names.push_back(op.info().name); });
  const std::vector<std::string_view> expected = {"Dim",  "Buffer", "Loop", "Put",
                                                  "Loop", "Put",    "Put",  "Mark"};
  EXPECT_EQ(names, expected);
  const Expr one = pool.floating(1);
  const Op mapped = map_exprs(p->body[2], [&](Expr e) { return e == one ? pool.floating(3) : e; });
  EXPECT_FALSE(mapped == p->body[2]);
  const Block& before = p->body[2].as<Loop>().body;
  const Block& after = mapped.as<Loop>().body;
  EXPECT_EQ(after[0].data(), before[0].data());
  EXPECT_NE(after[1].data(), before[1].data());
  EXPECT_EQ(after[2].data(), before[2].data());
  EXPECT_EQ(print(after[1].as<Loop>().body[0]), "put Y[] sum 3.0 at i + 1 scale 0.5 slow");
}

TEST(Op, AnOpKnowsItsOwnLine) {
  ExprPool pool;
  diag::SourceMap sources;
  diag::Sink sink(sources);
  const auto p = parse(sources.add("p", kNested), {&probe()}, pool, sink);
  ASSERT_TRUE(p);
  for_each_op(p->body, [&](const Op& op) {
    const auto text = sources.text(op.span());
    EXPECT_EQ(text, print(op).substr(0, print(op).find('\n')));
  });
}

TEST(Op, WrongTextIsAnsweredByAMessage) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected a program header"},
      {"other.program @p\n", "known levels: `probe`"},
      {"probe.x.program @p\n", "expected a program header"},
      {"probe.program p\n", "expected `@` before the program's name"},
      {"probe.program @p dim N\n", "expected an op on a line of its own"},
      {"probe.program @p\n  bufer X : f32[]\n", "did you mean `buffer`?"},
      {"probe.program @p\n  dim N\n    dim M\n", "indented by 4, the ops of this block by 2"},
      {"probe.program @p\n    dim N\n  dim M\n", "indented by 2, the ops of this block by 4"},
      {"probe.program @p\n  dim N 3\n", "expected the end of the line after"},
      {"probe.program @p\n  dim N hint x\n", "expected an integer (hint), found `x`"},
      {"probe.program @p\n  dim 3\n", "expected a name (name), found `3`"},
      {"probe.program @p\n  buffer X : f33[]\n", "expected a dtype, found `f33`"},
      {"probe.program @p\n  buffer X : f32[] as quick\n", "expected one of plain, fast, slow"},
      {"probe.program @p\n  loop [i] fast\n", "the axis `i` needs an extent here"},
      {"probe.program @p\n  loop [i < 3]\n", "expected one of plain, fast, slow"},
      {"probe.program @p\n  put Y[] sum Z[1]\n", "`Z` is not defined"},
      {"probe.program @p\n  loop [i < 3] fast\n  fact i < 2\n", "`i` is not defined"},
      {"probe.program @p\n  fact 1 + true == 2\n", "`+` of i64 and bool"},
      {"probe.program @p\n  numerics rel x\n", "expected a number (rel), found `x`"},
      {"probe.program @p\n  static D =\n", "the text ends, expected an integer (value)"},
      {"probe.program @p\n  fact let a = 1 in a < 2\n", "belongs to the math language only"},
  };
  for (const auto& [text, message] : cases) {
    ExprPool pool;
    std::string messages;
    EXPECT_FALSE(read(text, pool, &messages)) << text;
    EXPECT_NE(messages.find(message), std::string::npos) << text << messages;
  }
  std::string deep = "probe.program @p\n";
  for (size_t k = 1; k < 100; ++k) deep += std::string(k, ' ') + "loop [] fast\n";
  ExprPool pool;
  std::string messages;
  EXPECT_FALSE(read(deep, pool, &messages));
  EXPECT_NE(messages.find("blocks nest deeper"), std::string::npos) << messages;
}

}  // namespace
}  // namespace nautilus::ir
