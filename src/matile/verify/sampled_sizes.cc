// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/sampled_sizes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/random.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "matile/ops.h"

namespace nautilus::matile {
namespace {

using ir::Op;

constexpr size_t kSamples = 16;
constexpr int kTries = 400;

// A size that a program may find interesting: small, ragged, near its hint or near one of its
// constants.
int64_t sample_size(const ir::Dim& dim, const std::vector<int64_t>& constants,
                    base::Random& random) {
  switch (random.integer(0, 5)) {
    case 0:
      return random.integer(1, 4);
    case 1:
      return dim.hint.value_or(64);
    case 2:
      return random.integer(1, 700);
    case 3:
      return 64 * random.integer(1, 12);
    default: {
      if (constants.empty()) return random.integer(1, 2000);
      const auto at =
          static_cast<size_t>(random.integer(0, static_cast<int64_t>(constants.size()) - 1));
      return std::max<int64_t>(1, constants[at] * random.integer(1, 3) + random.integer(-1, 1));
    }
  }
}

// Makes an equation between sizes hold, such as `M == 4 * N + 8`, which hardly any sample would:
// one size follows from the others.
void solve(ir::Expr fact, ir::Environment& env) {
  if (fact.op() != expr::Op::Eq || fact[0].dtype() != expr::DType::I64) return;
  for (ir::Expr v : expr::free_vars(fact)) {
    if (!env.sizes.contains(v.name().str())) return;
  }
  const auto difference = expr::difference(fact[0], fact[1]);
  const int64_t error = ir::evaluate(fact[0], env).i - ir::evaluate(fact[1], env).i;
  if (!difference || error == 0) return;
  for (ir::Expr atom : difference->atoms()) {
    const auto size = env.sizes.find(atom.op() == expr::Op::Var ? atom.name().str() : "");
    const auto parts = difference->split(atom);
    const auto factor = parts ? parts->first.constant() : std::nullopt;
    if (size == env.sizes.end() || (factor != 1 && factor != -1)) continue;
    const int64_t solved = size->second - *factor * error;
    if (solved < 1) continue;
    size->second = solved;
    return;
  }
}

// Integers that the program mentions: sizes near them are where it behaves differently.
std::vector<int64_t> constants_of(const ir::Program& program) {
  std::set<int64_t> found;
  for (const Op& op : program.body) {
    ir::for_each_expr(op, [&](ir::Expr e) {
      expr::for_each(e, [&](ir::Expr x) {
        if (x.op() == expr::Op::IntConst && x.integer() > 1 && x.integer() <= 200000)
          found.insert(x.integer());
      });
    });
  }
  return {found.begin(), found.end()};
}

// Sizes and scalars of a call that the facts allow; nothing if these do not. The first sample is
// that of the hints.
std::optional<ir::Environment> sampled_sizes(const ir::Program& program,
                                             const std::vector<int64_t>& constants, bool is_hinted,
                                             base::Random& random) {
  ir::Environment env;
  for (const Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>())
      env.sizes.insert_or_assign(
          std::string(d->name.str()),
          is_hinted ? d->hint.value_or(64) : sample_size(*d, constants, random));
    if (const auto* k = op.get<Kernel>()) {
      for (const Op& inner : k->body) {
        const auto* cta = inner.get<Cta>();
        if (!cta) continue;
        env.sizes.insert_or_assign(std::string(cta->index.str()), 0);
        env.sizes.insert_or_assign(std::string(cta->count.str()), 1);
      }
    }
    if (const auto* m = op.get<Machine>())
      env.sizes.insert_or_assign(std::string(m->name.str()), random.integer(1, 4));
    if (const auto* f = op.get<ir::Fact>()) solve(f->condition, env);
  }
  for (const Op& op : program.body) {
    const auto* p = op.get<ir::Param>();
    if (!p) continue;
    // A default may depend on sizes alone; a scalar without one rarely decides a loop.
    const expr::Value value = p->init                    ? ir::evaluate(p->init, env)
                              : expr::is_float(p->dtype) ? expr::float_value(1)
                                                         : expr::int_value(random.integer(1, 8));
    env.scalars.insert_or_assign(std::string(p->name.str()), value);
  }
  for (const Op& op : program.body) {
    if (const auto* f = op.get<ir::Fact>(); f && ir::evaluate(f->condition, env).i == 0)
      return std::nullopt;
    if (const auto* let = op.get<Let>()) {
      const expr::Value v = ir::evaluate(let->value, env);
      if (expr::is_float(let->value.dtype()))
        env.scalars.insert_or_assign(std::string(let->name.str()), v);
      else
        env.sizes.insert_or_assign(std::string(let->name.str()), v.i);
    }
  }
  return env;
}

}  // namespace

std::vector<ir::Environment> sampled_calls(const ir::Program& program) {
  base::Random random(1);
  const std::vector<int64_t> constants = constants_of(program);
  std::vector<ir::Environment> out;
  for (int i = 0; i < kTries && out.size() < kSamples; ++i) {
    if (auto env = sampled_sizes(program, constants, i == 0, random))
      out.push_back(std::move(*env));
  }
  return out;
}

}  // namespace nautilus::matile
