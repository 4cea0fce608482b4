// SPDX-License-Identifier: Apache-2.0
#include "tune/shapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "tune/records/tuned_plan.h"
#include "tune/work/shares.h"

namespace nautilus::tune {
namespace {

constexpr size_t kAtOnce = 4;  // searches that make schedules at the same time, approximately

struct ShapeSearch {
  std::map<std::string, int64_t> sizes;  // all dims
  double weight = 1;
  const ShapeSubject* shape = nullptr;
  std::unique_ptr<Tuner> tuner;
};

class ShapesTuner {
 public:
  ShapesTuner(const std::vector<ShapeSubject>& shapes, const TuneOptions& options,
              const TuneHooks& hooks)
      : shapes_(shapes), options_(options), hooks_(hooks) {}

  std::optional<ShapesResult> run(std::string* error) {
    if (!start(error) || !search(error)) return std::nullopt;
    return result(error);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(TuneClock::now() - hooks_.start).count();
  }

  static std::string named(const ShapeSearch& s, const std::string& why) {
    return fmt::format("{}: {}", sizes_text(s.sizes), why);
  }

  // Searches in the order of their sizes; equal ones are one.
  bool start(std::string* error) {
    std::map<std::map<std::string, int64_t>, ShapeSearch> by_sizes;
    for (const ShapeSubject& shape : shapes_) {
      const auto problem = problem_of(shape.subject, error);
      if (!problem) {
        *error = fmt::format("{}: {}", sizes_text(shape.subject.sizes), *error);
        return false;
      }
      if (equations_.empty()) equations_ = problem->equations;
      if (equations_ != problem->equations) {
        *error = fmt::format("{}: shapes of one plan have the same static sizes",
                             sizes_text(shape.subject.sizes));
        return false;
      }
      ShapeSearch& search = by_sizes[problem->sizes];
      search.weight = search.shape ? search.weight + shape.weight : shape.weight;
      if (!search.shape) search.shape = &shape;
    }
    // Some searches make schedules at the same time; few at a time, so that the turns are short.
    jobs_ =
        std::max(options_.jobs / static_cast<int>(std::min<size_t>(by_sizes.size(), kAtOnce)), 1);
    for (auto& [sizes, search] : by_sizes) {
      search.sizes = sizes;
      TuneOptions own = options_;
      own.trials = 0;  // counted together
      own.jobs = jobs_;
      own.worker = search.shape->worker;
      TuneHooks hooks = hooks_;
      hooks.tell = [this](const Progress& p) {
        Progress all = p;
        all.trials = trials();
        hooks_.tell(all);
      };
      search.tuner = start_tuner(search.shape->subject, own, hooks, error);
      if (!search.tuner) {
        *error = named(search, *error);
        return false;
      }
      searches_.push_back(std::move(search));
    }
    return true;
  }

  // Trials at a time: what a search makes at once, and no more than are left.
  size_t turn() const {
    const auto most = static_cast<size_t>(jobs_);
    if (options_.trials == 0) return most;
    return std::min(most, static_cast<size_t>(std::max<int64_t>(options_.trials - trials(), 1)));
  }

  int64_t trials() const {
    int64_t out = 0;
    for (const ShapeSearch& s : searches_) out += s.tuner->state().trials;
    return out;
  }

  bool search(std::string* error) {
    Shares shares;
    while (ended_.empty()) {
      std::vector<Shared> states;
      for (const ShapeSearch& s : searches_) {
        const TunerState t = s.tuner->state();
        states.push_back({s.weight, t.best, t.floor, t.trials, t.idle, !s.tuner->ended().empty()});
      }
      const size_t next = shares.next(states);
      if (next == searches_.size()) {
        ended_ = "all searches were over";
        break;
      }
      const int64_t before = states[next].trials;
      if (!searches_[next].tuner->step(turn(), error)) {
        *error = named(searches_[next], *error);
        return false;
      }
      shares.took(next, searches_[next].tuner->state().trials - before);
      if (hooks_.is_stopped())
        ended_ = "it was stopped";
      else if (seconds() >= options_.seconds)
        ended_ = "the time was over";
      else if (options_.trials > 0 && trials() >= options_.trials)
        ended_ = "all trials were made";
    }
    return true;
  }

  std::optional<ShapesResult> result(std::string* error) {
    ShapesResult out;
    std::vector<TunedSizes> winners;
    bool has_first = true;
    for (const ShapeSearch& s : searches_) {
      auto tuned = s.tuner->finish(error);
      if (!tuned) {
        *error = named(s, *error);
        return std::nullopt;
      }
      winners.push_back({s.sizes, tuned->winner.schedule});
      out.best += s.weight * tuned->winner.median;
      out.first += s.weight * tuned->first;
      has_first &= tuned->first > 0;
      out.shapes.push_back({s.sizes, s.weight, std::move(*tuned)});
    }
    if (!has_first) out.first = 0;
    out.trials = trials();
    out.seconds = seconds();
    out.ended = ended_;
    driver::Unit unit;
    // Without the sizes of a shape, so that the order of shapes does not matter.
    Subject plain = searches_[0].shape->subject;
    std::erase_if(plain.sizes, [&](const auto& s) { return searches_[0].sizes.contains(s.first); });
    const auto program = load(plain, unit);
    const auto text = program ? tuned_plan_text(*program, winners) : std::nullopt;
    if (!text) {
      *error = "the compiler has no schedule of its own for the program";
      return std::nullopt;
    }
    out.schedule = *text;
    return out;
  }

  const std::vector<ShapeSubject>& shapes_;
  const TuneOptions& options_;
  const TuneHooks& hooks_;
  std::string equations_;
  int jobs_ = 1;  // of each search
  std::vector<ShapeSearch> searches_;
  std::string ended_;
};

}  // namespace

std::optional<ShapesResult> tune_shapes(const std::vector<ShapeSubject>& shapes,
                                        const TuneOptions& options, const TuneHooks& hooks,
                                        std::string* error) {
  return ShapesTuner(shapes, options, hooks).run(error);
}

}  // namespace nautilus::tune
