// SPDX-License-Identifier: Apache-2.0
// The kernels of a list of consecutive nests, by least predicted time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "algebra/sign.h"
#include "choose/nest_cost.h"
#include "decision/decisions.h"
#include "lower/program_nests.h"

namespace nautilus::choose {

// One kernel of a cover.
struct ChosenKernel {
  ir::Name name;
  decision::Form form = decision::Form::Points;
  ir::Block lines;
  // The lines of further alternatives.
  std::vector<ir::Block> others;
  std::vector<lower::MapNest> nests;  // in their order; empty if lowering makes them from a line
};

struct Cover {
  using Buffers = std::vector<std::pair<ir::Name, ir::TensorType>>;

  double cycles = 0;
  std::vector<ChosenKernel> kernels;
  std::map<std::string, ir::Block> inner;  // by statement, its steps
  Buffers buffers;                         // of steps
  std::vector<Price> prices;               // what the cycles are the sum of
  Buffers priced = {};                     // buffers that prices know and the program does not

  // The cycles on a machine with other costs.
  double cycles_on(const NestCosts& costs) const;
  // What follows the kernels of this one.
  void append(Cover behind);
};

class Coverer {
 public:
  Coverer(const lower::ProgramNests& program, NestCosts& costs, const target::Target& target,
          const algebra::Signs& signs, ir::PassContext& context)
      : program_(program), costs_(costs), target_(target), signs_(signs), context_(context) {}

  // `after`: nests that follow the list.
  Cover run(const std::vector<lower::MapNest>& nests, std::span<const lower::MapNest> after);
  // That one, and behind it others that differ from it in one kernel and those that follow from it.
  std::vector<Cover> run_all(const std::vector<lower::MapNest>& nests,
                             std::span<const lower::MapNest> after);

 private:
  using Nests = std::vector<lower::MapNest>;

  // The beginning of a cover, with the nests that are left.
  struct Head {
    Cover cover;
    Nests rest;
    lower::FreshNames names;
  };
  // The cheapest of the covers of a list that were considered. Of equal ones the first.
  struct Cheapest {
    std::vector<Head>* heads = nullptr;  // all that were considered, if somebody asks for them
    Cover cover = {};
    bool has_one = false;

    // Whether nobody needs to know more of a cover with at least these cycles.
    bool is_beaten(double cycles) const { return !heads && has_one && cycles >= cover.cycles; }
    void take(Cover other);
  };

  void begin(std::span<const lower::MapNest> after);
  Cover best(const Nests& nests, lower::FreshNames names);
  std::vector<Cover> alternatives(const Nests& nests, const lower::FreshNames& names);
  void consider(Cover cover, const Nests& rest, const lower::FreshNames& names, Cheapest& cheapest);
  void add(Price price, Cover& out) const;
  std::set<std::string> kept_behind(const Nests& nests, size_t begin) const;
  ChosenKernel kernel(decision::Form form, const Nests& nests, size_t count) const;

  bool is_step(const lower::RowGroup& group) const;
  bool is_short_row(const lower::RowGroup& group) const;
  std::optional<Cover> as_rows(const Nests& nests, bool has_reductions);
  Cover as_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                  int64_t most_lanes);
  Cover as_single_points(const Nests& nests, size_t count, const lower::FreshNames& names,
                         int64_t most_lanes);
  std::optional<Cover> as_columns(const Nests& nests, size_t count, const lower::FreshNames& names);
  bool fills_machine(const Nests& nests) const;
  Cover as_parts(const Nests& nests);
  std::optional<Cover> as_scatter(const Nests& nests);
  std::optional<Cover> as_sort(const Nests& nests);
  size_t points_end(const Nests& nests) const;
  static bool reads_any(const lower::MapNest& nest, const std::set<std::string>& names);
  void in_parts(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest);
  void in_parts(const Nests& nests, int64_t parts, const lower::FreshNames& names,
                Cheapest& cheapest);
  // cover_steps.cc
  void in_steps(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest);
  void in_steps(const Nests& nests, size_t inner, const lower::FreshNames& names,
                Cheapest& cheapest);
  void in_pieces(const Nests& nests, const lower::FreshNames& names, Cheapest& cheapest);
  void in_pieces(const Nests& nests,
                 const std::function<std::optional<int64_t>(const lower::MapNest&)>& usual,
                 const lower::FreshNames& names, Cheapest& cheapest);
  void declare(ir::Name buffer, const ir::TensorType& type, Cover& out);
  bool take_along(Nests& all, size_t count, size_t inner, lower::FreshNames& names, Cover& out);

  const lower::ProgramNests& program_;
  NestCosts& costs_;
  const target::Target& target_;
  const algebra::Signs& signs_;
  ir::PassContext& context_;
  std::span<const lower::MapNest> after_;
  std::map<std::string, ir::TensorType> buffers_;
  std::map<std::string, Cover> known_;
  std::set<std::string> parts_;   // buffers of parts (in_parts)
  std::set<std::string> moving_;  // sums that are computed in the walk of others, or are in pieces
  NestCosts::Where where_;        // where the kernel under consideration is launched
  std::vector<Head>* heads_ = nullptr;  // for the next list
};

}  // namespace nautilus::choose
