// SPDX-License-Identifier: Apache-2.0
#include "tune/work/shares.h"

#include <algorithm>

namespace nautilus::tune {
namespace {

constexpr double kHalved = 16;  // idle trials after which half of the gain is expected

}  // namespace

std::vector<double> worths(const std::vector<Shared>& searches) {
  double sum = 0;
  double timed = 0;
  for (const Shared& s : searches) {
    sum += s.best;
    timed += s.best > 0 ? 1 : 0;
  }
  const double mean = timed > 0 ? sum / timed : 1;
  std::vector<double> out;
  for (const Shared& s : searches) {
    const double time = s.best > 0 ? s.best : mean;
    const double possible = s.floor > 0 && s.best > 0 ? std::max(1 - s.floor / s.best, 0.0) : 1;
    const double gain = possible * kHalved / (kHalved + static_cast<double>(s.idle));
    out.push_back(s.is_over ? 0 : s.weight * time * gain);
  }
  return out;
}

size_t Shares::next(const std::vector<Shared>& searches) {
  owed_.resize(searches.size(), 0);
  shares_.assign(searches.size(), 0);
  for (size_t k = 0; k < searches.size(); ++k) {
    if (!searches[k].is_over && searches[k].best == 0 && searches[k].trials == 0) return k;
  }
  const std::vector<double> worth = worths(searches);
  double sum = 0;
  double left = 0;
  for (size_t k = 0; k < searches.size(); ++k) {
    sum += worth[k];
    left += searches[k].is_over ? 0 : 1;
  }
  size_t best = searches.size();
  for (size_t k = 0; k < searches.size(); ++k) {
    if (searches[k].is_over) continue;
    // If nothing is worth anything, all are worth the same.
    shares_[k] = sum > 0 ? worth[k] / sum : 1 / left;
    if (best == searches.size() || owed_[k] + shares_[k] > owed_[best] + shares_[best]) best = k;
  }
  return best;
}

void Shares::took(size_t search, int64_t trials) {
  const auto count = static_cast<double>(trials);
  double all = 0;
  for (size_t k = 0; k < owed_.size(); ++k) {
    owed_[k] += shares_[k] * count;
    all += shares_[k];
  }
  if (all > 0) owed_[search] -= count;
}

}  // namespace nautilus::tune
