// SPDX-License-Identifier: Apache-2.0
#include "driver/run/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "driver/run/clock_sampler.h"
#include "expr/tensor.h"
#include "ir/target_of.h"
#include "plan/executable.h"

namespace nautilus::driver {
namespace {

using Clock = std::chrono::steady_clock;
using matile::TensorRole;

constexpr size_t kFlushBytes = size_t{256} << 20;  // several times the L2 of any card so far
constexpr double kWarmSeconds = 0.7;
constexpr int kBurstWarm = 5;
constexpr int kLeastRepetitions = 3;  // of kernels that take long
constexpr int kHostCalls = 10000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Shape {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  size_t bytes = 0;
};

// Packed shapes of all tensors for sizes and scalars of the caller's, hints and defaults.
std::optional<std::vector<Shape>> shapes_for(const plan::Prepared& plan,
                                             const ir::Environment& given, plan::Frame& frame,
                                             std::string* error) {
  for (const auto& [name, size] : given.sizes) {
    const int v = plan.value(name);
    if (v < 0 || !plan.values[static_cast<size_t>(v)].is_size) {
      *error = fmt::format("the program has no size `{}`", name);
      return std::nullopt;
    }
    frame.set(v, expr::int_value(size));
  }
  for (const auto& [name, value] : given.scalars) {
    if (const int v = plan.value(name); v >= 0) frame.set(v, value);
  }
  if (!frame.evaluate(1, error)) return std::nullopt;
  std::vector<Shape> shapes;
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    Shape s;
    for (int k = 0; k < plan.tensors[t].rank(); ++k)
      s.extents.push_back(frame.extent(static_cast<int>(t), k));
    const auto count = expr::element_count(s.extents);
    if (!count) {
      *error = fmt::format("tensor `{}` is too large", plan.tensors[t].name);
      return std::nullopt;
    }
    s.strides = expr::strides_of(s.extents);
    s.bytes = static_cast<size_t>(*count) * static_cast<size_t>(expr::bytes(plan.tensors[t].dtype));
    shapes.push_back(std::move(s));
  }
  return shapes;
}

// The program's hints where there are any: a problem that is over at once.
ir::Environment tiny(const plan::Prepared& plan, ir::Environment given) {
  for (const plan::Prepared::Value& v : plan.values) {
    if (v.is_size && v.hint) given.sizes.erase(v.name);
  }
  return given;
}

// Memory of the plan's inputs and outputs; 0 for others.
std::optional<std::vector<runtime::DevicePointer>> pointers_for(const plan::Prepared& plan,
                                                                const std::vector<Shape>& shapes,
                                                                DeviceTensors& tensors,
                                                                std::string* error) {
  std::vector<runtime::DevicePointer> out;
  for (size_t t = 0; t < shapes.size(); ++t) {
    const plan::Prepared::Tensor& tensor = plan.tensors[t];
    std::optional<runtime::DevicePointer> pointer = 0;
    if (tensor.role == TensorRole::Input)
      pointer = tensors.input(tensor.name, tensor.dtype, shapes[t].bytes, error);
    else if (tensor.role < TensorRole::Scratch)
      pointer = tensors.output(tensor.name, shapes[t].bytes, error);
    if (!pointer) return std::nullopt;
    out.push_back(*pointer);
  }
  return out;
}

bool bind(const plan::Prepared& plan, const std::vector<Shape>& shapes,
          const std::vector<runtime::DevicePointer>& pointers, plan::Executable& executable) {
  bool ok = true;
  for (size_t t = 0; t < shapes.size(); ++t) {
    if (plan.tensors[t].role >= TensorRole::Scratch) continue;
    ok &=
        executable.bind(plan.tensors[t].name, {pointers[t], shapes[t].extents, shapes[t].strides});
  }
  return ok;
}

void set_values(const ir::Environment& given, const plan::Prepared& plan,
                plan::Executable& executable) {
  for (const auto& [name, size] : given.sizes) executable.set(name, static_cast<double>(size));
  for (const auto& [name, value] : given.scalars) {
    const int v = plan.value(name);
    if (v < 0) continue;
    const bool is_float = expr::is_float(plan.values[static_cast<size_t>(v)].dtype);
    executable.set(name, is_float ? value.f : static_cast<double>(value.i));
  }
}

// Bind and launch, as a framework does for every call; the device always keeps up.
std::optional<Quartiles> launch_cost(const ir::Program& program,
                                     std::vector<plan::DeviceKernel> kernels,
                                     const BenchOptions& options, runtime::Device& device,
                                     std::string* error) {
  const auto executable = plan::Executable::load(program, std::move(kernels), device, error);
  if (!executable) return std::nullopt;
  const plan::Prepared& plan = executable->plan();
  plan::Frame sizing(plan);
  ir::Environment given = tiny(plan, options.given);
  const auto shapes = shapes_for(plan, given, sizing, error);
  if (!shapes) return std::nullopt;
  given.sizes.clear();  // they follow from the shapes, as for any caller
  set_values(given, plan, *executable);
  DeviceTensors tensors(device, options.seed);
  const auto pointers = pointers_for(plan, *shapes, tensors, error);
  if (!pointers) return std::nullopt;
  const auto stream = device.create_stream(error);
  if (!stream) return std::nullopt;
  std::vector<double> us;
  us.reserve(kHostCalls);
  bool ok = true;
  for (int i = 0; ok && i < kHostCalls + 100; ++i) {
    const auto start = Clock::now();
    ok = bind(plan, *shapes, *pointers, *executable) && executable->launch(*stream, error);
    const double taken = 1e6 * seconds_since(start);
    if (i >= 100) us.push_back(taken);
    // The queue must not fill up: then a launch would wait for the device.
    if (i % 100 == 99) ok = ok && device.synchronize(*stream, error);
  }
  if (!ok || !device.synchronize(*stream, error)) return std::nullopt;
  return quartiles(std::move(us));
}

struct Timing {
  std::vector<double> ms;
  std::string clocks;
};

// A launch as a graph.
std::optional<runtime::Graph> captured(plan::Executable& executable, const runtime::Stream& stream,
                                       runtime::Device& device, std::string* error) {
  if (!device.begin_capture(stream, error)) return std::nullopt;
  const bool ok = executable.launch(stream, error);
  std::string later;
  auto graph = device.end_capture(stream, ok ? error : &later);
  return ok ? std::move(graph) : std::nullopt;
}

// Of the beginning and the end of each launch.
using Events = std::vector<std::pair<runtime::Event, runtime::Event>>;

std::optional<Events> create_events(int launches, runtime::Device& device, std::string* error) {
  Events events;
  for (int i = 0; i < launches; ++i) {
    auto begin = device.create_event(error);
    auto end = begin ? device.create_event(error) : std::nullopt;
    if (!end) return std::nullopt;
    events.emplace_back(std::move(*begin), std::move(*end));
  }
  return events;
}

std::optional<std::vector<double>> elapsed_ms(const Events& events, runtime::Device& device,
                                              std::string* error) {
  std::vector<double> out;
  for (const auto& [begin, end] : events) {
    const auto ms = device.elapsed_ms(begin, end, error);
    if (!ms) return std::nullopt;
    out.push_back(static_cast<double>(*ms));
  }
  return out;
}

std::string clocks_text(ClockSampler& clocks, Clock::time_point from) {
  const auto seen = clocks.since(from);
  if (!seen) return "";
  return fmt::format(
      "{:.0f} MHz, {:.0f} W{}", seen->mhz, seen->watts,
      seen->celsius > 0 ? fmt::format(", {:.0f} degrees Celsius", seen->celsius) : "");
}

std::optional<Timing> time_launches(plan::Executable& executable, const BenchOptions& options,
                                    int repetitions, runtime::Device& device, std::string* error) {
  const auto stream = device.create_stream(error);
  if (!stream) return std::nullopt;
  // Scratch is allocated and errors of the plan show before anything is captured.
  if (!executable.launch(*stream, error) || !device.synchronize(*stream, error))
    return std::nullopt;
  std::optional<runtime::Graph> graph;
  if (options.use_graph) {
    graph = captured(executable, *stream, device, error);
    if (!graph) return std::nullopt;
  }
  const auto launch = [&] {
    return graph ? device.launch(*graph, *stream, error) : executable.launch(*stream, error);
  };
  int warm = kBurstWarm;
  if (options.most_seconds > 0) {
    const auto start = Clock::now();
    if (!launch() || !device.synchronize(*stream, error)) return std::nullopt;
    const double fit = options.most_seconds / seconds_since(start);
    repetitions = std::max(std::min(kLeastRepetitions, repetitions),
                           static_cast<int>(std::min<double>(repetitions, fit)));
    warm = std::min(warm, repetitions);
  }
  const auto events = create_events(repetitions, device, error);
  if (!events) return std::nullopt;
  const auto flush = device.allocate(kFlushBytes, error);
  if (!flush) return std::nullopt;
  ClockSampler clocks;
  bool ok = true;
  auto counted_from = Clock::now();
  if (options.is_burst) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.pause_seconds));
    counted_from = Clock::now();
    for (int i = 0; ok && i < warm; ++i) ok = launch();
  } else {
    const auto start = Clock::now();
    while (ok && seconds_since(start) < kWarmSeconds) {
      for (int i = 0; ok && i < 10; ++i) ok = launch();
      ok = ok && device.synchronize(*stream, error);
      if (seconds_since(start) < kWarmSeconds / 2) counted_from = Clock::now();
    }
  }
  for (const auto& [begin, end] : *events) {
    ok = ok && device.fill_async(*flush, 0, kFlushBytes, *stream, error) &&
         device.record(begin, *stream, error) && launch() && device.record(end, *stream, error);
  }
  ok = ok && device.synchronize(*stream, error);
  auto ms = ok ? elapsed_ms(*events, device, error) : std::nullopt;
  std::string seen = clocks_text(clocks, counted_from);
  device.free(*flush);
  if (!ms) return std::nullopt;
  return Timing{std::move(*ms), std::move(seen)};
}

}  // namespace

Quartiles quartiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto i = static_cast<size_t>(place);
    const double next = values[std::min(i + 1, values.size() - 1)];
    return values[i] + (place - static_cast<double>(i)) * (next - values[i]);
  };
  return {at(0.5), at(0.25), at(0.75)};
}

std::optional<HostCost> plan_cost(const ir::Program& program, const ir::Environment& given,
                                  expr::ExprPool& pool, std::string* error) {
  const std::vector<emit::KernelText> kernels = emit::emit_kernels(program, pool);
  const plan::Prepared plan(program, kernels);
  plan::Frame sizing(plan);
  ir::Environment small = tiny(plan, given);
  const auto shapes = shapes_for(plan, small, sizing, error);
  if (!shapes) return std::nullopt;
  plan::Frame frame(plan);
  for (const auto& [name, value] : small.scalars) {
    if (const int v = plan.value(name); v >= 0) frame.set(v, value);
  }
  const plan::MapEncoder stub = [](const runtime::TensorMapView& view, runtime::EncodedMap* map,
                                   std::string* why) {
    *why = runtime::map_flaw(view);
    std::memcpy(map->bytes, &view, sizeof view);
    return why->empty();
  };
  const auto sms = static_cast<int>(ir::target_of(program).board.sms);
  constexpr int kBlock = 10;  // the clock costs some of what is measured
  std::vector<double> us;
  for (int i = 0; i < kHostCalls / kBlock; ++i) {
    const auto start = Clock::now();
    for (int j = 0; j < kBlock; ++j) {
      for (size_t t = 0; t < shapes->size(); ++t) {
        const int number = plan.tensor(plan.tensors[t].name);
        frame.bind(number, {0x10000 * (t + 1), (*shapes)[t].extents, (*shapes)[t].strides});
      }
      if (!frame.evaluate(sms, error) || !frame.pack(stub, error)) return std::nullopt;
    }
    us.push_back(1e6 * seconds_since(start) / kBlock);
  }
  return HostCost{quartiles(std::move(us)), std::nullopt, kHostCalls};
}

std::optional<BenchResult> bench(const ir::Program& program, const BenchOptions& options,
                                 expr::ExprPool& pool, std::string* error) {
  const auto architecture = architecture_of(program, error);
  if (!architecture) return std::nullopt;
  const auto device = runtime::Device::open(0, *architecture, error);
  if (!device) return std::nullopt;
  auto kernels = compile_for(program, options.device, pool, error);
  if (!kernels) return std::nullopt;
  BenchResult result;
  result.device = device->info().name;
  if (options.host_cost) {
    result.host = plan_cost(program, options.given, pool, error);
    if (!result.host) return std::nullopt;
    result.host->launch_us = launch_cost(program, *kernels, options, *device, error);
    if (!result.host->launch_us) return std::nullopt;
  }
  const auto executable = plan::Executable::load(program, std::move(*kernels), *device, error);
  if (!executable) return std::nullopt;
  const plan::Prepared& plan = executable->plan();
  plan::Frame sizing(plan);
  const auto shapes = shapes_for(plan, options.given, sizing, error);
  if (!shapes) return std::nullopt;
  set_values(options.given, plan, *executable);
  std::optional<DeviceTensors> own;
  DeviceTensors& tensors = options.tensors ? *options.tensors : own.emplace(*device, options.seed);
  const auto pointers = pointers_for(plan, *shapes, tensors, error);
  if (!pointers) return std::nullopt;
  bind(plan, *shapes, *pointers, *executable);
  for (const plan::Prepared::Value& v : plan.values) {
    if (v.is_size) result.sizes.emplace_back(v.name, sizing.slot(v.slot).i);
    if (!v.is_size) result.scalars.emplace(v.name, sizing.slot(v.slot));
  }
  ir::Environment env{{result.sizes.begin(), result.sizes.end()}, result.scalars, {}};
  result.launches = planned_launches(program, std::move(env), device->info().multiprocessors);
  result.repetitions = options.repetitions > 0 ? options.repetitions : options.is_burst ? 30 : 100;
  const auto timing = time_launches(*executable, options, result.repetitions, *device, error);
  if (!timing) return std::nullopt;
  result.ms = quartiles(timing->ms);
  result.times = timing->ms;
  result.repetitions = static_cast<int>(timing->ms.size());
  result.clocks = timing->clocks;
  return result;
}

}  // namespace nautilus::driver
