// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/nearest.h"
#include "bundle/launcher_text.h"
#include "bundle/manifest.h"
#include "matile/passes/memory/repack.h"
#include "plan/variants.h"

namespace nautilus::bundle {
namespace {

bool is_same(const emit::KernelText& a, const emit::KernelText& b) {
  return a.name == b.name && a.threads == b.threads && a.shared_bytes == b.shared_bytes &&
         a.may_begin_early == b.may_begin_early && a.has_ordered_reads == b.has_ordered_reads &&
         a.cluster == b.cluster;
}

size_t add_kernel(Bundle& bundle, const plan::DeviceKernel& kernel) {
  for (size_t k = 0; k < bundle.kernels.size(); ++k) {
    if (bundle.kernels[k].source == kernel.source && is_same(bundle.kernels[k].text, kernel.text))
      return k;
  }
  const auto image = std::find(bundle.images.begin(), bundle.images.end(), kernel.cubin);
  const auto number = static_cast<size_t>(image - bundle.images.begin());
  if (image == bundle.images.end()) bundle.images.push_back(kernel.cubin);
  bundle.kernels.push_back({kernel.text, kernel.source, number});
  return bundle.kernels.size() - 1;
}

std::optional<Plan> compiled_plan(Bundle& bundle, std::unique_ptr<const ir::Program> program,
                                  bool use_cache, expr::ExprPool& pool, std::string* error) {
  const auto kernels = plan::compile_device(*program, pool, bundle.architecture, use_cache, error);
  if (!kernels) return std::nullopt;
  Plan plan;
  std::vector<emit::KernelText> texts;
  for (const plan::DeviceKernel& k : *kernels) {
    plan.kernels.push_back(add_kernel(bundle, k));
    texts.push_back(k.text);
  }
  plan.prepared = std::make_unique<const plan::Prepared>(*program, texts);
  plan.program = std::move(program);
  return plan;
}

// Sets of tensors to copy, few tensors first; nothing, and why, if one cannot be copied.
std::optional<std::vector<std::set<std::string>>> copied_sets(const Copies& copies,
                                                              const Plan& plan,
                                                              std::string* error) {
  const std::set<std::string> known = plan::repackable_tensors(*plan.program);
  std::set<std::set<std::string>> sets(copies.sets.begin(), copies.sets.end());
  if (copies.has_all) sets.insert(tensors_that_want_alignment(*plan.prepared));
  sets.erase(std::set<std::string>());
  std::vector<std::set<std::string>> out;
  for (const auto& set : sets) {
    for (const std::string& name : set) {
      if (known.contains(name)) continue;
      *error = base::no_such_name("tensor", name, {known.begin(), known.end()});
      return std::nullopt;
    }
    out.push_back(set);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return out;
}

}  // namespace

std::set<std::string> tensors_that_want_alignment(const plan::Prepared& plan) {
  std::set<int> tensors;
  for (const plan::Prepared::Map& m : plan.maps) tensors.insert(m.tensor);
  for (const plan::Prepared::Launch& l : plan.launches) {
    if (l.other < 0 && !l.is_other) tensors.insert(l.vectors.begin(), l.vectors.end());
  }
  std::set<std::string> out;
  for (int t : tensors) {
    const plan::Prepared::Tensor& tensor = plan.tensors[static_cast<size_t>(t)];
    if (tensor.role != matile::TensorRole::Scratch) out.insert(tensor.name);
  }
  return out;
}

bool add_program(Bundle& bundle, ProgramRequest request, expr::ExprPool& pool, std::string* error) {
  Program p{request.name, request.file, std::move(request.text), {}};
  auto program = std::make_unique<const ir::Program>(std::move(request.program));
  const ir::Program& own = *program;
  auto first = compiled_plan(bundle, std::move(program), request.use_cache, pool, error);
  if (!first) return false;
  p.plans.push_back(std::move(*first));
  const auto sets = copied_sets(request.copies, p.plans[0], error);
  if (!sets) return false;
  for (const std::set<std::string>& set : *sets) {
    auto other = std::make_unique<const ir::Program>(matile::repack(own, set, pool));
    auto plan = compiled_plan(bundle, std::move(other), request.use_cache, pool, error);
    if (!plan) return false;
    plan->copied = set;
    p.plans.push_back(std::move(*plan));
  }
  bundle.programs.push_back(std::move(p));
  return true;
}

std::string name_clash(const std::string& bundle, const std::vector<NamedProgram>& programs) {
  std::map<std::string, std::string> owners;
  for (const std::string& name : common_names(bundle)) owners.emplace(name, "every bundle");
  for (const NamedProgram& p : programs) {
    for (const std::string& name : public_names(bundle, p.name)) {
      const auto [owner, is_new] = owners.emplace(name, "`" + p.name + "`");
      if (is_new) continue;
      if (owner->second == "`" + p.name + "`")
        return fmt::format("two programs are called {}; name one of them: {}_2={}", owner->second,
                           p.name, p.file);
      return fmt::format("program `{}` and {} would both have `{}`; name it: OTHER={}", p.name,
                         owner->second, name, p.file);
    }
  }
  return "";
}

std::map<std::string, std::string> bundle_files(const Bundle& bundle) {
  std::map<std::string, std::string> files;
  files[bundle.name + ".h"] = header_text(bundle);
  files[bundle.name + ".c"] = launcher_text(bundle);
  files[bundle.name + "_support.h"] = support_text();
  files[bundle.name + "_kernels.c"] = images_text(bundle);
  files["CMakeLists.txt"] = cmake_text(bundle);
  files["manifest.json"] = manifest_text(bundle, files);
  return files;
}

bool write_bundle(const Bundle& bundle, const std::string& folder, std::string* error) {
  const auto files = bundle_files(bundle);
  std::error_code why;
  std::filesystem::create_directories(folder, why);
  if (!base::is_folder(folder)) {
    *error = fmt::format("{} cannot be made: {}", folder, why ? why.message() : "it is a file");
    return false;
  }
  return std::all_of(files.begin(), files.end(), [&](const auto& file) {
    return base::write_file_atomic(folder + "/" + file.first, file.second, error);
  });
}

}  // namespace nautilus::bundle
