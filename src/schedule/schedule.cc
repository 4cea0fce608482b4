// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "expr/print.h"
#include "ir/print.h"
#include "schedule/holes.h"
#include "schedule/locate.h"
#include "schedule/round.h"

namespace nautilus::schedule {
namespace {

constexpr std::string_view kProvenance[] = {"auto", "tuned", "user"};

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  line = line.substr(0, line.find('#'));
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return out;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    out.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::optional<int64_t> number_of(const std::string& text) {
  int64_t value = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

// What may stand behind the number of parts: `or_whole`, then `combine kernel` or `combine last`.
bool is_split_tail(const std::vector<std::string>& words) {
  size_t k = 2;
  if (k < words.size() && words[k] == "or_whole") ++k;
  if (k + 2 == words.size() && words[k] == "combine")
    return words[k + 1] == "kernel" || words[k + 1] == "last";
  return words.size() >= 2 && k == words.size();
}

bool is_decision(std::string_view verb, const std::vector<std::string>& words) {
  const size_t n = words.size();
  if (verb == "kernel" || verb == "fuse" || verb == "roll" || verb == "locate" ||
      verb == "resident")
    return n == 1;
  if (verb == "order" || verb == "round" || verb == "cluster") return n == 2;
  if (verb == "split") return is_split_tail(words);
  const bool has_rows = n >= 5 && words[1] == "cta" && words[3] == "wg";
  if (verb == "tile") return n == 2 || (n == 5 && has_rows);
  return verb == "or" && has_rows && n % 2 == 1;
}

}  // namespace

std::string_view name(Provenance p) { return kProvenance[static_cast<size_t>(p)]; }

std::string print(const Schedule& schedule) {
  std::string out =
      fmt::format("schedule @{} hash {:016x} version 1\n", schedule.program, schedule.hash);
  for (const Decision& d : schedule.decisions) {
    out += d.verb;
    for (const std::string& w : d.words) out += " " + w;
    out += fmt::format(" {}\n", name(d.provenance));
  }
  return out;
}

Outcome<Schedule> parse_schedule(std::string_view text) {
  Schedule schedule;
  int line_number = 0;
  bool has_header = false;
  bool has_kernel = false;
  auto bad = [&](std::string_view why) {
    return Rejection{"syntax", fmt::format("line {}: {}", line_number, why)};
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    ++line_number;
    if (line.ends_with('\n')) line.remove_suffix(1);
    std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (!has_header) {
      if (words.size() != 6 || words[0] != "schedule" || !words[1].starts_with('@') ||
          words[2] != "hash" || words[4] != "version")
        return bad("a schedule starts with `schedule @NAME hash HEX version 1`");
      if (words[5] != "1") return bad(fmt::format("version {} is not known", words[5]));
      const std::string& hex = words[3];
      const auto r = std::from_chars(hex.data(), hex.data() + hex.size(), schedule.hash, 16);
      if (r.ec != std::errc() || r.ptr != hex.data() + hex.size())
        return bad(fmt::format("`{}` is no hash", hex));
      schedule.program = words[1].substr(1);
      has_header = true;
      continue;
    }
    Decision d;
    d.verb = words[0];
    const auto* who = std::find(std::begin(kProvenance), std::end(kProvenance), words.back());
    if (who == std::end(kProvenance) || words.size() < 2)
      return bad("a decision ends with auto, tuned or user");
    d.provenance = static_cast<Provenance>(who - std::begin(kProvenance));
    d.words.assign(words.begin() + 1, words.end() - 1);
    for (const std::string& w : d.words) {
      if (choices_of(w).empty()) return bad(fmt::format("`{}` is no hole like `?{{64,128}}`", w));
    }
    if (count_fillings(d.words) > kMostFillings)
      return bad(fmt::format("its holes have more than {} fillings", kMostFillings));
    bool is_known = true;
    for (const auto& filled : fillings(d.words)) is_known &= is_decision(d.verb, filled);
    if (!is_known) return bad(fmt::format("`{}` is no decision", line));
    has_kernel |= d.verb == "kernel";
    const bool is_early = d.verb == "round" || d.verb == "locate";
    if (!is_early && !has_kernel) return bad("a decision stands before the first kernel");
    if (is_early && has_kernel)
      return bad(fmt::format("`{}` stands before the first kernel", d.verb));
    schedule.decisions.push_back(std::move(d));
  }
  if (!has_header) return bad("the schedule is empty");
  return schedule;
}

uint64_t program_hash(const ir::Program& program) {
  // Hints are what sizes are expected, not what is computed.
  ir::Program plain = program;
  for (ir::Op& op : plain.body) {
    const auto* d = op.get<ir::Dim>();
    if (!d || !d->hint) continue;
    ir::Dim dim = *d;
    dim.hint.reset();
    op = ir::make(std::move(dim), op.span());
  }
  uint64_t h = 14695981039346656037ULL;
  for (const char c : ir::print(plain)) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
  return h;
}

namespace {

// Column axes whose tiles have a size of their own.
std::vector<Expr> cut_axes(const Group& group) {
  std::vector<Expr> out;
  for (Expr a : group.axis_order) {
    if (a != group.row && a != group.stream && group.is_tile_axis(a) && !group.is_whole(a))
      out.push_back(a);
  }
  return out;
}

// The words of an `or`: i cta 128 wg 64 j 80 e 256 cluster 2 resident 2
std::vector<std::string> words_of(const Group& group, const Sizes& s) {
  const auto text = [](Expr e) { return std::string(e.name().str()); };
  const auto number = [](int64_t n) { return fmt::format("{}", n); };
  std::vector<std::string> words = {
      text(group.row),    "cta",         number(s.rows * s.groups), "wg", number(s.rows),
      text(group.stream), number(s.step)};
  for (Expr a : cut_axes(group)) {
    words.push_back(text(a));
    words.push_back(number(s.column));
  }
  if (s.cluster > 1) {
    words.emplace_back("cluster");
    words.push_back(number(s.cluster));
  }
  if (s.resident > 1) {
    words.emplace_back("resident");
    words.push_back(number(s.resident));
  }
  return words;
}

}  // namespace

Schedule to_schedule(const ir::Program& program, const std::vector<Kernel>& kernels,
                     Provenance provenance) {
  Schedule s{program.name, program_hash(program), {}};
  for (const Kernel& k : kernels) {
    auto add = [&](std::string verb, std::vector<std::string> words) {
      s.decisions.push_back({std::move(verb), std::move(words), provenance});
    };
    const auto text = [](Expr e) { return std::string(e.name().str()); };
    for (const Member& m : k.group.members) {
      if (m.statement == k.group.seed) add("kernel", {std::string(m.target.str())});
    }
    add("tile", {text(k.group.row), "cta", fmt::format("{}", k.sizes.rows * k.sizes.groups), "wg",
                 fmt::format("{}", k.sizes.rows)});
    add("tile", {text(k.group.stream), fmt::format("{}", k.sizes.step)});
    for (Expr a : cut_axes(k.group)) add("tile", {text(a), fmt::format("{}", k.sizes.column)});
    for (const Member& m : k.group.members) {
      if (m.statement == k.group.seed) continue;
      add(m.is_rolled ? "roll" : "fuse", {std::string(m.target.str())});
    }
    if (k.sizes.is_descending) add("order", {text(k.group.stream), "descending"});
    if (k.sizes.cluster > 1)
      add("cluster", {text(k.group.row), fmt::format("{}", k.sizes.cluster)});
    if (k.sizes.resident > 1) add("resident", {fmt::format("{}", k.sizes.resident)});
    for (const Sizes& other : k.others) add("or", words_of(k.group, other));
    if (!k.split.is_on()) continue;
    std::vector<std::string> words = {text(k.group.stream), k.split.parts == Split::kFill
                                                                ? std::string("fill")
                                                                : fmt::format("{}", k.split.parts)};
    if (k.split.or_whole) words.emplace_back("or_whole");
    if (k.split.combines_last) words.insert(words.end(), {"combine", "last"});
    add("split", std::move(words));
  }
  return s;
}

namespace {

// One kernel of a schedule, as its lines say.
struct Draft {
  std::string seed;
  std::vector<const Decision*> lines;
};

// Changes sizes as words say: `i cta 128 wg 64`, `j 80`, `cluster 2`, one after the other. Why not,
// or nothing.
std::string resize(const Group& group, const std::vector<std::string>& words, Sizes& sizes,
                   expr::ExprPool& pool) {
  for (size_t k = 0; k + 1 < words.size();) {
    const bool is_row = k + 4 < words.size() && words[k + 1] == "cta" && words[k + 3] == "wg";
    const auto size = number_of(is_row ? words[k + 2] : words[k + 1]);
    if (!size) return "the size is no positive number";
    const Expr axis = pool.index(words[k]);
    if (is_row) {
      const auto rows = number_of(words[k + 4]);
      if (!rows || *rows % kRowsPerGroup != 0 || *rows > 3 * kRowsPerGroup || *size % *rows != 0 ||
          *size > 4 * *rows)
        return "a warp group has 64, 128 or 192 rows, a tile 1 to 4 groups";
      if (*rows > kRowsPerGroup && *rows != *size) return "groups that share a tile have 64 rows";
      sizes.rows = *rows;
      sizes.groups = *size / *rows;
      k += 5;
      continue;
    }
    if (words[k] == "cluster") {
      if (*size > 2) return "a cluster has 2 tiles";
      sizes.cluster = *size;
    } else if (words[k] == "resident") {
      if (*size > 2) return "a multiprocessor works on 1 or 2 tiles at the same time";
      sizes.resident = *size;
    } else if (axis == group.stream) {
      if (*size % 16 != 0 || *size > kMaxWholeExtent) return "a step is a multiple of 16 up to 256";
      sizes.step = *size;
    } else if (group.is_tile_axis(axis) && axis != group.row) {
      if (*size % 8 != 0 || *size > kMaxWholeExtent)
        return "a column tile is a multiple of 8 up to 256";
      sizes.column = *size;
    } else {
      return "it is no axis of a tile";
    }
    k += 2;
  }
  return "";
}

Outcome<Kernel> replay(const Draft& draft, const ir::Program& program, const StatementList& list,
                       expr::ExprPool& pool) {
  const auto find = [&](const std::string& target) -> const Statement* {
    const auto it = list.writer.find(target);
    return it == list.writer.end() ? nullptr : &list.statements[static_cast<size_t>(it->second)];
  };
  auto refused = [&](const Decision& d, std::string_view why) {
    std::string line = d.verb;
    for (const std::string& w : d.words) line += " " + w;
    return Rejection{"decision", fmt::format("`{}`: {}", line, why)};
  };
  const Decision& first = *draft.lines[0];
  const Statement* seed = find(draft.seed);
  if (!seed) return refused(first, "there is no such statement");
  GroupRequest request;
  request.seed = seed->id;
  request.only.insert(seed->id);
  for (const Decision* d : draft.lines) {
    if (d->verb == "fuse" || d->verb == "roll") {
      const Statement* s = find(d->words[0]);
      if (!s) return refused(*d, "there is no such statement");
      request.only.insert(s->id);
    }
    if (d->verb == "tile" && d->words.size() == 5) request.row = pool.index(d->words[0]);
  }
  Outcome<Group> group = grow_group(list, program, request, pool);
  if (!group) return refused(first, group.rejection().message);
  Kernel kernel{*group, choose_sizes(*group), {}, {}, {}};
  const Decision* split = nullptr;
  for (const Decision* d : draft.lines) {
    if (d->verb == "fuse" || d->verb == "roll") {
      const Member* m = kernel.group.by_name(pool.name(d->words[0]));
      if (!m) {
        std::string why = "it does not fit this kernel";
        for (const std::string& note : kernel.group.notes) {
          if (note.starts_with(d->words[0] + " ")) why = note;
        }
        return refused(*d, why);
      }
      if (m->is_rolled != (d->verb == "roll"))
        return refused(*d, m->is_rolled ? "it is a reduction over the streamed axis: `roll`"
                                        : "it is no reduction over the streamed axis: `fuse`");
    } else if (d->verb == "order") {
      if (d->words[1] != "descending" && d->words[1] != "ascending")
        return refused(*d, "an order is ascending or descending");
      if (pool.index(d->words[0]) != kernel.group.stream)
        return refused(*d, "only the streamed axis has an order");
      kernel.sizes.is_descending = d->words[1] == "descending";
    } else if (d->verb == "split") {
      if (pool.index(d->words[0]) != kernel.group.stream)
        return refused(*d, "only the streamed axis has parts");
      const auto parts = number_of(d->words[1]);
      if (!parts && d->words[1] != "fill") return refused(*d, "parts are a number, or `fill`");
      kernel.split = {parts.value_or(Split::kFill),
                      d->words.size() > 2 && d->words[2] == "or_whole", d->words.back() == "last"};
      split = d;
    } else if (d->verb == "tile" || d->verb == "cluster" || d->verb == "resident") {
      std::vector<std::string> words = d->words;
      if (d->verb == "resident") words.insert(words.begin(), "resident");
      if (d->verb == "cluster") words[0] = "cluster";
      if (const std::string why = resize(kernel.group, words, kernel.sizes, pool); !why.empty())
        return refused(*d, why);
    } else if (d->verb == "or") {
      Sizes other = kernel.sizes;
      other.cluster = 1;
      other.resident = 1;
      if (const std::string why = resize(kernel.group, d->words, other, pool); !why.empty())
        return refused(*d, why);
      kernel.others.push_back(other);
    }
  }
  const auto is_both = [](const Sizes& s) { return s.cluster > 1 && s.resident > 1; };
  if (is_both(kernel.sizes) || std::any_of(kernel.others.begin(), kernel.others.end(), is_both))
    return refused(first, "tiles of a cluster do not share a multiprocessor");
  if (kernel.sizes.cluster > 1 && kernel.group.row_block > 0)
    return refused(first, "blocks of rows have no clusters");
  if (split) {
    Names scratch;
    const Tiling tiling(kernel.group, kernel.sizes, pool, scratch);
    const algebra::Signs signs(program);
    if (const auto why = refuse_split(kernel.group, tiling, signs, pool))
      return refused(*split, why->message);
    if (kernel.split.combines_last) {
      if (const auto why = refuse_last_tile(kernel.group, tiling, kernel.sizes))
        return refused(*split, why->message);
    }
  }
  return kernel;
}

}  // namespace

Outcome<Scheduled> apply_schedule(const ir::Program& program, const Schedule& schedule,
                                  expr::ExprPool& pool) {
  if (const Decision* open = find_hole(schedule)) {
    std::string line = open->verb;
    for (const std::string& w : open->words) line += " " + w;
    return Rejection{"hole", fmt::format("`{}` has a hole: `nautilus schedule FILE --schedule "
                                         "SCHEDULE --sweep` gives schedules without",
                                         line)};
  }
  if (schedule.program != program.name)
    return Rejection{"program", fmt::format("the schedule is for @{}, the program is @{}",
                                            schedule.program, program.name)};
  if (schedule.hash != program_hash(program))
    return Rejection{"hash", fmt::format("the schedule is for a program with hash {:016x}, this "
                                         "one has {:016x}",
                                         schedule.hash, program_hash(program))};
  ir::Program rounded = program;
  std::vector<std::string> located;
  std::vector<Draft> drafts;
  for (const Decision& d : schedule.decisions) {
    if (d.verb == "round") {
      const auto dtype = expr::parse_dtype(d.words[1]);
      if (!dtype) return Rejection{"round", fmt::format("`{}` is no dtype", d.words[1])};
      Outcome<ir::Program> next = round_operand(rounded, d.words[0], *dtype, pool);
      if (!next) return next.rejection();
      rounded = *next;
      continue;
    }
    if (d.verb == "locate") {
      Outcome<ir::Program> next = locate(rounded, d.words[0], pool);
      if (!next) return next.rejection();
      rounded = *next;
      located.push_back(d.words[0]);
      continue;
    }
    if (d.verb == "kernel") drafts.push_back({d.words[0], {}});
    drafts.back().lines.push_back(&d);
  }
  const StatementList list = statements_of(rounded, pool);
  std::vector<Kernel> kernels;
  for (const Draft& d : drafts) {
    Outcome<Kernel> k = replay(d, rounded, list, pool);
    if (!k) return k.rejection();
    kernels.push_back(*k);
  }
  remaining(list, kernels);
  for (const std::string& target : located) {
    if (!is_located_in_one_kernel(rounded, target, kernels))
      return Rejection{"locate", fmt::format("no kernel has all of the extreme and the position of "
                                             "`{}`",
                                             target)};
  }
  return assemble(rounded, list, std::move(kernels), pool);
}

}  // namespace nautilus::schedule
