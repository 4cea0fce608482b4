// SPDX-License-Identifier: Apache-2.0
#include "lower/asked_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "decision/lines.h"

namespace nautilus::lower {

AskedKernels::AskedKernels(const ir::Program& program) {
  for (const ir::Op& op : program.body) {
    const auto* lines = op.get<decision::Kernel>();
    if (!lines) continue;
    const bool is_alternative = !kernels_.empty() && kernels_.back().name == lines->name &&
                                kernels_.back().form == lines->form;
    if (!is_alternative) {
      kernels_.emplace_back();
      kernels_.back().name = lines->name;
      kernels_.back().form = lines->form;
      kernels_.back().statements.emplace(lines->name.str());
    }
    AskedKernel& kernel = kernels_.back();
    kernel.alternatives.emplace_back();
    for (const ir::Op& line : lines->body) {
      ir::Block* list = line.is<decision::Fuse>()    ? &kernel.fuse
                        : line.is<decision::Split>() ? &kernel.split
                        : line.is<decision::Inner>() ? &kernel.inner
                                                     : nullptr;
      (is_alternative || !list ? kernel.alternatives.back() : *list).push_back(line);
      if (is_alternative) continue;
      if (const auto* fuse = line.get<decision::Fuse>()) {
        for (ir::Name s : fuse->statements) kernel.statements.emplace(s.str());
      }
    }
  }
}

AskedKernel* AskedKernels::find(const std::set<std::string>& written, bool is_from_parts) {
  for (AskedKernel& k : kernels_) {
    if ((k.form == decision::Form::Parts) != is_from_parts) continue;
    if (std::any_of(written.begin(), written.end(),
                    [&](const std::string& w) { return k.statements.contains(w); }))
      return &k;
  }
  return nullptr;
}

std::optional<size_t> AskedKernels::place(const std::set<std::string>& written,
                                          bool is_from_parts) {
  const AskedKernel* found = find(written, is_from_parts);
  return found ? std::optional(static_cast<size_t>(found - kernels_.data())) : std::nullopt;
}

bool AskedKernels::end(ir::PassContext& context) const {
  bool ok = true;
  for (const AskedKernel& k : kernels_) {
    if (k.is_read) continue;
    refuse(k, "no statement of the program is left for it", context);
    ok = false;
  }
  return ok;
}

void refuse(const AskedKernel& kernel, std::string_view why, ir::PassContext& context) {
  const auto form = decision::words(kernel.form)[static_cast<size_t>(kernel.form)];
  context.sink.report(diag::Code::DecisionRefused, {},
                      fmt::format("`kernel {} {}`: {}", kernel.name.str(), form, why));
}

}  // namespace nautilus::lower
