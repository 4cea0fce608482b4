// SPDX-License-Identifier: Apache-2.0
// Every example against an independent formula (reference.h), at its hinted sizes and at odd ones,
// and up the ladder of evaluators.
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "diag/render.h"
#include "driver/check/kernel_check.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/oracle/ladder.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "test/examples/reference.h"

namespace nautilus::examples {
namespace {

std::string example_path(const std::string& name) {
  return std::string(NAUTILUS_SOURCE_DIR) + "/examples/" + name + ".naut";
}

std::optional<ir::Program> load(const std::string& name, driver::Unit& unit) {
  std::string error;
  auto text = base::read_file(example_path(name), &error);
  if (!text) return std::nullopt;
  return driver::load_text(example_path(name), *text, {}, unit);
}

Array to_array(const expr::Tensor& t) {
  Array a{t.shape, {}};
  for (int64_t i = 0; i < t.size(); ++i) a.data.push_back(t.number(i));
  return a;
}

// What the store rounds away, once for the value itself and once for a stored value it was computed
// from.
double tolerance(expr::DType stored, double want) {
  if (!expr::is_float(stored)) return 0;
  const double smallest = stored == expr::DType::F8E4M3 ? 0x1p-9 : 0x1p-24;
  return 2 * expr::unit_roundoff(stored) * std::fabs(want) +
         1e-10 * std::max(1.0, std::fabs(want)) + (expr::bytes(stored) == 1 ? smallest : 0);
}

void compare(const Reference& reference, const driver::RunRequest& request) {
  driver::Unit unit;
  const auto program = load(reference.example, unit);
  ASSERT_TRUE(program) << diag::render_all(unit.sink);
  const auto env = driver::prepare(*program, request, unit);
  ASSERT_TRUE(env) << diag::render_all(unit.sink);
  const auto results = spec::evaluate(*program, *env, {}, unit.pool, unit.sink);
  ASSERT_TRUE(results) << diag::render_all(unit.sink);

  Arrays inputs;
  Sizes sizes(env->sizes.begin(), env->sizes.end());
  Scalars scalars;
  for (const auto& [name, tensor] : env->tensors) inputs.emplace(name, to_array(tensor));
  for (const ir::Op& op : program->body) {
    if (const auto* s = op.get<ir::Static>()) sizes.emplace(s->name.str(), *s->value);
    if (const auto* p = op.get<ir::Param>()) {
      const expr::Value v = env->scalars.find(p->name.str())->second;
      scalars.emplace(p->name.str(), expr::is_float(p->dtype) ? v.f : static_cast<double>(v.i));
    }
  }
  const Arrays wanted = reference.compute(inputs, sizes, scalars);
  ASSERT_EQ(wanted.size(), results->size()) << "the reference computes other outputs";
  for (const auto& [name, want] : wanted) {
    const expr::Tensor& got = results->at(name).value;
    ASSERT_EQ(got.shape, want.shape) << name;
    for (int64_t i = 0; i < got.size(); ++i) {
      const double w = want.data[static_cast<size_t>(i)];
      const double g = got.number(i);
      if (std::isnan(w) && std::isnan(g)) continue;
      if (w == g) continue;
      ASSERT_LE(std::fabs(g - w), tolerance(got.dtype, w))
          << name << " element " << i << ": " << g << " for " << w;
    }
  }
}

class Example : public testing::TestWithParam<Reference> {};

TEST_P(Example, MatchesIndependentFormulaAtHintedSizes) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{2}}) {
    driver::RunRequest request;
    request.seed = seed;
    compare(GetParam(), request);
  }
}

TEST_P(Example, MatchesIndependentFormulaAtOddSizes) {
  driver::Unit unit;
  const auto program = load(GetParam().example, unit);
  ASSERT_TRUE(program) << diag::render_all(unit.sink);
  // Each row gives the dims, in order of declaration, other values: ones, primes, falling and
  // rising.
  for (const std::vector<int64_t>& row :
       {std::vector<int64_t>{1, 1, 1, 1}, {2, 3, 5, 7}, {1, 7, 5, 3}, {3, 2, 11, 1}}) {
    driver::RunRequest request;
    size_t k = 0;
    for (const ir::Op& op : program->body) {
      if (const auto* d = op.get<ir::Dim>())
        request.given.sizes.emplace(d->name.str(), row[k++ % row.size()]);
    }
    compare(GetParam(), request);
  }
}

TEST_P(Example, AllEvaluatorsAgree) {
  for (const auto kind : {spec::InputKind::Exact, spec::InputKind::Normal}) {
    driver::Unit unit;
    const auto program = load(GetParam().example, unit);
    ASSERT_TRUE(program) << diag::render_all(unit.sink);
    driver::RunRequest request;
    request.inputs = kind;
    request.seed = 3;
    // Small, so that the definition stays quick; statics keep their sizes.
    int64_t size = 3;
    for (const ir::Op& op : program->body) {
      if (const auto* d = op.get<ir::Dim>())
        request.given.sizes.emplace(d->name.str(), size++ % 7 + 1);
    }
    const auto difference = driver::check_ladder(*program, request, unit);
    ASSERT_TRUE(difference) << diag::render_all(unit.sink);
    EXPECT_EQ(*difference, "");
  }
}

// Compiled and run in the emulator, at sizes with ones, primes and nothing at all.
TEST_P(Example, KernelsAgree) {
  for (const std::vector<int64_t>& row :
       {std::vector<int64_t>{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 16, 2, 9}, {2, 0, 3, 1}}) {
    driver::Unit unit;
    const auto program = load(GetParam().example, unit);
    ASSERT_TRUE(program) << diag::render_all(unit.sink);
    driver::RunRequest request;
    size_t k = 0;
    for (const ir::Op& op : program->body) {
      if (const auto* d = op.get<ir::Dim>())
        request.given.sizes.emplace(d->name.str(), row[k++ % row.size()]);
    }
    const auto env = driver::prepare(*program, request, unit);
    const bool is_legal = env && spec::evaluate(*program, *env, {}, unit.pool, unit.sink);
    if (!is_legal && row[1] == 0) continue;  // not every program means something without elements
    // Sums of nothing are all equal, and rounding decides which is the largest of what follows.
    request.must_judge = row[1] != 0;
    const auto difference = driver::check_kernels(*program, request, unit);
    ASSERT_TRUE(difference) << diag::render_all(unit.sink);
    EXPECT_EQ(*difference, "");
  }
}

// Whether the kernels of an example for this target have matrix products.
bool has_products(const std::string& name, const target::Target& target) {
  driver::Unit unit;
  unit.target = &target;
  const auto program = load(name, unit);
  const auto kernels = program ? driver::lower_to_kernels(*program, unit) : std::nullopt;
  bool found = false;
  if (kernels && matile::verify_final(*kernels, unit.sink))
    ir::for_each_op(kernels->body, [&](const ir::Op& op) { found |= op.is<matile::Dot>(); });
  EXPECT_TRUE(unit.sink.all().empty()) << diag::render_all(unit.sink);
  return found;
}

// Everything becomes scalar code if all else fails: a number that a pass does not take from the
// target may show by that alone. (Where costs decide, another target may have products as well.)
TEST_P(Example, HasProductsOnAnotherTargetToo) {
  const std::string name = GetParam().example;
  const bool has_some = has_products(name, target::default_target());
  EXPECT_TRUE(!has_some || has_products(name, target::toy()));
}

// Compiled and run for a machine with other limits and costs: a number that a pass knows by itself
// makes a kernel that the verifier or the emulator refuses.
TEST_P(Example, KernelsAgreeOnAnotherTarget) {
  for (const std::vector<int64_t>& row : {std::vector<int64_t>{}, {2, 3, 5, 7}}) {
    driver::Unit unit;
    unit.target = &target::toy();
    const auto program = load(GetParam().example, unit);
    ASSERT_TRUE(program) << diag::render_all(unit.sink);
    ASSERT_EQ(&ir::target_of(*program), &target::toy());
    driver::RunRequest request;  // without sizes: the hints
    size_t k = 0;
    for (const ir::Op& op : program->body) {
      const auto* d = op.get<ir::Dim>();
      if (d && !row.empty()) request.given.sizes.emplace(d->name.str(), row[k++ % row.size()]);
    }
    const auto difference = driver::check_kernels(*program, request, unit);
    ASSERT_TRUE(difference) << diag::render_all(unit.sink);
    EXPECT_EQ(*difference, "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(references()),
                         [](const auto& row) { return std::string(row.param.example); });

TEST(Examples, EveryFileHasAnIndependentFormula) {
  std::vector<std::string> names;
  for (const Reference& r : references()) names.push_back(example_path(r.example));
  for (const std::string& file :
       base::list_files(std::string(NAUTILUS_SOURCE_DIR) + "/examples", ".naut")) {
    EXPECT_NE(std::find(names.begin(), names.end(), file), names.end()) << file;
  }
}

}  // namespace
}  // namespace nautilus::examples
