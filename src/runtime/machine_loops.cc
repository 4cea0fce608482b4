// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_loops.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

namespace nautilus::runtime {
namespace {

constexpr size_t kInstructionBytes = 16;
constexpr uint64_t kAlways = 7;  // the predicate that is true

struct Instruction {
  uint64_t low = 0;
  uint64_t high = 0;

  uint64_t opcode() const { return low & 0xfff; }
  bool is_branch() const { return opcode() == 0x947; }
  bool is_exit() const { return opcode() == 0x94d; }
  bool is_matrix() const { return (low & 0x1fc) == 0x1f0; }
  bool is_bulk_copy() const { return opcode() == 0x5b4; }
  bool is_local_load() const { return opcode() == 0x983; }
  bool is_local_store() const { return opcode() == 0x387; }
  bool is_guarded() const {
    return ((low >> 12) & 0xf) != kAlways || (is_branch() && ((high >> 23) & 0xf) != kAlways);
  }
  // In instructions, from the next one.
  int64_t branch_distance() const {
    const uint64_t upper = (low >> 34) | ((high & 0x3ffff) << 30);
    const uint64_t units = (upper << 8) | ((low >> 16) & 0xff);
    return static_cast<int64_t>(units << 8) / 256 / 4;  // the sign is bit 55
  }
};

// Blocks of instructions with one entry and one exit.
struct Block {
  size_t first = 0;
  size_t end = 0;
  std::vector<size_t> successors;
  std::vector<size_t> predecessors;
};

std::vector<Instruction> decode(std::string_view text) {
  std::vector<Instruction> result(text.size() / kInstructionBytes);
  for (size_t i = 0; i < result.size(); i++) {
    std::memcpy(&result[i].low, text.data() + i * kInstructionBytes, 8);
    std::memcpy(&result[i].high, text.data() + i * kInstructionBytes + 8, 8);
  }
  return result;
}

// Instructions that may follow `at`.
std::vector<size_t> followers(const std::vector<Instruction>& code, size_t at) {
  const Instruction& i = code[at];
  std::vector<size_t> result;
  if (i.is_branch()) {
    const int64_t target = static_cast<int64_t>(at) + 1 + i.branch_distance();
    if (target >= 0 && target < static_cast<int64_t>(code.size()))
      result.push_back(static_cast<size_t>(target));
  }
  const bool falls_through = !(i.is_branch() || i.is_exit()) || i.is_guarded();
  if (falls_through && at + 1 < code.size()) result.push_back(at + 1);
  return result;
}

std::vector<Block> blocks_of(const std::vector<Instruction>& code) {
  std::set<size_t> leaders{0};
  for (size_t i = 0; i < code.size(); i++) {
    if (!code[i].is_branch() && !code[i].is_exit()) continue;
    for (const size_t next : followers(code, i)) leaders.insert(next);
    if (i + 1 < code.size()) leaders.insert(i + 1);
  }
  std::vector<Block> blocks;
  std::map<size_t, size_t> block_at;
  for (auto it = leaders.begin(); it != leaders.end(); ++it) {
    const auto next = std::next(it);
    block_at[*it] = blocks.size();
    blocks.push_back({*it, next == leaders.end() ? code.size() : *next, {}, {}});
  }
  for (size_t b = 0; b < blocks.size(); b++) {
    for (const size_t next : followers(code, blocks[b].end - 1)) {
      blocks[b].successors.push_back(block_at.at(next));
      blocks[block_at.at(next)].predecessors.push_back(b);
    }
  }
  return blocks;
}

// dominates[b][d]: every path from the entry to b leads through d.
std::vector<std::vector<bool>> dominators(const std::vector<Block>& blocks) {
  const size_t n = blocks.size();
  std::vector<std::vector<bool>> result(n, std::vector<bool>(n, true));
  result[0].assign(n, false);
  result[0][0] = true;
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (size_t b = 1; b < n; b++) {
      std::vector<bool> now(n, !blocks[b].predecessors.empty());
      for (const size_t p : blocks[b].predecessors)
        for (size_t d = 0; d < n; d++) now[d] = now[d] && result[p][d];
      now[b] = true;
      if (now != result[b]) {
        result[b] = std::move(now);
        is_changed = true;
      }
    }
  }
  return result;
}

// Blocks that can run; after a kernel's code there is an endless loop that cannot.
std::set<size_t> reachable(const std::vector<Block>& blocks) {
  std::set<size_t> result;
  std::vector<size_t> todo{0};
  while (!todo.empty()) {
    const size_t at = todo.back();
    todo.pop_back();
    if (!result.insert(at).second) continue;
    todo.insert(todo.end(), blocks[at].successors.begin(), blocks[at].successors.end());
  }
  return result;
}

// Header block to the blocks of its loop.
std::map<size_t, std::set<size_t>> natural_loops(const std::vector<Block>& blocks) {
  const auto dominates = dominators(blocks);
  std::map<size_t, std::set<size_t>> loops;
  for (const size_t b : reachable(blocks)) {
    for (const size_t header : blocks[b].successors) {
      if (!dominates[b][header]) continue;
      std::set<size_t>& body = loops.try_emplace(header, std::set<size_t>{header}).first->second;
      std::vector<size_t> todo{b};
      while (!todo.empty()) {
        const size_t at = todo.back();
        todo.pop_back();
        if (!body.insert(at).second) continue;
        todo.insert(todo.end(), blocks[at].predecessors.begin(), blocks[at].predecessors.end());
      }
    }
  }
  return loops;
}

template <typename T>
std::optional<T> read_at(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

struct Section {
  std::string name;
  std::string_view content;
};

// Sections of a 64-bit little-endian ELF file; those outside it are left out.
std::vector<Section> sections_of(std::string_view elf) {
  if (elf.substr(0, 4) !=
      "\x7f"
      "ELF")
    return {};
  const auto table = read_at<uint64_t>(elf, 0x28);
  const auto entry_bytes = read_at<uint16_t>(elf, 0x3a);
  const auto count = read_at<uint16_t>(elf, 0x3c);
  const auto names_index = read_at<uint16_t>(elf, 0x3e);
  if (!table || !entry_bytes || !count || !names_index) return {};
  const auto content = [&](uint64_t header) -> std::string_view {
    const auto offset = read_at<uint64_t>(elf, header + 0x18);
    const auto size = read_at<uint64_t>(elf, header + 0x20);
    if (!offset || !size || *offset > elf.size() || elf.size() - *offset < *size) return {};
    return elf.substr(*offset, *size);
  };
  const std::string_view names = content(*table + uint64_t{*names_index} * *entry_bytes);
  std::vector<Section> result;
  for (uint64_t i = 0; i < *count; i++) {
    const uint64_t header = *table + i * *entry_bytes;
    const auto name_at = read_at<uint32_t>(elf, header);
    if (!name_at || *name_at >= names.size()) continue;
    const std::string_view rest = names.substr(*name_at);
    result.push_back({std::string(rest.substr(0, rest.find('\0'))), content(header)});
  }
  return result;
}

double spill_share(const MachineLoop& loop) {
  return static_cast<double>(loop.spill_loads + loop.spill_stores) / loop.instructions;
}

}  // namespace

std::vector<MachineLoop> machine_loops(std::string_view instructions) {
  const std::vector<Instruction> code = decode(instructions);
  if (code.empty()) return {};
  const std::vector<Block> blocks = blocks_of(code);
  const auto loops = natural_loops(blocks);
  std::vector<MachineLoop> result;
  for (const auto& [header, body] : loops) {
    MachineLoop loop;
    loop.start = static_cast<uint32_t>(blocks[header].first * kInstructionBytes);
    for (const size_t b : body) {
      for (size_t i = blocks[b].first; i < blocks[b].end; i++) {
        loop.instructions++;
        loop.matrix += code[i].is_matrix();
        loop.bulk_copies += code[i].is_bulk_copy();
        loop.spill_loads += code[i].is_local_load();
        loop.spill_stores += code[i].is_local_store();
      }
    }
    for (const auto& [other, other_body] : loops)
      if (other != header && other_body.contains(header)) loop.depth++;
    result.push_back(loop);
  }
  size_t at = 0;
  for (const auto& [header, body] : loops) {
    size_t inner = 0;
    for (const auto& entry : loops) {
      if (entry.first != header && body.contains(entry.first) && result[inner].matrix > 0)
        result[at].has_inner_matrix_loop = true;
      inner++;
    }
    at++;
  }
  std::sort(result.begin(), result.end(),
            [](const MachineLoop& a, const MachineLoop& b) { return a.start < b.start; });
  return result;
}

constexpr std::string_view kPrefix = ".text.";

size_t code_bytes(std::string_view cubin, std::string_view kernel) {
  for (const Section& section : sections_of(cubin)) {
    if (section.name.substr(0, kPrefix.size()) == kPrefix &&
        section.name.substr(kPrefix.size()) == kernel)
      return section.content.size();
  }
  return cubin.size();
}

std::vector<KernelLoops> loops_of_cubin(std::string_view cubin) {
  std::vector<KernelLoops> result;
  for (const Section& section : sections_of(cubin)) {
    if (section.name.substr(0, kPrefix.size()) != kPrefix) continue;
    result.push_back({section.name.substr(kPrefix.size()), machine_loops(section.content)});
  }
  return result;
}

const MachineLoop* worst_matrix_loop(const std::vector<MachineLoop>& loops) {
  const MachineLoop* worst = nullptr;
  for (const MachineLoop& loop : loops) {
    if (!loop.matrix || loop.has_inner_matrix_loop || spill_share(loop) == 0) continue;
    if (!worst || spill_share(loop) > spill_share(*worst)) worst = &loop;
  }
  return worst;
}

}  // namespace nautilus::runtime
