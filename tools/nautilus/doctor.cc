// SPDX-License-Identifier: Apache-2.0
// nautilus doctor: what this machine offers, and what is missing for which target.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "runtime/cuda_device.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"

namespace nautilus::tool {
namespace {

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
  if (as_json) {
    fmt::print("{}\n", j.dump(2));
  } else {
    fmt::print("NVRTC         {}\n",
               nvrtc ? fmt::format("{}.{} ({})", nvrtc->major, nvrtc->minor, nvrtc->library)
                     : nvrtc_error);
    fmt::print("kernel cache  {}\n", cache.folder());
  }
  return kOk;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand(
      "doctor", "Show what this machine offers: driver, devices, compiler, cache");
  c->add_flag("--json", *json, "as JSON");
  c->footer("Example: nautilus doctor");
  c->callback([json, &exit_code] { exit_code = run(*json); });
}

}  // namespace nautilus::tool
