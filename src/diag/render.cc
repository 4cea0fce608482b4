// SPDX-License-Identifier: Apache-2.0
#include "diag/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace nautilus::diag {
namespace {

constexpr size_t kMaxLineColumns = 160;  // longer source lines are cut around the first mark

struct Mark {
  uint32_t begin;  // 0-based column
  uint32_t end;    // exclusive, at least begin + 1
  char stroke;     // '^' primary, '-' secondary
  std::string text;
};

struct LineMarks {
  uint32_t file;
  uint32_t line;
  std::vector<Mark> marks;
};

// Control characters, changes of the writing direction and bytes that are not text become one
// visible character each, so that columns do not shift.
std::string printable(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    const size_t bytes = code_point_bytes(line.substr(i));
    const std::string_view c = line.substr(i, std::max<size_t>(1, bytes));
    i += c.size();
    const bool is_c1 = bytes == 2 && c < "\xC2\xA0";
    const bool is_direction = (c >= "\xE2\x80\xAA" && c <= "\xE2\x80\xAE") ||
                              (c >= "\xE2\x81\xA6" && c <= "\xE2\x81\xA9");
    if (bytes == 0 || is_c1 || is_direction) {
      out += '?';
    } else if (static_cast<unsigned char>(c[0]) < 0x20 || c[0] == 0x7f) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}

// The code points [begin, begin + count) of a text without malformed ones.
std::string_view columns(std::string_view text, size_t begin, size_t count) {
  auto skip = [&](size_t from, size_t points) {
    while (points-- > 0 && from < text.size()) from += code_point_bytes(text.substr(from));
    return from;
  };
  const size_t first = skip(0, begin);
  return text.substr(first, skip(first, count) - first);
}

void put(std::string& row, size_t column, std::string_view text) {
  if (row.size() < column + text.size()) row.resize(column + text.size(), ' ');
  row.replace(column, text.size(), text);
}

// Rows below a source line: strokes with the rightmost label next to them, then the other labels
// hanging from bars.
std::vector<std::string> mark_rows(std::vector<Mark> marks) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.begin < b.begin; });
  std::vector<std::string> rows(1);
  for (const Mark& m : marks) {
    if (m.stroke == '-') put(rows[0], m.begin, std::string(m.end - m.begin, '-'));
  }
  for (const Mark& m : marks) {
    if (m.stroke == '^') put(rows[0], m.begin, std::string(m.end - m.begin, '^'));
  }
  std::vector<const Mark*> hanging;
  for (const Mark& m : marks) {
    if (!m.text.empty()) hanging.push_back(&m);
  }
  if (!hanging.empty()) {
    const Mark* last = hanging.back();
    const bool is_clear = std::all_of(marks.begin(), marks.end(), [&](const Mark& m) {
      return &m == last || m.end <= last->end;
    });
    if (is_clear) {
      rows[0] += " " + last->text;
      hanging.pop_back();
    }
  }
  if (!hanging.empty()) {
    std::string bars;
    for (const Mark* m : hanging) put(bars, m->begin, "|");
    rows.push_back(bars);
  }
  while (!hanging.empty()) {
    std::string row;
    for (const Mark* m : hanging) put(row, m->begin, "|");
    row.resize(hanging.back()->begin);
    rows.push_back(row + hanging.back()->text);
    hanging.pop_back();
  }
  return rows;
}

class Painter {
 public:
  Painter(const SourceMap& sources, bool colour) : sources_(sources), colour_(colour) {}

  std::string paint(const Diagnostic& d) {
    out_ += bold(d.is_error() ? "31" : "33",
                 fmt::format("{}[{}]", d.is_error() ? "error" : "warning", info(d.code).number));
    out_ += bold("", ": " + d.message) + "\n";
    collect(d);
    uint32_t widest = 1;
    for (const LineMarks& l : lines_) widest = std::max(widest, l.line);
    gutter_ = fmt::format("{}", widest).size();
    paint_lines(d);
    for (const std::string& help : d.help) {
      out_ += fmt::format("{:>{}} = help: {}\n", "", gutter_ + 1, help);
    }
    return out_;
  }

 private:
  void collect(const Diagnostic& d) {
    add(d.primary, '^');
    for (const Label& l : d.secondary) add(l, '-');
    // Places in the order of the text, the primary's file first.
    std::stable_sort(lines_.begin(), lines_.end(), [&](const LineMarks& a, const LineMarks& b) {
      const bool a_other = a.file != d.primary.span.file;
      const bool b_other = b.file != d.primary.span.file;
      return std::tie(a_other, a.file, a.line) < std::tie(b_other, b.file, b.line);
    });
  }

  void add(const Label& label, char stroke) {
    const Span s = label.span;
    if (!s.is_known()) return;
    const Place begin = sources_.place(s.file, s.begin);
    const std::string_view text = sources_.line(s.file, begin.line);
    const uint32_t length = count_code_points(text);
    const uint32_t column = begin.column - 1;
    uint32_t width = count_code_points(sources_.text(s));
    if (column + width > length)
      width = length > column ? length - column : 1;  // first line of a long span
    Mark mark{column, column + std::max(1U, width), stroke, label.text};
    for (LineMarks& l : lines_) {
      if (l.file == s.file && l.line == begin.line) {
        l.marks.push_back(std::move(mark));
        return;
      }
    }
    lines_.push_back({s.file, begin.line, {std::move(mark)}});
  }

  void paint_lines(const Diagnostic& d) {
    uint32_t file = 0;
    uint32_t previous = 0;
    for (LineMarks& l : lines_) {
      if (l.file != file) {
        const bool is_primary = l.file == d.primary.span.file;
        const Place place = is_primary ? sources_.place(l.file, d.primary.span.begin)
                                       : Place{l.line, l.marks[0].begin + 1};
        out_ +=
            fmt::format("{:>{}}{} {}:{}:{}\n", "", gutter_,
                        file == 0 ? "-->" : ":::", sources_.path(l.file), place.line, place.column);
        out_ += fmt::format("{:>{}} |\n", "", gutter_ + 1);
      } else if (l.line > previous + 1) {
        out_ += "...\n";
      }
      file = l.file;
      previous = l.line;
      paint_line(l);
    }
  }

  void paint_line(LineMarks& l) {
    std::string text = printable(sources_.line(l.file, l.line));
    const uint32_t length = count_code_points(text);
    if (length > kMaxLineColumns) {
      uint32_t first = UINT32_MAX;
      for (const Mark& m : l.marks) first = std::min(first, m.begin);
      const uint32_t cut = first > 60 ? first - 60 : 0;
      const uint32_t shown = std::min<uint32_t>(length - cut, kMaxLineColumns - 6);
      const uint32_t shift = cut > 0 ? 3 : 0;
      text = fmt::format("{}{}{}", cut > 0 ? "..." : "", columns(text, cut, shown),
                         cut + shown < length ? "..." : "");
      for (Mark& m : l.marks) {
        m.begin = std::min(m.begin - cut, shown) + shift;
        m.end = std::clamp(m.end - cut + shift, m.begin + 1, shown + shift + 1);
      }
    }
    auto add_row = [&](std::string row) {
      row.erase(row.find_last_not_of(' ') + 1);
      out_ += row + "\n";
    };
    add_row(fmt::format(" {:>{}} | {}", l.line, gutter_, text));
    for (const std::string& row : mark_rows(l.marks)) {
      add_row(fmt::format("{:>{}} | {}", "", gutter_ + 1, row));
    }
  }

  std::string bold(std::string_view colour, const std::string& text) const {
    if (!colour_) return text;
    return fmt::format("\x1b[1{}{}m{}\x1b[0m", colour.empty() ? "" : ";", colour, text);
  }

  const SourceMap& sources_;
  bool colour_;
  std::string out_;
  std::vector<LineMarks> lines_;
  size_t gutter_ = 1;
};

}  // namespace

std::string render(const Diagnostic& diagnostic, const SourceMap& sources, bool colour) {
  return Painter(sources, colour).paint(diagnostic);
}

std::string render_all(const Sink& sink, bool colour, size_t from) {
  std::string out;
  for (size_t k = from; k < sink.all().size(); ++k) {
    if (!out.empty()) out += "\n";
    out += render(sink.all()[k], sink.sources(), colour);
  }
  return out;
}

}  // namespace nautilus::diag
