// SPDX-License-Identifier: Apache-2.0
#include "decision/decisions.h"

namespace nautilus::decision {

#define DECISION(name, topic) NAUT_DEFINE_OP(name)
#include "decision/decisions.def"
#undef DECISION
NAUT_DEFINE_OP(Cost)
NAUT_DEFINE_OP(Decisions)
NAUT_DEFINE_OP(Kernel)

namespace {
using Words = std::vector<std::string_view>;
}

const Words& words(By) {
  static const Words spellings = {"auto", "tuned", "user"};
  return spellings;
}

const Words& words(Rewrite) {
  static const Words spellings = {"distribute_row_shift",
                                  "gather",
                                  "limbs",
                                  "residues",
                                  "groups",
                                  "narrow",
                                  "chunks",
                                  "sums",
                                  "extremes",
                                  "pieces",
                                  "tables",
                                  "masks",
                                  "ranks"};
  return spellings;
}

const Words& words(StoredAs) {
  static const Words spellings = {"off", "bf16", "f16", "tf32", "f8e4m3", "f8e5m2", "i8", "u8"};
  return spellings;
}

const Words& words(CombineKind) {
  static const Words spellings = {"kernel", "last"};
  return spellings;
}

const Words& words(Form) {
  static const Words spellings = {"tile", "rows", "points", "parts", "scatter", "sort"};
  return spellings;
}

const Words& words(Switch) {
  static const Words spellings = {"off", "on"};
  return spellings;
}

const Words& words(LiveKind) {
  static const Words spellings = {"all", "range", "data_range", "list"};
  return spellings;
}

const Words& words(LoopDirection) {
  static const Words spellings = {"up", "down"};
  return spellings;
}

const Words& words(AddPlace) {
  static const Words spellings = {"onto", "apart"};
  return spellings;
}

const Words& words(ReferenceKind) {
  static const Words spellings = {"follow", "lazy", "speculative"};
  return spellings;
}

const Words& words(VectorStart) {
  static const Words spellings = {"row", "boundary"};
  return spellings;
}

const Words& words(HoldKind) {
  static const Words spellings = {"steps", "row", "filled"};
  return spellings;
}

const Words& words(GroupKind) {
  static const Words spellings = {"sharing", "alternating"};
  return spellings;
}

const Words& words(OrderKind) {
  static const Words spellings = {"plain", "raster", "longest"};
  return spellings;
}

const Words& words(SourceKind) {
  static const Words spellings = {"static", "dynamic"};
  return spellings;
}

const Words& words(OperandPath) {
  static const Words spellings = {"copied", "direct"};
  return spellings;
}

const Words& words(ReadOrder) {
  static const Words spellings = {"free", "ordered"};
  return spellings;
}

const Words& words(Moment) {
  static const Words spellings = {"early", "late"};
  return spellings;
}

const std::vector<const ir::OpInfo*>& vocabulary() {
  static const std::vector<const ir::OpInfo*> all = {
#define DECISION(name, topic) &name::info(),
#include "decision/decisions.def"
#undef DECISION
  };
  return all;
}

const std::vector<const ir::OpInfo*>& kernel_vocabulary() {
  static const std::vector<const ir::OpInfo*> all = [] {
    std::vector<const ir::OpInfo*> out = vocabulary();
    out.push_back(&Cost::info());
    return out;
  }();
  return all;
}

Topic topic(const ir::OpInfo& decision) {
#define DECISION(name, topic) \
  if (&decision == &name::info()) return Topic::topic;
#include "decision/decisions.def"
#undef DECISION
  NAUT_CHECK(false, "{} is not a decision", decision.name);
}

namespace {

const ir::Field& by_field(const ir::OpInfo& info) {
  for (const ir::Field& f : info.fields) {
    if (f.name == "by") return f;
  }
  NAUT_CHECK(false, "{} is not a decision", info.name);
}

}  // namespace

By by(const ir::Op& decision) {
  return static_cast<By>(ir::field_value<uint8_t>(decision.data(), by_field(decision.info())));
}

ir::Op with_by(const ir::Op& decision, By by) {
  auto data = ir::copy_data(decision);
  ir::field_value<uint8_t>(data.get(), by_field(decision.info())) = static_cast<uint8_t>(by);
  return {decision.info(), decision.span(), std::move(data)};
}

By by_of(const ir::Op& decision) {
  return static_cast<By>(ir::field_value<uint8_t>(decision.data(), by_field(decision.info())));
}

}  // namespace nautilus::decision
