// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file is a Python dictionary literal with the three keys descr,
// fortran_order and shape. HeaderParser accepts just that literal; the conversions follow.
#include "base/npy.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"

namespace nautilus::base {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy's own limit on the rank.
constexpr size_t kMaxRank = 64;
// Data begin at a multiple of this, as NumPy writes them.
constexpr size_t kAlignment = 64;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool parse(Header* header) {
    bool seen_descr = false, seen_order = false, seen_shape = false;
    if (!expect('{')) return false;
    while (!accept('}')) {
      std::string key;
      if (!parse_string(&key) || !expect(':')) return false;
      bool* seen = key == "descr"           ? &seen_descr
                   : key == "fortran_order" ? &seen_order
                   : key == "shape"         ? &seen_shape
                                            : nullptr;
      if (seen == nullptr) return fail(fmt::format("unexpected key '{}'", key.substr(0, 40)));
      if (*seen) return fail(fmt::format("key '{}' appears twice", key));
      *seen = true;
      if (seen == &seen_descr && !parse_descr(&header->descr)) return false;
      if (seen == &seen_order && !parse_bool(&header->fortran_order)) return false;
      if (seen == &seen_shape && !parse_shape(&header->shape)) return false;
      if (accept(',')) continue;
      if (!expect('}')) return false;
      break;
    }
    skip_space();
    if (!text_.empty()) return fail("text after the closing '}'");
    if (!seen_descr) return fail("key 'descr' is missing");
    if (!seen_order) return fail("key 'fortran_order' is missing");
    if (!seen_shape) return fail("key 'shape' is missing");
    return true;
  }

  const std::string& error() const { return error_; }

 private:
  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  void skip_space() {
    const size_t n = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(n == std::string_view::npos ? text_.size() : n);
  }

  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool expect(char c) { return accept(c) || fail(fmt::format("'{}' expected", c)); }

  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  bool parse_string(std::string* out) {
    skip_space();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) {
      return fail("a quoted string expected");
    }
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return fail("a string is not closed");
    *out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }

  bool parse_descr(std::string* out) {
    skip_space();
    if (text_.starts_with('[')) {
      return fail("record arrays are not supported; save each field as its own array");
    }
    return parse_string(out);
  }

  bool parse_bool(bool* out) {
    if (accept_word("True")) {
      *out = true;
      return true;
    }
    if (accept_word("False")) {
      *out = false;
      return true;
    }
    return fail("True or False expected");
  }

  bool parse_shape(std::vector<int64_t>* out) {
    if (!expect('(')) return false;
    while (!accept(')')) {
      int64_t extent = 0;
      if (!parse_extent(&extent)) return false;
      if (out->size() == kMaxRank) return fail("the shape has more than 64 dimensions");
      out->push_back(extent);
      if (accept(',')) continue;
      if (!expect(')')) return false;
      break;
    }
    return true;
  }

  bool parse_extent(int64_t* out) {
    skip_space();
    size_t digits = 0;
    int64_t value = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[digits] - '0'}, &value)) {
        return fail("an extent of the shape is too large");
      }
    }
    if (digits == 0) return fail("the shape is not a tuple of non-negative integers");
    text_.remove_prefix(digits);
    // Python 2 wrote long integers with this suffix.
    if (text_.starts_with('L')) text_.remove_prefix(1);
    *out = value;
    return true;
  }

  std::string_view text_;
  std::string error_;
};

// Splits and normalises a type string; `swap` says that the bytes of an element are reversed.
bool parse_type(std::string_view descr, std::string* normal, bool* swap, std::string* error) {
  std::string_view rest = descr;
  char order = '|';
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (rest.starts_with('O')) {
    *error = "object arrays are not supported; convert with array.astype(...) before saving";
    return false;
  }
  const std::string candidate = fmt::format(
      "{}{}", rest == "b1" || rest == "i1" || rest == "u1" || rest.starts_with('V') ? '|' : '<',
      rest);
  const int size = npy_item_size(candidate);
  if (size == 0) {
    *error = fmt::format(
        "element type '{}' is not supported; use a boolean, integer or float of 1 to 8 bytes",
        descr.substr(0, 40));
    return false;
  }
  *swap = order == '>' && size > 1 && candidate[1] != 'V';
  *normal = candidate;
  return true;
}

// The number of bytes, or nullopt when it does not fit. An empty array with otherwise absurd
// extents is refused too: later products over a part of the shape would overflow.
std::optional<int64_t> data_size(const std::vector<int64_t>& shape, int item_size) {
  int64_t size = item_size;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(size, extent, &size)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : size;
}

// Copies column-major data into row-major order, walking the result and stepping in the source.
std::vector<std::byte> to_row_major(const std::vector<std::byte>& source,
                                    const std::vector<int64_t>& shape, size_t item_size) {
  std::vector<std::byte> result(source.size());
  const size_t rank = shape.size();
  std::array<size_t, kMaxRank> stride{}, index{};
  size_t step = item_size;
  for (size_t d = 0; d < rank; ++d) {
    stride[d] = step;
    step *= static_cast<size_t>(shape[d]);
  }
  size_t from = 0;
  for (size_t to = 0; to < result.size(); to += item_size) {
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(from), item_size,
                result.begin() + static_cast<ptrdiff_t>(to));
    for (size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      from -= stride[d] * index[d];
      index[d] = 0;
    }
  }
  return result;
}

// Where the text of the header is.
struct HeaderPlace {
  size_t begin;
  size_t length;
};

std::optional<HeaderPlace> find_header(std::string_view content, std::string* error) {
  auto byte_at = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(content[i]));
  };
  if (!content.starts_with(kMagic)) {
    *error = "not a .npy file: the first bytes are not '\\x93NUMPY'";
    if (content.starts_with("PK\x03\x04")) *error += "; an .npz archive must be unpacked first";
    return std::nullopt;
  }
  size_t at = kMagic.size();
  if (content.size() < at + 4) {
    *error = "truncated .npy file: it ends within the header";
    return std::nullopt;
  }
  const size_t version = byte_at(at);
  if (version < 1 || version > 3) {
    *error = fmt::format(".npy format version {} is not supported, only 1 to 3", version);
    return std::nullopt;
  }
  at += 2;
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (content.size() < at + length_bytes) {
    *error = "truncated .npy file: it ends within the header";
    return std::nullopt;
  }
  size_t header_length = 0;
  for (size_t i = 0; i < length_bytes; ++i) header_length |= byte_at(at + i) << (8 * i);
  at += length_bytes;
  if (header_length > content.size() - at) {
    *error = fmt::format("truncated .npy file: a header of {} bytes is announced, {} follow",
                         header_length, content.size() - at);
    return std::nullopt;
  }
  return HeaderPlace{at, header_length};
}

// Bytes as this machine has them, bools 0 or 1, elements in row-major order.
void put_in_order(NpyArray& array, bool swap, bool fortran_order) {
  const int item_size = npy_item_size(array.descr);
  if (swap) {
    for (auto it = array.bytes.begin(); it != array.bytes.end(); it += item_size) {
      std::reverse(it, it + item_size);
    }
  }
  if (array.descr == "|b1") {
    for (std::byte& b : array.bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  }
  if (fortran_order && array.shape.size() > 1) {
    array.bytes = to_row_major(array.bytes, array.shape, static_cast<size_t>(item_size));
  }
}

std::optional<NpyArray> parse_npy(std::string_view content, std::string* error) {
  const auto place = find_header(content, error);
  if (!place) return std::nullopt;
  Header header;
  HeaderParser parser(content.substr(place->begin, place->length));
  if (!parser.parse(&header)) {
    *error = fmt::format("bad .npy header: {}", parser.error());
    return std::nullopt;
  }

  NpyArray array;
  bool swap = false;
  if (!parse_type(header.descr, &array.descr, &swap, error)) return std::nullopt;
  const std::optional<int64_t> size = data_size(header.shape, npy_item_size(array.descr));
  if (!size) {
    *error = "bad .npy header: the shape describes more bytes than can be addressed";
    return std::nullopt;
  }
  const std::string_view data = content.substr(place->begin + place->length);
  if (data.size() != static_cast<uint64_t>(*size)) {
    *error = fmt::format("{}: the header describes {} bytes of data, {} follow",
                         data.size() < static_cast<uint64_t>(*size) ? "truncated .npy file"
                                                                    : ".npy file is too long",
                         *size, data.size());
    return std::nullopt;
  }

  array.shape = std::move(header.shape);
  const auto* first = reinterpret_cast<const std::byte*>(data.data());
  array.bytes.assign(first, first + data.size());
  put_in_order(array, swap, header.fortran_order);
  return array;
}

}  // namespace

int npy_item_size(std::string_view descr) {
  static constexpr std::string_view kKnown[] = {"|b1", "|i1", "|u1", "|V1", "|V2", "|V4",
                                                "|V8", "<i2", "<u2", "<f2", "<i4", "<u4",
                                                "<f4", "<i8", "<u8", "<f8"};
  for (std::string_view known : kKnown) {
    if (known == descr) return known[2] - '0';
  }
  return 0;
}

std::optional<NpyArray> read_npy(std::string_view content, std::string* error) {
  std::string ignored;
  return parse_npy(content, error != nullptr ? error : &ignored);
}

std::string write_npy(const NpyArray& array) {
  const int item_size = npy_item_size(array.descr);
  NAUT_CHECK(item_size != 0, "write_npy: element type '{}'", array.descr);
  NAUT_CHECK(array.shape.size() <= kMaxRank, "write_npy: rank {}", array.shape.size());
  const std::optional<int64_t> size = data_size(array.shape, item_size);
  NAUT_CHECK(size && static_cast<uint64_t>(*size) == array.bytes.size(),
             "write_npy: {} bytes do not match the shape", array.bytes.size());

  std::string shape;
  for (int64_t extent : array.shape) shape += fmt::format("{}, ", extent);
  // One extent keeps its comma: (3,) is a tuple in Python, (3) is a number.
  if (array.shape.size() == 1) {
    shape.pop_back();
  } else if (!shape.empty()) {
    shape.resize(shape.size() - 2);
  }
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", array.descr, shape);
  const size_t prefix = kMagic.size() + 4;
  const size_t total = (prefix + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  header.append(total - prefix - header.size() - 1, ' ');
  header += '\n';

  std::string content(kMagic);
  content += '\x01';
  content += '\x00';
  content += static_cast<char>(header.size() & 0xff);
  content += static_cast<char>(header.size() >> 8);
  content += header;
  content.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  return content;
}

}  // namespace nautilus::base
