// SPDX-License-Identifier: Apache-2.0
// For tests of the contract of schedules: programs, other values of a line, and the kernels of a
// schedule as the device gets them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "compile/kernels.h"
#include "decision/lines.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/load.h"
#include "emit/emit.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

inline std::vector<std::string> example_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(NAUTILUS_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".naut") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Programs with operands that are stored in ways that no example has: tensors of 16-bit numbers,
// limbs of images with zeros around them.
inline std::vector<std::string> programs_with_operands() {
  std::vector<std::string> out = example_files();
  for (const char* name :
       {"attention_rope", "chain_conv_bias_relu", "chain_conv_mean", "gemm_f32", "state_space"})
    out.push_back(fmt::format("{}/bench/foreign/{}.naut", NAUTILUS_SOURCE_DIR, name));
  return out;
}

// Other values of one field of a decision: all of an enum, numbers near and far, other orders.
inline std::vector<ir::Op> with_other_values(const ir::Op& line) {
  std::vector<ir::Op> out;
  for (const ir::Field& f : line.info().fields) {
    const auto add = [&](auto value) {
      auto data = ir::copy_data(line);
      ir::field_value<decltype(value)>(data.get(), f) = value;
      out.push_back(decision::with_by({line.info(), {}, std::move(data)}, decision::By::User));
    };
    // Not what the line is about.
    if (f.kind == ir::FieldKind::Enum && f.name != "by" && f.name != "rewrite") {
      const auto now = ir::field_value<uint8_t>(line.data(), f);
      // Some have a first word that is the rule's choice, as if nothing was said.
      const uint8_t first = f.name == "zeros" ? 1 : 0;
      for (uint8_t k = first; k < f.words->size(); ++k)
        if (k != now) add(k);
    }
    if (f.name == "axes" && line.is<decision::Store>()) {
      ir::Names order = line.as<decision::Store>().axes;
      if (order.size() < 2) continue;
      std::swap(order.back(), order[order.size() - 2]);
      add(order);
      if (order.size() > 2) std::swap(order[0], order.back());
      if (order.size() > 2) add(order);
      order.pop_back();
      add(order);
    }
    if (line.is<decision::Depth>() && f.name == "axes" &&
        !line.as<decision::Depth>().axes.empty()) {
      ir::Names order = line.as<decision::Depth>().axes;
      std::swap(order.front(), order.back());
      add(order);
      add(ir::Names());
    }
    if (f.kind == ir::FieldKind::Int) {
      const auto now = ir::field_value<ir::OptionalInt>(line.data(), f);
      if (!now) continue;
      for (const int64_t n : {int64_t{0}, *now - 1, *now + 1, *now / 2, 2 * *now, *now + 16})
        if (n != *now) add(ir::OptionalInt(n));
    }
  }
  return out;
}

// What the device gets: the text of the kernels without comments, how they are launched, and the
// plan that says when. A number that only an IR has is not here.
inline std::string emitted(ir::Program kernels, expr::ExprPool& pool) {
  std::string out;
  for (const emit::KernelText& k : emit::emit_kernels(kernels, pool)) {
    out += fmt::format("{}: {} threads, {} bytes, cluster {}, early {}, ordered {}\n{}", k.name,
                       k.threads, k.shared_bytes, k.cluster, k.may_begin_early, k.has_ordered_reads,
                       k.instructions);
    std::istringstream body(k.body);
    for (std::string line; std::getline(body, line);) {
      const size_t first = line.find_first_not_of(' ');
      if (first != std::string::npos && line.compare(first, 2, "//") != 0) out += line + "\n";
    }
  }
  std::erase_if(kernels.body, [](const ir::Op& op) { return op.is<matile::Kernel>(); });
  return out + ir::print(kernels);
}

// The kernels of a schedule as text, or why there are none.
inline std::string kernels_of(const ir::Program& program, const schedule::Schedule& decisions,
                              Unit& unit, std::string* why) {
  const auto built = replay(program, decisions, unit, why);
  if (!built) return "";
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}};
  const auto kernels = compile::to_kernels(built->program, context);
  if (!kernels) *why = sink.all().empty() ? "no reason" : sink.all()[0].message;
  if (!kernels && !sink.all().empty()) {
    EXPECT_EQ(sink.all()[0].code, diag::Code::DecisionRefused) << *why;
  }
  return kernels ? emitted(*kernels, unit.pool) : "";
}

}  // namespace nautilus::driver
