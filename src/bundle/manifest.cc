// SPDX-License-Identifier: Apache-2.0
#include "bundle/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "bundle/plan_text.h"
#include "expr/print.h"
#include "ir/decl.h"
#include "matile/ops.h"

namespace nautilus::bundle {
namespace {

using matile::TensorRole;
using nlohmann::ordered_json;

ordered_json tensor_json(const plan::Prepared::Tensor& t) {
  ordered_json shape = ordered_json::array();
  for (ir::Expr d : t.dims) shape.push_back(expr::to_string(d));
  return {{"name", t.name},
          {"dtype", expr::name(t.dtype)},
          {"shape", shape},
          {"role", matile::words(t.role)[static_cast<size_t>(t.role)]}};
}

ordered_json plan_json(const Bundle& bundle, const Plan& plan) {
  ordered_json workspace = ordered_json::array();
  for (const plan::Prepared::Tensor& t : plan.prepared->tensors) {
    if (t.role >= TensorRole::Scratch) workspace.push_back(tensor_json(t));
  }
  ordered_json launches = ordered_json::array();
  for (const ir::Op& op : plan.program->body) {
    const auto* l = op.get<matile::Launch>();
    if (!l) continue;
    ordered_json launch = {{"kernel", l->kernel.str()}, {"grid", expr::to_string(l->grid)}};
    if (l->unaligned_fallback) launch["else"] = l->unaligned_fallback.str();
    launches.push_back(launch);
  }
  ordered_json kernels = ordered_json::array();
  for (size_t k : plan.kernels)
    kernels.push_back({{"name", bundle.kernels[k].text.name}, {"kernel", k}});
  return {{"copies", plan.copied},
          {"workspace", workspace},
          {"kernels", kernels},
          {"launches", launches}};
}

ordered_json program_json(const Bundle& bundle, const Program& p) {
  const plan::Prepared& first = *p.plans[0].prepared;
  ordered_json tensors = ordered_json::array();
  for (size_t i : arguments_of(p)) tensors.push_back(tensor_json(first.tensors[i]));
  ordered_json statics = ordered_json::object();
  for (const ir::Op& op : p.plans[0].program->body) {
    if (const auto* s = op.get<ir::Static>()) statics[std::string(s->name.str())] = *s->value;
  }
  ordered_json sizes = ordered_json::array();
  ordered_json scalars = ordered_json::array();
  for (const plan::Prepared::Value& v : first.values) {
    if (!v.is_size) {
      scalars.push_back(
          {{"name", v.name}, {"dtype", expr::name(v.dtype)}, {"has_default", v.has_default}});
      continue;
    }
    ordered_json size = {{"name", v.name}};
    if (v.hint) size["hint"] = *v.hint;
    sizes.push_back(size);
  }
  ordered_json plans = ordered_json::array();
  for (const Plan& plan : p.plans) plans.push_back(plan_json(bundle, plan));
  return {{"name", p.name},     {"function", fmt::format("{}_{}", bundle.name, p.name)},
          {"file", p.file},     {"sha256", base::sha256(p.text)},
          {"tensors", tensors}, {"static", statics},
          {"sizes", sizes},     {"scalars", scalars},
          {"plans", plans}};
}

}  // namespace

std::string manifest_text(const Bundle& bundle, const std::map<std::string, std::string>& files) {
  ordered_json out = {{"bundle", bundle.name},
                      {"compiler", bundle.compiler},
                      {"target", bundle.architecture},
                      {"programs", ordered_json::array()},
                      {"kernels", ordered_json::array()},
                      {"images", ordered_json::array()},
                      {"files", ordered_json::object()}};
  for (const Program& p : bundle.programs) out["programs"].push_back(program_json(bundle, p));
  for (const Kernel& k : bundle.kernels)
    out["kernels"].push_back({{"name", k.text.name},
                              {"image", k.image},
                              {"threads", k.text.threads},
                              {"shared_bytes", k.text.shared_bytes},
                              {"param_bytes", k.text.param_bytes},
                              {"cluster", k.text.cluster},
                              {"begins_early", k.text.may_begin_early},
                              {"source_sha256", base::sha256(k.source)}});
  for (const std::string& image : bundle.images)
    out["images"].push_back({{"bytes", image.size()}, {"sha256", base::sha256(image)}});
  for (const auto& [name, content] : files) out["files"][name] = base::sha256(content);
  // It may contain a program's own text; bytes that are not UTF-8 are replaced, not refused.
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace nautilus::bundle
