// SPDX-License-Identifier: Apache-2.0
// Programs compiled ahead of time, as C that needs only the CUDA driver: machine code, and a
// launcher that does what plan::Executable does for every call (docs/bundles.md).
//
//   Bundle bundle{.name = "kernels", .architecture = "sm_90a"};
//   add_program(bundle, request, pool, &error) ...
//   write_bundle(bundle, folder, &error)
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plan/compile.h"
#include "plan/prepared.h"

namespace nautilus::bundle {

// A kernel of the bundle; several plans may share it.
struct Kernel {
  emit::KernelText text;
  std::string source;
  size_t image = 0;
};

// A plan of a program: the program itself, or its variant with aligned copies of some tensors.
struct Plan {
  std::set<std::string> copied;
  std::unique_ptr<const ir::Program> program;
  std::unique_ptr<const plan::Prepared> prepared;
  std::vector<size_t> kernels;  // numbers in the bundle of the program's kernels
};

struct Program {
  std::string name;  // in the bundle, a C name
  std::string file;  // where it comes from, without folders
  std::string text;  // what was in it
  // The program itself, then variants with copies, those with the fewest first.
  std::vector<Plan> plans;
};

struct Bundle {
  std::string name;  // a C name: what functions and files begin with
  std::string architecture;
  std::string compiler;  // who made it
  std::vector<Program> programs;
  std::vector<Kernel> kernels;
  std::vector<std::string> images;  // machine code
};

// Sets of tensors for which the bundle has a plan with copies.
struct Copies {
  bool has_all = true;  // a plan that copies all tensors that may need it; it serves every call
  std::vector<std::set<std::string>> sets;
};

struct ProgramRequest {
  std::string name;
  std::string file;
  std::string text;
  ir::Program program;  // kernels
  Copies copies;
  bool use_cache = true;
};
// Compiles it. The pool must outlive the bundle. False, and why, if a kernel does not compile or a
// tensor to copy is not there.
bool add_program(Bundle& bundle, ProgramRequest request, expr::ExprPool& pool, std::string* error);

// Tensors that some kernel of the plan cannot use with all strides and addresses.
std::set<std::string> tensors_that_want_alignment(const plan::Prepared& plan);

// Why programs of these names and files cannot be in one bundle: two functions would have the same
// name. Empty if they can.
struct NamedProgram {
  std::string name;
  std::string file;
};
std::string name_clash(const std::string& bundle, const std::vector<NamedProgram>& programs);

// Name and content of every file.
std::map<std::string, std::string> bundle_files(const Bundle& bundle);
// Makes the folder if it is not there.
bool write_bundle(const Bundle& bundle, const std::string& folder, std::string* error);

}  // namespace nautilus::bundle
