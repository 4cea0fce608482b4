// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous matrix products. From its issue to the wait that covers it, a product owns the
// accumulator, the A registers and the shared memory it reads. The accumulator's registers hold a
// NaN pattern meanwhile and get their values only by a wait that names them: the compiler of the
// device may move a read across a wait that does not.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "emulator/collectives.h"

namespace nautilus::emulator {
namespace {

// Sizes are those of arrays of registers.
bool overlaps(const char* a, int a_size, const char* b, int b_size) {
  return a < b + b_size * kRegisterBytes && b < a + a_size * kRegisterBytes;
}

// Why the instruction cannot be issued as it is called; empty if it can.
std::string call_flaw(const Warp& warp, const ProductCall& call) {
  if (call.first < 0 || call.first + call.n / 2 > call.accumulator_size) {
    return fmt::format("wgmma with accumulator registers {}..{} of an array of {}", call.first,
                       call.first + call.n / 2 - 1, call.accumulator_size);
  }
  if (call.a != nullptr && (call.a_first < 0 || call.a_first + 4 > call.a_size)) {
    return fmt::format("wgmma with A registers {}..{} of an array of {}", call.a_first,
                       call.a_first + 3, call.a_size);
  }
  const int bytes = element_bytes(call.a_operand);
  if (bytes != element_bytes(call.b_operand)) {
    return fmt::format("wgmma of operands with elements of {} and {} bytes", bytes,
                       element_bytes(call.b_operand));
  }
  if (is_integer(call.a_operand) != is_integer(call.b_operand)) {
    return "wgmma of an operand of floats and one of integers";
  }
  if (bytes != 2 && (call.is_a_transposed || call.is_b_transposed)) {
    return fmt::format(
        "wgmma of a transposed operand with elements of {} bytes: only 16-bit ones may lie so",
        bytes);
  }
  if (bytes != 2 && call.a != nullptr) {
    return fmt::format("wgmma with A in registers and elements of {} bytes: not modelled", bytes);
  }
  if (!warp.is_fenced) {
    return "wgmma without a wgmma_fence since the last commit: every commit group begins with one";
  }
  return "";
}

Product product_of(const Warp& warp, const ProductCall& call) {
  Product product;
  product.n = call.n;
  product.a_operand = call.a_operand;
  product.b_operand = call.b_operand;
  product.is_init = call.is_init;
  product.is_b_transposed = call.is_b_transposed;
  product.is_a_transposed = call.is_a_transposed;
  product.is_a_in_registers = call.a != nullptr;
  product.a = call.a_descriptor;
  product.b = call.b_descriptor;
  product.line = warp.line;
  return product;
}

using LaneRegisters = std::array<char*, kWarp>;

// The registers that the lanes give: those of the accumulator, and into the product those of A.
// Returns why they are no product of one warp; empty if they are.
std::string take_registers(const Warp& warp, const ProductCall& call, Product& product,
                           LaneRegisters& accumulator) {
  for (size_t lane = 0; lane < kWarp; ++lane) {
    const auto& other = *static_cast<const ProductCall*>(warp.arguments[lane]);
    if (other.a_descriptor != call.a_descriptor || other.b_descriptor != call.b_descriptor) {
      return fmt::format(
          "lanes of a warp give different matrix descriptors ({:#x} and {:#x}, {:#x} and {:#x})",
          call.a_descriptor, other.a_descriptor, call.b_descriptor, other.b_descriptor);
    }
    accumulator[lane] = static_cast<char*>(other.accumulator) + other.first * kRegisterBytes;
    if (product.is_a_in_registers) {
      product.a_registers[lane] = other.a + other.a_first;
      std::memcpy(product.a_values[lane].data(), other.a + other.a_first, 16);
    }
  }
  return "";
}

// The pieces of shared memory that the product reads. Returns what is wrong with its descriptors.
std::string take_granules(const Warp& warp, Product& product) {
  std::string flaw = product.is_a_in_registers ? "" : descriptor_flaw(product.a);
  if (flaw.empty()) flaw = descriptor_flaw(product.b);
  if (!flaw.empty()) return flaw;
  if (!product.is_a_in_registers) {
    product.granules = a_pieces(product, warp.index % kWarpsPerGroup);
  }
  const std::vector<uint32_t> b = b_pieces(product);
  product.granules.insert(product.granules.end(), b.begin(), b.end());
  return "";
}

// Why the matrix unit must not yet read a piece of shared memory; empty if it may.
std::string read_flaw(Cta& cta, const Warp& warp, uint32_t address) {
  const int64_t offset = int64_t{address} - SharedMemory::kBase;
  if (!cta.memory.contains(address, 16)) {
    return fmt::format("wgmma reads smem{:+}, outside the {} bytes of shared memory", offset,
                       cta.memory.size());
  }
  const Granule& granule = cta.memory.granule(address);
  if (std::string why = cta.unordered_read(warp, address, "wgmma reads"); !why.empty()) return why;
  if (granule.is_dirty()) {
    const int writer = *std::max_element(granule.dirty, granule.dirty + 4) - 1;
    return fmt::format(
        "wgmma reads smem+{}, written by warp {} lane {} without a fence_async since", offset,
        writer / kWarp, writer % kWarp);
  }
  const int other = cta.fenced_writes.unknown_to(warp.knows, SharedMemory::granule_index(address));
  if (other >= 0) {
    return fmt::format("wgmma reads smem+{}: that {} has written it is known through no barrier",
                       offset, describe_warp(cta, other));
  }
  return "";
}

// Finds the accumulator that a product in flight has, or makes one of the registers. Returns why
// the product cannot have it.
std::string take_accumulator(Warp& warp, const ProductCall& call, const LaneRegisters& registers,
                             Accumulator*& accumulator) {
  for (const auto& other : warp.accumulators) {
    const bool is_same = other->registers == registers && other->n == call.n &&
                         other->has_integers == is_integer(call.a_operand);
    if (is_same) {
      accumulator = other.get();
    } else if (overlaps(other->registers[0], other->register_count(), registers[0], call.n / 2)) {
      return "wgmma whose accumulator overlaps another one that is in flight";
    }
  }
  if (accumulator == nullptr) {
    warp.accumulators.push_back(std::make_unique<Accumulator>());
    accumulator = warp.accumulators.back().get();
    accumulator->registers = registers;
    accumulator->n = call.n;
    accumulator->has_integers = is_integer(call.a_operand);
    const auto count = static_cast<size_t>(kRows * call.n);
    if (accumulator->has_integers) {
      accumulator->integers.resize(count);
    } else {
      accumulator->values.resize(count);
    }
    if (!call.is_init) gather(accumulator);
    poison(*accumulator);
  } else if (!is_poisoned(*accumulator)) {
    return "accumulator registers were written while a wgmma on them is in flight";
  }
  return "";
}

}  // namespace

void Cta::issue_product(Warp& warp) {
  const auto& call = *static_cast<const ProductCall*>(warp.arguments[0]);
  log_step(warp, {Collective::Wgmma, warp.line, call.a_descriptor, call.b_descriptor});
  if (machine.is_failed()) return;
  Product product = product_of(warp, call);
  LaneRegisters registers;
  std::string flaw = call_flaw(warp, call);
  if (flaw.empty()) flaw = take_registers(warp, call, product, registers);
  if (flaw.empty()) flaw = take_granules(warp, product);
  for (size_t k = 0; flaw.empty() && k < product.granules.size(); ++k) {
    flaw = read_flaw(*this, warp, product.granules[k]);
  }
  if (flaw.empty()) flaw = take_accumulator(warp, call, registers, product.accumulator);
  if (!flaw.empty()) {
    const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
    return machine.fail(first, warp.line, std::move(flaw));
  }
  ++product.accumulator->pending;
  for (const uint32_t address : product.granules) ++memory.granule(address).products;
  warp.open.products.push_back(std::move(product));
}

void Cta::commit_group(Warp& warp) {
  log_step(warp, {Collective::WgmmaCommit, warp.line});
  warp.is_fenced = false;
  warp.open.is_executed = warp.open.products.empty();
  if (!warp.open.is_executed) ++waiting_groups;
  warp.groups.push_back(std::move(warp.open));
  warp.open = {};
}

void Cta::execute(Warp& warp, MatrixGroup& group) {
  group.is_executed = true;
  --waiting_groups;
  for (const Product& product : group.products) {
    ++machine.statistics.products;
    multiply(product, memory);
  }
  (void)warp;
}

void Cta::retire(Warp& warp, MatrixGroup& group) {
  for (const Product& product : group.products) {
    --product.accumulator->pending;
    const size_t reader = warp.clock;
    for (const uint32_t address : product.granules) {
      --memory.granule(address).products;
      async_reads.set(SharedMemory::granule_index(address), reader, warp.knows.periods[reader]);
    }
    if (!product.is_a_in_registers) continue;
    for (size_t lane = 0; lane < kWarp; ++lane) {
      if (std::memcmp(product.a_registers[lane], product.a_values[lane].data(), 16) == 0) continue;
      const auto thread = static_cast<size_t>(warp.index * kWarp) + lane;
      machine.fail(
          threads[thread], product.line,
          fmt::format("A registers of this wgmma changed before the wait of line {}", warp.line));
    }
  }
}

void Cta::wait_groups(Warp& warp) {
  const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
  const auto& call = *static_cast<const WaitArgument*>(warp.arguments[0]);
  log_step(warp, {Collective::WgmmaWait, warp.line});
  while (static_cast<int>(warp.groups.size()) > call.pending) {
    MatrixGroup& group = warp.groups.front();
    if (!group.is_executed) execute(warp, group);
    retire(warp, group);
    warp.groups.pop_front();
  }
  for (int i = 0; i < call.count; ++i) {
    const RegisterArray& array = call.arrays[i];
    auto& all = warp.accumulators;
    for (size_t j = 0; j < all.size();) {
      Accumulator& accumulator = *all[j];
      if (!overlaps(accumulator.registers[0], accumulator.register_count(),
                    static_cast<const char*>(array.at), array.size)) {
        ++j;
        continue;
      }
      if (accumulator.pending > 0) {
        return machine.fail(first, warp.line,
                            "the wait names registers of products that it does not cover: they "
                            "were committed too late, or not at all");
      }
      if (!is_poisoned(accumulator)) {
        return machine.fail(first, warp.line,
                            "accumulator registers were written before the wait for their wgmma");
      }
      scatter(accumulator);
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

}  // namespace nautilus::emulator
