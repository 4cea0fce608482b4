// SPDX-License-Identifier: Apache-2.0
// A plan run for given tensors: sizes solved, scalars evaluated, maps encoded, parameters packed,
// ready to launch. The same for a device and for the emulator, which differ only in how a map is
// encoded.
//
//   Frame frame(prepared);
//   frame.bind(prepared.tensor("A"), {address, shape, strides}); ...
//   if (!frame.evaluate(sms, &error) || !frame.pack(encode, &error)) ...
//   for (const Frame::Launch& l : frame.launches()) ...
//
// Nothing here allocates memory after the constructor, unless it fails: this is the hot path of
// every call of a kernel.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "plan/prepared.h"

namespace nautilus::plan {

// A tensor as the caller has it; strides in elements.
struct TensorView {
  uint64_t address = 0;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;
};

// The map is already in the parameters, aligned as the driver requires.
using MapEncoder =
    std::function<bool(const runtime::TensorMapView&, runtime::EncodedMap*, std::string*)>;

class Frame {
 public:
  // The plan must outlive the frame.
  explicit Frame(const Prepared& plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // By number (Prepared::tensor, Prepared::value). False if the rank differs.
  bool bind(int tensor, const TensorView& view);
  void set(int value, expr::Value to);
  // Nothing is bound and nothing is set.
  void forget();

  // Sizes from the shapes of the bound tensors, then from hints; scalars from their defaults; both
  // only where nothing was set. False (and why) if they do not fit together or a fact is violated.
  // Then the plan's own scalars. The rules are those of ir::complete.
  bool evaluate(int multiprocessors, std::string* error);
  // Writes the parameters of all launches. False (and why) if a tensor is missing, a map cannot be
  // made or a number does not fit the kernel's 32-bit integers.
  bool pack(const MapEncoder& encode, std::string* error);

  // Maps of tensors without elements show this memory instead: kEmptyBackingBytes on the device,
  // the first half zero, the second for stores.
  static constexpr size_t kEmptyBackingBytes = 256;
  void set_empty_backing(uint64_t address) { empty_backing_ = address; }
  // After a pack that failed: whether that memory was missing.
  bool needs_empty_backing() const { return needs_empty_backing_; }

  // After a pack that failed: tensors that no kernel can use with their strides or address. Aligned
  // copies of them would work (matile/passes/memory/repack.h).
  const std::set<int>& misaligned() const { return misaligned_; }
  // What was bound; the spans last until the next bind.
  TensorView view(int tensor) const;
  bool is_bound(int tensor) const { return bindings_[static_cast<size_t>(tensor)].is_bound; }
  std::optional<expr::Value> given(int value) const;

  struct Launch {
    size_t kernel = 0;  // index in the list of kernels
    int grid = 0;
    unsigned char* params = nullptr;  // 64-byte aligned
    size_t param_bytes = 0;
  };
  // Of the last pack; launches without tiles are left out.
  std::span<const Launch> launches() const { return launches_; }

  // After evaluate: dimension k of a tensor as the program declares it.
  int64_t extent(int tensor, int dimension);
  // CTAs of a launch of the plan, before they are rounded up to clusters; 0 or less: none.
  int64_t grid(size_t launch) { return run(plan_.launches[launch].grid).i; }
  expr::Value slot(int number) const { return slots_[static_cast<size_t>(number)]; }

 private:
  struct Binding {
    bool is_bound = false;
    uint64_t address = 0;
  };
  expr::Value run(const Code& code) { return code.run(slots_.data(), stack_.data()); }
  void solve_sizes();
  bool solve(const Prepared::Solve& solve);
  bool complete_values(std::string* error);
  bool check_shapes(std::string* error);
  bool check_facts(std::string* error);
  bool is_aligned(int tensor, std::string* error) const;
  bool pack(const Prepared::Param& param, unsigned char* to, const MapEncoder& encode,
            std::string* error);
  bool pack_map(const Prepared::Map& map, unsigned char* to, const MapEncoder& encode,
                std::string* error);

  const Prepared& plan_;
  std::vector<expr::Value> slots_;
  std::vector<uint8_t> is_known_;  // of slots, while sizes are solved
  std::vector<expr::Value> stack_;
  std::vector<uint8_t> is_given_;  // of values
  std::vector<expr::Value> given_;
  std::vector<Binding> bindings_;  // of tensors
  std::vector<int64_t> shapes_;
  std::vector<int64_t> strides_;
  std::vector<std::vector<runtime::EncodedMap>> params_;  // of the plan's launches; for alignment
  std::vector<Launch> launches_;
  std::set<int> misaligned_;
  uint64_t empty_backing_ = 0;
  bool needs_empty_backing_ = false;
};

}  // namespace nautilus::plan
