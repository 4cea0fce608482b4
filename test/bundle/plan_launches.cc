// SPDX-License-Identifier: Apache-2.0
// Launches a program through the compiler's own runtime, for tensors of given sizes, strides and
// addresses. With test/bundle/driver_stub.c as the driver, the record says what was launched. For
// each case a line is printed that bundle_launches.c reads: its record must be the same.
//
// usage: plan_launches FILE SIZES CASE...
//   SIZES: values of static sizes and hints, D=128,M=96, or `-`.
//   CASE: values of sizes and scalars, and what is special about tensors: "M=96 K=63 A:72,1 B@2"
//   (strides of A, B two bytes behind an aligned address).
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/files.h"
#include "diag/render.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/load/hints.h"
#include "driver/run/run.h"
#include "expr/tensor.h"
#include "plan/variants.h"

namespace {

using namespace nautilus;

struct Case {
  std::map<std::string, double> values;
  std::map<std::string, std::vector<int64_t>> strides;
  std::map<std::string, uint64_t> offsets;
};

Case parse_case(std::string_view text) {
  Case out;
  while (!text.empty()) {
    const std::string word(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t sign = word.find_first_of("=:@");
    if (sign == std::string::npos) continue;
    const std::string name = word.substr(0, sign);
    const char* rest = word.c_str() + sign + 1;
    if (word[sign] == '=') out.values[name] = std::strtod(rest, nullptr);
    if (word[sign] == '@') out.offsets[name] = std::strtoull(rest, nullptr, 10);
    for (char* end = nullptr; word[sign] == ':' && *rest; rest = *end == ',' ? end + 1 : end)
      out.strides[name].push_back(std::strtoll(rest, &end, 10));
  }
  return out;
}

bool run_case(plan::Executable& executable, const std::string& program, const Case& c,
              std::string* error) {
  const plan::Prepared& plan = executable.plan();
  plan::Frame sizing(plan);
  std::string line = program;
  for (const auto& [name, value] : c.values) {
    const int number = plan.value(name);
    if (number < 0) {
      *error = "nothing is called " + name;
      return false;
    }
    const plan::Prepared::Value& v = plan.values[static_cast<size_t>(number)];
    sizing.set(number, expr::is_float(v.dtype) ? expr::float_value(value)
                                               : expr::int_value(static_cast<int64_t>(value)));
    if (v.is_size) continue;
    executable.set(name, value);
    line += fmt::format(" {}={}", name, value);
  }
  if (!sizing.evaluate(1, error)) return false;
  for (size_t t = 0; t < plan.tensors.size(); ++t) {
    const plan::Prepared::Tensor& tensor = plan.tensors[t];
    if (tensor.role >= matile::TensorRole::Scratch) continue;
    std::vector<int64_t> shape;
    for (int k = 0; k < tensor.rank(); ++k) shape.push_back(sizing.extent(static_cast<int>(t), k));
    const auto given = c.strides.find(tensor.name);
    const auto strides = given != c.strides.end() ? given->second : expr::strides_of(shape);
    const auto offset = c.offsets.find(tensor.name);
    const uint64_t address = ((t + 1) << 40) + (offset != c.offsets.end() ? offset->second : 0);
    if (!executable.bind(tensor.name, {address, shape, strides})) {
      *error = "bad strides of " + tensor.name;
      return false;
    }
    line += fmt::format(" {}={}:{}@{:#x}", tensor.name, fmt::join(shape, "x"),
                        fmt::join(strides, ","), address);
  }
  // A size that no shape binds.
  for (const plan::Prepared::Value& v : plan.values) {
    const auto it = c.values.find(v.name);
    if (!v.is_size || it == c.values.end()) continue;
    executable.set(v.name, it->second);
    line += fmt::format(" {}={}", v.name, it->second);
  }
  fmt::print("{}\n", line);
  const char* record = std::getenv("STUB_RECORD");
  if (record && !base::append_file(record, "case " + line + "\n", error)) return false;
  return executable.launch({}, error);
}

int run(int argc, char** argv, std::string* error) {
  std::map<std::string, int64_t> sizes;
  for (std::string_view list = argv[2]; list.find('=') != std::string_view::npos;) {
    const std::string item(list.substr(0, list.find(',')));
    const size_t equals = item.find('=');
    sizes[item.substr(0, equals)] = std::strtoll(item.c_str() + equals + 1, nullptr, 10);
    list.remove_prefix(std::min(list.size(), item.size() + 1));
  }
  driver::Unit unit;
  auto text = base::read_file(argv[1], error);
  if (!text) return 1;
  auto loaded = driver::load_text(argv[1], *text, sizes, unit);
  if (loaded) loaded = driver::with_hints(std::move(*loaded), sizes);
  const auto program = loaded ? driver::lower_to_kernels(*loaded, unit) : std::nullopt;
  if (!program) {
    *error = diag::render_all(unit.sink);
    return 1;
  }
  const auto architecture = driver::architecture_of(*program, error);
  const auto device = architecture ? runtime::Device::open(0, *architecture, error) : nullptr;
  if (!device) return 1;
  std::string name = argv[1];
  name = name.substr(name.find_last_of('/') + 1);
  name = name.substr(0, name.find('.'));
  for (int a = 3; a < argc; ++a) {
    auto kernels = plan::compile_device(*program, unit.pool, *architecture, true, error);
    if (!kernels) return 1;
    // Each case with memory of its own, as the first launch has it.
    const auto executable = plan::Executable::load(*program, std::move(*kernels), *device, error);
    if (!executable) return 1;
    executable->set_variants(plan::repacked_variants(*program, unit.pool, *device, *architecture));
    if (!run_case(*executable, name, parse_case(argv[a]), error)) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::string error;
  const int status = run(argc, argv, &error);
  if (status != 0) fmt::print(stderr, "plan_launches: {}: {}\n", argv[1], error);
  return status;
}
