// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/child.h"

#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

TEST(Child, AnswersLines) {
  Child child;
  std::string error;
  ASSERT_TRUE(child.start({"cat"}, &error)) << error;
  std::string line;
  for (const std::string text : {"one", "", "two words"}) {
    ASSERT_TRUE(child.send(text));
    ASSERT_EQ(child.receive(10, line), Child::Answer::Line);
    EXPECT_EQ(line, text);
  }
}

TEST(Child, SaysHowItEnded) {
  Child child;
  std::string error;
  std::string line;
  ASSERT_TRUE(child.start({"sh", "-c", "kill -SEGV $$"}, &error)) << error;
  ASSERT_EQ(child.receive(10, line), Child::Answer::Ended);
  EXPECT_EQ(child.end(), "its process ended by signal 11 (Segmentation fault)");
  EXPECT_FALSE(child.is_running());
  ASSERT_TRUE(child.start({"cat"}, &error)) << error;  // another one
  EXPECT_TRUE(child.send("x"));
  EXPECT_EQ(child.receive(10, line), Child::Answer::Line);
}

TEST(Child, AnInterruptIsNotForIt) {
  Child child;
  std::string error;
  std::string line;
  ASSERT_TRUE(child.start({"sh", "-c", "cut -d ' ' -f 5 /proc/$$/stat; echo $$"}, &error)) << error;
  std::string group;
  ASSERT_EQ(child.receive(10, group), Child::Answer::Line);
  ASSERT_EQ(child.receive(10, line), Child::Answer::Line);
  EXPECT_EQ(group, line);  // the leader of its own group
}

TEST(Child, IsStoppedWhenItIsLate) {
  Child child;
  std::string error;
  std::string line;
  ASSERT_TRUE(child.start({"sleep", "1000"}, &error)) << error;
  EXPECT_EQ(child.receive(0.05, line), Child::Answer::Late);
  child.stop();
  EXPECT_FALSE(child.is_running());
}

TEST(Child, AMissingProgramIsAnError) {
  Child child;
  std::string error;
  EXPECT_FALSE(child.start({"/no/such/program"}, &error));
  EXPECT_NE(error.find("/no/such/program"), std::string::npos);
}

}  // namespace
}  // namespace nautilus::tune
