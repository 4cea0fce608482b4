// SPDX-License-Identifier: Apache-2.0
// XGBoost through its C interface, loaded when it is there: builds and users without it lose
// nothing but this model.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "tune/learn/rank_model.h"

namespace nautilus::tune {
namespace {

constexpr size_t kLeastSamples = 8;
constexpr int kRounds = 40;
constexpr double kGrades = 31;  // of relevance: the best of a problem has the highest

using Handle = void*;
using Count = uint64_t;

// The functions that are used; each returns 0 if it worked.
struct Library {
  int (*matrix)(const float* rows, Count count, Count width, float missing, Handle* out);
  int (*set_floats)(Handle matrix, const char* field, const float* values, Count count);
  int (*set_numbers)(Handle matrix, const char* field, const unsigned* values, Count count);
  int (*free_matrix)(Handle matrix);
  int (*booster)(const Handle* matrices, Count count, Handle* out);
  int (*set)(Handle booster, const char* name, const char* value);
  int (*update)(Handle booster, int round, Handle matrix);
  int (*predict)(Handle booster, Handle matrix, int options, unsigned trees, int is_training,
                 Count* count, const float** out);
  int (*free_booster)(Handle booster);
};

// Null if it is not installed.
const Library* library() {
  static const auto* const kLibrary = []() -> const Library* {
    const char* asked = std::getenv("NAUTILUS_XGBOOST");
    void* file = nullptr;
    for (const char* name : {asked ? asked : "libxgboost.so", "libxgboost.so.0"})
      file = file ? file : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!file) return nullptr;
    auto* out = new Library{};
    bool ok = true;
    const auto get = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(file, name));
      ok &= function != nullptr;
    };
    get("XGDMatrixCreateFromMat", out->matrix);
    get("XGDMatrixSetFloatInfo", out->set_floats);
    get("XGDMatrixSetUIntInfo", out->set_numbers);
    get("XGDMatrixFree", out->free_matrix);
    get("XGBoosterCreate", out->booster);
    get("XGBoosterSetParam", out->set);
    get("XGBoosterUpdateOneIter", out->update);
    get("XGBoosterPredict", out->predict);
    get("XGBoosterFree", out->free_booster);
    return ok ? out : nullptr;
  }();
  return kLibrary;
}

class BoostedModel final : public RankModel {
 public:
  explicit BoostedModel(const Library& library) : library_(library) {}
  ~BoostedModel() override { drop(); }

  bool fit(const std::vector<Sample>& samples) override {
    drop();
    if (samples.size() < kLeastSamples) return false;
    std::vector<const Sample*> order;
    std::map<size_t, double> best;
    for (const Sample& s : samples) {
      if (s.features.size() != samples[0].features.size()) return false;
      order.push_back(&s);
      double& b = best.try_emplace(s.problem, s.time).first->second;
      b = std::min(b, s.time);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Sample* a, const Sample* b) { return a->problem < b->problem; });
    std::vector<float> rows;
    std::vector<float> grades;
    std::vector<unsigned> groups;
    for (size_t k = 0; k < order.size(); ++k) {
      const Sample& s = *order[k];
      for (const double f : s.features) rows.push_back(static_cast<float>(f));
      grades.push_back(static_cast<float>(std::round(kGrades * best[s.problem] / s.time)));
      const bool is_new = k == 0 || order[k - 1]->problem != s.problem;
      is_new ? groups.push_back(1) : void(++groups.back());
    }
    const Count width = samples[0].features.size();
    Handle data = nullptr;
    bool ok = library_.matrix(rows.data(), order.size(), width, std::nanf(""), &data) == 0 &&
              library_.set_floats(data, "label", grades.data(), grades.size()) == 0 &&
              library_.set_numbers(data, "group", groups.data(), groups.size()) == 0 &&
              library_.booster(&data, 1, &booster_) == 0;
    const auto set = [&](const char* name, const char* value) {
      ok = ok && library_.set(booster_, name, value) == 0;
    };
    set("objective", "rank:pairwise");
    set("max_depth", "5");
    set("eta", "0.2");
    set("min_child_weight", "1");
    set("nthread", "2");
    set("seed", "1");
    set("verbosity", "0");
    for (int round = 0; ok && round < kRounds; ++round)
      ok = library_.update(booster_, round, data) == 0;
    if (data) library_.free_matrix(data);
    if (!ok) drop();
    return ok;
  }

  double score(const Features& features) const override {
    if (!booster_) return 0;
    const std::vector<float> row(features.begin(), features.end());
    Handle data = nullptr;
    Count count = 0;
    const float* out = nullptr;
    const bool ok = library_.matrix(row.data(), 1, row.size(), std::nanf(""), &data) == 0 &&
                    library_.predict(booster_, data, 0, 0, 0, &count, &out) == 0 && count == 1;
    const double relevance = ok ? static_cast<double>(out[0]) : 0;
    if (data) library_.free_matrix(data);
    return -relevance;
  }

 private:
  void drop() {
    if (booster_) library_.free_booster(booster_);
    booster_ = nullptr;
  }
  const Library& library_;
  Handle booster_ = nullptr;
};

}  // namespace

std::unique_ptr<RankModel> make_boosted_model() {
  return library() ? std::make_unique<BoostedModel>(*library()) : nullptr;
}

}  // namespace nautilus::tune
