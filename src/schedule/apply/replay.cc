// SPDX-License-Identifier: Apache-2.0
// From the lines of a schedule to kernels: every line is followed or refused.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decision/lines.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/kernel.h"
#include "schedule/apply/locate.h"
#include "schedule/apply/round.h"
#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

Rejection refused(const ir::Op& line, std::string_view why) {
  return {"decision", dc::refusal(line, why)};
}

class KernelReplay {
 public:
  // `about_program`: lines that the program was made with.
  KernelReplay(const KernelSchedule& schedule, const ir::Block& about_program,
               const ir::Program& program, const StatementList& list, expr::ExprPool& pool)
      : schedule_(schedule),
        about_program_(about_program),
        program_(program),
        list_(list),
        pool_(pool) {}

  Outcome<Kernel> run() {
    Outcome<Fusion> fusion = grow();
    if (!fusion) return fusion.rejection();
    Kernel kernel{*fusion, {}, {}, {}, {}};
    for (size_t n = 0; n < schedule_.alternatives.size(); ++n) {
      Outcome<TileConfig> sizes = read_sizes(*fusion, schedule_.alternatives[n]);
      if (!sizes) return sizes.rejection();
      n == 0 ? void(kernel.sizes = *sizes) : kernel.others.push_back(*sizes);
    }
    if (const auto why = refuse_members(*fusion)) return *why;
    if (const auto why = read_split(kernel)) return *why;
    return kernel;
  }

 private:
  const ir::Block& first() const { return schedule_.alternatives[0]; }

  const Statement* find(ir::Name target) const {
    const auto it = list_.writer.find(target.str());
    return it == list_.writer.end() ? nullptr : &list_.statements[static_cast<size_t>(it->second)];
  }

  Rejection no_kernel(std::string_view why) const {
    return {"decision", fmt::format("`kernel {}`: {}", schedule_.name, why)};
  }

  Outcome<Fusion> grow() {
    const Statement* seed = find(pool_.name(schedule_.name));
    if (!seed) return no_kernel("there is no such statement");
    FusionRequest request;
    request.seed = seed->id;
    request.only.insert(seed->id);
    for (const ir::Op& line : first()) {
      const ir::Names* statements = statements_of(line);
      if (const auto* rows = line.get<dc::Rows>()) {
        request.row = pool_.index(rows->axis);
        if (std::none_of(seed->axes.begin(), seed->axes.end(),
                         [&](const ir::Axis& a) { return a.name == rows->axis; }))
          return refused(line, fmt::format("`{}` has no such axis", schedule_.name));
      }
      if (!statements) continue;
      for (ir::Name name : *statements) {
        const Statement* s = find(name);
        if (!s) return refused(line, fmt::format("there is no statement `{}`", name.str()));
        request.only.insert(s->id);
      }
    }
    Outcome<Fusion> fusion = grow_fusion(list_, program_, request, pool_);
    if (!fusion) return no_kernel(fusion.rejection().message);
    return fusion;
  }

  static const ir::Names* statements_of(const ir::Op& line) {
    if (const auto* fuse = line.get<dc::Fuse>()) return &fuse->statements;
    if (const auto* roll = line.get<dc::Roll>()) return &roll->statements;
    return nullptr;
  }

  std::optional<Rejection> refuse_members(const Fusion& fusion) const {
    std::set<std::string_view> named = {schedule_.name};
    for (const ir::Op& line : first()) {
      const auto* stream = line.get<dc::Stream>();
      if (stream && pool_.index(stream->axis) != fusion.stream)
        return refused(line, fmt::format("this kernel streams `{}`", fusion.stream.name().str()));
      const auto* rows = line.get<dc::Rows>();
      if (rows && pool_.index(rows->axis) != fusion.row)
        return refused(line,
                       fmt::format("the rows of this kernel are `{}`", fusion.row.name().str()));
      if (line.is<dc::Inner>())
        return refused(line, "steps of a reduction are for kernels without tiles");
      const ir::Names* statements = statements_of(line);
      if (!statements) continue;
      for (ir::Name name : *statements) {
        if (!named.insert(name.str()).second)
          return refused(line, fmt::format("the kernel names `{}` twice", name.str()));
        const Member* m = fusion.by_name(name);
        if (!m) return refused(line, why_outside(fusion, name));
        if (m->is_rolled == line.is<dc::Roll>()) continue;
        return refused(line,
                       fmt::format("`{}` is {} reduction over the streamed axis: `{}`", name.str(),
                                   m->is_rolled ? "a" : "not a", m->is_rolled ? "roll" : "fuse"));
      }
    }
    return std::nullopt;
  }

  static std::string why_outside(const Fusion& fusion, ir::Name name) {
    const std::string begin = std::string(name.str()) + " ";
    for (const std::string& note : fusion.notes) {
      if (note.starts_with(begin)) return note;
    }
    return fmt::format("`{}` does not fit this kernel", name.str());
  }

  Outcome<TileConfig> read_sizes(const Fusion& fusion, const ir::Block& alternative) const {
    TileConfig sizes = choose_sizes(fusion);
    std::optional<int64_t> rows;
    for (const ir::Op& line : alternative) {
      const bool is_first = &alternative == &first();
      if (dc::topic(line.info()) == dc::Topic::Members || line.is<dc::Split>()) {
        if (!is_first)
          return refused(line, "an `or` has the statements of its kernel, and no parts");
      } else if (dc::topic(line.info()) != dc::Topic::Sizes) {
        sizes.lines.push_back(line);
      } else if (const std::string why = read_size(fusion, line, sizes, rows); !why.empty()) {
        return refused(line, why);
      } else if (line.is<dc::Cluster>() || line.is<dc::Resident>()) {
        sizes.lines.push_back(line);
      }
    }
    if (const auto why = read_groups(alternative, rows, *fusion.target, sizes)) return *why;
    add_followed(alternative, sizes);
    if (sizes.cluster > 1 && sizes.resident > 1)
      return no_kernel("tiles of a cluster do not share a multiprocessor");
    if (sizes.cluster > 1 && fusion.row_block > 0)
      return no_kernel("blocks of rows have no clusters");
    return sizes;
  }

  // Lines of a user that are followed here go with the kernel, too: a pass that has no kernel with
  // them names them.
  void add_followed(const ir::Block& alternative, TileConfig& sizes) const {
    const auto add = [&](const ir::Op& line) {
      if (dc::is_kept_for_messages(line) && !line.is<dc::Live>()) sizes.lines.push_back(line);
    };
    std::for_each(alternative.begin(), alternative.end(), add);
    if (&alternative != &first()) std::for_each(first().begin(), first().end(), add);
    std::for_each(about_program_.begin(), about_program_.end(), add);
  }

  std::string read_size(const Fusion& fusion, const ir::Op& line, TileConfig& sizes,
                        std::optional<int64_t>& rows) const {
    if (const auto* cluster = line.get<dc::Cluster>()) {
      sizes.cluster = cluster->tiles.value_or(0);
      if (sizes.cluster > 1 && fusion.target->limits.cluster_ctas < 2)
        return fmt::format("{} has no clusters", fusion.target->name);
      return sizes.cluster < 1 || sizes.cluster > 2 ? "a cluster has 1 or 2 tiles" : "";
    }
    if (const auto* resident = line.get<dc::Resident>()) {
      sizes.resident = resident->tiles.value_or(0);
      return sizes.resident < 1 || sizes.resident > 2
                 ? "a multiprocessor works on 1 or 2 tiles at the same time"
                 : "";
    }
    const auto* tile = line.get<dc::Tile>();
    if (line.is<dc::Groups>()) return "";  // read with the rows
    if (!tile) return "kernels of form tile have no such line";
    const Expr axis = pool_.index(tile->axis);
    const int64_t size = tile->size.value_or(0);
    if (size < 1) return "the size is not a positive number";
    if (axis == fusion.row) {
      rows = size;
    } else if (axis == fusion.stream) {
      if (size % fusion.depth_grain() != 0 || size > fusion.target->tiles.whole_extent)
        return fmt::format("a step is a multiple of {} up to {}", fusion.depth_grain(),
                           fusion.target->tiles.whole_extent);
      const int64_t apart = fusion.apart_depth();
      if (apart > 0 && size > apart)
        return fmt::format("the matrix unit sums at most {} products of these operands", apart);
      if (fusion.step_block() % size != 0)
        return fmt::format("a step divides the {} neighbours that have the same scale",
                           fusion.step_block());
      const auto most = longest_step(fusion);
      if (most && size > *most)
        return fmt::format("the axis has {} elements: a step is at most {}",
                           fusion.extents.at(axis).integer(), *most);
      sizes.step = size;
    } else if (fusion.is_tile_axis(axis)) {
      if (fusion.is_whole(axis)) return "tiles hold this axis as a whole";
      if (size % fusion.column_grain() != 0 || size > fusion.target->tiles.whole_extent)
        return fmt::format("a column tile is a multiple of {} up to {}", fusion.column_grain(),
                           fusion.target->tiles.whole_extent);
      sizes.column = size;
    } else {
      return "it is not an axis of a tile";
    }
    return "";
  }

  // Rows and groups together: sharing groups have the rows of one matrix instruction each; an
  // alternating one has the tile.
  std::optional<Rejection> read_groups(const ir::Block& alternative, std::optional<int64_t> rows,
                                       const Target& target, TileConfig& sizes) const {
    const ir::Op* line = nullptr;
    for (const ir::Op& op : alternative) {
      if (op.is<dc::Groups>()) line = &op;
    }
    const int64_t least = target.matrix.rows;
    const int64_t most = target.tiles.whole_rows.back();
    const int64_t most_groups = target.tiles.groups;
    const int64_t all = rows.value_or(sizes.rows * sizes.warp_groups);
    const auto asked =
        line ? line->as<dc::Groups>() : dc::Groups{std::max<int64_t>(all / least, 1), {}, {}};
    const bool alternates = asked.kind == dc::GroupKind::Alternating;
    const int64_t groups = alternates ? 1 : asked.count.value_or(0);
    if (groups < 1 || groups > most_groups || all % groups != 0 || all / groups % least != 0 ||
        all / groups > most || (groups > 1 && all / groups != least))
      return line ? refused(rows_line(alternative, all, *line),
                            fmt::format("a tile of {} rows: groups that share it have {} "
                                        "rows each, 1 to {}; one that alternates {} to {}",
                                        all, least, most_groups, least, most))
                  : no_kernel(fmt::format("a tile has a multiple of {} rows up to {}, not {}",
                                          least, least * most_groups, all));
    sizes.warp_groups = groups;
    sizes.rows = all / groups;
    if (line) sizes.lines.push_back(*line);
    return std::nullopt;
  }

  // Of the lines that say together what rows a group has, the one that a user wrote.
  static const ir::Op& rows_line(const ir::Block& alternative, int64_t rows, const ir::Op& groups) {
    const auto is_of_user = [&](const ir::Op& line) {
      const auto* tile = line.get<dc::Tile>();
      return tile && tile->size == rows && tile->by == By::User;
    };
    const auto tile = std::find_if(alternative.begin(), alternative.end(), is_of_user);
    return dc::by_of(groups) == By::User || tile == alternative.end() ? groups : *tile;
  }

  std::optional<Rejection> read_split(Kernel& kernel) const {
    for (const ir::Op& line : first()) {
      const auto* asked = line.get<dc::Split>();
      if (!asked) continue;
      if (pool_.index(asked->axis) != kernel.fusion.stream)
        return refused(line, "only the streamed axis has parts");
      if (asked->parts && *asked->parts < 1) return refused(line, "parts are counted from 1");
      if (asked->terms || asked->results)
        return refused(line,
                       "tiles have parts at the sizes at which they are predicted to be faster");
      kernel.split = {asked->parts.value_or(Split::kFill), !kernel.others.empty(),
                      asked->combine == dc::CombineKind::Last};
      Names scratch;
      const Tiling tiling(kernel.fusion, kernel.sizes, pool_, scratch);
      const algebra::Signs signs(program_);
      if (const auto why = refuse_split({kernel.fusion, program_, signs, pool_}, tiling))
        return refused(line, why->message);
      if (!kernel.split.combines_last) continue;
      if (const auto why = refuse_last_tile(kernel.fusion, tiling, kernel.sizes))
        return refused(line, why->message);
    }
    return std::nullopt;
  }

  const KernelSchedule& schedule_;
  const ir::Block& about_program_;
  const ir::Program& program_;
  const StatementList& list_;
  expr::ExprPool& pool_;
};

}  // namespace

Outcome<Scheduled> apply_schedule(const ir::Program& program, const Schedule& schedule,
                                  expr::ExprPool& pool) {
  ir::Program rounded = program;
  std::vector<const ir::Op*> located;
  for (const ir::Op& line : schedule.lines) {
    if (const auto* round = line.get<dc::Round>()) {
      Outcome<ir::Program> next =
          round_operand(rounded, std::string(round->tensor.str()), round->dtype, pool);
      if (!next) return refused(line, next.rejection().message);
      rounded = *next;
    } else if (const auto* found = line.get<dc::Locate>()) {
      Outcome<ir::Program> next = locate(rounded, std::string(found->tensor.str()), pool);
      if (!next) return refused(line, next.rejection().message);
      rounded = *next;
      located.push_back(&line);
    }
  }
  const StatementList list = statements_of(rounded, pool);
  std::vector<Kernel> kernels;
  ir::Block other_forms;  // read where nests become kernels
  for (const KernelSchedule& k : schedule.kernels) {
    if (k.form != dc::Form::Tile) {
      for (const ir::Block& alternative : k.alternatives)
        other_forms.push_back(ir::make(dc::Kernel{pool.name(k.name), k.form, alternative}));
      continue;
    }
    Outcome<Kernel> kernel = KernelReplay(k, schedule.lines, rounded, list, pool).run();
    if (!kernel) return kernel.rejection();
    kernels.push_back(*kernel);
  }
  remaining(list, kernels);
  for (const ir::Op* line : located) {
    const std::string target(line->as<dc::Locate>().tensor.str());
    if (!is_located_in_one_kernel(rounded, target, kernels))
      return refused(*line, "no kernel has all of the extreme and its position");
  }
  const Outcome<Scheduled> built = assemble(rounded, list, kernels, pool);
  if (!built) return built;
  Scheduled out = *built;
  out.kernels = std::move(kernels);
  out.rounded = std::move(rounded);
  out.program.body.insert(out.program.body.end(), other_forms.begin(), other_forms.end());
  return out;
}

}  // namespace nautilus::schedule
