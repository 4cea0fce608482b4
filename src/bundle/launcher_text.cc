// SPDX-License-Identifier: Apache-2.0
#include "bundle/launcher_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "bundle/c_code.h"
#include "bundle/plan_text.h"
#include "expr/print.h"

namespace nautilus::bundle {
namespace {

// The number of `sm_90a`, and whether it is for that device alone.
std::pair<int, bool> architecture_number(const std::string& architecture) {
  int number = 0;
  const size_t begin = architecture.find('_') + 1;
  std::from_chars(architecture.data() + begin, architecture.data() + architecture.size(), number);
  return {number, architecture.ends_with('a')};
}

std::string tables_text(const Bundle& bundle) {
  std::string out = fmt::format("extern const Image {}_image[];\n", bundle.name);
  out += "static const KernelInfo kKernels[] = {\n";
  for (const Kernel& k : bundle.kernels)
    out += fmt::format("    {{{}, {}, {}, {}, {}}},\n", c_string(k.text.name), k.image,
                       k.text.threads, k.text.shared_bytes, k.text.may_begin_early ? 1 : 0);
  if (bundle.kernels.empty()) out += "    {NULL, 0, 0, 0, 0},\n";
  return out + "};\n\n";
}

// One function that chooses among the plans of a program.
std::string program_functions(const Program& p) {
  std::string out;
  const plan::Prepared& first = *p.plans[0].prepared;
  size_t room = 1;
  for (size_t i = 0; i < p.plans.size(); ++i) {
    out += plan_text(p, i);
    room = std::max(room, p.plans[i].prepared->tensors.size());
    if (i == 0) continue;
    std::vector<int> copied;
    for (const plan::Prepared::Tensor& t : first.tensors)
      copied.push_back(p.plans[i].copied.contains(t.name) ? 1 : 0);
    out += fmt::format("static const unsigned char {}_copied[] = {{{}}};\n", plan_name(p, i),
                       fmt::join(copied, ", "));
  }
  out += fmt::format("static const Variant {}_plans[] = {{\n", p.name);
  for (size_t i = 0; i < p.plans.size(); ++i)
    out += fmt::format("    {{{}, {}}},\n", i == 0 ? "NULL" : plan_name(p, i) + "_copied",
                       plan_name(p, i));
  out += "};\n";
  out += fmt::format(
      "static int {0}_run(const Bundle* bundle, const Tensor* tensors, const void* const* values,\n"
      "    const Call* call, size_t* workspace_bytes, Error* error) {{\n"
      "  unsigned char misaligned[{1}] = {{0}};\n"
      "  return run_in_context({0}_plans, {2}, {3}_tensors, {4}, misaligned, bundle, tensors,\n"
      "                        values, call, workspace_bytes, error);\n"
      "}}\n",
      p.name, room, p.plans.size(), plan_name(p, 0), first.tensors.size());
  return out;
}

std::string typed_text(const Bundle& bundle, const Program& p) {
  const Arguments arguments = arguments_text(p);
  std::string tensors;
  for (const Argument& a : arguments.tensors) tensors += fmt::format("args->{}, ", a.member);
  std::string values;
  for (const Argument& a : arguments.values) values += fmt::format("args->{}, ", a.member);
  std::string out;
  for (const bool is_measured : {false, true}) {
    out += fmt::format(
        "int {0}_{1}{2}(const Bundle* bundle, const {0}_{1}_args* args, {3}, Error* error) {{\n"
        "  if (!args) return {1}_run(bundle, NULL, NULL, NULL, NULL, error);\n"
        "  const Tensor tensors[] = {{{4}}};\n"
        "  const void* const values[] = {{{5}NULL}};\n"
        "  return {1}_run(bundle, tensors, values, {6}, error);\n"
        "}}\n",
        bundle.name, p.name, is_measured ? "_workspace" : "",
        is_measured ? "size_t* bytes" : "const Call* call", tensors.empty() ? "{0}" : tensors,
        values, is_measured ? "NULL, bytes" : "call, NULL");
  }
  return out;
}

std::string info_text(const Bundle& bundle) {
  std::string out;
  std::string list;
  size_t most_values = 1;
  for (const Program& p : bundle.programs) {
    const plan::Prepared& plan = *p.plans[0].prepared;
    out += fmt::format("static const {}_tensor_info {}_tensor_infos[] = {{\n", bundle.name, p.name);
    const auto arguments = arguments_of(p);
    for (size_t i : arguments) {
      const plan::Prepared::Tensor& t = plan.tensors[i];
      std::vector<std::string> dims;
      for (ir::Expr d : t.dims) dims.push_back(expr::to_string(d));
      out += fmt::format("    {{{}, {}, {}, {}, {}}},\n", c_string(t.name),
                         c_string(expr::name(t.dtype)),
                         c_string(fmt::format("{}", fmt::join(dims, ", "))), t.rank(),
                         t.role == matile::TensorRole::Output ? 1 : 0);
    }
    if (arguments.empty()) out += "    {NULL, NULL, NULL, 0, 0},\n";
    out +=
        fmt::format("}};\nstatic const {}_value_info {}_value_infos[] = {{\n", bundle.name, p.name);
    for (const plan::Prepared::Value& v : plan.values)
      out += fmt::format("    {{{}, {}, {}}},\n", c_string(v.name), c_string(expr::name(v.dtype)),
                         v.is_size ? 1 : 0);
    if (plan.values.empty()) out += "    {NULL, NULL, 0},\n";
    out += "};\n";
    list += fmt::format("    {{{}, {}, {}_tensor_infos, {}, {}_value_infos}},\n", c_string(p.name),
                        arguments.size(), p.name, plan.values.size(), p.name);
    most_values = std::max(most_values, plan.values.size());
  }
  out += fmt::format("static const {}_program_info kPrograms[] = {{\n{}}};\n", bundle.name, list);
  out += "static const ProgramFunction kFunctions[] = {";
  for (const Program& p : bundle.programs) out += fmt::format("{}_run, ", p.name);
  out += fmt::format("}};\nstatic const void* const kNoValues[{}] = {{NULL}};\n", most_values);
  return out;
}

// N is the bundle's name.
constexpr std::string_view kGenericFunctions = R"text(
int N_program_count(void) { return (int)(sizeof kPrograms / sizeof kPrograms[0]); }

const N_program_info* N_program(int number) {
  return number >= 0 && number < N_program_count() ? &kPrograms[number] : NULL;
}

static int run_number(const Bundle* bundle, int program, const Tensor* tensors,
    const void* const* values, const Call* call, size_t* bytes, Error* error) {
  clear(error);
  if (!N_program(program)) return fail(error, 0, "there is no program %d", program);
  return kFunctions[program](bundle, tensors, values ? values : kNoValues, call, bytes, error);
}

int N_run(const Bundle* bundle, int program, const Tensor* tensors, const void* const* values,
    const Call* call, Error* error) {
  return run_number(bundle, program, tensors, values, call, NULL, error);
}

int N_run_workspace(const Bundle* bundle, int program, const Tensor* tensors,
    const void* const* values, size_t* bytes, Error* error) {
  return run_number(bundle, program, tensors, values, NULL, bytes, error);
}

void N_close(Bundle* bundle) { close_bundle(bundle); }
)text";

}  // namespace

std::string with_bundle_name(std::string_view text, const std::string& name) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_start = i == 0 || (std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0 &&
                                     text[i - 1] != '_');
    if (is_start && text.substr(i, 2) == "N_")
      out += name;
    else
      out += text[i];
  }
  return out;
}

std::string launcher_text(const Bundle& bundle) {
  std::string out = fmt::format(
      "/* {0}.c: how the programs of {0}.h are launched, made by {1}. Do not edit. */\n"
      "#include \"{0}.h\"\n\n"
      "#define BUNDLE {0}_bundle\n"
      "typedef {0}_tensor Tensor;\n"
      "typedef {0}_call Call;\n"
      "typedef {0}_error Error;\n"
      "#include \"{0}_support.h\"\n\n"
      "typedef int (*ProgramFunction)(const Bundle*, const Tensor*, const void* const*, const "
      "Call*,\n"
      "                               size_t*, Error*);\n",
      bundle.name, bundle.compiler);
  out += tables_text(bundle);
  for (const Program& p : bundle.programs) out += program_functions(p) + "\n";
  for (const Program& p : bundle.programs) out += typed_text(bundle, p) + "\n";
  out += info_text(bundle);
  out += with_bundle_name(kGenericFunctions, bundle.name);
  const auto [number, is_exact] = architecture_number(bundle.architecture);
  out += fmt::format(
      "\n{0}_bundle* {0}_open(int device, {0}_error* error) {{\n"
      "  return open_bundle(device, {1}, {2}, {0}_image, {3}, kKernels, {4}, error);\n"
      "}}\n",
      bundle.name, number, is_exact ? 1 : 0, bundle.images.size(), bundle.kernels.size());
  return out;
}

std::string images_text(const Bundle& bundle) {
  std::string out = fmt::format(
      "/* {0}_kernels.c: machine code for {1}, made by {2}. */\n"
      "#include <stddef.h>\n\n"
      "typedef struct Image {{\n  const unsigned char* bytes;\n  size_t size;\n}} Image;\n"
      "extern const Image {0}_image[];\n\n",
      bundle.name, bundle.architecture, bundle.compiler);
  for (size_t i = 0; i < bundle.images.size(); ++i) {
    const std::string& image = bundle.images[i];
    out +=
        fmt::format("_Alignas(64) static const unsigned char kImage{}[{}] = {{", i, image.size());
    for (size_t k = 0; k < image.size(); ++k)
      out += fmt::format("{}{},", k % 32 == 0 ? "\n" : "", static_cast<unsigned char>(image[k]));
    out += "\n};\n";
  }
  out += fmt::format("const Image {}_image[] = {{\n", bundle.name);
  for (size_t i = 0; i < bundle.images.size(); ++i)
    out += fmt::format("    {{kImage{}, sizeof kImage{}}},\n", i, i);
  if (bundle.images.empty()) out += "    {NULL, 0},\n";
  return out + "};\n";
}

std::string cmake_text(const Bundle& bundle) {
  return fmt::format(
      "# {0}: made by {1}. For add_subdirectory, or alone.\n"
      "cmake_minimum_required(VERSION 3.10)\n"
      "project({0} LANGUAGES C)\n\n"
      "add_library({0} {0}.c {0}_kernels.c)\n"
      "target_include_directories({0} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
      "set_target_properties({0} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON\n"
      "                                     POSITION_INDEPENDENT_CODE ON)\n"
      "target_link_libraries({0} PUBLIC ${{CMAKE_DL_LIBS}} m)\n",
      bundle.name, bundle.compiler);
}

}  // namespace nautilus::bundle
