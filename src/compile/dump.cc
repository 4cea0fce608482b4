// SPDX-License-Identifier: Apache-2.0
#include "compile/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "compile/passes.h"
#include "expr/walk.h"
#include "ir/print.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::compile {
namespace {

using ir::Op;
using Step = ir::PassTrace::Step;

// The last step of each unit on the level, in the order of the units.
std::vector<const Step*> last_steps(std::string_view level, const ir::PassTrace& trace) {
  std::vector<const Step*> out;
  for (const Step& step : trace.steps) {
    if (step.program.level->name != level) continue;
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const Step* s) { return s->unit == step.unit; });
    same == out.end() ? out.push_back(&step) : void(*same = &step);
  }
  return out;
}

std::set<std::string> names_of(const std::vector<const Step*>& steps) {
  std::set<std::string> out;
  for (const Step* s : steps) out.insert(s->unit);
  return out;
}

// Which tensors grids read and write.
struct TileAccess {
  std::set<std::string> read;
  std::set<std::string> stored;

  void add(const Op& nest) {
    ir::for_each_op({nest}, [&](const Op& op) {
      if (const auto* s = op.get<vrtile::Store>()) stored.emplace(s->target.str());
    });
    ir::for_each_expr(nest, [&](expr::Expr e) {
      for (ir::Name t : expr::tensors_read(e)) read.emplace(t.str());
    });
  }
};

// The tile kernels of a program as one program: each is a unit of its own, with the tensors of the
// whole; results of other kernels were inputs there, and stay inputs if no grid computes them.
ir::Program joined_tiles(const std::vector<const Step*>& units, const ir::Program& scalar) {
  TileAccess access;
  for (const Step* unit : units) {
    for (const Op& op : unit->program.body) {
      if (op.is<vrtile::Par>()) access.add(op);
    }
  }
  std::set<std::string> outputs;
  for (const auto& [name, type] : scalar::buffers(scalar, scalar::Role::Output))
    outputs.insert(name);
  ir::Program out{units[0]->program.level, scalar.name, {}};
  for (const Op& op : units[0]->program.body) {
    const auto* t = op.get<vrtile::Tensor>();
    if (op.is<vrtile::Par>()) continue;
    if (!t) {
      out.body.push_back(op);
      continue;
    }
    const std::string name(t->name.str());
    const bool is_stored = access.stored.contains(name);
    if (!is_stored && !access.read.contains(name)) continue;
    const bool is_passed_on = is_stored && access.read.contains(name) && !outputs.contains(name);
    const auto role = is_passed_on ? vrtile::TensorRole::Temp
                      : is_stored  ? vrtile::TensorRole::Output
                                   : vrtile::TensorRole::Input;
    out.body.push_back(ir::make(vrtile::Tensor{t->name, t->type, role}, op.span()));
  }
  for (const Step* unit : units) {
    for (const Op& op : unit->program.body) {
      if (op.is<vrtile::Par>()) out.body.push_back(op);
    }
  }
  out.after = passes_of(Stage::Tiles).back()->name;
  return out;
}

std::vector<std::string> other_kernels(const ir::Program& kernels,
                                       const std::set<std::string>& units) {
  std::vector<std::string> out;
  for (const Op& op : kernels.body) {
    const auto* k = op.get<matile::Kernel>();
    if (k && !units.contains(std::string(k->name.str()))) out.emplace_back(k->name.str());
  }
  return out;
}

}  // namespace

std::optional<std::string> text_at(std::string_view level, const ir::Program& loaded,
                                   const ir::PassTrace& trace, const ir::Program& kernels) {
  if (level == kernels.level->name) return ir::print(kernels);
  const auto found = last_steps(level, trace);
  if (level != "vrtile")
    return found.empty() ? std::nullopt : std::optional(ir::print(found.back()->program));
  const auto others = other_kernels(kernels, names_of(found));
  if (found.empty()) return std::nullopt;
  std::string note;
  if (!others.empty())
    note = fmt::format("# not of tiles, see `print --level matile`: {}\n", fmt::join(others, ", "));
  const auto loops = last_steps("scalar", trace);
  return note + ir::print(joined_tiles(found, loops.empty() ? loaded : loops.back()->program));
}

namespace {

std::string file_name(size_t number, std::string_view unit, std::string_view pass,
                      const ir::Program& program) {
  return fmt::format("{:03}-{}-{}{}", number, unit, pass, program.level->file_suffix);
}

}  // namespace

std::string dump_name(const ir::Program& loaded) {
  return file_name(0, loaded.name, "input", loaded);
}

std::string dump_name(size_t number, const Step& step) {
  return file_name(number, step.unit, step.pass, step.program);
}

bool write_dumps(const std::string& folder, const ir::Program& loaded, const ir::PassTrace& trace,
                 const std::string& schedule, std::string* error) {
  std::string index;
  size_t number = 0;
  const auto write = [&](const std::string& name, const std::string& text) {
    return base::write_file_atomic(fmt::format("{}/{}", folder, name), text, error);
  };
  const auto dump = [&](const std::string& name, const ir::Program& program,
                        std::string_view meaning) {
    index += fmt::format("{:<60} {}\n", name, meaning);
    return write(name, ir::print(program));
  };
  if (!dump(dump_name(loaded), loaded, "as it was read")) return false;
  for (const Step& s : trace.steps) {
    const std::string meaning = fmt::format("{:8.2f} ms  {}", s.ms, the_pass(s.pass).summary);
    if (!dump(dump_name(++number, s), s.program, meaning)) return false;
  }
  if (!schedule.empty() && !write("schedule.sched", schedule)) return false;
  return write("index.txt", index);
}

}  // namespace nautilus::compile
