// SPDX-License-Identifier: Apache-2.0
#include "schedule/text/schedule_names.h"

#include <gtest/gtest.h>

namespace nautilus::schedule {
namespace {

const std::map<std::string, int64_t> kPlaces = {{"S", 0}, {"S.e", 4}, {"e", 3}, {"i", 1}, {"j", 2}};

std::string shown(std::string_view name) {
  std::string out;
  for (const NamePiece& p : pieces_of_name(name, kPlaces))
    out += (p.is_known ? "<" : "") + std::string(p.text) + (p.is_known ? ">" : "");
  return out;
}

TEST(ScheduleNames, ComeFromNamesOfTheEquations) {
  EXPECT_EQ(shown("S"), "<S>");
  EXPECT_EQ(shown("S.e"), "<S.e>");
  EXPECT_EQ(shown("S.e.sum"), "<S.e>.sum");
  EXPECT_EQ(shown("S.max"), "<S>.max");
  EXPECT_EQ(shown("S_max_parts"), "<S>_max_parts");
  EXPECT_EQ(shown("i.j"), "<i>.<j>");
  EXPECT_EQ(shown("Sum.max"), "Sum.max");
  EXPECT_EQ(shown("other"), "other");
}

TEST(ScheduleNames, AScheduleOfAProgramWithOtherNames) {
  expr::ExprPool pool;
  const auto given = parse_schedule(
      "schedule @a version 2 equations 00ff\n"
      "names S 0, i 1, j 2\n"
      "kernel S.max rows\n"
      "  fuse S\n"
      "or\n"
      "  lanes 4\n",
      pool);
  ASSERT_TRUE(given) << given.rejection().message;
  const Schedule renamed = with_names(*given, {"scores", "row", "key"}, pool);
  EXPECT_EQ(print(renamed),
            "schedule @a version 2 equations 00ff\n"
            "names scores 0\n"
            "kernel scores.max rows\n"
            "  fuse scores\n"
            "or\n"
            "  lanes 4\n");
  // Places that the equations do not have keep their names.
  EXPECT_EQ(with_names(*given, {}, pool).kernels[0].name, "S.max");
}

TEST(ScheduleNames, AreReadWithTheirPlaces) {
  expr::ExprPool pool;
  const auto why = [&](std::string_view line) {
    const auto read = parse_schedule(
        "schedule @a version 2 equations 00ff\n" + std::string(line) + "\nkernel S rows\n", pool);
    return read ? "" : read.rejection().message;
  };
  EXPECT_EQ(why("names S 0"), "");
  for (const std::string_view wrong :
       {"names", "names S", "names S 0 i 1", "names S 0, i", "names S -1", "names S x",
        "names S 0, S 1", "names S 99999999999999999999", "names S 0\nnames i 1"})
    EXPECT_NE(why(wrong).find("names of the equations and their places"), std::string::npos)
        << wrong;
}

}  // namespace
}  // namespace nautilus::schedule
