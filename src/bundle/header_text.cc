// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "bundle/c_code.h"
#include "bundle/launcher_text.h"
#include "bundle/plan_text.h"
#include "expr/print.h"

namespace nautilus::bundle {
namespace {

// `*/` would end the comment; other characters than plain ones have no meaning in C.
std::string comment_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '/' && !out.empty() && out.back() == '*') out += ' ';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// N is the bundle's name.
constexpr std::string_view kCommon = R"text(
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return 0, or 1 if they failed: then the error says why. It may be null. */
typedef struct N_error {
  int status; /* of the driver (CUresult), 0 if it was not the driver */
  char text[1020];
} N_error;

/* A tensor in device memory. */
typedef struct N_tensor {
  void* data;
  int rank;
  const int64_t* shape;
  const int64_t* strides; /* in elements; null: rows lie one behind another */
} N_tensor;

/* Where a program runs. Null in place of it: the default stream, and no workspace. */
typedef struct N_call {
  void* stream;    /* CUstream or cudaStream_t */
  void* workspace; /* device memory at a multiple of 256 bytes, for this call until it has run */
  size_t workspace_bytes;
  /* Not 0: nothing but calls of this program with tensors of these shapes has written to the
   * workspace since one without this flag. What has to be zero in it is not cleared again then. */
  int is_workspace_kept;
} N_call;

/* The kernels, loaded into a context. It does not change after it was opened: any number of threads
 * may use it at a time. */
typedef struct N_bundle N_bundle;

/* Loads the kernels into the calling thread's current context (device -1), or into the primary
 * context of a device, which is the one that the runtime API and frameworks use. Null if it failed. */
N_bundle* N_open(int device, N_error* error);
/* All launches must have ended, and graphs that hold them must be gone. */
void N_close(N_bundle* bundle);
)text";

constexpr std::string_view kGenericDeclarations = R"text(
/* ---- The same by number, for callers that do not know the programs when they are compiled. */
typedef struct N_tensor_info {
  const char* name;
  const char* dtype;
  const char* shape; /* "M, K" */
  int rank;
  int is_output;
} N_tensor_info;
typedef struct N_value_info {
  const char* name;
  const char* dtype;
  int is_size;
} N_value_info;
typedef struct N_program_info {
  const char* name;
  int tensor_count;
  const N_tensor_info* tensors;
  int value_count;
  const N_value_info* values;
} N_program_info;

int N_program_count(void);
/* Null if there is no program of that number. */
const N_program_info* N_program(int number);
/* Tensors and values in the order of the program's info. A value is a pointer to an int64_t, or to a
 * double where the dtype is one of floats, or null; `values` may be null itself. */
int N_run(const N_bundle* bundle, int program, const N_tensor* tensors, const void* const* values,
          const N_call* call, N_error* error);
int N_run_workspace(const N_bundle* bundle, int program, const N_tensor* tensors,
                    const void* const* values, size_t* bytes, N_error* error);
)text";

std::string shape_list(const plan::Prepared::Tensor& t) {
  std::vector<std::string> dims;
  for (ir::Expr d : t.dims) dims.push_back(expr::to_string(d));
  return fmt::format("{}", fmt::join(dims, ", "));
}

std::string program_declarations(const Bundle& bundle, const Program& p) {
  const Arguments arguments = arguments_text(p);
  const std::string name = fmt::format("{}_{}", bundle.name, p.name);
  std::string out = fmt::format("\n/* ---- {}, from {} */\n", p.name, comment_text(p.file));
  out += fmt::format("typedef struct {}_args {{\n", name);
  for (const Argument& t : arguments.tensors)
    out += fmt::format("  {}_tensor {}; /* {} */\n", bundle.name, t.member, t.comment);
  const auto& values = p.plans[0].prepared->values;
  for (size_t i = 0; i < values.size(); ++i)
    out += fmt::format("  const {}* {}; /* {} */\n",
                       expr::is_float(values[i].dtype) ? "double" : "int64_t",
                       arguments.values[i].member, arguments.values[i].comment);
  out += fmt::format("}} {}_args;\n", name);
  out += fmt::format(
      "int {0}(const {1}_bundle* bundle, const {0}_args* args, const {1}_call* call,\n"
      "    {1}_error* error);\n"
      "/* How many bytes of workspace a call with these arguments needs. Addresses may be null: "
      "they\n"
      " * are taken to be aligned then. */\n"
      "int {0}_workspace(const {1}_bundle* bundle, const {0}_args* args, size_t* bytes,\n"
      "    {1}_error* error);\n",
      name, bundle.name);
  return out;
}

}  // namespace

Arguments arguments_text(const Program& program) {
  const plan::Prepared& plan = *program.plans[0].prepared;
  std::set<std::string> taken;
  const auto member = [&](std::string_view name) {
    std::string own = c_name(name);
    while (!taken.insert(own).second) own += '_';
    return own;
  };
  Arguments out;
  for (size_t i : arguments_of(program)) {
    const plan::Prepared::Tensor& t = plan.tensors[i];
    out.tensors.push_back(
        {member(t.name), comment_text(fmt::format(
                             "{} {}[{}]", t.role == matile::TensorRole::Output ? "output" : "input",
                             expr::name(t.dtype), shape_list(t)))});
  }
  std::set<int> solved;
  for (const plan::Prepared::Solve& s : plan.solves) {
    for (const plan::Prepared::SizeEquation& e : s.equations) solved.insert(e.slot);
  }
  for (const plan::Prepared::Value& v : plan.values) {
    std::string comment;
    if (!v.is_size)
      comment = fmt::format("scalar {}; {}", expr::name(v.dtype),
                            v.has_default ? "null: the program's own value" : "must be given");
    else if (solved.contains(v.slot))
      comment = "size; null: what the shapes say";
    else
      comment = v.hint ? fmt::format("size; null: {}", *v.hint) : "size; must be given";
    out.values.push_back({member(v.name), comment});
  }
  return out;
}

std::vector<std::string> common_names(const std::string& bundle) {
  std::vector<std::string> out;
  for (const std::string_view name :
       {"error", "tensor", "call", "bundle", "open", "close", "tensor_info", "value_info",
        "program_info", "program_count", "program", "run", "run_workspace", "image"})
    out.push_back(fmt::format("{}_{}", bundle, name));
  return out;
}

std::vector<std::string> public_names(const std::string& bundle, const std::string& program) {
  const std::string name = fmt::format("{}_{}", bundle, program);
  return {name, name + "_args", name + "_workspace"};
}

std::string header_text(const Bundle& bundle) {
  const std::string guard = upper(bundle.name) + "_H";
  std::string out = fmt::format(
      "/* {}.h: programs for {}, made by {}. Do not edit: build the bundle again. */\n"
      "#ifndef {}\n#define {}\n",
      bundle.name, bundle.architecture, comment_text(bundle.compiler), guard, guard);
  out += with_bundle_name(kCommon, bundle.name);
  for (const Program& p : bundle.programs) out += program_declarations(bundle, p);
  out += with_bundle_name(kGenericDeclarations, bundle.name);
  out += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return out;
}

}  // namespace nautilus::bundle
