// SPDX-License-Identifier: Apache-2.0
#include "driver/run/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "base/files.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "matile/passes/memory/repack.h"
#include "plan/executable.h"
#include "plan/tensor_bytes.h"
#include "plan/variants.h"
#ifdef NAUTILUS_EMULATOR
#include "emulator/emulator.h"
#endif

namespace nautilus::driver {
namespace {

using matile::TensorRole;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

#ifdef NAUTILUS_EMULATOR
// A grid of whole clusters with at most this many CTAs (0: any number), but at least one cluster.
int limited(int grid, int most, int cluster) {
  if (most <= 0 || grid <= most) return grid;
  return std::max(1, most / cluster) * cluster;
}
#endif

struct HostTensor {
  expr::DType dtype;
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;
};

// The sizes and scalars that the caller has; the rest follows as for any launch.
bool evaluate(const plan::Prepared& plan, const ir::Environment& env, int multiprocessors,
              plan::Frame& frame, std::string* error) {
  for (const auto& [name, value] : env.sizes) {
    if (const int v = plan.value(name); v >= 0) frame.set(v, expr::int_value(value));
  }
  for (const auto& [name, value] : env.scalars) {
    if (const int v = plan.value(name); v >= 0) frame.set(v, value);
  }
  return frame.evaluate(multiprocessors, error);
}

// Inputs as bytes, outputs and temps poisoned (every float of all ones is a NaN), scratch zero. The
// frame was evaluated: a scratch tensor may have sizes that the plan computes.
std::optional<std::map<std::string, HostTensor>> host_tensors(const plan::Prepared& plan,
                                                              plan::Frame& frame,
                                                              const ir::Environment& env,
                                                              std::string* error) {
  std::map<std::string, HostTensor> out;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const plan::Prepared::Tensor& t = plan.tensors[i];
    HostTensor host{t.dtype, {}, {}};
    for (int k = 0; k < t.rank(); ++k) host.shape.push_back(frame.extent(static_cast<int>(i), k));
    const auto count = expr::element_count(host.shape);
    if (!count) {
      *error = fmt::format("tensor `{}` is too large", t.name);
      return std::nullopt;
    }
    if (t.role == TensorRole::Input) {
      const auto it = env.tensors.find(t.name);
      if (it == env.tensors.end()) {
        *error = fmt::format("input `{}` has no values", t.name);
        return std::nullopt;
      }
      host.bytes = plan::to_bytes(it->second);
    } else {
      const auto bytes = static_cast<size_t>(*count) * static_cast<size_t>(expr::bytes(t.dtype));
      host.bytes.assign(bytes, t.role == TensorRole::Scratch ? 0 : 0xFF);
    }
    out.emplace(t.name, std::move(host));
  }
  return out;
}

Outputs outputs_of(const ir::Program& program, const std::map<std::string, HostTensor>& tensors) {
  Outputs out;
  for (const auto& [name, type] : matile::tensors(program, TensorRole::Output)) {
    const HostTensor& t = tensors.at(name);
    out.emplace(name, plan::from_bytes(t.dtype, t.shape, t.bytes));
  }
  return out;
}

}  // namespace

std::optional<ir::Program> load_oracle(const ir::Program& program, const std::string& path,
                                       Unit& unit) {
  for (const ir::Op& op : program.body) {
    if (const auto* o = op.get<matile::Oracle>())
      return load_given_oracle(program, folder_of(path) + o->path, unit);
  }
  unit.sink.report(diag::Code::BadInput, {},
                   fmt::format("{} names no oracle; `--oracle FILE.naut` does", path));
  return std::nullopt;
}

std::optional<ir::Program> load_given_oracle(const ir::Program& program, const std::string& file,
                                             Unit& unit) {
  std::map<std::string, int64_t> statics;
  for (const ir::Op& op : program.body) {
    if (const auto* s = op.get<ir::Static>()) statics[std::string(s->name.str())] = *s->value;
  }
  std::string error;
  const auto text = base::read_file(file, &error);
  if (!text) {
    unit.sink.report(diag::Code::BadInput, {}, fmt::format("the oracle: {}", error));
    return std::nullopt;
  }
  auto oracle = load_text(file, *text, statics, unit);
  if (!oracle || oracle->level->name == "spec") return oracle;
  unit.sink.report(diag::Code::BadInput, {},
                   fmt::format("the oracle {} is not a program of the math language", file));
  return std::nullopt;
}

ir::Environment environment_of(const ir::Program& program, const ir::Environment& oracle) {
  ir::Environment env;
  for (const ir::Op& op : program.body) {
    if (const auto* d = op.get<ir::Dim>()) {
      const auto it = oracle.sizes.find(d->name.str());
      if (it != oracle.sizes.end()) env.sizes.insert(*it);
    }
    if (const auto* p = op.get<ir::Param>()) {
      const auto it = oracle.scalars.find(p->name.str());
      if (it != oracle.scalars.end()) env.scalars.insert(*it);
    }
  }
  for (const auto& [name, type] : matile::tensors(program, TensorRole::Input)) {
    const auto it = oracle.tensors.find(name);
    if (it != oracle.tensors.end()) env.tensors.insert(*it);
  }
  return env;
}

#ifdef NAUTILUS_EMULATOR

namespace {

// One text for all kernels that run, so that the compiler runs once: each body has a `Params` of
// its own.
std::string joined_bodies(const std::vector<emit::KernelText>& kernels,
                          std::span<const plan::Frame::Launch> launches) {
  if (kernels.size() == 1) return kernels[0].body;
  std::string out;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const bool is_launched =
        std::any_of(launches.begin(), launches.end(),
                    [&](const plan::Frame::Launch& l) { return l.kernel == k; });
    if (is_launched)
      out += fmt::format("namespace scope_{} {{\n{}}}\n", kernels[k].name, kernels[k].body);
  }
  return out;
}

// A scratch tensor of counters that the kernels did not leave 0; empty if there is none.
std::string counter_left(const ir::Program& program,
                         const std::map<std::string, HostTensor>& tensors) {
  for (const auto& [name, type] : matile::tensors(program, TensorRole::Scratch)) {
    const auto& bytes = tensors.at(name).bytes;
    if (type.dtype == expr::DType::I32 &&
        std::any_of(bytes.begin(), bytes.end(), [](auto b) { return b != decltype(b)(0); }))
      return name;
  }
  return "";
}

}  // namespace

namespace {

// What the launches of a program have in common.
struct EmulatedRun {
  const emulator::CompiledBody& body;
  const std::vector<emulator::Buffer>& buffers;
  const EmulateOptions& options;
  const target::Limits& limits;

  // What was wrong; empty if nothing was. `is_behind`: other kernels were launched before.
  std::string launch(const plan::Frame::Launch& l, const emit::KernelText& k,
                     bool is_behind) const {
    emulator::Options run_options;
    run_options.seed = options.seed;
    if (options.idle_limit > 0) run_options.idle_limit = options.idle_limit;
    run_options.limits = &limits;
    emulator::Statistics statistics;
    std::string report = emulator::run(body,
                                       {.kernel = k.name,
                                        .grid = limited(l.grid, options.max_grid, k.cluster),
                                        .threads = k.threads,
                                        .shared_bytes = k.shared_bytes,
                                        .params = l.params,
                                        .param_bytes = l.param_bytes,
                                        .buffers = buffers,
                                        .is_early = is_behind && k.may_begin_early},
                                       run_options, &statistics);
    if (options.steps) *options.steps += statistics.steps;
    return report;
  }
};

std::optional<Outputs> run_in_emulator(const ir::Program& program, const ir::Environment& env,
                                       const EmulateOptions& options, bool is_repacked,
                                       expr::ExprPool& pool, std::string* error) {
  const auto kernels = emit::emit_kernels(program, pool);
  const plan::Prepared plan(program, kernels);
  plan::Frame frame(plan);
  if (!evaluate(plan, env, options.multiprocessors, frame, error)) return std::nullopt;
  auto tensors = host_tensors(plan, frame, env, error);
  if (!tensors) return std::nullopt;
  std::vector<emulator::Buffer> buffers;
  for (auto& [name, t] : *tensors) {
    const auto address = reinterpret_cast<uint64_t>(t.bytes.data());
    frame.bind(plan.tensor(name), {address, t.shape, expr::strides_of(t.shape)});
    buffers.push_back({t.bytes.data(), t.bytes.size(), true});
  }
  alignas(128) std::array<unsigned char, plan::Frame::kEmptyBackingBytes> nothing = {};
  frame.set_empty_backing(reinterpret_cast<uint64_t>(nothing.data()));
  buffers.push_back({nothing.data(), nothing.size(), true});
  const plan::MapEncoder encode = [](const runtime::TensorMapView& view, runtime::EncodedMap* map,
                                     std::string* why) {
    *why = runtime::map_flaw(view);
    static_assert(sizeof view <= sizeof map->bytes);
    std::memcpy(map->bytes, &view, sizeof view);
    return why->empty();
  };
  if (!frame.evaluate(options.multiprocessors, error)) return std::nullopt;
  if (!frame.pack(encode, error)) {
    std::set<std::string> copied;
    for (int t : frame.misaligned()) copied.insert(plan.tensors[static_cast<size_t>(t)].name);
    const auto given = plan::repackable_tensors(program);
    if (copied.empty() || is_repacked || !options.body.empty() ||
        !std::includes(given.begin(), given.end(), copied.begin(), copied.end()))
      return std::nullopt;
    return run_in_emulator(matile::repack(program, copied, pool), env, options, true, pool, error);
  }
  const auto body = emulator::CompiledBody::compile(
      options.body.empty() ? joined_bodies(kernels, frame.launches()) : options.body,
      {"", options.use_cache}, error);
  if (!body) return std::nullopt;
  const EmulatedRun run = {*body, buffers, options, ir::target_of(program).limits};
  for (const plan::Frame::Launch& l : frame.launches()) {
    const bool is_behind = &l != &frame.launches().front();
    const std::string report = run.launch(l, kernels[l.kernel], is_behind);
    if (report.empty()) continue;
    *error = report;
    return std::nullopt;
  }
  if (const std::string name = counter_left(program, *tensors); !name.empty()) {
    *error = fmt::format("counters of `{}` are not 0 for the next launch", name);
    return std::nullopt;
  }
  return outputs_of(program, *tensors);
}

}  // namespace

std::optional<Outputs> run_emulated(const ir::Program& program, const ir::Environment& env,
                                    const EmulateOptions& options, expr::ExprPool& pool,
                                    std::string* error) {
  return run_in_emulator(program, env, options, false, pool, error);
}

#else

std::optional<Outputs> run_emulated(const ir::Program&, const ir::Environment&,
                                    const EmulateOptions&, expr::ExprPool&, std::string* error) {
  *error = "this build has no emulator: install Boost.Context and build again";
  return std::nullopt;
}

#endif

std::optional<std::string> architecture_of(const ir::Program& program, std::string* error) {
  const target::Target& target = ir::target_of(program);
  if (!target.architecture.empty()) return std::string(target.architecture);
  *error = fmt::format("no device is a `{}`: its kernels run in the emulator only", target.name);
  return std::nullopt;
}

std::optional<std::vector<plan::DeviceKernel>> compile_for(const ir::Program& program,
                                                           const DeviceOptions& options,
                                                           expr::ExprPool& pool,
                                                           std::string* error) {
  const auto architecture = architecture_of(program, error);
  if (!architecture) return std::nullopt;
  return options.sources.empty()
             ? plan::compile_device(program, pool, *architecture, true, error)
             : plan::compile_edited(program, pool, options.sources, *architecture, true, error);
}

std::optional<Outputs> run_on_device(const ir::Program& program, const ir::Environment& env,
                                     const DeviceOptions& options, expr::ExprPool& pool,
                                     std::string* error) {
  const auto architecture = architecture_of(program, error);
  if (!architecture) return std::nullopt;
  const auto device = runtime::Device::open(0, *architecture, error);
  if (!device) return std::nullopt;
  auto kernels = compile_for(program, options, pool, error);
  if (!kernels) return std::nullopt;
  const auto executable = plan::Executable::load(program, std::move(*kernels), *device, error);
  if (!executable) return std::nullopt;
  if (options.sources.empty())
    executable->set_variants(plan::repacked_variants(program, pool, *device, *architecture));
  const plan::Prepared& plan = executable->plan();
  plan::Frame sizing(plan);
  if (!evaluate(plan, env, device->info().multiprocessors, sizing, error)) return std::nullopt;
  auto tensors = host_tensors(plan, sizing, env, error);
  if (!tensors) return std::nullopt;
  std::erase_if(*tensors, [&](const auto& t) {  // the executable has its own
    return plan.tensors[static_cast<size_t>(plan.tensor(t.first))].role >= TensorRole::Scratch;
  });
  for (const auto& [name, value] : env.sizes) executable->set(name, static_cast<double>(value));
  for (const ir::Op& op : program.body) {
    const auto* p = op.get<ir::Param>();
    const auto it = p ? env.scalars.find(p->name.str()) : env.scalars.end();
    if (it == env.scalars.end()) continue;
    executable->set(it->first,
                    expr::is_float(p->dtype) ? it->second.f : static_cast<double>(it->second.i));
  }
  std::map<std::string, runtime::DevicePointer> pointers;
  bool ok = true;
  for (const auto& [name, t] : *tensors) {
    const auto pointer = device->allocate(std::max<size_t>(t.bytes.size(), 16), error);
    if (!pointer) {
      ok = false;
      break;
    }
    pointers.emplace(name, *pointer);
    ok = ok && device->upload(*pointer, t.bytes.data(), t.bytes.size(), error);
    executable->bind(name, {*pointer, t.shape, expr::strides_of(t.shape)});
  }
  ok = ok && executable->launch({}, error) && device->synchronize(error);
  for (auto& [name, t] : *tensors) {
    if (ok) ok = device->download(t.bytes.data(), pointers.at(name), t.bytes.size(), error);
  }
  for (const auto& [name, pointer] : pointers) device->free(pointer);
  if (!ok) return std::nullopt;
  return outputs_of(program, *tensors);
}

std::vector<CheckLine> compare_outputs(const Outputs& got, const spec::Results& want,
                                       const ir::Numerics& numerics) {
  std::vector<CheckLine> lines;
  for (const auto& [name, result] : want) {
    const auto it = got.find(name);
    if (it == got.end()) continue;
    CheckLine line{name, spec::compare(it->second, result, numerics), 0};
    double difference = 0;
    double norm = 0;
    for (int64_t i = 0; i < result.value.size(); ++i) {
      const double want_i = result.value.number(i);
      if (!std::isfinite(want_i)) continue;  // the verdict is about those, too
      const double d = it->second.number(i) - want_i;
      difference += d * d;
      norm += want_i * want_i;
    }
    line.relative_error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace nautilus::driver
