// SPDX-License-Identifier: Apache-2.0
// The prepared plan against a straightforward evaluation of the same program. Here and not in
// plan/, because programs are loaded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "base/files.h"
#include "base/random.h"
#include "driver/run/plan_test_util.h"
#include "expr/tensor.h"
#include "ir/environment.h"

namespace {

// Counts what the program allocates, to see that the hot path does not.
thread_local int64_t allocations = 0;

}  // namespace

// The address sanitizer has its own; nothing is counted there.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NAUTILUS_OWN_NEW 1
#endif
#endif
#ifndef NAUTILUS_OWN_NEW
// Not inlined: the compiler would see `free` of something from `new` and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace nautilus::driver {
namespace {

using matile::TensorRole;

std::vector<std::string> golden() {
  return base::list_files(NAUTILUS_SOURCE_DIR "/golden", ".matile");
}

struct HostTensor {
  uint64_t address = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};
using HostTensors = std::map<std::string, HostTensor>;

// The expected parameters, computed by names and trees.
std::vector<unsigned char> expected_params(const ir::Program& program,
                                           const emit::KernelText& kernel, ir::Environment env,
                                           const HostTensors& tensors, int multiprocessors) {
  std::map<std::string, const matile::Map*> maps;
  for (const ir::Op& op : program.body) {
    if (const auto* m = op.get<matile::Machine>())
      env.sizes[std::string(m->name.str())] = multiprocessors;
    if (const auto* m = op.get<matile::Map>()) maps[std::string(m->name.str())] = m;
    const auto* let = op.get<matile::Let>();
    if (!let) continue;
    const expr::Value value = ir::evaluate(let->value, env);
    const std::string name(let->name.str());
    if (expr::is_float(let->value.dtype()))
      env.scalars[name] = expr::float_value(expr::round_to(let->value.dtype(), value.f));
    else
      env.sizes[name] = value.i;
  }
  std::vector<unsigned char> params(static_cast<size_t>(kernel.param_bytes));
  const auto put = [&](int offset, const auto& value) {
    std::memcpy(params.data() + offset, &value, sizeof value);
  };
  for (const emit::KernelParam& p : kernel.params) {
    using Kind = emit::KernelParam::Kind;
    if (p.kind == Kind::Pointer) put(p.offset, tensors.at(p.source).address);
    if (p.kind == Kind::Stride)
      put(p.offset, tensors.at(p.source).strides[static_cast<size_t>(p.dimension)]);
    if (p.kind == Kind::Int) {
      const auto size = env.sizes.find(p.source);
      put(p.offset, static_cast<int32_t>(size != env.sizes.end() ? size->second
                                                                 : env.scalars.at(p.source).i));
    }
    if (p.kind == Kind::Float) put(p.offset, static_cast<float>(env.scalars.at(p.source).f));
    if (p.kind != Kind::Map) continue;
    const matile::Map& m = *maps.at(p.source);
    const HostTensor& t = tensors.at(std::string(m.value.name().str()));
    runtime::TensorMapView view;
    view.address = t.address;
    view.rank = static_cast<uint8_t>(m.axes.size());
    view.l2_promotion = static_cast<int16_t>(m.promote.value_or(256));
    view.swizzle = matile::swizzle_of(m.swizzle);
    for (size_t a = 0; a < m.axes.size(); ++a) {
      view.dims[a] = ir::evaluate(m.axes[a].extent, env).i;
      view.box[a] = static_cast<int32_t>(m.box[a].integer());
      // One step along the axis, by evaluation at 0 and at 1.
      const auto address = [&](int64_t at) {
        ir::Environment point = env;
        for (const ir::Axis& axis : m.axes) point.sizes[std::string(axis.name.str())] = 0;
        point.sizes[std::string(m.axes[a].name.str())] = at;
        int64_t sum = 0;
        for (size_t k = 0; k < m.value.args().size(); ++k)
          sum += ir::evaluate(m.value[k], point).i * t.strides[k];
        return sum * expr::bytes(m.value.dtype());
      };
      view.strides[a] = address(1) - address(0);
    }
    put(p.offset, view);
  }
  return params;
}

// Tensors of the shapes that an environment gives; rows are padded, so that strides are not
// products of extents.
HostTensors tensors_for(const ir::Program& program, const ir::Environment& env,
                        base::Random& random) {
  HostTensors out;
  for (const ir::Op& op : program.body) {
    const auto* t = op.get<matile::Tensor>();
    if (!t || t->role == matile::TensorRole::Scratch) continue;
    HostTensor h;
    h.address = 0x1000 * static_cast<uint64_t>(random.integer(1, 1 << 20));
    h.shape = ir::evaluate_shape(t->type.dims, env).value();
    std::vector<int64_t> padded = h.shape;
    if (!padded.empty()) padded.back() = padded.back() / 8 * 8 + 8 * random.integer(1, 3);
    h.strides = expr::strides_of(padded);
    out.emplace(t->name.str(), h);
  }
  return out;
}

void bind_all(const plan::Prepared& plan, const HostTensors& tensors, plan::Frame& frame) {
  for (const auto& [name, t] : tensors)
    ASSERT_TRUE(frame.bind(plan.tensor(name), {t.address, t.shape, t.strides}));
}

// Not by their bytes: a view has some that mean nothing.
bool same_view(const unsigned char* x, const unsigned char* y) {
  runtime::TensorMapView a;
  runtime::TensorMapView b;
  std::memcpy(&a, x, sizeof a);
  std::memcpy(&b, y, sizeof b);
  return a.address == b.address && a.rank == b.rank && a.element == b.element &&
         a.swizzle == b.swizzle && a.l2_promotion == b.l2_promotion &&
         std::equal(a.dims, std::end(a.dims), b.dims) &&
         std::equal(a.strides, std::end(a.strides), b.strides) &&
         std::equal(a.box, std::end(a.box), b.box);
}

TEST(Plan, EqualsAStraightforwardEvaluation) {
  base::Random random(3);
  const std::vector<std::string> files = golden();
  EXPECT_GT(files.size(), 5U);
  for (const std::string& file : files) {
    const auto loaded = load_file(file);
    ASSERT_TRUE(loaded->program);
    const plan::Prepared plan(*loaded->program, loaded->kernels);
    plan::Frame frame(plan);
    int accepted = 0;
    for (int n = 0; n < 2000 && accepted < 40; ++n) {
      ir::Environment env;
      for (const ir::Op& op : loaded->program->body) {
        const auto* d = op.get<ir::Dim>();
        if (!d) continue;
        // Batches and heads multiply; the others are lengths.
        const std::string name(d->name.str());
        const bool is_long = n % 2 == 0 && (name == "M" || name == "N" || name == "K");
        env.sizes[name] = random.integer(1, is_long ? 700 : 9);
        if (name == "N")
          env.sizes[name] = (env.sizes[name] + 7) / 8 * 8;  // whole 16 bytes are stored
      }
      Unit unit;
      if (!ir::complete(*loaded->program, {}, env, unit.sink)) continue;  // the facts say no
      ++accepted;
      HostTensors tensors = tensors_for(*loaded->program, env, random);
      bind_all(plan, tensors, frame);
      for (const auto& [name, type] :
           matile::tensors(*loaded->program, matile::TensorRole::Scratch)) {
        // As the runtime does: of any size, here of size one.
        const std::vector<int64_t> ones(type.dims.size(), 1);
        ASSERT_TRUE(frame.bind(plan.tensor(name), {4096, ones, ones}));
        tensors[name] = {4096, ones, ones};
      }
      std::string error;
      const int sms = static_cast<int>(random.integer(1, 132));
      const int64_t before = allocations;
      ASSERT_TRUE(frame.evaluate(sms, &error)) << file << ": " << error;
      ASSERT_TRUE(frame.pack(kKeep, &error)) << file << ": " << error;
      EXPECT_EQ(allocations, before) << "the hot path allocates";
      ASSERT_EQ(frame.launches().size(), 1U);
      const plan::Frame::Launch& l = frame.launches()[0];
      const auto want = expected_params(*loaded->program, loaded->kernels[0], env, tensors, sms);
      ASSERT_EQ(l.param_bytes, want.size());
      for (const emit::KernelParam& p : loaded->kernels[0].params) {
        using Kind = emit::KernelParam::Kind;
        const unsigned char* x = l.params + p.offset;
        const unsigned char* y = want.data() + p.offset;
        const size_t bytes = p.kind == Kind::Pointer || p.kind == Kind::Stride ? 8 : 4;
        EXPECT_TRUE(p.kind == Kind::Map ? same_view(x, y) : std::memcmp(x, y, bytes) == 0)
            << file << ": " << p.name;
      }
    }
  }
}

}  // namespace
}  // namespace nautilus::driver
