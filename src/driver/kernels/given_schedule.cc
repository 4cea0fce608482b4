// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/given_schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "decision/lines.h"
#include "driver/kernels/program_lines.h"
#include "ir/print.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"

namespace nautilus::driver {
namespace {

using schedule::KernelSchedule;
using schedule::Schedule;

// Files one after the other, and where each part comes from.
class Join {
 public:
  // Why the file does not fit those before it; empty if it does.
  std::string add(const GivenSchedule& file, const Schedule& schedule) {
    if (first_path_.empty()) {
      out_.program = schedule.program;
      first_path_ = file.path;
    }
    const bool is_one_hash = !schedule.equations.empty() && out_.equations == schedule.equations;
    if (out_.program != schedule.program && !is_one_hash)
      return fmt::format("{} is for @{}, {} for @{}", first_path_, out_.program, file.path,
                         schedule.program);
    if (out_.equations.empty()) out_.equations = schedule.equations;
    if (!schedule.equations.empty() && out_.equations != schedule.equations)
      return fmt::format("{} is for other equations than {}", file.path, first_path_);
    for (const ir::Op& line : schedule.lines) {
      if (std::string why = add_line(line, file.path); !why.empty()) return why;
    }
    return add_kernels(file, schedule);
  }

  Schedule take() { return std::move(out_); }

 private:
  std::string add_line(const ir::Op& line, const std::string& path) {
    for (size_t k = 0; k < out_.lines.size(); ++k) {
      if (!decision::is_about_the_same(out_.lines[k], line)) continue;
      if (out_.lines[k] == line) return "";
      return fmt::format("`{}` of {} contradicts `{}` of {}", ir::print(line), path,
                         ir::print(out_.lines[k]), line_paths_[k]);
    }
    out_.lines.push_back(line);
    line_paths_.push_back(path);
    return "";
  }

  // A name may have kernels of several forms: the split one and the one that combines its parts.
  std::string add_kernels(const GivenSchedule& file, const Schedule& schedule) {
    std::vector<std::string> known;
    bool is_found = file.kernel.empty();
    for (const KernelSchedule& k : schedule.kernels) {
      if (std::find(known.begin(), known.end(), k.name) == known.end()) known.push_back(k.name);
      if (!file.kernel.empty() && k.name != file.kernel) continue;
      is_found = true;
      for (size_t n = 0; n < out_.kernels.size(); ++n) {
        if (out_.kernels[n].name == k.name && kernel_files_[n] != &file)
          return fmt::format("kernel `{}` has two schedules, {} and {}", k.name,
                             kernel_files_[n]->path, file.path);
      }
      out_.kernels.push_back(k);
      kernel_files_.push_back(&file);
    }
    return is_found
               ? ""
               : fmt::format("{}: {}", file.path, base::no_such_name("kernel", file.kernel, known));
  }

  Schedule out_;
  std::string first_path_;
  std::vector<std::string> line_paths_;
  std::vector<const GivenSchedule*> kernel_files_;
};

}  // namespace

std::optional<std::string> join_schedules(const std::vector<GivenSchedule>& files,
                                          const ir::Program& program, Unit& unit,
                                          std::string* error) {
  if (files.size() == 1 && files[0].kernel.empty()) return files[0].text;
  Join join;
  for (const GivenSchedule& file : files) {
    const auto parsed = schedule::parse_schedule(file.text, unit.pool);
    *error = parsed ? join.add(file, with_names_of(program, *parsed, unit.pool))
                    : fmt::format("{}: {}", file.path, parsed.rejection().message);
    if (!error->empty()) return std::nullopt;
  }
  Schedule joined = join.take();
  // The version before this one did not name the equations: replay says whether it fits.
  if (joined.equations.empty()) joined.equations = spec::equations_hash(program);
  return schedule::print(joined);
}

std::string unknown_kernel(const ir::Program& program, const Schedule& given, Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return "";
  std::vector<std::string> known;
  for (const KernelSchedule& k : first->decisions.kernels) {
    if (std::find(known.begin(), known.end(), k.name) == known.end()) known.push_back(k.name);
  }
  const auto list = schedule::statements_of(first->rounded, unit.pool);
  for (const KernelSchedule& k : given.kernels) {
    if (!list.writer.contains(k.name) &&
        std::find(known.begin(), known.end(), k.name) == known.end())
      return base::no_such_name("kernel", k.name, known);
  }
  return "";
}

}  // namespace nautilus::driver
