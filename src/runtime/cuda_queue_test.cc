// SPDX-License-Identifier: Apache-2.0
// Work on streams, where there is a device: copies by tensor maps, graphs, events, threads without
// a context, and the cost of a launch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/cuda_device.h"
#include "runtime/cuda_driver.h"
#include "runtime/nvrtc.h"

namespace nautilus::runtime {
namespace {

// Copies tiles of 16 rows x 64 elements of 16 bits in, adds one to each element, and writes it
// twice: the whole tile by the copy engine, and every element alone, from where the formula of
// layout/swizzle.h says it is.
constexpr const char* kTileCopy = R"(
struct alignas(64) TensorMap { unsigned char opaque[128]; };
struct Params { TensorMap in, out; unsigned short* plain; int cols, rows; };

extern "C" __global__ void tile_copy(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  const unsigned tile = (unsigned)__cvta_generic_to_shared(bytes);
  const unsigned bar = tile + 2048;
  const int c = 64 * blockIdx.x, r = 16 * blockIdx.y, z = blockIdx.z;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(tile), "l"(&p.in), "r"(bar), "r"(c), "r"(r), "r"(z) : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred done;\nAGAIN:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
               "@done bra READY;\nbra AGAIN;\nREADY:\n}" :: "r"(bar) : "memory");
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
    const int row = i / 64, col = i % 64, linear = row * 128 + col * 2;
    unsigned short* e = (unsigned short*)(bytes + (linear ^ (linear >> 3 & 0x70)));
    *e += 1;
    if (r + row < p.rows && c + col < p.cols)
      p.plain[((long long)z * p.rows + r + row) * p.cols + c + col] = *e;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];"
                 :: "l"(&p.out), "r"(tile), "r"(c), "r"(r), "r"(z) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
)";

constexpr const char* kSmall = R"(
struct alignas(64) TensorMap { unsigned char opaque[128]; };
struct Params { TensorMap maps[4]; int numbers[16]; };
extern "C" __global__ void nothing(const __grid_constant__ Params p) {}
extern "C" __global__ void add_one(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
// Lets the next kernel begin and waits for the one before; the first CTA takes its time, so that
// who does not wait for it reads old elements.
extern "C" __global__ void turn_and_add_one(const int* x, int* y, int n) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long long start = clock64();
  while (blockIdx.x == 0 && clock64() - start < 200000) {}
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = *(const volatile int*)(x + n - 1 - i) + 1;
}
)";

TEST(CudaQueue, TheTileCopyCompilesForHopper) {
  std::string error;
  if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  EXPECT_TRUE(compile_cuda(kTileCopy, "tile_copy.cu", "sm_90a", {}, &error)) << error;
  EXPECT_TRUE(compile_cuda(kSmall, "small.cu", "sm_90a", {}, &error)) << error;
}

class CudaQueueOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    device_ = Device::open(0, "sm_90a", &error);
    if (!device_) GTEST_SKIP() << error;
    if (!nvrtc_info(&error)) GTEST_SKIP() << error;
  }

  void* kernel(const char* source, const char* name, int shared_bytes) {
    std::string error;
    const auto compiled = compile_cuda(source, "test.cu", "sm_90a", {}, &error);
    EXPECT_TRUE(compiled) << error;
    if (!compiled) return nullptr;
    const auto loaded = device_->load_kernel(compiled->cubin, name, shared_bytes, &error);
    EXPECT_TRUE(loaded) << error;
    return loaded.value_or(nullptr);
  }

  DevicePointer memory(size_t bytes, unsigned char filled_with) {
    std::string error;
    const auto pointer = device_->allocate(bytes, &error);
    EXPECT_TRUE(pointer) << error;
    if (!pointer) return 0;
    EXPECT_TRUE(device_->fill(*pointer, filled_with, bytes, &error)) << error;
    return *pointer;
  }

  std::unique_ptr<Device> device_;
};

// A tensor of 16-bit elements, [planes][rows][cols], with padding after rows and planes.
struct Padded {
  int64_t cols, rows, planes, row_stride, plane_stride;

  size_t index(int64_t plane, int64_t row, int64_t col) const {
    return static_cast<size_t>(plane * plane_stride + row * row_stride + col);
  }
  size_t elements() const { return static_cast<size_t>(planes * plane_stride); }
  TensorMapView view(DevicePointer at) const {
    TensorMapView v;
    v.address = at;
    v.rank = 3;
    v.element = MapElement::U16;
    const int64_t dims[] = {cols, rows, planes};
    const int64_t strides[] = {2, 2 * row_stride, 2 * plane_stride};
    const int32_t box[] = {64, 16, 1};
    for (int i = 0; i < 3; ++i) {
      v.dims[i] = dims[i];
      v.strides[i] = strides[i];
      v.box[i] = box[i];
    }
    return v;
  }
};

struct TileCopyParams {
  EncodedMap in, out;
  DevicePointer plain;
  int cols, rows;
};

TEST_F(CudaQueueOnDevice, CopiesTilesOfOddSizesThroughTensorMaps) {
  void* copy = kernel(kTileCopy, "tile_copy", 2048 + 64);
  ASSERT_TRUE(copy);
  std::string error;
  const auto stream = device_->create_stream(&error);
  ASSERT_TRUE(stream) << error;
  // The last has one plane and one row, with strides that are not multiples of 16.
  for (const auto& [in, out] :
       {std::pair<Padded, Padded>{{101, 37, 3, 112, 112 * 41}, {101, 37, 3, 104, 104 * 37 + 8}},
        {{64, 16, 1, 64, 1024}, {64, 16, 1, 64, 1024}},
        {{333, 1, 1, 333, 333}, {333, 1, 1, 333, 333}}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", in.planes, in.rows, in.cols));
    const size_t plain_elements = static_cast<size_t>(in.planes * in.rows * in.cols);
    std::vector<uint16_t> x(in.elements());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i * 7919 % 65521);
    const DevicePointer from = memory(x.size() * 2, 0);
    const DevicePointer to = memory(out.elements() * 2, 0xFF);
    const DevicePointer plain = memory(plain_elements * 2, 0xFF);
    ASSERT_TRUE(device_->upload(from, x.data(), x.size() * 2, &error)) << error;
    TileCopyParams p{{}, {}, plain, static_cast<int>(in.cols), static_cast<int>(in.rows)};
    ASSERT_TRUE(device_->encode(in.view(from), &p.in, &error)) << error;
    ASSERT_TRUE(device_->encode(out.view(to), &p.out, &error)) << error;
    LaunchShape shape;
    shape.grid[0] = static_cast<unsigned>((in.cols + 63) / 64);
    shape.grid[1] = static_cast<unsigned>((in.rows + 15) / 16);
    shape.grid[2] = static_cast<unsigned>(in.planes);
    shape.block[0] = 128;
    shape.shared_bytes = 2048 + 64;
    void* parameters[] = {&p};
    ASSERT_TRUE(device_->launch(copy, shape, parameters, *stream, &error)) << error;
    ASSERT_TRUE(device_->synchronize(*stream, &error)) << error;

    std::vector<uint16_t> y(out.elements());
    std::vector<uint16_t> z(plain_elements);
    ASSERT_TRUE(device_->download(y.data(), to, y.size() * 2, &error)) << error;
    ASSERT_TRUE(device_->download(z.data(), plain, z.size() * 2, &error)) << error;
    std::vector<uint16_t> want(out.elements(), 0xFFFF);  // the padding stays poisoned
    size_t at = 0;
    for (int64_t k = 0; k < in.planes; ++k) {
      for (int64_t i = 0; i < in.rows; ++i) {
        for (int64_t j = 0; j < in.cols; ++j) {
          const auto value = static_cast<uint16_t>(x[in.index(k, i, j)] + 1);
          want[out.index(k, i, j)] = value;
          ASSERT_EQ(z[at++], value) << k << " " << i << " " << j;
        }
      }
    }
    // The padding stays poisoned, except that a store writes whole 16 bytes: what shares them with
    // the last element of a row may hold anything.
    const auto stride = static_cast<size_t>(out.row_stride);
    const size_t written = (static_cast<size_t>(out.cols) + 7) / 8 * 8;
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t col = i % static_cast<size_t>(out.plane_stride) % stride;
      if (col >= static_cast<size_t>(out.cols) && col < written) continue;
      ASSERT_EQ(y[i], want[i]) << "element " << i;
    }
    for (const DevicePointer pointer : {from, to, plain}) device_->free(pointer);
  }
}

TEST_F(CudaQueueOnDevice, FlawsOfMapsAreErrors) {
  std::string error;
  EncodedMap map;
  TensorMapView v = Padded{64, 16, 1, 64, 1024}.view(1 << 20);
  v.strides[1] = 130;
  EXPECT_FALSE(device_->encode(v, &map, &error));
  EXPECT_EQ(error, "the stride of dimension 1, 130 bytes, is not a multiple of 16");
}

TEST_F(CudaQueueOnDevice, GraphsReplayAndEventsTime) {
  void* add = kernel(kSmall, "add_one", 0);
  ASSERT_TRUE(add);
  std::string error;
  constexpr int kCount = 1 << 20;
  DevicePointer x = memory(kCount * 4, 0);
  const auto stream = device_->create_stream(&error);
  ASSERT_TRUE(stream) << error;
  LaunchShape shape;
  shape.grid[0] = kCount / 256;
  shape.block[0] = 256;
  int n = kCount;
  void* parameters[] = {&x, &n};
  ASSERT_TRUE(device_->synchronize(&error)) << error;
  ASSERT_TRUE(device_->begin_capture(*stream, &error)) << error;
  ASSERT_TRUE(device_->fill_async(x, 1, kCount * 4, *stream, &error)) << error;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device_->launch(add, shape, parameters, *stream, &error)) << error;
  }
  auto graph = device_->end_capture(*stream, &error);
  ASSERT_TRUE(graph) << error;
  n = 0;  // the captured launches have the old value

  std::vector<int> y(kCount);
  ASSERT_TRUE(device_->download(y.data(), x, y.size() * 4, &error)) << error;
  EXPECT_EQ(y, std::vector<int>(kCount, 0)) << "a capture runs nothing";
  const auto from = device_->create_event(&error);
  const auto to = device_->create_event(&error);
  ASSERT_TRUE(from && to) << error;
  ASSERT_TRUE(device_->record(*from, *stream, &error)) << error;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(device_->launch(*graph, *stream, &error)) << error;
  }
  ASSERT_TRUE(device_->record(*to, *stream, &error)) << error;
  const auto ms = device_->elapsed_ms(*from, *to, &error);
  ASSERT_TRUE(ms) << error;
  EXPECT_GT(*ms, 0);
  EXPECT_LT(*ms, 1000);
  ASSERT_TRUE(device_->download(y.data(), x, y.size() * 4, &error)) << error;
  EXPECT_EQ(y, std::vector<int>(kCount, 0x01010101 + 3));

  // The default stream cannot be captured, and the error says so.
  EXPECT_FALSE(device_->begin_capture(Stream(), &error));
  EXPECT_NE(error.find("not the default one"), std::string::npos) << error;
  device_->free(x);
}

// Launched one by one and from a graph: the captured launches keep the attribute that lets them
// begin early, and wait nonetheless.
TEST_F(CudaQueueOnDevice, KernelsThatBeginEarlyCanBeCaptured) {
  void* turn = kernel(kSmall, "turn_and_add_one", 0);
  ASSERT_TRUE(turn);
  std::string error;
  constexpr int kCount = 64 * 256;
  DevicePointer x = memory(kCount * 4, 0);
  DevicePointer y = memory(kCount * 4, 0);
  const auto stream = device_->create_stream(&error);
  ASSERT_TRUE(stream) << error;
  LaunchShape shape;
  shape.grid[0] = kCount / 256;
  shape.block[0] = 256;
  int n = kCount;
  void* there[] = {&x, &y, &n};
  void* back[] = {&y, &x, &n};
  const auto launch_all = [&] {
    shape.is_early = false;  // as the first kernel of a plan
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(device_->launch(turn, shape, i % 2 == 0 ? there : back, *stream, &error))
          << error;
      shape.is_early = true;
    }
  };
  std::vector<int> start(kCount);
  for (int i = 0; i < kCount; ++i) start[static_cast<size_t>(i)] = 8 * i;
  const auto expect_added = [&](int added) {
    std::vector<int> want = start;
    for (int& v : want) v += added;
    std::vector<int> got(kCount);
    ASSERT_TRUE(device_->synchronize(*stream, &error)) << error;
    ASSERT_TRUE(device_->download(got.data(), x, got.size() * 4, &error)) << error;
    EXPECT_EQ(got, want);
  };
  ASSERT_TRUE(device_->upload(x, start.data(), start.size() * 4, &error)) << error;
  ASSERT_TRUE(device_->synchronize(&error)) << error;
  launch_all();
  expect_added(4);

  ASSERT_TRUE(device_->begin_capture(*stream, &error)) << error;
  launch_all();
  const auto graph = device_->end_capture(*stream, &error);
  ASSERT_TRUE(graph) << error;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device_->launch(*graph, *stream, &error)) << error;
  }
  expect_added(16);
  device_->free(x);
  device_->free(y);
}

TEST_F(CudaQueueOnDevice, ThreadsKeepTheirContext) {
  void* add = kernel(kSmall, "add_one", 0);
  ASSERT_TRUE(add);
  std::string error;
  DevicePointer x = memory(4, 0);
  const auto owner = device_->create_stream(&error);
  ASSERT_TRUE(owner) << error;
  std::thread([&] {
    // As a framework's stream would come: a bare handle, on a thread without a context.
    const Stream stream = Stream::adopt(owner->get());
    std::string why;
    int n = 1;
    void* parameters[] = {&x, &n};
    EXPECT_TRUE(device_->launch(add, LaunchShape(), parameters, stream, &why)) << why;
    EXPECT_TRUE(device_->synchronize(stream, &why)) << why;
    void* current = &n;
    EXPECT_EQ(driver().api.context_get(&current), kSuccess);
    EXPECT_EQ(current, nullptr);
  }).join();
  int y = 0;
  ASSERT_TRUE(device_->download(&y, x, 4, &error)) << error;
  EXPECT_EQ(y, 1);
  device_->free(x);
}

TEST_F(CudaQueueOnDevice, LaunchCostIsPrinted) {
  void* nothing = kernel(kSmall, "nothing", 200 * 1024);
  ASSERT_TRUE(nothing);
  std::string error;
  const auto stream = device_->create_stream(&error);
  ASSERT_TRUE(stream) << error;
  const DevicePointer x = memory(1 << 16, 0);
  struct {
    EncodedMap maps[4];
    int numbers[16] = {};
  } p;
  const TensorMapView view = Padded{64, 16, 8, 64, 1024}.view(x);
  LaunchShape shape;
  shape.block[0] = 128;
  shape.shared_bytes = 200 * 1024;
  void* parameters[] = {&p};
  const auto median_us = [&](bool has_context) {
    std::vector<double> us;
    for (int i = 0; i < 2000; ++i) {
      const auto start = std::chrono::steady_clock::now();
      for (EncodedMap& map : p.maps) EXPECT_TRUE(device_->encode(view, &map, &error)) << error;
      EXPECT_TRUE(device_->launch(nothing, shape, parameters, *stream, &error)) << error;
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - start;
      us.push_back(took.count());
      // A full queue would make launches wait for the device.
      if (i % 256 == 255) {
        EXPECT_TRUE(device_->synchronize(*stream, &error)) << error;
      }
    }
    std::nth_element(us.begin(), us.begin() + 1000, us.end());
    fmt::print("launch with four tensor maps, {}: median {:.2f} us\n",
               has_context ? "context current" : "no context current", us[1000]);
  };
  median_us(false);
  {
    void* ours = nullptr;
    ASSERT_EQ(driver().api.context_retain(&ours, 0), kSuccess);
    const ContextScope scope(ours);
    median_us(true);
    driver().api.context_release(0);
  }
  device_->free(x);
}

}  // namespace
}  // namespace nautilus::runtime
