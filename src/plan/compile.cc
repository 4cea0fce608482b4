// SPDX-License-Identifier: Apache-2.0
#include "plan/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "runtime/kernel_cache.h"

namespace nautilus::plan {
namespace {

// A cache entry is the log, so that the report can be read again, and the machine code.
std::string join_entry(const std::string& log, const std::string& cubin) {
  return fmt::format("{:08x}", log.size()) + log + cubin;
}

bool split_entry(const std::string& entry, std::string& log, std::string& cubin) {
  if (entry.size() < 8) return false;
  const size_t length = std::strtoul(entry.substr(0, 8).c_str(), nullptr, 16);
  if (entry.size() < 8 + length) return false;
  log = entry.substr(8, length);
  cubin = entry.substr(8 + length);
  return !cubin.empty();
}

std::vector<DeviceKernel> emitted(const ir::Program& program, expr::ExprPool& pool) {
  std::vector<DeviceKernel> kernels;
  for (emit::KernelText& text : emit::emit_kernels(program, pool)) {
    DeviceKernel kernel;
    kernel.source = emit::device_source(text);
    kernel.text = std::move(text);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// Only where the assembler says that something is spilled.
std::vector<runtime::MachineLoop> find_spilling_loops(const DeviceKernel& kernel) {
  const auto& uses = kernel.report.kernels;
  if (std::none_of(uses.begin(), uses.end(), [](const runtime::KernelUse& use) {
        return use.spill_load_bytes + use.spill_store_bytes > 0;
      }))
    return {};
  std::vector<runtime::MachineLoop> result;
  for (runtime::KernelLoops& k : runtime::loops_of_cubin(kernel.cubin))
    for (runtime::MachineLoop& loop : k.loops)
      if (loop.spill_loads + loop.spill_stores > 0) result.push_back(loop);
  return result;
}

}  // namespace

std::string rejection(const DeviceKernel& kernel) {
  if (kernel.report.advisories.empty()) return "";
  return "the assembler serialises its matrix work: " + kernel.report.advisories[0];
}

std::string spill_warning(const DeviceKernel& kernel) {
  const runtime::MachineLoop* loop = runtime::worst_matrix_loop(kernel.spilling_loops);
  if (!loop || loop->spill_loads + loop->spill_stores <= kMaxSpillShare * loop->instructions)
    return "";
  return fmt::format(
      "kernel {}: {} of {} instructions of a loop around matrix instructions move spilled "
      "registers; "
      "smaller tiles or fewer values kept over the loop need fewer registers",
      kernel.text.name, loop->spill_loads + loop->spill_stores, loop->instructions);
}

bool compile_source(DeviceKernel& kernel, const std::string& architecture, bool use_cache,
                    std::string* error) {
  const auto nvrtc = runtime::nvrtc_info(error);
  if (!nvrtc && !use_cache) return false;
  const runtime::KernelCache cache;
  // Entries belong to one version of NVRTC; without NVRTC, those of the last version are used.
  const std::string any = runtime::KernelCache::key({architecture, "any nvrtc", kernel.source});
  const std::string key =
      nvrtc ? runtime::KernelCache::key({architecture,
                                         fmt::format("nvrtc {}.{}", nvrtc->major, nvrtc->minor),
                                         kernel.source})
            : cache.get(any).value_or("");
  std::string log;
  if (use_cache && !key.empty()) {
    const auto entry = cache.get(key);
    if (entry && split_entry(*entry, log, kernel.cubin)) {
      kernel.report = runtime::parse_ptxas_report(log);
      kernel.is_cached = true;
    }
  }
  if (!kernel.is_cached) {
    if (!nvrtc) {
      *error = fmt::format("kernel {} is not in the cache, and {}", kernel.text.name, *error);
      return false;
    }
    auto compiled =
        runtime::compile_cuda(kernel.source, kernel.text.name + ".cu", architecture, {}, error);
    if (!compiled) return false;
    kernel.cubin = std::move(compiled->cubin);
    kernel.report = std::move(compiled->report);
    std::string ignored;  // a full disk costs the cache, not the result
    if (use_cache && cache.put(key, join_entry(compiled->log, kernel.cubin), &ignored))
      cache.put(any, key, &ignored);
  } else if (nvrtc && use_cache && cache.get(any) != key) {
    std::string ignored;
    cache.put(any, key, &ignored);
  }
  error->clear();
  kernel.spilling_loops = find_spilling_loops(kernel);
  const std::string reason = rejection(kernel);
  if (reason.empty()) return true;
  *error = fmt::format("kernel {} is rejected: {}", kernel.text.name, reason);
  return false;
}

namespace {

// In parallel, each source once. False, and why, if one fails.
bool compile_all(std::vector<DeviceKernel>& kernels, const std::string& architecture,
                 bool use_cache, std::string* error) {
  std::vector<size_t> made_by(kernels.size());
  std::vector<size_t> firsts;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto same = std::find_if(firsts.begin(), firsts.end(), [&](size_t f) {
      return kernels[f].source == kernels[k].source;
    });
    made_by[k] = same == firsts.end() ? k : *same;
    if (same == firsts.end()) firsts.push_back(k);
  }
  std::vector<std::string> errors(firsts.size());
  base::parallel_for(static_cast<int64_t>(firsts.size()), base::default_threads(), [&](int64_t i) {
    std::string& why = errors[static_cast<size_t>(i)];
    DeviceKernel& kernel = kernels[firsts[static_cast<size_t>(i)]];
    if (!compile_source(kernel, architecture, use_cache, &why) && why.empty())
      why = "compilation failed";
  });
  for (const std::string& e : errors) {
    if (e.empty()) continue;
    *error = e;
    return false;
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (made_by[k] == k) continue;
    emit::KernelText text = std::move(kernels[k].text);
    kernels[k] = kernels[made_by[k]];
    kernels[k].text = std::move(text);
  }
  return true;
}

}  // namespace

std::optional<std::vector<DeviceKernel>> compile_device(const ir::Program& program,
                                                        expr::ExprPool& pool,
                                                        const std::string& architecture,
                                                        bool use_cache, std::string* error) {
  std::vector<DeviceKernel> kernels = emitted(program, pool);
  if (!compile_all(kernels, architecture, use_cache, error)) return std::nullopt;
  return kernels;
}

std::optional<std::vector<DeviceKernel>> compile_edited(const ir::Program& program,
                                                        expr::ExprPool& pool,
                                                        const EditedSources& sources,
                                                        const std::string& architecture,
                                                        bool use_cache, std::string* error) {
  std::vector<DeviceKernel> kernels = emitted(program, pool);
  std::vector<std::string> names;
  for (const DeviceKernel& k : kernels) names.push_back(k.text.name);
  const auto edited = assign_sources(names, sources, error);
  if (!edited) return std::nullopt;
  for (DeviceKernel& k : kernels) {
    const auto own = edited->find(k.text.name);
    if (own != edited->end()) k.source = own->second->text;
  }
  if (!compile_all(kernels, architecture, use_cache, error)) return std::nullopt;
  return kernels;
}

}  // namespace nautilus::plan
