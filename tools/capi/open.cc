// SPDX-License-Identifier: Apache-2.0
// nautilus_open, and what a program says of itself.
#include <fmt/format.h>

#include "base/files.h"
#include "driver/kernels/scheduling.h"
#include "driver/report/explain.h"
#include "driver/report/warnings.h"
#include "ir/print.h"
#include "program.h"
#include "schedule/text/schedule.h"

using namespace nautilus;
using capi::Failure;
using capi::report;

namespace {

std::optional<std::string> optional_text(const char* text) {
  return text ? std::optional<std::string>(text) : std::nullopt;
}

nautilus_status open(capi::OpenRequest request, const nautilus_open_options& o,
                     nautilus_program** program) {
  request.flags = o.flags;
  if (o.name) request.name = o.name;
  request.sizes = o.sizes ? o.sizes : "";
  request.schedule = optional_text(o.schedule);
  request.target = optional_text(o.target);
  request.database = optional_text(o.database);
  request.cuda_source = optional_text(o.cuda_source);
  auto state = std::make_shared<capi::State>();
  state->request = std::move(request);
  const Failure f = capi::with_state(state, "opening a program", [](capi::State& s) {
    Failure failure = capi::load(s);
    if (failure.is_ok() && !(s.request.flags & NAUTILUS_OPEN_DEFERRED)) failure = capi::lower(s);
    return failure;
  });
  if (!f.is_ok()) return report(f);
  *program = new nautilus_program{std::move(state)};
  return NAUTILUS_OK;
}

// What is wrong with the call; OK if nothing is.
Failure begin_open(const char* what, const nautilus_open_options* options,
                   nautilus_program** program, nautilus_open_options& o) {
  if (!program) return {NAUTILUS_ERROR_USAGE, "there is no place for the program"};
  *program = nullptr;
  if (!what) return {NAUTILUS_ERROR_USAGE, "there is no text or path"};
  if (!capi::read_struct(options, o))
    return {NAUTILUS_ERROR_USAGE, "nautilus_open_options has no struct_size"};
  return {};
}

}  // namespace

nautilus_status nautilus_open_text(const char* text, const nautilus_open_options* options,
                                   nautilus_program** program) {
  nautilus_open_options o = {};
  if (Failure f = begin_open(text, options, program, o); !f.is_ok()) return report(f);
  capi::OpenRequest request;
  request.name = "program";
  request.text = text;
  return open(std::move(request), o, program);
}

nautilus_status nautilus_open_file(const char* path, const nautilus_open_options* options,
                                   nautilus_program** program) {
  nautilus_open_options o = {};
  if (Failure f = begin_open(path, options, program, o); !f.is_ok()) return report(f);
  std::string error;
  auto text = base::read_file(path, &error);
  if (!text) return report({NAUTILUS_ERROR_SYSTEM, error});
  capi::OpenRequest request;
  request.name = path;
  request.text = std::move(*text);
  return open(std::move(request), o, program);
}

void nautilus_close(nautilus_program* program) { delete program; }

int nautilus_version(void) { return NAUTILUS_VERSION_NUMBER; }
const char* nautilus_version_text(void) { return NAUTILUS_VERSION; }

static_assert(static_cast<int>(expr::DType::F64) == NAUTILUS_F64 &&
              static_cast<int>(expr::DType::BF16) == NAUTILUS_BF16 &&
              static_cast<int>(expr::DType::F8E4M3) == NAUTILUS_F8E4M3 &&
              static_cast<int>(expr::DType::I64) == NAUTILUS_I64 &&
              expr::kDTypeCount == NAUTILUS_TF32 + 1);

const char* nautilus_dtype_name(int dtype) {
  if (dtype < 0 || dtype >= expr::kDTypeCount) return nullptr;
  return expr::name(static_cast<expr::DType>(dtype)).data();
}

int nautilus_dtype_bytes(int dtype) {
  if (dtype < 0 || dtype >= expr::kDTypeCount) return 0;
  return expr::bytes(static_cast<expr::DType>(dtype));
}

int nautilus_dtype_of_name(const char* name) {
  const auto dtype = name ? expr::parse_dtype(name) : std::nullopt;
  return dtype ? static_cast<int>(*dtype) : -1;
}

const char* nautilus_program_name(const nautilus_program* program) {
  return program ? program->state->loaded->name.c_str() : "";
}

int32_t nautilus_tensor_count(const nautilus_program* program) {
  return program ? static_cast<int32_t>(program->state->signature.tensors.size()) : 0;
}

int32_t nautilus_tensor_index(const nautilus_program* program, const char* name) {
  return program && name ? program->state->signature.tensor(name) : -1;
}

nautilus_status nautilus_tensor_at(const nautilus_program* program, int32_t index,
                                   nautilus_tensor_info* info) {
  if (!program || index < 0 || index >= nautilus_tensor_count(program))
    return report({NAUTILUS_ERROR_USAGE, fmt::format("there is no tensor {}", index)});
  const capi::State& s = *program->state;
  const driver::Signature::Tensor& t = s.signature.tensors[static_cast<size_t>(index)];
  nautilus_tensor_info out = NAUTILUS_TENSOR_INFO_INIT;
  out.name = t.name.c_str();
  out.dtype = static_cast<int32_t>(t.type.dtype);
  out.rank = static_cast<int32_t>(t.dims.size());
  out.is_output = t.is_output;
  out.dims = s.dims[static_cast<size_t>(index)].data();
  return capi::write_struct(out, info);
}

int32_t nautilus_value_count(const nautilus_program* program) {
  return program ? static_cast<int32_t>(program->state->signature.values.size()) : 0;
}

int32_t nautilus_value_index(const nautilus_program* program, const char* name) {
  return program && name ? program->state->signature.value(name) : -1;
}

nautilus_status nautilus_value_at(const nautilus_program* program, int32_t index,
                                  nautilus_value_info* info) {
  if (!program || index < 0 || index >= nautilus_value_count(program))
    return report({NAUTILUS_ERROR_USAGE, fmt::format("there is no size or scalar {}", index)});
  const driver::Signature::Value& v = program->state->signature.values[static_cast<size_t>(index)];
  static_assert(static_cast<int>(driver::Signature::Kind::Static) == NAUTILUS_STATIC_SIZE &&
                static_cast<int>(driver::Signature::Kind::Scalar) == NAUTILUS_SCALAR);
  nautilus_value_info out = NAUTILUS_VALUE_INFO_INIT;
  out.name = v.name.c_str();
  out.kind = static_cast<int32_t>(v.kind);
  out.dtype = static_cast<int32_t>(v.dtype);
  out.has_hint = v.hint.has_value();
  out.hint = v.hint.value_or(0);
  out.default_text = v.default_text.empty() ? nullptr : v.default_text.c_str();
  out.bound_tensor = v.tensor;
  out.bound_dimension = v.dimension;
  return capi::write_struct(out, info);
}

namespace {

// With all its lines, also those that were taken by rule.
Failure complete_schedule(capi::State& s, std::string& out) {
  if (s.loaded->level->name != "spec") return {};
  const size_t before = s.unit.sink.all().size();
  std::string error;
  const auto& given = s.lowered->schedule;
  auto scheduled = given ? driver::replay_schedule(*s.loaded, *given, s.unit, &error)
                         : driver::first_schedule(*s.loaded, s.unit);
  if (!scheduled) return {NAUTILUS_ERROR_PROGRAM, capi::messages_since(s.unit, before) + error};
  driver::complete(*scheduled, s.unit);
  out = schedule::print(scheduled->decisions);
  return {};
}

// For work of with_state.
Failure make_text(capi::State& s, nautilus_text_kind kind, std::string& out) {
  if (kind == NAUTILUS_TEXT_PROGRAM) {
    out = ir::print(*s.loaded);
    return {};
  }
  if (Failure f = capi::lower(s); !f.is_ok()) return f;
  const capi::Lowered& l = *s.lowered;
  switch (kind) {
    case NAUTILUS_TEXT_WARNINGS: {
      const size_t before = s.unit.sink.all().size();
      driver::report_warnings(*s.loaded, l.kernels, {}, s.unit);
      out = s.warnings + capi::messages_since(s.unit, before);
      return {};
    }
    case NAUTILUS_TEXT_SCHEDULE:
      return complete_schedule(s, out);
    case NAUTILUS_TEXT_NOTE:
      out = l.note;
      return {};
    case NAUTILUS_TEXT_CUDA:
      out = s.request.cuda_source ? *s.request.cuda_source : emit::device_source(l.texts);
      return {};
    case NAUTILUS_TEXT_KERNELS:
      out = ir::print(l.kernels.program);
      return {};
    case NAUTILUS_TEXT_EXPLAIN: {
      const size_t before = s.unit.sink.all().size();
      driver::ExplainRequest request;
      request.schedule = l.schedule;
      std::string error;
      auto text = driver::explain(*s.loaded, request, s.unit, &error);
      if (!text) return {NAUTILUS_ERROR_PROGRAM, capi::messages_since(s.unit, before) + error};
      out = std::move(*text);
      return {};
    }
    case NAUTILUS_TEXT_PROGRAM:
      break;
  }
  return {NAUTILUS_ERROR_USAGE, fmt::format("there is no text {}", static_cast<int>(kind))};
}

}  // namespace

nautilus_status nautilus_text(nautilus_program* program, nautilus_text_kind kind,
                              const char** text) {
  if (!program || !text) return report({NAUTILUS_ERROR_USAGE, "a pointer is null"});
  *text = "";
  const Failure f =
      capi::with_state(program->state, "writing a text of a program", [kind](capi::State& s) {
        if (s.texts.contains(kind)) return Failure{};
        std::string made;
        Failure failure = make_text(s, kind, made);
        if (failure.is_ok()) s.texts.emplace(kind, std::move(made));
        return failure;
      });
  if (!f.is_ok()) return report(f);
  const std::lock_guard lock(program->state->mutex);
  *text = program->state->texts.at(kind).c_str();
  return NAUTILUS_OK;
}

nautilus_status nautilus_kernel_count(nautilus_program* program, int32_t* count) {
  if (!program || !count) return report({NAUTILUS_ERROR_USAGE, "a pointer is null"});
  const capi::Lowered* l = nullptr;
  if (Failure f = capi::lowered_of(program->state, &l); !f.is_ok()) return report(f);
  *count = static_cast<int32_t>(l->texts.size());
  return NAUTILUS_OK;
}

nautilus_status nautilus_kernel_at(nautilus_program* program, int32_t index,
                                   nautilus_kernel_info* info) {
  if (!program) return report({NAUTILUS_ERROR_USAGE, "the program is null"});
  const capi::Lowered* l = nullptr;
  if (Failure f = capi::lowered_of(program->state, &l); !f.is_ok()) return report(f);
  if (index < 0 || index >= static_cast<int32_t>(l->texts.size()))
    return report({NAUTILUS_ERROR_USAGE, fmt::format("there is no kernel {}", index)});
  const auto k = static_cast<size_t>(index);
  nautilus_kernel_info out = NAUTILUS_KERNEL_INFO_INIT;
  out.name = l->texts[k].name.c_str();
  out.form = l->forms[k].c_str();
  out.threads = l->texts[k].threads;
  out.shared_bytes = l->texts[k].shared_bytes;
  out.source = l->sources[k].c_str();
  return capi::write_struct(out, info);
}
