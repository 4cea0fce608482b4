// SPDX-License-Identifier: Apache-2.0
// Times of an MA-tile program: on a device, with random inputs and a flushed cache, and what a
// launch costs the host.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/run/device_tensors.h"
#include "driver/run/launch_report.h"
#include "driver/run/run.h"
#include "ir/environment.h"

namespace nautilus::driver {

// Of a list of times.
struct Quartiles {
  double median = 0;
  double low = 0;
  double high = 0;
};
Quartiles quartiles(std::vector<double> values);

struct BenchOptions {
  DeviceOptions device;
  ir::Environment given;  // sizes and scalars
  uint64_t seed = 1;
  bool is_burst = false;  // after a pause, instead of when clocks and power have settled
  double pause_seconds = 0.4;
  bool use_graph = false;
  int repetitions = 0;      // 0: 100, or 30 in a burst
  double most_seconds = 0;  // of all of them: slow kernels run fewer times; 0: no limit
  bool host_cost = false;
  DeviceTensors* tensors = nullptr;  // shared by several calls; null: made for this call
};

struct HostCost {
  Quartiles evaluate_us;               // the plan alone, maps not encoded
  std::optional<Quartiles> launch_us;  // with the driver: bind all tensors, encode, launch
  int calls = 0;
};

struct BenchResult {
  std::vector<std::pair<std::string, int64_t>> sizes;
  std::map<std::string, expr::Value, std::less<>> scalars;
  std::vector<PlannedLaunch> launches;
  Quartiles ms;
  std::vector<double> times;  // all of them, in ms
  int repetitions = 0;
  std::optional<HostCost> host;
  std::string device;
  std::string clocks;  // "1755 MHz, 540 W" while the kernels ran, if nvidia-smi could tell
};

// Empty (and why) without a device, or if something does not fit.
std::optional<BenchResult> bench(const ir::Program& program, const BenchOptions& options,
                                 expr::ExprPool& pool, std::string* error);

// The cost of evaluating the plan, with a stub in place of the driver: needs no device.
std::optional<HostCost> plan_cost(const ir::Program& program, const ir::Environment& given,
                                  expr::ExprPool& pool, std::string* error);

}  // namespace nautilus::driver
