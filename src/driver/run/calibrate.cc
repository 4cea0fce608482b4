// SPDX-License-Identifier: Apache-2.0
#include "driver/run/calibrate.h"

#include <fmt/format.h>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/load.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kCopy = R"(
dims M, N
hint M = 8192, N = 16384
X: bf16[M, N]
Y[i,j] = X[i,j] * 0.5  -> bf16
)";
constexpr double kCopyBytes = 2.0 * 2 * 8192 * 16384;

constexpr std::string_view kProduct = R"(
dims M, N, K
hint M = 8192, N = 8192, K = 8192
fact K >= 1
A: bf16[M, K]
B: bf16[N, K]
C[m,n] = sum[k] A[m,k] * B[n,k]  -> bf16
)";
constexpr double kProducts = 8192.0 * 8192 * 8192;

// Much work for few bytes; the argument stays small.
constexpr int kFunctions = 64;
constexpr double kElements = 1024.0 * 4096;
std::string functions_text() {
  std::string value = "X[i,j] * 0.001";
  for (int n = 0; n < kFunctions; ++n) value = fmt::format("exp2({}) - 1.0", value);
  return fmt::format("\ndims M, N\nhint M = 1024, N = 4096\nX: bf16[M, N]\nY[i,j] = {}  -> bf16\n",
                     value);
}

constexpr std::string_view kSmall = R"(
dims M, N
hint M = 1, N = 64
X: bf16[M, N]
Y[i,j] = X[i,j] * 0.5  -> bf16
)";

std::optional<double> seconds_of(std::string_view text, const DeviceOptions& device,
                                 const target::Target& target, std::string* error) {
  Unit unit;
  unit.target = &target;
  const auto program = load_text("calibrate.naut", std::string(text), {}, unit);
  const auto kernels = program ? lower_to_kernels(*program, unit) : std::nullopt;
  if (!kernels) {
    *error = "a program of the calibration does not compile";
    return std::nullopt;
  }
  BenchOptions options;
  options.device = device;
  const auto result = bench(*kernels, options, unit.pool, error);
  if (!result) return std::nullopt;
  return result->ms.median * 1e-3;
}

double cycles(double seconds, const target::Target& target) {
  return seconds * target.board.clock_ghz * 1e9;
}

}  // namespace

double memory_bytes_per_cycle(double bytes, double seconds, const target::Target& target) {
  return bytes / cycles(seconds, target);
}

double alone_factor(double products, double seconds, const target::Target& target) {
  const double least =
      products / (target.costs.products_per_cycle * static_cast<double>(target.board.sms));
  return cycles(seconds, target) / least;
}

double special_slots(double functions, double seconds, const target::Target& target) {
  // Four schedulers a multiprocessor, each with a warp of 32.
  const double warps = functions / 32 / (4 * static_cast<double>(target.board.sms));
  return cycles(seconds, target) / warps;
}

std::optional<std::vector<Calibration>> calibrate(const DeviceOptions& device,
                                                  const target::Target& target,
                                                  const TellStep& tell, std::string* error) {
  constexpr std::string_view kSmallText = "64 elements";
  constexpr std::string_view kCopyText = "8192 x 16384 elements of 16 bits read and written";
  constexpr std::string_view kProductText = "a product of 8192 x 8192 x 8192";
  constexpr std::string_view kFunctionsText = "64 exponentials and sums of 1024 x 4096 elements";
  const std::pair<std::string_view, std::string> programs[] = {
      {kSmallText, std::string(kSmall)},
      {kCopyText, std::string(kCopy)},
      {kProductText, std::string(kProduct)},
      {kFunctionsText, functions_text()}};
  std::vector<double> seconds;
  for (const auto& [what, text] : programs) {
    tell({seconds.size() + 1, std::size(programs), fmt::format("times {}", what)});
    const auto found = seconds_of(text, device, target, error);
    if (!found) return std::nullopt;
    seconds.push_back(*found);
  }
  const double small = seconds[0];
  return std::vector<Calibration>{
      {"launch_cycles", cycles(small, target), target.costs.launch_cycles, std::string(kSmallText)},
      {"memory_bytes_per_cycle", memory_bytes_per_cycle(kCopyBytes, seconds[1] - small, target),
       target.costs.memory_bytes_per_cycle, std::string(kCopyText)},
      {"alone_factor", alone_factor(kProducts, seconds[2] - small, target),
       target.costs.alone_factor, std::string(kProductText)},
      {"special_slots", special_slots(kFunctions * kElements, seconds[3] - small, target) - 1,
       target.costs.special_slots, std::string(kFunctionsText)}};
}

std::string to_text(const std::vector<Calibration>& constants, const target::Target& target) {
  std::string out = fmt::format("target {} at {} GHz, {} multiprocessors\n", target.name,
                                target.board.clock_ghz, target.board.sms);
  for (const Calibration& c : constants)
    out += fmt::format("{} = {:.4g}  # {:.4g} in the table; {}\n", c.constant, c.value, c.in_table,
                       c.how);
  return out;
}

}  // namespace nautilus::driver
