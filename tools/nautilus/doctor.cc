// SPDX-License-Identifier: Apache-2.0
// nautilus doctor: what this machine offers, and what is missing for which target.
#include <fmt/format.h>

#include "json_output.h"
#include "runtime/cuda_device.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"

namespace nautilus::tool {
namespace {

// What keeps kernels from running on a GPU of this machine, each with its cure; empty: nothing.
std::vector<std::string> obstacles(const std::optional<runtime::DriverInfo>& driver,
                                   const std::string& driver_error,
                                   const std::string& nvrtc_error) {
  std::vector<std::string> out;
  if (!driver) out.push_back(driver_error);
  const bool has_device =
      driver && std::any_of(driver->devices.begin(), driver->devices.end(),
                            [](const runtime::DeviceInfo& d) { return d.major == 9; });
  if (driver && driver->devices.empty()) out.emplace_back("the driver has no device");
  if (driver && !driver->devices.empty() && !has_device)
    out.emplace_back("no device has compute capability 9.0, which sm_90a is");
  if (!nvrtc_error.empty()) out.push_back(nvrtc_error);
  return out;
}

int run(bool as_json) {
  nlohmann::json j = {{"version", NAUTILUS_VERSION}, {"devices", nlohmann::json::array()}};
  std::string error;
  const auto driver = runtime::driver_info(&error);
  const std::string driver_error = driver ? "" : error;
  const auto nvrtc = runtime::nvrtc_info(&error);
  const std::string nvrtc_error = nvrtc ? "" : error;
  const runtime::KernelCache cache;
  if (!as_json) {
    fmt::print("nautilus      {}\n", NAUTILUS_VERSION);
    fmt::print("CUDA driver   {}\n",
               driver ? fmt::format("{}.{}", driver->version / 1000, driver->version % 1000 / 10)
                      : driver_error);
    if (driver && driver->devices.empty()) fmt::print("devices       none\n");
  }
  if (driver) {
    j["driver"] = driver->version;
    for (const runtime::DeviceInfo& d : driver->devices) {
      j["devices"].push_back({{"index", d.index},
                              {"name", d.name},
                              {"major", d.major},
                              {"minor", d.minor},
                              {"multiprocessors", d.multiprocessors},
                              {"memory_bytes", d.memory_bytes}});
      if (!as_json) {
        fmt::print("device {}      {}, compute capability {}.{}, {} multiprocessors, {:.0f} GiB\n",
                   d.index, d.name, d.major, d.minor, d.multiprocessors,
                   static_cast<double>(d.memory_bytes) / (1 << 30));
      }
    }
  } else {
    j["driver_error"] = driver_error;
  }
  if (nvrtc) {
    j["nvrtc"] = {{"library", nvrtc->library}, {"major", nvrtc->major}, {"minor", nvrtc->minor}};
  } else {
    j["nvrtc_error"] = nvrtc_error;
  }
  j["kernel_cache"] = cache.folder();
  const auto missing = obstacles(driver, driver_error, nvrtc_error);
  j["ok"] = missing.empty();
  j["missing"] = missing;
  if (as_json) {
    write_json(j);
  } else {
    fmt::print("NVRTC         {}\n",
               nvrtc ? fmt::format("{}.{} ({})", nvrtc->major, nvrtc->minor, nvrtc->library)
                     : nvrtc_error);
    fmt::print("kernel cache  {}\n", cache.folder());
    fmt::print("verdict       {}\n",
               missing.empty() ? "kernels run on a GPU of this machine"
                               : "no kernel runs on a GPU of this machine; check, eval, print, "
                                 "explain and run --emulate need none");
  }
  return missing.empty() ? kOk : kProgramError;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand(
      "doctor", "Show what this machine offers: driver, devices, compiler, cache");
  c->add_flag("--json", *json, kJsonHelp);
  c->footer("Exit status: 0 if kernels can run on a GPU here, else 1.\nExample: nautilus doctor");
  c->callback([json, &exit_code] { exit_code = run(*json); });
}

}  // namespace nautilus::tool
