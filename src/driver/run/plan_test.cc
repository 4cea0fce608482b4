// SPDX-License-Identifier: Apache-2.0
// The prepared plan against a straightforward evaluation of the same program, and what it says when
// something does not fit. Here and not in plan/, because programs are loaded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "base/files.h"
#include "base/random.h"
#include "diag/render.h"
#include "driver/load/load.h"
#include "expr/tensor.h"
#include "ir/environment.h"
#include "plan/frame.h"

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

struct Loaded {
  Unit unit;
  std::optional<ir::Program> program;
  std::vector<emit::KernelText> kernels;
};

std::unique_ptr<Loaded> load(const std::string& path, const std::string& text) {
  auto out = std::make_unique<Loaded>();
  out->program = load_text(path, text, {}, out->unit);
  EXPECT_TRUE(out->program) << diag::render_all(out->unit.sink);
  if (out->program) out->kernels = emit::emit_kernels(*out->program, out->unit.pool);
  return out;
}

std::unique_ptr<Loaded> load_file(const std::string& path) {
  std::string error;
  return load(path, base::read_file(path, &error).value_or(""));
}

std::vector<std::string> golden() {
  return base::list_files(NAUTILUS_SOURCE_DIR "/golden", ".matile");
}

// The map itself replaces its encoding.
const plan::MapEncoder kKeep = [](const runtime::TensorMapView& view, runtime::EncodedMap* map,
                                  std::string* why) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(map) % 64, 0U);
  *why = runtime::map_flaw(view);
  std::memcpy(map->bytes, &view, sizeof view);
  return why->empty();
};

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

// A GEMM's declarations with what a test adds to them.
std::unique_ptr<Loaded> gemm() {
  return load_file(NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x192.matile");
}

struct Case {
  std::unique_ptr<Loaded> loaded = gemm();
  plan::Prepared plan{*loaded->program, loaded->kernels};
  plan::Frame frame{plan};

  void bind(const char* name, std::vector<int64_t> shape, uint64_t address = 4096) {
    const std::vector<int64_t> strides = expr::strides_of(shape);
    ASSERT_TRUE(frame.bind(plan.tensor(name), {address, shape, strides}));
  }
  // The error of evaluation or packing, or the number of launches.
  std::string result() {
    std::string error;
    if (!frame.evaluate(132, &error) || !frame.pack(kKeep, &error)) return error;
    return fmt::format("{} launches", frame.launches().size());
  }
};

TEST(Plan, SaysWhatDoesNotFit) {
  Case c;
  c.bind("A", {256, 64});
  c.bind("B", {384, 64});
  EXPECT_EQ(c.result(), "tensor `C` is not bound");
  c.bind("C", {256, 384});
  EXPECT_EQ(c.result(), "1 launches");
  c.bind("C", {256, 385});
  EXPECT_EQ(c.result(),
            "dimension 2 of input `C` is N = 384, the values given have shape [256, 385]");
  c.bind("C", {256, 384});
  c.bind("B", {384, 0});
  EXPECT_EQ(c.result(), "dimension 2 of input `B` is K = 64, the values given have shape [384, 0]");
  c.bind("A", {256, 0});
  EXPECT_EQ(c.result(), "the fact `K >= 1` does not hold (K = 0)");
  c.bind("A", {256, 60});
  c.bind("B", {384, 60});
  EXPECT_EQ(
      c.result(),
      "map `Am` of tensor `A`: the stride of dimension 1, 120 bytes, is not a multiple of 16");
  c.bind("A", {256, 64}, 8);
  c.bind("B", {384, 64});
  EXPECT_EQ(c.result(), "map `Am` of tensor `A`: the address, 0x8, is not a multiple of 16");
  // A launch without work is not an error, although an empty tensor has no map.
  c.bind("A", {0, 64});
  c.bind("C", {0, 384});
  EXPECT_EQ(c.result(), "0 launches");
  const std::vector<int64_t> three = {2, 3, 4};
  EXPECT_FALSE(c.frame.bind(c.plan.tensor("A"), {4096, three, three}));
  EXPECT_EQ(c.plan.tensor("D"), -1);
  EXPECT_EQ(c.plan.value("L"), -1);
}

TEST(Plan, NumbersMustFitTheKernels) {
  Case c;
  const int64_t rows = int64_t{1} << 32;
  c.bind("A", {rows, 64});
  c.bind("B", {192, 64});
  c.bind("C", {rows, 192});
  EXPECT_EQ(c.result(), "1 launches");  // 2^25 tiles
  c.bind("A", {rows * 128, 64});
  c.bind("C", {rows * 128, 192});
  EXPECT_EQ(c.result(),
            "map `Am` of tensor `A`: the extent of dimension 1, 549755813888, is not in "
            "1 to 2^32");
}

TEST(Plan, KernelsCountIn32Bits) {
  const auto loaded = load_file(NAUTILUS_SOURCE_DIR "/golden/attention_d128_causal_192x80.matile");
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  plan::Frame frame(plan);
  const auto bind = [&](const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(frame.bind(plan.tensor(name), {4096, shape, expr::strides_of(shape)}));
  };
  bind("Q", {1, 1, 3000000000, 128});
  bind("K", {1, 1, 16, 128});
  bind("V", {1, 1, 16, 128});
  bind("O", {1, 1, 3000000000, 128});
  bind("next", {1});
  std::string error;
  ASSERT_TRUE(frame.evaluate(132, &error)) << error;
  EXPECT_FALSE(frame.pack(kKeep, &error));
  EXPECT_EQ(error, "`M` is 3000000000, kernels count in 32 bits");
}

TEST(Plan, GridsAreWholeClusters) {
  const auto loaded = load_file(NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x192_cl2.matile");
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  plan::Frame frame(plan);
  const auto bind = [&](const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(frame.bind(plan.tensor(name), {4096, shape, expr::strides_of(shape)}));
  };
  bind("A", {1280, 64});
  bind("B", {192, 64});
  bind("C", {1280, 192});
  // Five pairs of tiles.
  for (const auto& [sms, grid] : {std::pair{1, 2}, {2, 2}, {7, 8}, {132, 10}}) {
    std::string error;
    ASSERT_TRUE(frame.evaluate(sms, &error)) << error;
    ASSERT_TRUE(frame.pack(kKeep, &error)) << error;
    EXPECT_EQ(frame.launches()[0].grid, grid) << sms;
  }
}

TEST(Plan, WhatIsSetComesBeforeShapes) {
  Case c;
  c.bind("A", {256, 64});
  c.bind("B", {384, 64});
  c.bind("C", {256, 384});
  c.frame.set(c.plan.value("M"), expr::int_value(128));
  EXPECT_EQ(c.result(),
            "dimension 1 of input `A` is M = 128, the values given have shape [256, 64]");
  c.frame.set(c.plan.value("M"), expr::int_value(-1));
  EXPECT_EQ(c.result(), "size `M` is -1");
}

constexpr const char* kProducts = R"(matile.program @products
  dim H hint 3
  dim G hint 5
  dim M
  param s : f32 = 2.0 * f32(H)
  param n : i32
  tensor Q : f32[H * G, 2 * M + 1] input
  tensor K : f32[H] input
)";

constexpr const char* kViews = R"(matile.program @views
  dim M hint 4
  dim N hint 8
  tensor A : bf16[M * N, 64] input
  let h = 2 * M
  tensor S : f32[h] scratch
  map Am[e < 64, n < N, m < M] = A[N * m + n + 1, e] box 64, 8, 1 promote 64
)";

// A map may start inside its tensor, and its axes may step by sizes of the program.
TEST(Plan, MapsStepBySizes) {
  const auto loaded = load("views.matile", kViews);
  ASSERT_TRUE(loaded->program);
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  ASSERT_EQ(plan.maps.size(), 1U);
  EXPECT_EQ(plan.maps[0].view.l2_promotion, 64);
  plan::Frame frame(plan);
  std::string error;
  ASSERT_TRUE(frame.evaluate(1, &error)) << error;
  EXPECT_EQ(frame.extent(plan.tensor("S"), 0), 8);
  const std::vector<plan::Prepared::Term>& terms = plan.maps[0].terms;
  ASSERT_EQ(terms.size(), 3U);
  for (const plan::Prepared::Term& t : terms) {
    expr::Value stack[8];
    const expr::Value slots[] = {frame.slot(0), frame.slot(1), frame.slot(2)};
    EXPECT_EQ(t.coefficient.run(slots, stack).i, t.axis == 2 ? 8 : 1);
    EXPECT_EQ(t.dimension, t.axis == 0 ? 1 : 0);
  }
  ASSERT_EQ(plan.maps[0].origin.size(), 1U);
}

TEST(Plan, SizesFollowFromProductsOnce) {
  const auto loaded = load("products.matile", kProducts);
  ASSERT_TRUE(loaded->program);
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  const auto bind = [&](plan::Frame& f, const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(f.bind(plan.tensor(name), {16, shape, shape}));
  };
  const auto value = [&](plan::Frame& f, const char* name) {
    return f.slot(plan.values[static_cast<size_t>(plan.value(name))].slot);
  };
  std::string error;
  plan::Frame frame(plan);
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "size `M` has no value");
  bind(frame, "Q", {12, 9});
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "scalar `n` has no value");
  frame.set(plan.value("n"), expr::int_value(7));
  // Neither H nor G follows from H * G alone: their hints are used and do not fit.
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "dimension 1 of input `Q` is H * G = 15, the values given have shape [12, 9]");
  bind(frame, "K", {4});
  ASSERT_TRUE(frame.evaluate(1, &error)) << error;
  EXPECT_EQ(value(frame, "H").i, 4);
  EXPECT_EQ(value(frame, "G").i, 3);
  EXPECT_EQ(value(frame, "M").i, 4);
  EXPECT_EQ(value(frame, "s").f, 8);
  bind(frame, "Q", {12, 8});
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "size `M` has no value");
}

}  // namespace
}  // namespace nautilus::driver
