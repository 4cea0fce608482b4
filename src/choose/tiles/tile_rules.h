// SPDX-License-Identifier: Apache-2.0
// How a kernel of tiles is laid out where no line says so: who works on its tiles, in which order
// they run, how operands arrive.
#pragma once

#include <map>
#include <string>

#include "lower/tiles/nest_answers.h"
#include "target/target.h"

namespace nautilus::choose {

class TileRules : public lower::NestAnswers {
 public:
  // `usual_path`: how boxes arrive that only element-wise work uses. The copy engine takes slots
  // and loading warps, which some kernels do not have.
  TileRules(const target::Target& target, decision::OperandPath usual_path)
      : target_(target), usual_path_(usual_path) {}

  decision::Groups groups(int64_t sharing, bool can_alternate) override;
  decision::TileOrder order(const lower::GridFacts& facts) override;
  decision::TileSource source(const decision::TileOrder& order) override;
  decision::OperandPath path(ir::Name tensor, int64_t columns, int64_t copied_columns) override;
  bool is_whole(ir::Name tensor, int64_t row_bytes) override;
  decision::Moment fetch() override;
  int64_t promoted_bytes(const lower::CopyFacts& facts) override;

 private:
  const target::Target& target_;
  decision::OperandPath usual_path_;
  // A tensor has one line for all of its boxes: the first of them decides.
  std::map<std::string, decision::OperandPath> paths_;
  std::map<std::string, bool> wholes_;
};

}  // namespace nautilus::choose
