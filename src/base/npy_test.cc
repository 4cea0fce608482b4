// SPDX-License-Identifier: Apache-2.0
//
// Round trips, the conversions of the reader, and hostile files: every truncation and many random
// corruptions of a good file must end in an array or an error, never in a crash.
#include "base/npy.h"

#include <random>

#include <gtest/gtest.h>

namespace nautilus::base {
namespace {

std::vector<std::byte> to_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

// A version 1 file with the given header dictionary and data.
std::string make(std::string_view header, std::string_view data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  if (version > 1) file.append(2, '\0');
  return file.append(header).append(data);
}

std::string error_of(std::string_view content) {
  std::string error = "accepted";
  EXPECT_FALSE(read_npy(content, &error).has_value());
  EXPECT_FALSE(read_npy(content, nullptr).has_value());
  return error;
}

TEST(Npy, RoundTrips) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {3}, {2, 3}, {0, 5}, {1, 1, 1, 2}}) {
    size_t count = 4;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    NpyArray array{"<f4", shape, std::vector<std::byte>(count)};
    for (size_t i = 0; i < count; ++i) array.bytes[i] = static_cast<std::byte>(i * 7);
    const std::string file = write_npy(array);
    EXPECT_EQ((file.size() - count) % 64, 0u);
    std::string error;
    const auto back = read_npy(file, &error);
    ASSERT_TRUE(back.has_value()) << error;
    EXPECT_EQ(back->descr, array.descr);
    EXPECT_EQ(back->shape, array.shape);
    EXPECT_EQ(back->bytes, array.bytes);
  }
}

TEST(Npy, WritesPythonTuples) {
  auto header_of = [](std::vector<int64_t> shape, size_t size) {
    const std::string file = write_npy({"|i1", std::move(shape), std::vector<std::byte>(size)});
    return file.substr(10, file.find('}') - 9);
  };
  EXPECT_EQ(header_of({3}, 3), "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ(header_of({1, 2}, 2), "{'descr': '|i1', 'fortran_order': False, 'shape': (1, 2), }");
  EXPECT_EQ(header_of({}, 1), "{'descr': '|i1', 'fortran_order': False, 'shape': (), }");
}

TEST(Npy, ReadsEveryVersionAndKeyOrder) {
  for (char version : {'\1', '\2', '\3'}) {
    const auto array =
        read_npy(make("{\"shape\": (2L,), 'descr': 'u1', 'fortran_order': False}\n", "ab", version),
                 nullptr);
    ASSERT_TRUE(array.has_value());
    EXPECT_EQ(array->descr, "|u1");
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2}));
  }
}

TEST(Npy, ConvertsOrderAndEndianness) {
  const auto fortran = read_npy(
      make("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf"), nullptr);
  ASSERT_TRUE(fortran.has_value());
  EXPECT_EQ(fortran->bytes, to_bytes("abcdef"));

  const auto both = read_npy(
      make("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 1, 2), }", "BACADABA"), nullptr);
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->descr, "<i2");
  EXPECT_EQ(both->bytes, to_bytes("ABADACAB"));

  const auto raw =
      read_npy(make("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", "ab"), nullptr);
  ASSERT_TRUE(raw.has_value());
  EXPECT_EQ(raw->descr, "|V2");
  EXPECT_EQ(raw->bytes, to_bytes("ab"));

  const auto flags = read_npy(make("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                                   std::string_view("\0\1\7", 3)),
                              nullptr);
  ASSERT_TRUE(flags.has_value());
  EXPECT_EQ(flags->bytes, to_bytes(std::string_view("\0\1\1", 3)));
}

TEST(Npy, ExplainsErrors) {
  EXPECT_NE(error_of("").find("not a .npy file"), std::string::npos);
  EXPECT_NE(error_of("PK\x03\x04....").find(".npz"), std::string::npos);
  EXPECT_NE(error_of(make("{}", "", 4)).find("version 4"), std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "x"))
                .find("object arrays"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "x"))
                .find("record arrays"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", "12345678"))
                .find("'<c8' is not supported"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234"))
                .find("8 bytes of data, 4 follow"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "12345"))
                .find("too long"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '<f4', 'shape': ()}", "1234")).find("'fortran_order' is"),
            std::string::npos);
  EXPECT_NE(error_of(make("{'descr': '<f4', 'descr': '<f4'}", "")).find("twice"),
            std::string::npos);
}

TEST(Npy, RefusesAbsurdShapes) {
  auto with_shape = [](const std::string& shape) {
    return make("{'descr': '<f4', 'fortran_order': True, 'shape': (" + shape + ")}", "");
  };
  error_of(with_shape("4294967296, 4294967296"));
  error_of(with_shape("0, 4294967296, 4294967296"));
  error_of(with_shape("9223372036854775807"));
  error_of(with_shape("99999999999999999999"));
  error_of(with_shape("-1"));
  error_of(with_shape("1.5"));
  error_of(with_shape("(((((((("));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_NE(error_of(with_shape(many)).find("64 dimensions"), std::string::npos);
}

TEST(Npy, SurvivesTruncationAndCorruption) {
  const std::string good = make("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n",
                                "abcdefghijklmnopqrstuvwx");
  ASSERT_TRUE(read_npy(good, nullptr).has_value());
  for (size_t n = 0; n < good.size(); ++n) error_of(std::string_view(good).substr(0, n));

  std::mt19937 random(1);
  for (int round = 0; round < 50000; ++round) {
    std::string bad = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      bad[random() % bad.size()] =
          static_cast<char>(random() % 2 ? random() : "0129(),'"[random() % 8]);
    }
    const auto array = read_npy(bad, nullptr);
    if (array) {
      EXPECT_FALSE(write_npy(*array).empty());
    }
  }
}

}  // namespace
}  // namespace nautilus::base
