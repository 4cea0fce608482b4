// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/leaving_scans.h"

#include <algorithm>

#include "spec/equations.h"
#include "spec/scans.h"

namespace nautilus::spec {
namespace {

class Cut {
 public:
  explicit Cut(const ir::Program& program)
      : program_(program), scanned_(scanned_tensors(program)), outputs_(output_set(program)) {
    for (const ir::Op& op : program.body) {
      const auto* let = op.get<Let>();
      if (!let || !scanned_.contains(let->name)) continue;
      for (ir::Name n : expr::tensors_read(let->body)) read_.insert(n);
    }
  }

  // Kernels may not multiply numbers of 16 bits with 0 that may be infinite, and inputs are finite.
  bool has_halves() const {
    return std::any_of(program_.body.begin(), program_.body.end(), [&](const ir::Op& op) {
      const auto* let = op.get<Let>();
      return let && scanned_.contains(let->name) && expr::is_float(let->dtype) &&
             expr::bytes(let->dtype) <= 2;
    });
  }

  ir::Program without_scans() const {
    ir::Program out{program_.level, program_.name, {}};
    ir::Block results;
    for (const ir::Op& op : program_.body) {
      if (op.is<State>() || op.is<Output>()) continue;
      const auto* let = op.get<Let>();
      if (let && scanned_.contains(let->name)) {
        out.body.push_back(ir::make(Input{let->name, let->type()}, op.span()));
        continue;
      }
      out.body.push_back(op);
      if (let && (read_.contains(let->name) || outputs_.contains(let->name)))
        results.push_back(ir::make(Output{let->name}, op.span()));
    }
    out.body.insert(out.body.end(), results.begin(), results.end());
    return out;
  }

  ir::Program with_scans(const ir::Program& rest) const {
    ir::Program all{rest.level, rest.name, {}};
    for (const ir::Op& op : rest.body) {
      const auto* input = op.get<Input>();
      if (op.is<Let>() || op.is<Output>() || (input && scanned_.contains(input->name))) continue;
      all.body.push_back(op);
    }
    ir::Program equations{rest.level, rest.name, {}};
    for (const ir::Op& op : rest.body) {
      if (op.is<Let>()) equations.body.push_back(op);
    }
    std::map<std::string_view, ir::Op> states;
    for (const ir::Op& op : program_.body) {
      const auto* let = op.get<Let>();
      if (op.is<State>()) states.emplace(op.as<State>().name.str(), op);
      if (op.is<State>() || (let && scanned_.contains(let->name))) equations.body.push_back(op);
    }
    for (const EquationGroup& g : computing_order(equations)) {
      for (const ir::Op* op : g.equations) {
        const auto it = states.find(op->as<Let>().name.str());
        if (g.is_scan() && it != states.end()) all.body.push_back(it->second);
      }
      for (const ir::Op* op : g.equations) all.body.push_back(*op);
    }
    for (const ir::Op& op : program_.body) {
      if (op.is<Output>()) all.body.push_back(op);
    }
    return all;
  }

 private:
  const ir::Program& program_;
  std::unordered_set<ir::Name> scanned_;
  std::unordered_set<ir::Name> outputs_;
  std::unordered_set<ir::Name> read_;  // by scans
};

}  // namespace

std::optional<ir::Program> leaving_scans(const ir::Program& program, ir::PassContext& context,
                                         ir::Pass pass) {
  if (!has_scans(program)) return pass(program, context);
  const Cut cut(program);
  if (cut.has_halves()) return program;
  const auto rest = pass(cut.without_scans(), context);
  return rest ? std::optional(cut.with_scans(*rest)) : std::nullopt;
}

}  // namespace nautilus::spec
