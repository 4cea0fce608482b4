// SPDX-License-Identifier: Apache-2.0
// Questions about a call, without a device.
#include <fmt/format.h>

#include "arguments.h"
#include "ir/target_of.h"
#include "plan/workspace.h"

using namespace nautilus;
using capi::Failure;
using capi::report;

namespace {

Failure solved(const nautilus_program* program, const nautilus_arguments* arguments,
               capi::Arguments& read, std::optional<plan::Frame>& frame) {
  if (!program) return {NAUTILUS_ERROR_USAGE, "the program is null"};
  const capi::State& s = *program->state;
  Failure f = capi::read_arguments(s, arguments, capi::Wanted::Shapes, read);
  if (!f.is_ok()) return f;
  frame.emplace(*s.sizing);
  return capi::solve(s, read, *frame);
}

// The sizes of a call as the plan of the kernels has them.
Failure planned(const nautilus_program* program, const nautilus_arguments* arguments,
                int32_t multiprocessors, const capi::Lowered** lowered,
                std::optional<plan::Frame>& frame) {
  capi::Arguments read;
  std::optional<plan::Frame> sizing;
  if (Failure f = solved(program, arguments, read, sizing); !f.is_ok()) return f;
  const capi::State& s = *program->state;
  if (Failure f = capi::lowered_of(program->state, lowered); !f.is_ok()) return f;
  const plan::Prepared& plan = *(*lowered)->plan;
  frame.emplace(plan);
  for (size_t v = 0; v < s.sizing->values.size(); ++v) {
    const plan::Prepared::Value& value = s.sizing->values[v];
    const int number = plan.value(value.name);
    if (number >= 0) frame->set(number, sizing->slot(value.slot));
  }
  const int64_t usual = ir::target_of((*lowered)->kernels.program).board.sms;
  std::string error;
  if (!frame->evaluate(multiprocessors > 0 ? multiprocessors : static_cast<int>(usual), &error))
    return {NAUTILUS_ERROR_ARGUMENT, error};
  return {};
}

}  // namespace

nautilus_status nautilus_solve_sizes(nautilus_program* program, const nautilus_arguments* arguments,
                                     int64_t* sizes) {
  capi::Arguments read;
  std::optional<plan::Frame> frame;
  if (Failure f = solved(program, arguments, read, frame); !f.is_ok()) return report(f);
  if (!sizes) return report({NAUTILUS_ERROR_USAGE, "there is no place for the sizes"});
  const capi::State& s = *program->state;
  for (size_t v = 0; v < s.signature.values.size(); ++v) {
    const driver::Signature::Value& value = s.signature.values[v];
    const int number = s.sizing->value(value.name);
    const bool is_size = value.kind == driver::Signature::Kind::Size && number >= 0;
    sizes[v] = is_size ? frame->slot(s.sizing->values[static_cast<size_t>(number)].slot).i
               : value.kind == driver::Signature::Kind::Static ? value.hint.value_or(0)
                                                               : 0;
  }
  return NAUTILUS_OK;
}

nautilus_status nautilus_shape(nautilus_program* program, const nautilus_arguments* arguments,
                               int32_t index, int64_t* shape) {
  capi::Arguments read;
  std::optional<plan::Frame> frame;
  if (Failure f = solved(program, arguments, read, frame); !f.is_ok()) return report(f);
  if (index < 0 || index >= nautilus_tensor_count(program))
    return report({NAUTILUS_ERROR_USAGE, fmt::format("there is no tensor {}", index)});
  const size_t rank = program->state->signature.tensors[static_cast<size_t>(index)].dims.size();
  if (rank > 0 && !shape) return report({NAUTILUS_ERROR_USAGE, "there is no place for the shape"});
  for (size_t k = 0; k < rank; ++k) shape[k] = frame->extent(index, static_cast<int>(k));
  return NAUTILUS_OK;
}

nautilus_status nautilus_launches(nautilus_program* program, const nautilus_arguments* arguments,
                                  int32_t multiprocessors, nautilus_launch_info* launches,
                                  int32_t capacity, int32_t* count) {
  if (!count || capacity < 0 || (capacity > 0 && !launches))
    return report({NAUTILUS_ERROR_USAGE, "there is no place for the launches"});
  const capi::Lowered* l = nullptr;
  std::optional<plan::Frame> frame;
  if (Failure f = planned(program, arguments, multiprocessors, &l, frame); !f.is_ok())
    return report(f);
  *count = 0;
  for (size_t i = 0; i < l->plan->launches.size(); ++i) {
    const plan::Prepared::Launch& launch = l->plan->launches[i];
    if (launch.is_other) continue;
    if ((*count)++ >= capacity) continue;
    const int64_t grid = std::max<int64_t>(0, frame->grid(i));
    nautilus_launch_info& out = launches[*count - 1];
    out.kernel = l->texts[launch.kernel].name.c_str();
    out.form = l->forms[launch.kernel].c_str();
    out.grid = (grid + launch.cluster - 1) / launch.cluster * launch.cluster;
    out.threads = l->texts[launch.kernel].threads;
    out.reserved = 0;
  }
  return NAUTILUS_OK;
}

nautilus_status nautilus_workspace(nautilus_program* program, const nautilus_arguments* arguments,
                                   int32_t multiprocessors, uint64_t* bytes) {
  if (!bytes) return report({NAUTILUS_ERROR_USAGE, "there is no place for the answer"});
  const capi::Lowered* l = nullptr;
  std::optional<plan::Frame> frame;
  if (Failure f = planned(program, arguments, multiprocessors, &l, frame); !f.is_ok())
    return report(f);
  plan::Workspace workspace(*l->plan);
  std::string error;
  if (!workspace.lay_out(*frame, &error)) return report({NAUTILUS_ERROR_ARGUMENT, error});
  *bytes = workspace.bytes();
  return NAUTILUS_OK;
}
