// SPDX-License-Identifier: Apache-2.0
#include "spec/language/scan_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::spec {
namespace {

using diag::Code;
using expr::Syntax;
using Form = Syntax::Kind;

class StepFinder {
 public:
  StepFinder(const std::vector<ScanRead>& reads, ScanSteps& steps, diag::Sink& sink)
      : reads_(reads), steps_(steps), sink_(sink) {}

  bool run() {
    for (const ScanRead& r : reads_) {
      if (!look(r)) return false;
    }
    if (!first_) return true;  // no step at all
    steps_.is_up = is_up_;
    follow();
    return std::all_of(reads_.begin(), reads_.end(), [&](const ScanRead& r) { return check(r); });
  }

 private:
  diag::Diagnostic& bad(const ScanRead& r, std::string why) {
    return sink_.report(Code::BadStep, r.place->span,
                        fmt::format("`{}` {}", r.read->name.text, why));
  }

  // Notes the axis and the direction of a step.
  bool look(const ScanRead& r) {
    int moved = -1;
    StepIndex step;
    for (size_t k = 0; k < r.place->args.size(); ++k) {
      const StepIndex at = step_index(*r.place->args[k], *r.reader);
      if (at.axis < 0 || at.offset == 0) continue;
      if (moved >= 0) {
        bad(r, "is read one step back along two axes")
            .with_help("equations that need each other step along one axis");
        return false;
      }
      moved = static_cast<int>(k);
      step = at;
    }
    if (moved < 0) return true;
    if (step.offset != 1 && step.offset != -1) {
      const bool is_back = step.offset < 0;
      const std::string axis(r.reader->axes[static_cast<size_t>(step.axis)].name);
      bad(r, fmt::format("is read {} steps {}", std::abs(step.offset), is_back ? "back" : "ahead"))
          .with_help(fmt::format(
              "carry the older one in an equation of its own, `{0}1[...] = {0}[..., {1}{2}1] from "
              "...`, and read `{0}1` one step {3}",
              r.read->name.text, axis, is_back ? "-" : "+", is_back ? "back" : "ahead"));
      return false;
    }
    const bool is_up = step.offset < 0;
    if (first_ && is_up != is_up_) {
      bad(r, "is read one step ahead, another one is read one step back")
          .also(first_->place->span, "the other direction")
          .with_help("equations that need each other step in one direction");
      return false;
    }
    if (!first_) first_ = &r;
    is_up_ = is_up;
    return place(r, r.read, static_cast<size_t>(moved)) &&
           place(r, r.reader, static_cast<size_t>(step.axis));
  }

  bool place(const ScanRead& r, const EquationSyntax* eq, size_t axis) {
    const auto [it, is_new] = steps_.along.emplace(eq, axis);
    if (is_new || it->second == axis) return true;
    sink_
        .report(Code::BadStep, r.place->span,
                fmt::format("`{}` steps along `{}` here and along `{}` elsewhere", eq->name.text,
                            name(*eq, axis), name(*eq, it->second)))
        .with_help("equations that need each other step along one axis");
    return false;
  }

  static std::string_view name(const EquationSyntax& eq, size_t axis) {
    return axis < eq.axes.size() ? eq.axes[axis].name : "?";
  }

  // Equations that read each other in one step have the axis where they read it.
  void follow() {
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (const ScanRead& r : reads_) {
        const auto reader = steps_.along.find(r.reader);
        const auto read = steps_.along.find(r.read);
        for (size_t k = 0; k < r.place->args.size(); ++k) {
          const StepIndex at = step_index(*r.place->args[k], *r.reader);
          if (at.axis < 0) continue;
          if (reader != steps_.along.end() && read == steps_.along.end() &&
              at.axis == static_cast<int>(reader->second))
            is_changed |= steps_.along.emplace(r.read, k).second;
          if (read != steps_.along.end() && reader == steps_.along.end() && read->second == k)
            is_changed |= steps_.along.emplace(r.reader, static_cast<size_t>(at.axis)).second;
        }
      }
    }
  }

  // The index along the steps is the reader's own, or that of the step before.
  bool check(const ScanRead& r) {
    const auto reader = steps_.along.find(r.reader);
    const auto read = steps_.along.find(r.read);
    if (reader == steps_.along.end() || read == steps_.along.end() ||
        read->second >= r.place->args.size()) {
      bad(r, "is needed by what it needs, at no step before")
          .also(first_->place->span, "a step before");
      return false;
    }
    const Syntax& index = *r.place->args[read->second];
    const StepIndex at = step_index(index, *r.reader);
    if (at.axis == static_cast<int>(reader->second)) return true;
    bad(r, fmt::format("is read at `{}`, which is no step along `{}`",
                       sink_.sources().text(index.span), name(*r.reader, reader->second)))
        .with_help(
            fmt::format("equations that need each other read each other at `{0}` and `{0} {1} 1`",
                        name(*r.reader, reader->second), is_up_ ? "-" : "+"));
    return false;
  }

  const std::vector<ScanRead>& reads_;
  ScanSteps& steps_;
  diag::Sink& sink_;
  const ScanRead* first_ = nullptr;
  bool is_up_ = true;
};

}  // namespace

StepIndex step_index(const Syntax& index, const EquationSyntax& reader) {
  const auto axis = [&](const Syntax& s) {
    if (s.kind != Form::Name) return -1;
    for (size_t k = 0; k < reader.axes.size(); ++k) {
      if (reader.axes[k].name == s.text) return static_cast<int>(k);
    }
    return -1;
  };
  if (axis(index) >= 0) return {axis(index), 0};
  const bool is_sum = index.kind == Form::Infix && (index.text == "+" || index.text == "-");
  if (!is_sum) return {};
  const Syntax& x = *index.args[0];
  const Syntax& y = *index.args[1];
  if (axis(x) >= 0 && y.kind == Form::Integer)
    return {axis(x), index.text == "-" ? -y.integer : y.integer};
  if (index.text == "+" && axis(y) >= 0 && x.kind == Form::Integer) return {axis(y), x.integer};
  return {};
}

bool find_steps(const std::vector<ScanRead>& reads, ScanSteps& steps, diag::Sink& sink) {
  return StepFinder(reads, steps, sink).run();
}

}  // namespace nautilus::spec
