// SPDX-License-Identifier: Apache-2.0
// Asks a Hopper GPU where its matrix unit, copy engine and stmatrix put every element, and prints the answers as text.
//
// The output is kept as test data (hopper_layouts.txt); src/layout is tested against it, so that the layouts the compiler
// reasons with are those of the hardware. Every experiment moves numbers that name their own origin. Numbers above 256 do not
// survive bf16, so an origin travels in two runs: its low and its high part.
//
//   nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a capture.cu -o capture -lcuda && ./capture > hopper_layouts.txt
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK_CUDA(call)                                                                    \
  do {                                                                                      \
    const cudaError_t status = (call);                                                      \
    if (status != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));                  \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

namespace {

constexpr int kSmemBytes = 32768;
constexpr int kThreads = 128;

__device__ uint32_t smem_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// 128-byte swizzle, panels on 1024-byte boundaries.
__device__ uint64_t descriptor(uint32_t address, uint32_t lbo, uint32_t sbo, uint64_t swizzle) {
  return static_cast<uint64_t>((address & 0x3FFFF) >> 4) | static_cast<uint64_t>(lbo >> 4) << 16 |
         static_cast<uint64_t>(sbo >> 4) << 32 | swizzle << 62;
}

__device__ void before_matrix_work() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void finish_matrix_work() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

template <int kTransB>
__device__ void wgmma_n64(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31}, %32, %33, 0, 1, 1, 0, %34;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "n"(kTransB));
}

__device__ void wgmma_n64_rs(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31}, {%32,%33,%34,%35}, %36, 0, 1, 1, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// What the host puts into shared memory, and which product is to be formed.
struct Product {
  uint16_t smem[kSmemBytes / 2];
  uint32_t a_start, a_lbo, a_sbo;
  uint32_t b_start, b_lbo, b_sbo;
  int trans_b;
  int a_in_registers;
  uint16_t a_registers[kThreads][8];  // pairs in register order, low half first
};

__global__ void multiply(const Product* p, float* out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  auto* words = reinterpret_cast<uint16_t*>(smem);
  for (int i = static_cast<int>(threadIdx.x); i < kSmemBytes / 2; i += kThreads) words[i] = p->smem[i];
  const uint32_t base = smem_address(smem);
  const uint64_t a = descriptor(base + p->a_start, p->a_lbo, p->a_sbo, 1);
  const uint64_t b = descriptor(base + p->b_start, p->b_lbo, p->b_sbo, 1);
  uint32_t registers[4];
  for (int i = 0; i < 4; ++i) {
    registers[i] = p->a_registers[threadIdx.x][2 * i] | static_cast<uint32_t>(p->a_registers[threadIdx.x][2 * i + 1]) << 16;
  }
  float d[32];
  for (float& x : d) x = -1;
  before_matrix_work();
  if (p->a_in_registers) {
    wgmma_n64_rs(d, registers, b);
  } else if (p->trans_b) {
    wgmma_n64<1>(d, a, b);
  } else {
    wgmma_n64<0>(d, a, b);
  }
  finish_matrix_work();
  for (int i = 0; i < 32; ++i) out[threadIdx.x * 32 + i] = d[i];
}

template <bool kTranspose>
__global__ void store_matrix(uint16_t* out) {
  __shared__ __align__(1024) uint16_t tile[256];  // four 8x8 matrices, rows of 16 bytes
  const uint32_t lane = threadIdx.x;
  uint32_t r[4];
  for (uint32_t i = 0; i < 4; ++i) r[i] = (lane * 8 + i * 2) | (lane * 8 + i * 2 + 1) << 16;
  const uint32_t address = smem_address(tile) + lane * 16;
  if (kTranspose) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
                 "r"(r[2]), "r"(r[3])
                 : "memory");
  }
  __syncwarp();
  for (uint32_t i = lane; i < 256; i += 32) out[i] = tile[i];
}

__global__ void load_box(const __grid_constant__ CUtensorMap map, int x, int y, int bytes, uint16_t* out) {
  extern __shared__ __align__(1024) unsigned char smem[];
  __shared__ __align__(8) uint64_t barrier;
  const uint32_t bar = smem_address(&barrier);
  auto* words = reinterpret_cast<uint16_t*>(smem);
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 2; i += kThreads) words[i] = 0xFFFF;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            smem_address(smem)),
        "l"(&map), "r"(x), "r"(y), "r"(bar)
        : "memory");
  }
  asm volatile(
      "{\n.reg .pred done;\nwait:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@done bra ready;\nbra wait;\n"
      "ready:\n}\n" ::"r"(bar)
      : "memory");
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 2; i += kThreads) out[i] = words[i];
}

uint16_t bf16_bits(int number) {
  const __nv_bfloat16 value = __float2bfloat16(static_cast<float>(number));
  uint16_t bits;
  memcpy(&bits, &value, 2);
  return bits;
}

// Byte offset of element (row, k) of a K-major panel of 64 columns with the 128-byte swizzle.
int panel_offset(int row, int column) {
  const int linear = row * 128 + column * 2;
  return linear ^ (linear >> 7 & 7) << 4;
}

std::vector<float> run(const Product& host) {
  Product* device = nullptr;
  float* out = nullptr;
  CHECK_CUDA(cudaMalloc(&device, sizeof(Product)));
  CHECK_CUDA(cudaMalloc(&out, kThreads * 32 * sizeof(float)));
  CHECK_CUDA(cudaMemcpy(device, &host, sizeof(Product), cudaMemcpyHostToDevice));
  multiply<<<1, kThreads, kSmemBytes>>>(device, out);
  std::vector<float> result(kThreads * 32);
  CHECK_CUDA(cudaMemcpy(result.data(), out, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaFree(device));
  CHECK_CUDA(cudaFree(out));
  return result;
}

// Row and column of accumulator register `i` of a thread, as the first experiment finds them.
int acc_row[kThreads][32];
int acc_column[kThreads][32];

constexpr int kB = 16384;  // B's panel starts here

void capture_accumulator(Product& p) {
  p = {};
  // D[r][c] = r * 1 + 64 * c.
  for (int r = 0; r < 64; ++r) {
    p.smem[panel_offset(r, 0) / 2] = bf16_bits(r);
    p.smem[panel_offset(r, 1) / 2] = bf16_bits(64);
    p.smem[(kB + panel_offset(r, 0)) / 2] = bf16_bits(1);
    p.smem[(kB + panel_offset(r, 1)) / 2] = bf16_bits(r);
  }
  p.a_sbo = p.b_sbo = 1024;
  p.b_start = kB;
  p.a_lbo = p.b_lbo = 16;
  const auto d = run(p);
  for (int t = 0; t < kThreads; ++t) {
    std::printf("acc64 thread %d", t);
    for (int i = 0; i < 32; ++i) {
      const int v = static_cast<int>(d[t * 32 + i]);
      acc_row[t][i] = v % 64;
      acc_column[t][i] = v / 64;
      std::printf(" %d,%d", acc_row[t][i], acc_column[t][i]);
    }
    std::printf("\n");
  }
}

// Sixteen columns of B pick the sixteen k of a step: D[r][c] = A[r][c].
void put_identity(Product& p, int start, int rows) {
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < 16; ++k) p.smem[(start + panel_offset(r, k)) / 2] = bf16_bits(r == k ? 1 : 0);
  }
}

// The matrix D[row][column] of two runs whose values are the low and high parts of an origin.
std::vector<int> origins(Product& low, Product& high) {
  const auto a = run(low);
  const auto b = run(high);
  std::vector<int> d(64 * 64);
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < 32; ++i) {
      d[acc_row[t][i] * 64 + acc_column[t][i]] =
          static_cast<int>(a[t * 32 + i]) + 256 * static_cast<int>(b[t * 32 + i]);
    }
  }
  return d;
}

void print_matrix(const char* name, int step, const std::vector<int>& d, int rows, int columns, bool transposed) {
  for (int r = 0; r < rows; ++r) {
    std::printf("%s step %d row %d", name, step, r);
    for (int c = 0; c < columns; ++c) std::printf(" %d", transposed ? d[c * 64 + r] : d[r * 64 + c]);
    std::printf("\n");
  }
}

// Element addresses (in 2-byte units from the tile's start) that the matrix unit reads for A(row, k) and B(column, k).
void capture_operands() {
  for (int step = 0; step < 4; ++step) {
    Product part[2] = {};
    for (int h = 0; h < 2; ++h) {
      Product& p = part[h];
      for (int i = 0; i < 4096; ++i) p.smem[i] = bf16_bits(h ? i / 256 : i % 256);
      put_identity(p, kB, 64);
      p.a_start = static_cast<uint32_t>(32 * step);
      p.b_start = kB;
      p.a_sbo = p.b_sbo = 1024;
      p.a_lbo = p.b_lbo = 16;
    }
    print_matrix("a_kmajor", step, origins(part[0], part[1]), 64, 16, false);
  }
  for (const int trans : {0, 1}) {
    for (int step = 0; step < 4; ++step) {
      Product part[2] = {};
      for (int h = 0; h < 2; ++h) {
        Product& p = part[h];
        put_identity(p, 0, 64);
        for (int i = 0; i < 4096; ++i) p.smem[kB / 2 + i] = bf16_bits(h ? i / 256 : i % 256);
        p.a_sbo = p.b_sbo = 1024;
        p.a_lbo = 16;
        p.b_lbo = trans ? 8192 : 16;
        p.b_start = static_cast<uint32_t>(kB + (trans ? 2048 : 32) * step);
        p.trans_b = trans;
      }
      print_matrix(trans ? "b_mnmajor" : "b_kmajor", step, origins(part[0], part[1]), 64, 16, true);
    }
  }
}

// Which half-register of which thread is A(row, k): thread * 8 + half.
void capture_a_fragment() {
  Product part[2] = {};
  for (int h = 0; h < 2; ++h) {
    Product& p = part[h];
    put_identity(p, kB, 64);
    p.b_start = kB;
    p.b_sbo = 1024;
    p.b_lbo = 16;
    p.a_in_registers = 1;
    for (int t = 0; t < kThreads; ++t) {
      for (int i = 0; i < 8; ++i) p.a_registers[t][i] = bf16_bits(h ? (t * 8 + i) / 256 : (t * 8 + i) % 256);
    }
  }
  print_matrix("afrag16", 0, origins(part[0], part[1]), 64, 16, false);
}

void capture_stmatrix() {
  uint16_t* out = nullptr;
  CHECK_CUDA(cudaMalloc(&out, 512));
  for (const bool trans : {false, true}) {
    if (trans) {
      store_matrix<true><<<1, 32>>>(out);
    } else {
      store_matrix<false><<<1, 32>>>(out);
    }
    uint16_t host[256];
    CHECK_CUDA(cudaMemcpy(host, out, 512, cudaMemcpyDeviceToHost));
    for (int row = 0; row < 32; ++row) {
      std::printf("stmatrix_x4%s row %d", trans ? "_trans" : "", row);
      for (int c = 0; c < 8; ++c) std::printf(" %d", host[row * 8 + c]);
      std::printf("\n");
    }
  }
  CHECK_CUDA(cudaFree(out));
}

// A box of a 40 x 200 tensor whose elements are row * 256 + column; out-of-range elements are filled with 0.
void capture_copy_engine() {
  constexpr int kRows = 40;
  constexpr int kColumns = 200;
  std::vector<uint16_t> host(kRows * kColumns);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) host[r * kColumns + c] = static_cast<uint16_t>(r * 256 + c);
  }
  uint16_t* tensor = nullptr;
  uint16_t* out = nullptr;
  CHECK_CUDA(cudaMalloc(&tensor, host.size() * 2));
  CHECK_CUDA(cudaMalloc(&out, kSmemBytes));
  CHECK_CUDA(cudaMemcpy(tensor, host.data(), host.size() * 2, cudaMemcpyHostToDevice));
  struct Case {
    const char* name;
    CUtensorMapSwizzle swizzle;
    cuuint32_t width;
    int x, y;
  };
  const Case cases[] = {{"tma128", CU_TENSOR_MAP_SWIZZLE_128B, 64, 8, 3},
                        {"tma64", CU_TENSOR_MAP_SWIZZLE_64B, 32, 8, 3},
                        {"tma32", CU_TENSOR_MAP_SWIZZLE_32B, 16, 8, 3},
                        {"tma0", CU_TENSOR_MAP_SWIZZLE_NONE, 64, 8, 3},
                        {"tma128_edge", CU_TENSOR_MAP_SWIZZLE_128B, 64, 168, 30}};
  for (const Case& c : cases) {
    CUtensorMap map;
    const cuuint64_t dims[2] = {kColumns, kRows};
    const cuuint64_t strides[1] = {kColumns * 2};
    const cuuint32_t box[2] = {c.width, 16};
    const cuuint32_t steps[2] = {1, 1};
    const CUresult status = cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, tensor, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS) {
      std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", static_cast<int>(status));
      std::exit(1);
    }
    const int bytes = static_cast<int>(c.width) * 16 * 2;
    load_box<<<1, kThreads, kSmemBytes>>>(map, c.x, c.y, bytes, out);
    std::vector<uint16_t> got(bytes / 2);
    CHECK_CUDA(cudaMemcpy(got.data(), out, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost));
    for (int row = 0; row < 16; ++row) {
      std::printf("%s at %d,%d row %d", c.name, c.x, c.y, row);
      for (cuuint32_t i = 0; i < c.width; ++i) std::printf(" %d", got[row * c.width + i]);
      std::printf("\n");
    }
  }
}

}  // namespace

int main() {
  cudaDeviceProp properties;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  std::printf("# Captured on %s, compute capability %d.%d, by test/capture/capture.cu\n", properties.name, properties.major,
              properties.minor);
  CHECK_CUDA(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmemBytes));
  static Product product;
  capture_accumulator(product);
  capture_operands();
  capture_a_fragment();
  capture_stmatrix();
  capture_copy_engine();
  CHECK_CUDA(cudaDeviceSynchronize());
  return 0;
}
