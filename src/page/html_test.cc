// SPDX-License-Identifier: Apache-2.0
#include "page/html.h"

#include <gtest/gtest.h>

namespace nautilus::page {
namespace {

TEST(ReportText, MarkupIsEscaped) {
  EXPECT_EQ(escaped("<b a=\"1\" c='2'>&amp;</b>"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escaped("tabs\tand\nlines"), "tabs\tand\nlines");
}

TEST(ReportText, BytesThatAreNoTextAreReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(escaped("µ \xE2\x88\x92 \xF0\x9F\x90\x9A"), "µ \xE2\x88\x92 \xF0\x9F\x90\x9A");
  EXPECT_EQ(escaped(std::string_view("a\0b\x1B", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(escaped("\xC3"), replaced);                                // cut short
  EXPECT_EQ(escaped("\xC0\xAF"), replaced + replaced);                 // longer than needed
  EXPECT_EQ(escaped("\xED\xA0\x80"), replaced + replaced + replaced);  // half of a pair
  EXPECT_EQ(escaped("\xFFx"), replaced + "x");
}

TEST(ReportText, NumbersHaveSoManyDigits) {
  EXPECT_EQ(number_text(0.412345, 4), "0.4123");
  EXPECT_EQ(number_text(9.99961, 4), "10.00");
  EXPECT_EQ(number_text(0.0099999, 3), "0.0100");
  EXPECT_EQ(number_text(12084, 1), "12,084");
  EXPECT_EQ(number_text(1234567.8, 4), "1,234,568");
  EXPECT_EQ(number_text(999, 4), "999.0");
  EXPECT_EQ(number_text(-1234, 2),
            "\xE2\x88\x92"
            "1,234");
  EXPECT_EQ(number_text(0, 4), "0");
  EXPECT_EQ(prefixed_text(948.8e12, "FLOP/s"), "949 TFLOP/s");
  EXPECT_EQ(prefixed_text(4.212e12, "B/s"), "4.21 TB/s");
  EXPECT_EQ(prefixed_text(999.7, "B"), "1.00 kB");
  EXPECT_EQ(prefixed_text(12, "B"), "12.0 B");
}

TEST(ReportText, SharesAndDurations) {
  EXPECT_EQ(percent_text(0.7519), "75.2 %");
  EXPECT_EQ(change_text(0.0312), "+3.1 %");
  EXPECT_EQ(change_text(-0.0312),
            "\xE2\x88\x92"
            "3.1 %");
  EXPECT_EQ(change_text(-0.0001), "0.0 %");
  EXPECT_EQ(duration_text(95), "95 s");
  EXPECT_EQ(duration_text(144), "2.4 min");
  EXPECT_EQ(duration_text(840), "14 min");
  EXPECT_EQ(duration_text(5.2 * 3600), "5.2 h");
  EXPECT_EQ(duration_text(3.1 * 86400), "3.1 days");
  EXPECT_EQ(count_text(1, "trial"), "1 trial");
  EXPECT_EQ(count_text(2000, "trial"), "2,000 trials");
}

}  // namespace
}  // namespace nautilus::page
