// SPDX-License-Identifier: Apache-2.0
// Asks a Hopper GPU how its matrix unit reads and adds operands of 8, 16 and 32 bits, and what a copy of a tensor map of
// tf32 numbers does to f32 ones. Prints the answers as text, which is kept as test data (hopper_operands.txt).
//
//   nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a operand_capture.cu -o operand_capture
//   ./operand_capture > hopper_operands.txt
//
// What is asked of the matrix unit and how its answers are written is in operand_questions.h. Besides:
//
//   map TYPE IN:OUT ...
//       What is in shared memory for an element of global memory.
//
// Nothing here waits without a limit.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "operand_questions.h"

#define CHECK_CUDA(call)                                                                    \
  do {                                                                                      \
    const cudaError_t status = (call);                                                      \
    if (status != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                  \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

namespace {

constexpr int kThreads = 128;
constexpr int kSmemBytes = 2 * nautilus::capture::kTile;
using Operands = nautilus::capture::Product;

// ---- the device

__device__ uint32_t smem_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

#define SUMS                                                                                                          \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"  \
  "%30,%31}"

// d += a b, from the fence to the wait.
#define PRODUCT(kind, shape, types, major)                                                                             \
  struct kind {                                                                                                        \
    static __device__ void add(float (&d)[32], uint64_t a, uint64_t b) {                                               \
      asm volatile("wgmma.fence.sync.aligned;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned." shape ".f32." types " " SUMS ", %32, %33, 1, 1, 1" major ";\n"      \
                   "wgmma.commit_group.sync.aligned;\n"                                                                \
                   "wgmma.wait_group.sync.aligned 0;\n"                                                                \
                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),   \
                     "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),          \
                     "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),        \
                     "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),        \
                     "+f"(d[29]), "+f"(d[30]), "+f"(d[31])                                                             \
                   : "l"(a), "l"(b)                                                                                    \
                   : "memory");                                                                                        \
    }                                                                                                                  \
  };

PRODUCT(Bf16, "m64n64k16", "bf16.bf16", ", 0, 0")
PRODUCT(F16, "m64n64k16", "f16.f16", ", 0, 0")
PRODUCT(Tf32, "m64n64k8", "tf32.tf32", "")
PRODUCT(E4m3, "m64n64k32", "e4m3.e4m3", "")
PRODUCT(E5m2, "m64n64k32", "e5m2.e5m2", "")
PRODUCT(E4m3E5m2, "m64n64k32", "e4m3.e5m2", "")
PRODUCT(E5m2E4m3, "m64n64k32", "e5m2.e4m3", "")

// The row and the column of accumulator register i.
__device__ int sum_place(int thread, int i) {
  const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
  return row * 64 + i / 4 * 8 + thread % 4 * 2 + i % 2;
}

template <class Kind>
__global__ void multiply(Operands* p) {
  extern __shared__ __align__(1024) unsigned char smem[];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSmemBytes; i += kThreads) smem[i] = p->smem[i];
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = p->sums[sum_place(thread, i)];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const uint32_t base = smem_address(smem);
  Kind::add(d, p->a | ((base + static_cast<uint32_t>(p->a_start)) & 0x3FFFF) >> 4,
            p->b | ((base + static_cast<uint32_t>(p->b_start)) & 0x3FFFF) >> 4);
  for (int i = 0; i < 32; ++i) p->sums[sum_place(thread, i)] = d[i];
}

constexpr int kMapWidth = 32;
constexpr int kMapRows = 2;
constexpr int kMapBytes = kMapWidth * kMapRows * 4;

// Copies the box of a map; out[kMapWidth * kMapRows] says whether it arrived.
__global__ void copy_box(const __grid_constant__ CUtensorMap map, uint32_t* out) {
  __shared__ __align__(128) uint32_t box[kMapWidth * kMapRows];
  __shared__ __align__(8) uint64_t barrier;
  const uint32_t bar = smem_address(&barrier);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  if (thread == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(kMapBytes) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            smem_address(box)),
        "l"(&map), "r"(0), "r"(0), "r"(bar)
        : "memory");
  }
  uint32_t is_done = 0;
  for (int i = 0; i < 100000 && is_done == 0; ++i) {
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.test_wait.parity.shared::cta.b64 done, [%1], 0;\nselp.u32 %0, 1, 0, done;\n}\n"
        : "=r"(is_done)
        : "r"(bar)
        : "memory");
    if (is_done == 0) __nanosleep(100);
  }
  for (int i = thread; is_done != 0 && i < kMapWidth * kMapRows; i += static_cast<int>(blockDim.x)) out[i] = box[i];
  if (thread == 0) out[kMapWidth * kMapRows] = is_done;
}

// ---- products

void (*const kMultiply[])(Operands*) = {multiply<Bf16>,     multiply<F16>,      multiply<Tf32>, multiply<E4m3>, multiply<E5m2>,
                                        multiply<E4m3E5m2>, multiply<E5m2E4m3>};
static_assert(sizeof kMultiply / sizeof kMultiply[0] == nautilus::capture::kKindCount, "one for each kind");

void run(int kind, Operands& p) {
  static Operands* device = nullptr;
  if (device == nullptr) CHECK_CUDA(cudaMalloc(&device, sizeof(Operands)));
  CHECK_CUDA(cudaMemcpy(device, &p, sizeof p, cudaMemcpyHostToDevice));
  kMultiply[kind]<<<1, kThreads, kSmemBytes>>>(device);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpy(&p, device, sizeof p, cudaMemcpyDeviceToHost));
}

// ---- copies of f32 numbers

std::vector<uint32_t> map_numbers() {
  std::vector<uint32_t> out;
  // Around halves of the last digit that tf32 has, behind an even and behind an odd one.
  for (const uint32_t base : {0x3f800000u, 0x3f802000u, 0xbf800000u, 0xbf802000u, 0x3fffe000u}) {
    for (const uint32_t low : {0x1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu}) out.push_back(base | low);
  }
  out.insert(out.end(), {0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x00000fffu, 0x00001000u, 0x00001001u,
                         0x00003000u, 0x007fffffu, 0x00800001u, 0x00801000u, 0x00803000u, 0x7f7fffffu, 0xff7fffffu,
                         0x7f7fefffu, 0x7f7ff000u, 0x7f800000u, 0xff800000u, 0x7f800001u, 0x7f801000u, 0x7f802000u,
                         0x7fc00000u, 0xffc00001u, 0x7fffffffu, 0xffffffffu, 0x40490fdbu, 0xc0490fdbu, 0x3eaaaaabu});
  out.resize(kMapWidth * kMapRows, 0x3f800000u);
  return out;
}

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// From the driver itself, so that nothing is linked for it.
EncodeTiled find_encoder() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* symbol = driver == nullptr ? nullptr : dlsym(driver, "cuTensorMapEncodeTiled");
  if (symbol == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 has no cuTensorMapEncodeTiled\n");
    std::exit(1);
  }
  return reinterpret_cast<EncodeTiled>(symbol);
}

void capture_maps() {
  const EncodeTiled encode = find_encoder();
  const std::vector<uint32_t> in = map_numbers();
  const size_t bytes = in.size() * 4;
  uint32_t* tensor = nullptr;
  uint32_t* out = nullptr;
  CHECK_CUDA(cudaMalloc(&tensor, bytes));
  CHECK_CUDA(cudaMalloc(&out, bytes + 4));
  CHECK_CUDA(cudaMemcpy(tensor, in.data(), bytes, cudaMemcpyHostToDevice));
  struct MapType {
    const char* name;
    CUtensorMapDataType type;
  };
  for (const MapType& type : {MapType{"FLOAT32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32},
                              MapType{"FLOAT32_FTZ", CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ},
                              MapType{"TFLOAT32", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32},
                              MapType{"TFLOAT32_FTZ", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ}}) {
    CUtensorMap map;
    const cuuint64_t dims[2] = {kMapWidth, kMapRows};
    const cuuint64_t strides[1] = {kMapWidth * 4};
    const cuuint32_t box[2] = {kMapWidth, kMapRows};
    const cuuint32_t steps[2] = {1, 1};
    const CUresult status =
        encode(&map, type.type, 2, tensor, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) {
      std::fprintf(stderr, "cuTensorMapEncodeTiled of %s: %d\n", type.name, static_cast<int>(status));
      std::exit(1);
    }
    CHECK_CUDA(cudaMemset(out, 0, bytes + 4));
    copy_box<<<1, 32>>>(map, out);
    CHECK_CUDA(cudaGetLastError());
    std::vector<uint32_t> got(in.size() + 1);
    CHECK_CUDA(cudaMemcpy(got.data(), out, bytes + 4, cudaMemcpyDeviceToHost));
    if (got.back() == 0) {
      std::fprintf(stderr, "the copy of %s did not arrive\n", type.name);
      std::exit(1);
    }
    std::printf("map %s", type.name);
    for (size_t i = 0; i < in.size(); ++i) std::printf(" %x:%x", in[i], got[i]);
    std::printf("\n");
  }
  CHECK_CUDA(cudaFree(tensor));
  CHECK_CUDA(cudaFree(out));
}

}  // namespace

int main() {
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("# Captured on %s, compute capability %d.%d, by test/capture/operand_capture.cu\n", properties.name,
              properties.major, properties.minor);
  for (const std::string& line : nautilus::capture::answers(run)) std::printf("%s\n", line.c_str());
  capture_maps();
  CHECK_CUDA(cudaDeviceSynchronize());
  return 0;
}
