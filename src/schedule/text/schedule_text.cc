// SPDX-License-Identifier: Apache-2.0
// Schedules as text, and back.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "decision/lines.h"
#include "diag/diagnostic.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "schedule/text/holes.h"
#include "schedule/text/schedule.h"
#include "schedule/text/schedule_names.h"
#include "schedule/text/sized_schedules.h"
#include "schedule/text/text_lines.h"

namespace nautilus::schedule {
namespace {

constexpr std::string_view kHeader = "schedule @NAME version 2 equations HEX";

size_t place_of(const ir::OpInfo& info) {
  const auto& all = decision::vocabulary();
  return static_cast<size_t>(std::find(all.begin(), all.end(), &info) - all.begin());
}

// Lines of a list in their order, those of one topic on one line of text; lines about operands,
// which have many and long names, are printed one by one.
std::string text_of(ir::Block lines, std::string_view indent) {
  std::stable_sort(lines.begin(), lines.end(), [](const ir::Op& a, const ir::Op& b) {
    return place_of(a.info()) < place_of(b.info());
  });
  std::string out;
  for (size_t k = 0; k < lines.size(); ++k) {
    const bool is_first = k == 0 || lines[k].is<decision::Store>() ||
                          lines[k - 1].is<decision::Store>() ||
                          decision::topic(lines[k].info()) != decision::topic(lines[k - 1].info());
    if (is_first) {
      out += k == 0 ? "" : "\n";
      out += indent;
    } else {
      out += "; ";
    }
    out += ir::print(lines[k]);
  }
  return out.empty() ? out : out + "\n";
}

// Names of the equations that lines are about, with their places.
std::string text_of_names(const Schedule& schedule, const ir::Block& at) {
  Schedule all = schedule;
  all.lines.insert(all.lines.end(), at.begin(), at.end());
  std::map<std::string, int64_t> used;
  for (const std::string& name : names_in(all)) {
    for (const NamePiece& piece : pieces_of_name(name, schedule.places)) {
      if (piece.is_known) used.insert(*schedule.places.find(std::string(piece.text)));
    }
  }
  for (const std::string& name : schedule.listed) {
    const auto place = schedule.places.find(name);
    if (place != schedule.places.end()) used.insert(*place);
  }
  std::string out;
  for (const auto& [name, place] : used)
    out += fmt::format("{}{} {}", out.empty() ? "names " : ", ", name, place);
  return out.empty() ? out : out + "\n";
}

bool is_about_program(const ir::Op& line) {
  return decision::topic(line.info()) == decision::Topic::Program;
}

bool is_hash(std::string_view text) {
  return !text.empty() && text.size() <= 32 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string header_of(const Schedule& schedule) {
  return fmt::format("schedule @{} version {} equations {}\n", schedule.program, Schedule::kVersion,
                     schedule.equations);
}

std::string body_of(const Schedule& schedule) {
  std::string out = text_of(schedule.lines, "");
  for (const KernelSchedule& k : schedule.kernels) {
    for (size_t n = 0; n < k.alternatives.size(); ++n) {
      const auto form = decision::words(k.form)[static_cast<size_t>(k.form)];
      out += n == 0 ? fmt::format("kernel {} {}\n", k.name, form) : "or\n";
      out += text_of(k.alternatives[n], "  ");
    }
  }
  return out;
}

enum class Sized : uint8_t { No, Yes };  // whether it may say which sizes it is for

class Reader {
 public:
  Reader(expr::ExprPool& pool, Sized sized) : pool_(pool), sized_(sized) {}

  Outcome<Schedule> run(std::string_view text) {
    for (const TextLine& line : text_lines(text)) {
      number_ = line.number;
      if (!has_header_) {
        if (auto why = header(line)) return *why;
      } else if (line.words[0] == "names" && !line.is_indented) {
        if (auto why = names(line)) return *why;
      } else if (line.words[0] == "kernel" && !line.is_indented) {
        if (auto why = kernel(line)) return *why;
      } else if (is_next_schedule(line)) {
        return bad("one schedule is expected, not several for different sizes");
      } else if (line.words[0] == "or" && !line.is_indented) {
        if (line.words.size() != 1 || out_.kernels.empty())
          return bad("`or` stands alone, behind the lines of a kernel");
        out_.kernels.back().alternatives.emplace_back();
      } else if (auto why = decisions(line)) {
        return *why;
      }
    }
    if (!has_header_) return bad("the schedule is empty");
    return std::move(out_);
  }

 private:
  Rejection bad(std::string_view why) const {
    return {"syntax", fmt::format("line {}: {}", number_, why)};
  }

  std::optional<Rejection> header(const TextLine& line) {
    const auto& w = line.words;
    const bool is_header = w.size() >= 4 && w[0] == "schedule" && w[1].starts_with('@');
    if (is_header && w[2] == "version" && w[3] != "2")
      return bad(fmt::format("a header with a hash is of version 2, not {}", w[3]));
    if (!is_header || w.size() != 6 || w[2] != "version" || w[4] != "equations" || !is_hash(w[5]))
      return bad(fmt::format("a schedule starts with `{}`", kHeader));
    out_.program = w[1].substr(1);
    out_.equations = w[5];
    has_header_ = true;
    return std::nullopt;
  }

  // `names C 0, i 1`.
  std::optional<Rejection> names(const TextLine& line) {
    const auto& w = line.words;
    const auto wrong = bad("`names` has names of the equations and their places: `names C 0, i 1`");
    if (w.size() < 3 || w.size() % 2 == 0 || !out_.places.empty() || !out_.kernels.empty())
      return wrong;
    std::set<int64_t> seen;
    for (size_t k = 1; k < w.size(); k += 2) {
      std::string_view place = w[k + 1];
      if (k + 2 < w.size()) {
        if (!place.ends_with(',')) return wrong;
        place.remove_suffix(1);
      }
      int64_t number = -1;
      const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), number);
      const bool is_number = error == std::errc() && end == place.data() + place.size();
      if (!is_number || number < 0 || !out_.places.emplace(w[k], number).second) return wrong;
      if (!seen.insert(number).second)
        return bad(fmt::format("`names` has two names at place {}", number));
      out_.listed.insert(w[k]);
    }
    return std::nullopt;
  }

  std::optional<Rejection> kernel(const TextLine& line) {
    const auto& forms = decision::words(decision::Form{});
    const auto form =
        line.words.size() == 3 ? std::find(forms.begin(), forms.end(), line.words[2]) : forms.end();
    if (form == forms.end())
      return bad("a kernel has a name and a form: `kernel NAME tile`, or rows, points, parts");
    out_.kernels.push_back(
        {line.words[1], {{}}, static_cast<decision::Form>(form - forms.begin())});
    return std::nullopt;
  }

  std::optional<Rejection> decisions(const TextLine& line) {
    for (const std::string& piece : pieces_of(line.text)) {
      if (piece.find('?') != std::string::npos)
        return Rejection{"hole", fmt::format("`{}` has a hole: `nautilus schedule FILE --schedule "
                                             "SCHEDULE --sweep` gives schedules without",
                                             piece)};
      diag::SourceMap sources;
      diag::Sink sink(sources);
      const auto op =
          ir::parse_op(sources.add("schedule", piece), decision::vocabulary(), pool_, sink);
      if (!op) return bad(fmt::format("`{}`: {}", piece, sink.all()[0].message));
      if (op->is<decision::At>() && sized_ == Sized::No)
        return bad(
            fmt::format("`{}`: one schedule is expected, not one of several for different "
                        "sizes",
                        piece));
      if (is_about_program(*op) != out_.kernels.empty())
        return bad(fmt::format("`{}` stands {} the first kernel", piece,
                               is_about_program(*op) ? "before" : "behind"));
      (out_.kernels.empty() ? out_.lines : out_.kernels.back().alternatives.back())
          .push_back(ir::Op(op->info(), {}, std::shared_ptr<const void>(ir::copy_data(*op))));
    }
    return std::nullopt;
  }

  expr::ExprPool& pool_;
  const Sized sized_;
  Schedule out_;
  bool has_header_ = false;
  int number_ = 0;
};

}  // namespace

std::string print(const Schedule& schedule) {
  return header_of(schedule) + text_of_names(schedule, {}) + body_of(schedule);
}

Outcome<Schedule> parse_schedule(std::string_view text, expr::ExprPool& pool) {
  const auto lines = text_lines(text);
  if (!lines.empty() && lines[0].words.size() == 6 && lines[0].words[2] == "hash")
    return parse_version1(text, pool);
  return Reader(pool, Sized::No).run(text);
}

bool is_next_schedule(const TextLine& line) {
  return !line.is_indented && line.words == std::vector<std::string>{"or", "schedule"};
}

bool is_sized(std::string_view text) {
  const auto lines = text_lines(text);
  return std::any_of(lines.begin(), lines.end(), [](const TextLine& line) {
    return is_next_schedule(line) || (!line.is_indented && line.words[0] == "at");
  });
}

Outcome<std::vector<SizedSchedule>> parse_sized_schedules(std::string_view text,
                                                          expr::ExprPool& pool) {
  // Each schedule is read with the header of the first, and its lines keep their numbers.
  std::vector<std::string> parts(1);
  std::string header;
  int at = 1;  // the line that comes next in the last part
  for (const TextLine& line : text_lines(text)) {
    if (header.empty()) header = line.text;
    if (is_next_schedule(line)) {
      parts.push_back(header);
      at = 1;
      continue;
    }
    for (; at < line.number; ++at) parts.back() += '\n';
    parts.back() += (line.is_indented ? "  " : "") + line.text;
  }
  std::vector<SizedSchedule> out;
  for (const std::string& part : parts) {
    Outcome<Schedule> read = Reader(pool, Sized::Yes).run(part);
    if (!read) return read.rejection();
    SizedSchedule next{{}, *read};
    ir::Block rest;
    for (const ir::Op& line : next.schedule.lines)
      (line.is<decision::At>() ? next.at : rest).push_back(line);
    next.schedule.lines = std::move(rest);
    out.push_back(std::move(next));
  }
  return out;
}

std::string print(const std::vector<SizedSchedule>& schedules) {
  std::string out;
  for (const SizedSchedule& s : schedules) {
    out += out.empty() ? header_of(s.schedule) : "or schedule\n";
    out += text_of_names(s.schedule, s.at);
    for (const ir::Op& line : s.at) out += ir::print(line) + "\n";
    out += body_of(s.schedule);
  }
  return out;
}

void complete(ir::Block& alternative, const ir::Block& decided) {
  for (const ir::Op& line : decided) {
    std::erase_if(alternative,
                  [&](const ir::Op& old) { return decision::is_about_the_same(old, line); });
    alternative.push_back(line);
  }
}

}  // namespace nautilus::schedule
