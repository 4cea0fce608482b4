// SPDX-License-Identifier: Apache-2.0
// nautilus_prepare and nautilus_launch: a program on a device.
#include <fmt/format.h>

#include <atomic>

#include "arguments.h"
#include "driver/run/run.h"
#include "plan/compile.h"
#include "plan/launcher.h"

using namespace nautilus;
using capi::Failure;
using capi::report;

namespace {

constexpr size_t kUsualThreads = 8;

// What stands behind nautilus_plan. The state outlives the kernels, which belong to the device.
struct Plan {
  std::shared_ptr<capi::State> state;
  std::string architecture;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<plan::Launcher> launcher;
  nautilus_allocator allocator = {};
  int cached = 0;
};

// Arguments that a thread owns, while the caller's may go.
struct OwnedArguments {
  capi::Arguments read;
  std::vector<int64_t> numbers;

  explicit OwnedArguments(const capi::Arguments& from) : read(from) {
    size_t count = 0;
    for (const plan::TensorView& t : read.tensors) count += 2 * t.shape.size();
    numbers.reserve(count);
    const auto copy = [this](std::span<const int64_t> list) {
      const size_t first = numbers.size();
      numbers.insert(numbers.end(), list.begin(), list.end());
      return std::span<const int64_t>(numbers).subspan(first);
    };
    for (plan::TensorView& t : read.tensors) {
      t.shape = copy(t.shape);
      t.strides = copy(t.strides);
    }
  }
};

Failure failure_of(plan::LaunchStatus status, std::string text) {
  switch (status) {
    case plan::LaunchStatus::Ok:
      return {};
    case plan::LaunchStatus::Argument:
      return {NAUTILUS_ERROR_ARGUMENT, std::move(text)};
    case plan::LaunchStatus::Memory:
      return {NAUTILUS_ERROR_WORKSPACE, std::move(text)};
    case plan::LaunchStatus::NotPrepared:
      return {NAUTILUS_ERROR_NOT_PREPARED, std::move(text)};
    case plan::LaunchStatus::System:
      return {NAUTILUS_ERROR_SYSTEM, std::move(text)};
  }
  return {NAUTILUS_ERROR_INTERNAL, std::move(text)};
}

// For work of with_state.
Failure build(capi::State& s, void* context, int device, size_t threads, Plan& plan) {
  if (Failure f = capi::lower(s); !f.is_ok()) return f;
  const ir::Program& program = s.lowered->kernels.program;
  std::string error;
  const auto system = [&] { return Failure{NAUTILUS_ERROR_SYSTEM, error}; };
  const auto architecture = driver::architecture_of(program, &error);
  if (!architecture) return {NAUTILUS_ERROR_UNSUPPORTED, error};
  plan.architecture = *architecture;
  plan.device = context ? runtime::Device::open_in(context, *architecture, &error)
                        : runtime::Device::open(device, *architecture, &error);
  if (!plan.device) return system();
  auto kernels = driver::compile_for(program, {s.lowered->edited}, s.unit.pool, &error);
  if (!kernels) return system();
  for (const plan::DeviceKernel& k : *kernels) plan.cached += k.is_cached;
  plan::Launcher::Names names;
  for (const auto& t : s.signature.tensors) names.tensors.push_back(t.name);
  for (const auto& v : s.signature.values) names.values.push_back(v.name);
  plan.launcher = plan::Launcher::load(program, std::move(*kernels), std::move(names), *plan.device,
                                       threads, &error);
  return plan.launcher ? Failure{} : system();
}

Failure admit(const std::shared_ptr<Plan>& plan, const nautilus_arguments* arguments) {
  capi::Arguments read;
  Failure f = capi::read_arguments(*plan->state, arguments, capi::Wanted::Memory, read);
  if (!f.is_ok()) return f;
  const auto owned = std::make_shared<OwnedArguments>(read);
  return capi::with_state(plan->state, "preparing launches", [plan, owned](capi::State& s) {
    std::string error;
    const auto status =
        plan->launcher->admit(owned->read.call(), s.unit.pool, plan->architecture, &error);
    return failure_of(status, error);
  });
}

}  // namespace

struct nautilus_plan {
  std::shared_ptr<Plan> plan;
};

nautilus_status nautilus_prepare(nautilus_program* program, const nautilus_prepare_options* options,
                                 nautilus_plan** plan) {
  if (!program || !plan) return report({NAUTILUS_ERROR_USAGE, "a pointer is null"});
  *plan = nullptr;
  nautilus_prepare_options o = {};
  if (!capi::read_struct(options, o))
    return report({NAUTILUS_ERROR_USAGE, "nautilus_prepare_options has no struct_size"});
  auto made = std::make_shared<Plan>();
  made->state = program->state;
  if (o.allocator) made->allocator = *o.allocator;
  void* context = runtime::Device::current_context();
  const int device = o.device;
  const size_t threads = o.threads > 0 ? static_cast<size_t>(o.threads) : kUsualThreads;
  Failure f = capi::with_state(program->state, "preparing a program",
                               [made, context, device, threads](capi::State& s) {
                                 return build(s, context, device, threads, *made);
                               });
  if (f.is_ok() && o.arguments) f = admit(made, o.arguments);
  if (!f.is_ok()) return report(f);
  *plan = new nautilus_plan{std::move(made)};
  return NAUTILUS_OK;
}

nautilus_status nautilus_prepare_for(nautilus_plan* plan, const nautilus_arguments* arguments) {
  if (!plan) return report({NAUTILUS_ERROR_USAGE, "the plan is null"});
  return report(admit(plan->plan, arguments));
}

void nautilus_plan_close(nautilus_plan* plan) { delete plan; }

nautilus_status nautilus_plan_workspace(nautilus_plan* plan, const nautilus_arguments* arguments,
                                        uint64_t* bytes) {
  if (!plan || !bytes) return report({NAUTILUS_ERROR_USAGE, "a pointer is null"});
  capi::Arguments read;
  Failure f = capi::read_arguments(*plan->plan->state, arguments, capi::Wanted::Memory, read);
  if (!f.is_ok()) return report(f);
  std::string error;
  size_t needed = 0;
  const auto status = plan->plan->launcher->workspace_bytes(read.call(), &needed, &error);
  *bytes = needed;
  return report(failure_of(status, error));
}

nautilus_status nautilus_launch(nautilus_plan* plan, const nautilus_arguments* arguments,
                                const nautilus_launch_options* options) {
  if (!plan) return report({NAUTILUS_ERROR_USAGE, "the plan is null"});
  nautilus_launch_options o = {};
  if (!capi::read_struct(options, o))
    return report({NAUTILUS_ERROR_USAGE, "nautilus_launch_options has no struct_size"});
  Plan& p = *plan->plan;
  // Kept by the thread, so that a launch allocates nothing.
  thread_local capi::Arguments read;
  if (Failure f = capi::read_arguments(*p.state, arguments, capi::Wanted::Memory, read); !f.is_ok())
    return report(f);
  plan::CallMemory memory;
  memory.address = reinterpret_cast<uint64_t>(o.workspace);
  memory.bytes = o.workspace_bytes;
  memory.is_kept = o.flags & NAUTILUS_LAUNCH_WORKSPACE_KEPT;
  memory.allocate = p.allocator.allocate;
  memory.release = p.allocator.release;
  memory.user = p.allocator.user;
  std::string error;
  const auto status =
      p.launcher->launch(read.call(), runtime::Stream::adopt(o.stream), memory, &error);
  return status == plan::LaunchStatus::Ok ? NAUTILUS_OK : report(failure_of(status, error));
}

nautilus_status nautilus_plan_describe(nautilus_plan* plan, nautilus_plan_info* info) {
  if (!plan) return report({NAUTILUS_ERROR_USAGE, "the plan is null"});
  const Plan& p = *plan->plan;
  nautilus_plan_info out = NAUTILUS_PLAN_INFO_INIT;
  out.device = p.device->info().index;
  out.multiprocessors = p.device->info().multiprocessors;
  out.device_name = p.device->info().name.c_str();
  out.kernels = static_cast<int32_t>(p.launcher->kernels().size());
  out.cached_kernels = p.cached;
  return capi::write_struct(out, info);
}
