// SPDX-License-Identifier: Apache-2.0
//
// Instructions that a warp executes as one. The lane that arrives last carries the instruction out
// for all; the arguments are on the stacks of the others, which are suspended meanwhile.
#include "emulator/collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/stmatrix.h"

namespace nautilus::emulator {
namespace {

template <class Argument>
Argument& argument_of(const Warp& warp, size_t lane) {
  return *static_cast<Argument*>(warp.arguments[lane]);
}

// What the lanes gave, before the first of them gets something else.
template <class Argument>
std::array<float, kWarp> numbers_of(const Warp& warp) {
  std::array<float, kWarp> out;
  for (size_t lane = 0; lane < kWarp; ++lane) out[lane] = argument_of<Argument>(warp, lane).x;
  return out;
}

// The functions below carry an instruction out for all lanes, and return what is wrong with it.
std::string check_uniform(const Warp& warp) {
  const int value = argument_of<const int>(warp, 0);
  for (size_t lane = 1; lane < kWarp; ++lane) {
    const int other = argument_of<const int>(warp, lane);
    if (other == value) continue;
    return fmt::format("uniform of values that differ: {} in lane 0, {} in lane {}", value, other,
                       lane);
  }
  return "";
}

void exchange_xor(const Warp& warp) {
  const auto values = numbers_of<LaneXorArgument>(warp);
  for (size_t lane = 0; lane < kWarp; ++lane) {
    auto& argument = argument_of<LaneXorArgument>(warp, lane);
    argument.x = values[(lane ^ static_cast<size_t>(argument.mask)) % kWarp];
  }
}

std::string exchange_from(const Warp& warp) {
  const auto values = numbers_of<LaneFromArgument>(warp);
  for (size_t lane = 0; lane < kWarp; ++lane) {
    auto& argument = argument_of<LaneFromArgument>(warp, lane);
    if (argument.lane < 0 || argument.lane >= static_cast<int>(kWarp)) {
      return fmt::format("lane_from lane {}: a warp has {}", argument.lane, kWarp);
    }
    argument.x = values[static_cast<size_t>(argument.lane)];
  }
  return "";
}

void vote_any(const Warp& warp) {
  bool any = false;
  for (void* argument : warp.arguments) any = any || *static_cast<const bool*>(argument);
  for (void* argument : warp.arguments) *static_cast<bool*>(argument) = any;
}

void multiply_lanes(const Warp& warp) {
  std::array<SmallProduct, kWarp> lanes;
  for (size_t lane = 0; lane < kWarp; ++lane) {
    lanes[lane] = argument_of<const SmallProduct>(warp, lane);
  }
  multiply_small(lanes);
}

std::string check_barrier(const Warp& warp) {
  const auto& call = argument_of<const BarrierArgument>(warp, 0);
  for (size_t lane = 1; lane < kWarp; ++lane) {
    const auto& other = argument_of<const BarrierArgument>(warp, lane);
    if (other.id != call.id || other.threads != call.threads) {
      return "lanes of a warp name different barriers or counts";
    }
  }
  return "";
}

}  // namespace

void Cta::collect(Thread& thread, Collective kind, void* argument, int line) {
  Warp& warp = warp_of(thread);
  if (warp.arrived == 0) {
    warp.collective = kind;
    warp.line = line;
  } else if (warp.collective != kind || warp.line != line) {
    return machine.fail(
        thread, line,
        fmt::format("warp {} diverges: lane {} is at {} in line {}, but lanes {} are at {} in line "
                    "{}",
                    warp.index, thread.lane(), collective_name(kind), line,
                    describe_lanes(warp.arrived), collective_name(warp.collective), warp.line));
  }
  warp.arrived |= 1u << thread.lane();
  warp.arguments[static_cast<size_t>(thread.lane())] = argument;
  if (warp.arrived != ~0u) {
    return block(thread, {.kind = WaitKind::Lanes, .line = line});
  }
  warp.arrived = 0;
  if (complete(warp)) {
    for (int lane = 0; lane < kWarp; ++lane) {
      if (lane != thread.lane()) wake(threads[static_cast<size_t>(warp.index * kWarp + lane)]);
    }
  } else if (!machine.is_failed()) {
    // The warp as a whole has to wait; whoever lets it go on wakes all lanes.
    Fiber::suspend();
  }
}

// Whether the warp may go on.
bool Cta::complete(Warp& warp) {
  const auto is_right = [&](std::string flaw) {
    if (flaw.empty()) return true;
    const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
    machine.fail(first, warp.line, std::move(flaw));
    return false;
  };
  switch (warp.collective) {
    case Collective::SyncWarp:
      return true;
    case Collective::Uniform:
      return is_right(check_uniform(warp));
    case Collective::LaneXor:
      exchange_xor(warp);
      return true;
    case Collective::LaneFrom:
      return is_right(exchange_from(warp));
    case Collective::VoteAny:
      vote_any(warp);
      return true;
    case Collective::Stmatrix:
      stmatrix(warp);
      return true;
    case Collective::Ldmatrix:
      ldmatrix(warp);
      return true;
    case Collective::Mma:
      multiply_lanes(warp);
      return true;
    case Collective::BarSync:
    case Collective::BarArrive: {
      const auto& call = argument_of<const BarrierArgument>(warp, 0);
      return is_right(check_barrier(warp)) &&
             arrive_named(warp, call.id, call.threads, warp.collective == Collective::BarSync);
    }
    case Collective::ClusterSync:
      return arrive_cluster(warp);
    case Collective::Registers:
      return set_registers(warp);
    case Collective::WgmmaFence:
      log_step(warp, {Collective::WgmmaFence, warp.line});
      warp.is_fenced = true;
      return true;
    case Collective::Wgmma:
      issue_product(warp);
      return true;
    case Collective::WgmmaCommit:
      commit_group(warp);
      return true;
    case Collective::WgmmaWait:
      wait_groups(warp);
      return true;
  }
  return true;
}

void Cta::stmatrix(Warp& warp) {
  // The thread that holds the register counts as the writer: it has to fence.
  for (int lane = 0; lane < kWarp; ++lane) {
    Thread& writer = threads[static_cast<size_t>(warp.index * kWarp + lane)];
    const auto& argument =
        *static_cast<const StmatrixArgument*>(warp.arguments[static_cast<size_t>(lane)]);
    if (!check_shared(writer, argument.address, 16, 16, warp.line)) return;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    Thread& writer = threads[static_cast<size_t>(warp.index * kWarp + lane)];
    const auto& argument =
        *static_cast<const StmatrixArgument*>(warp.arguments[static_cast<size_t>(lane)]);
    const layout::MatrixElement element = layout::matrix_element(lane, 0);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto row = static_cast<size_t>(8 * matrix + element.row);
      const uint32_t at = static_cast<const StmatrixArgument*>(warp.arguments[row])->address;
      write_word(writer, at + static_cast<uint32_t>(2 * element.col), argument.registers[matrix],
                 warp.line);
    }
  }
}

void Cta::ldmatrix(Warp& warp) {
  for (int lane = 0; lane < kWarp; ++lane) {
    Thread& reader = threads[static_cast<size_t>(warp.index * kWarp + lane)];
    const auto& own =
        *static_cast<const LdmatrixArgument*>(warp.arguments[static_cast<size_t>(lane)]);
    if (!check_shared(reader, own.address, 16, 16, warp.line)) return;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    Thread& reader = threads[static_cast<size_t>(warp.index * kWarp + lane)];
    const auto& own =
        *static_cast<const LdmatrixArgument*>(warp.arguments[static_cast<size_t>(lane)]);
    const layout::MatrixElement element = layout::matrix_element(lane, 0);
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto address_of = [&](int row) {
        return static_cast<const LdmatrixArgument*>(
                   warp.arguments[static_cast<size_t>(8 * matrix + row)])
            ->address;
      };
      if (own.is_transposed) {
        own.registers[matrix] = 0;
        for (int k = 0; k < 2; ++k) {
          const uint32_t word = read_word(
              reader, address_of(element.col + k) + static_cast<uint32_t>(element.row / 2 * 4),
              warp.line);
          own.registers[matrix] |= (word >> (16 * (element.row % 2)) & 0xffff) << (16 * k);
        }
        continue;
      }
      const uint32_t at = address_of(element.row);
      own.registers[matrix] =
          read_word(reader, at + static_cast<uint32_t>(2 * element.col), warp.line);
    }
  }
}

bool Cta::set_registers(Warp& warp) {
  const auto& argument = *static_cast<const RegistersArgument*>(warp.arguments[0]);
  const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
  log_step(warp, {Collective::Registers, warp.line});
  const char* name = argument.is_up ? "registers_up" : "registers_down";
  if (argument.count < 24 || argument.count > 256 || argument.count % 8 != 0) {
    machine.fail(
        first, warp.line,
        fmt::format("{}<{}>: must be a multiple of 8 from 24 to 256", name, argument.count));
    return false;
  }
  if (argument.is_up ? argument.count < warp.registers : argument.count > warp.registers) {
    machine.fail(first, warp.line,
                 fmt::format("{}<{}> by a warp with {} registers per thread", name, argument.count,
                             warp.registers));
    return false;
  }
  const int more = (argument.count - warp.registers) * kWarp;
  if (more > free_registers) {
    for (int lane = 0; lane < kWarp; ++lane) {
      Thread& thread = threads[static_cast<size_t>(warp.index * kWarp + lane)];
      thread.wait = {.kind = WaitKind::Registers, .line = warp.line, .registers = argument.count};
      warp.ready &= ~(1u << lane);
    }
    return false;
  }
  free_registers -= more;
  warp.registers = argument.count;
  if (more < 0) retry_registers();
  return true;
}

// Gives freed registers to warps that wait for them.
void Cta::retry_registers() {
  for (Warp& warp : warps) {
    const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
    if (first.wait.kind != WaitKind::Registers) continue;
    const int more = (first.wait.registers - warp.registers) * kWarp;
    if (more > free_registers) continue;
    free_registers -= more;
    warp.registers = first.wait.registers;
    for (int lane = 0; lane < kWarp; ++lane) {
      wake(threads[static_cast<size_t>(warp.index * kWarp + lane)]);
    }
  }
}

void Cta::log_step(Warp& warp, const GroupStep& step) {
  GroupLog& log = logs[static_cast<size_t>(warp.group())];
  const Thread& first = threads[static_cast<size_t>(warp.index * kWarp)];
  const auto begin = static_cast<size_t>(warp.group() * kWarpsPerGroup);
  if (begin + kWarpsPerGroup > warps.size()) {
    return machine.fail(first, step.line,
                        fmt::format("{} needs a whole warp group", collective_name(step.kind)));
  }
  const int64_t position = warp.group_steps++ - log.first;
  if (position == static_cast<int64_t>(log.steps.size())) {
    log.steps.push_back(step);
  } else {
    const GroupStep& other = log.steps[static_cast<size_t>(position)];
    if (other.kind != step.kind || other.line != step.line) {
      return machine.fail(
          first, step.line,
          fmt::format("warp group {} diverges: warp {} executes {} in line {}, another warp "
                      "executed {} in line {} instead",
                      warp.group(), warp.index, collective_name(step.kind), step.line,
                      collective_name(other.kind), other.line));
    }
    if (other.a != step.a || other.b != step.b) {
      return machine.fail(
          first, step.line,
          fmt::format("warp group {}: the warps give different matrix descriptors ({:#x} and "
                      "{:#x}, {:#x} and {:#x})",
                      warp.group(), other.a, step.a, other.b, step.b));
    }
  }
  // Entries that all four warps have passed are not needed any more.
  int64_t least = warp.group_steps;
  for (size_t i = 0; i < kWarpsPerGroup; ++i) {
    least = std::min(least, warps[begin + i].group_steps);
  }
  while (log.first < least) {
    log.steps.pop_front();
    ++log.first;
  }
}

}  // namespace nautilus::emulator
