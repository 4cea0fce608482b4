// SPDX-License-Identifier: Apache-2.0
// Schedules of version 1 as lines of today's version.
//
//   schedule @attention hash 5d0f6ab2c3e41f77 version 1
//   round Z bf16 auto                    round Z bf16
//   kernel U auto                        kernel U tile
//   tile i cta 192 wg 64 auto              rows i; tile i 192; groups 3 sharing
//   tile i cta 128 wg 128 auto             rows i; tile i 128; groups 2 alternating
//   order j descending user                loop down user
//   split j fill or_whole auto             split j combine kernel, and an `or` without parts
//   or i cta 128 wg 64 j 128 auto        or, with these sizes
//
// Their hash was one of printed loops, which no longer says anything: whether such a schedule fits
// its program is found by replay.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "schedule/text/schedule.h"
#include "schedule/text/text_lines.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

std::optional<int64_t> number_of(const std::string& text) {
  int64_t value = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || value <= 0) return std::nullopt;
  return value;
}

class Migration {
 public:
  explicit Migration(expr::ExprPool& pool) : pool_(pool) {}

  Outcome<Schedule> run(std::string_view text) {
    const auto lines = text_lines(text);
    out_.program = lines[0].words[1].substr(1);
    if (lines[0].words[5] != "1")
      return Rejection{"syntax", fmt::format("line 1: version {} is not known", lines[0].words[5])};
    for (size_t k = 1; k < lines.size(); ++k) {
      std::vector<std::string> words = lines[k].words;
      const auto& spellings = dc::words(By());
      const auto who = std::find(spellings.begin(), spellings.end(), words.back());
      by_ = who == spellings.end() ? By::Auto : static_cast<By>(who - spellings.begin());
      if (who != spellings.end()) words.pop_back();
      if (words.empty() || !line(words))
        return Rejection{"version", fmt::format("line {}: `{}` is not a line of version 1",
                                                lines[k].number, lines[k].text)};
    }
    finish_kernel();
    return std::move(out_);
  }

 private:
  template <class D>
  void add(ir::Block& to, D decision) {
    decision.by = by_;
    to.push_back(ir::make(std::move(decision)));
  }
  ir::Block& alternative() { return out_.kernels.back().alternatives.back(); }
  ir::Name name(const std::string& text) { return pool_.name(text); }

  bool line(const std::vector<std::string>& w) {
    const std::string& verb = w[0];
    const size_t n = w.size();
    if (verb == "round" && n == 3) {
      const auto dtype = expr::parse_dtype(w[2]);
      if (dtype) add(out_.lines, dc::Round{name(w[1]), *dtype, {}});
      return dtype.has_value();
    }
    if (verb == "locate" && n == 2) return add(out_.lines, dc::Locate{name(w[1]), {}}), true;
    if (verb == "kernel" && n == 2) {
      finish_kernel();
      out_.kernels.push_back({w[1], {{}}});
      return true;
    }
    if (out_.kernels.empty()) return false;
    if (verb == "fuse" && n == 2) return add(alternative(), dc::Fuse{{name(w[1])}, {}}), true;
    if (verb == "roll" && n == 2) return add(alternative(), dc::Roll{{name(w[1])}, {}}), true;
    if (verb == "order" && n == 3 && (w[2] == "descending" || w[2] == "ascending")) {
      const bool is_down = w[2] == "descending";
      add(alternative(),
          dc::LoopOrder{is_down ? dc::LoopDirection::Down : dc::LoopDirection::Up, {}});
      return true;
    }
    if (verb == "split" && n >= 3) return split(w);
    if (verb == "cluster" && n == 3) return sizes({"cluster", w[2]}, alternative());
    if (verb == "resident" && n == 2) return sizes({"resident", w[1]}, alternative());
    if (verb == "tile") return sizes({w.begin() + 1, w.end()}, alternative());
    if (verb != "or") return false;
    others_.emplace_back();
    return sizes({w.begin() + 1, w.end()}, others_.back());
  }

  bool split(const std::vector<std::string>& w) {
    dc::Split split{.axis = name(w[1]), .parts = number_of(w[2])};
    if (!split.parts && w[2] != "fill") return false;
    size_t k = 3;
    or_whole_ = k < w.size() && w[k] == "or_whole";
    k += or_whole_ ? 1 : 0;
    if (k + 2 == w.size() && w[k] == "combine") {
      split.combine = w[k + 1] == "last" ? dc::CombineKind::Last : dc::CombineKind::Kernel;
      k += 2;
    }
    add(alternative(), split);
    return k == w.size();
  }

  // `i cta 128 wg 64 j 80 cluster 2`
  bool sizes(const std::vector<std::string>& w, ir::Block& to) {
    for (size_t k = 0; k + 1 < w.size();) {
      const bool is_row = k + 4 < w.size() && w[k + 1] == "cta" && w[k + 3] == "wg";
      const auto size = number_of(w[is_row ? k + 2 : k + 1]);
      if (!size) return false;
      if (is_row) {
        const auto rows = number_of(w[k + 4]);
        if (!rows || *size % *rows != 0) return false;
        if (&to == &alternative()) add(to, dc::Rows{name(w[k]), {}});
        add(to, dc::Tile{name(w[k]), *size, {}});
        // One group of 64 rows alternates with another where that can be.
        if (*rows != *size) add(to, dc::Groups{*size / *rows, dc::GroupKind::Sharing, {}});
        if (*rows == *size && *rows > 64) add(to, dc::Groups{2, dc::GroupKind::Alternating, {}});
        k += 5;
        continue;
      }
      if (w[k] == "cluster") {
        add(to, dc::Cluster{*size, {}});
      } else if (w[k] == "resident") {
        add(to, dc::Resident{*size, {}});
      } else {
        add(to, dc::Tile{name(w[k]), *size, {}});
      }
      k += 2;
    }
    return w.size() >= 2;
  }

  // The kernel without parts has the sizes of the one with parts, and others may follow.
  void finish_kernel() {
    if (out_.kernels.empty()) return;
    auto& alternatives = out_.kernels.back().alternatives;
    if (or_whole_) {
      ir::Block whole;
      for (const ir::Op& op : alternatives[0]) {
        const auto topic = dc::topic(op.info());
        if (topic != dc::Topic::Members && !op.is<dc::Split>()) whole.push_back(op);
      }
      alternatives.push_back(std::move(whole));
    }
    for (ir::Block& other : others_) alternatives.push_back(std::move(other));
    others_.clear();
    or_whole_ = false;
  }

  expr::ExprPool& pool_;
  Schedule out_;
  By by_ = By::Auto;
  bool or_whole_ = false;
  std::vector<ir::Block> others_;
};

}  // namespace

Outcome<Schedule> parse_version1(std::string_view text, expr::ExprPool& pool) {
  return Migration(pool).run(text);
}

}  // namespace nautilus::schedule
