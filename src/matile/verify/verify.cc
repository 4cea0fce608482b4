// SPDX-License-Identifier: Apache-2.0
// The plan of a program of the MA-tile level, and the order in which the rules look at a kernel:
// names, shapes and places first (verify_declarations.cc, verify_role.h), then time
// (verify_flow.cc), meetings (verify_groups.cc), shares of lanes (verify_lanes.cc) and quantities
// (verify_resources.cc, verify_skeletons.cc).
#include <fmt/format.h>

#include <optional>
#include <set>

#include "ir/target_of.h"
#include "matile/point_layout.h"
#include "matile/verify/sampled_sizes.h"
#include "matile/verify/verify_role.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using ir::Op;

class MatileVerifier {
 public:
  MatileVerifier(const ir::Program& program, diag::Sink& sink)
      : program_(program), target_(ir::target_of(program)), sink_(sink), v_(sink) {}

  void run() {
    for (const Op& op : program_.body) {
      v_.set_op(op);
      top(op);
    }
  }

 private:
  bool is_clean() const { return sink_.all().size() == before_; }

  void top(const Op& op) {
    switch (kind(op)) {
      case Kind::Dim:
      case Kind::Static:
      case Kind::Param:
      case Kind::Fact:
      case Kind::Numerics:
      case Kind::Target:
      case Kind::Machine:
        v_.check_decl(op);
        return;
      case Kind::Oracle:
        if (has_oracle_) v_.fail("`oracle` stands twice");
        has_oracle_ = true;
        return;
      case Kind::Tensor: {
        const auto& t = op.as<Tensor>();
        v_.check_type(t.type);
        v_.declare_tensor(t.name, t.type);
        roles_.emplace(t.name.str(), t.role);
        return;
      }
      case Kind::Let:
        v_.check_closed(op.as<Let>().value, op.as<Let>().value.dtype(), "the value");
        v_.declare_var(op.as<Let>().name, op.as<Let>().value.dtype());
        return;
      case Kind::Map:
        return map(op.as<Map>());
      case Kind::Kernel:
        return kernel(op);
      case Kind::Launch:
        v_.check_closed(op.as<Launch>().grid, DType::I64, "the grid");
        for (ir::Name name : {op.as<Launch>().kernel, op.as<Launch>().unaligned_fallback}) {
          if (name && !kernels_.contains(std::string(name.str())))
            v_.fail(fmt::format("there is no kernel `{}` before", name.str()));
        }
        return;
      default:
        v_.fail(fmt::format("`{}` stands inside a kernel", op.info().mnemonic()));
    }
  }

  void map(const Map& m) {
    if (maps_.contains(std::string(m.name.str())) || v_.is_defined(m.name))
      v_.fail(fmt::format("`{}` is defined twice", m.name.str()));
    if (verify_map(m, target_.copies, v_)) maps_.emplace(m.name.str(), &m);
  }

  void kernel(const Op& op) {
    if (!sink_.all().empty()) return;  // a kernel means something only with its plan
    const auto& k = op.as<Kernel>();
    if (!kernels_.emplace(k.name.str()).second)
      v_.fail(fmt::format("kernel `{}` is defined twice", k.name.str()));
    if (k.begins == Begins::Early && k.reads != decision::ReadOrder::Ordered)
      v_.fail(fmt::format("kernel `{}` begins early, so its reads are `ordered`", k.name.str()));
    if (find_points(k)) return verify_points(k, target_, roles_, v_);
    if (k.form != KernelForm::Final) return verify_nest(k, maps_, v_);
    const size_t kernel_mark = v_.mark();
    before_ = sink_.all().size();
    KernelScope scope{program_, roles_, maps_, v_};
    if (k.cluster && (*k.cluster < 2 || *k.cluster > target_.limits.cluster_ctas))
      v_.fail(target_.limits.cluster_ctas < 2
                  ? fmt::format("{} has no clusters", target_.name)
                  : fmt::format("a cluster has 2 to {} CTAs, not {}", target_.limits.cluster_ctas,
                                *k.cluster));
    if (k.rank && !k.cluster) v_.fail("only CTAs of a cluster have a rank");
    if (k.rank && scope.declare(k.rank)) v_.declare_local(k.rank, DType::I64);
    verify_declarations(k, scope);
    if (!is_clean()) return;
    scope.resources = resources_of(k, target_);
    verify_references(k, scope);
    if (!is_clean()) return;
    RoleVerifier roles(k, scope);
    for (const Op& inner : k.body) {
      v_.set_op(inner);
      if (const auto* role = inner.get<Role>()) roles.run(*role);
    }
    if (!is_clean()) return;
    verify_resources(k, op.span(), scope.resources, sink_);
    verify_clusters(k, sink_);
    for (const Op& inner : k.body) {
      const auto* role = inner.get<Role>();
      if (!role) continue;
      verify_flow(*role, scope.resources, sink_);
      verify_groups(*role, sink_);
    }
    if (!is_clean()) return;
    for (const Op& inner : k.body) {
      if (const auto* role = inner.get<Role>()) verify_lanes(program_, k, *role, sink_);
    }
    if (is_clean()) verify_skeletons(program_, k, op.span(), scope.resources, samples(), sink_);
    v_.leave_axes(kernel_mark);
  }

  // The same for all kernels: a sample has the numbers of the whole plan.
  const std::vector<ir::Environment>& samples() {
    if (!samples_) samples_ = sampled_calls(program_);
    return *samples_;
  }

  const ir::Program& program_;
  const target::Target& target_;
  diag::Sink& sink_;
  std::optional<std::vector<ir::Environment>> samples_;
  ir::Verifier v_;
  bool has_oracle_ = false;
  std::map<std::string, TensorRole, std::less<>> roles_;
  KernelMaps maps_;
  std::set<std::string> kernels_;
  size_t before_ = 0;  // findings when the open kernel began
};

}  // namespace

bool verify(const ir::Program& program, diag::Sink& sink) {
  const size_t before = sink.all().size();
  MatileVerifier(program, sink).run();
  return sink.all().size() == before;
}

}  // namespace nautilus::matile
