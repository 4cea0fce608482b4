// SPDX-License-Identifier: Apache-2.0
#include "mutation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/random.h"
#include "compile/manager.h"
#include "driver/load/load.h"
#include "ir/print.h"
#include "tokens.h"

namespace nautilus::fuzz {
namespace {

constexpr size_t kMaxBytes = 200'000;

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, uint64_t seed)
      : corpus_(corpus), random_(seed), text_(corpus[random_.next() % corpus.size()]) {}

  std::string run() {
    const int64_t count = random_.chance(0.5) ? 1 : random_.integer(2, 5);
    for (int64_t k = 0; k < count && !text_.empty(); ++k) step();
    if (text_.size() > kMaxBytes) text_.resize(kMaxBytes);
    return text_;
  }

 private:
  size_t below(size_t n) { return n ? random_.next() % n : 0; }

  void step() {
    switch (random_.integer(0, 15)) {
      case 0:
        text_[below(text_.size())] ^= static_cast<char>(1 << random_.integer(0, 7));
        break;
      case 1:
        text_[below(text_.size())] = static_cast<char>(random_.integer(0, 255));
        break;
      case 2: {
        const size_t at = below(text_.size());
        text_.erase(at, below(20) + 1);
        break;
      }
      case 3: {
        const size_t at = below(text_.size());
        text_.insert(at, text_.substr(below(text_.size()), below(60)));
        break;
      }
      case 4:
        text_.resize(below(text_.size()));
        break;
      case 5: {  // the start of this text with the end of another
        const std::string& other = corpus_[below(corpus_.size())];
        text_ = text_.substr(0, below(text_.size())) + other.substr(below(other.size()));
        break;
      }
      case 6:
        insert_word();
        break;
      case 7:
        repeat_token();
        break;
      case 8:
      case 9:
        change_number();
        break;
      default:
        change_token();
    }
  }

  // The bytes [begin, end) of a random token.
  Token any_token() {
    const std::vector<Token> tokens = tokens_of(text_);
    return tokens.empty() ? Token{0, 0} : tokens[below(tokens.size())];
  }

  void replace(Token t, std::string_view with) { text_.replace(t.begin, t.end - t.begin, with); }

  void change_token() {
    const Token a = any_token();
    const Token b = any_token();
    const std::string first = text_.substr(a.begin, a.end - a.begin);
    const std::string second = text_.substr(b.begin, b.end - b.begin);
    switch (random_.integer(0, 3)) {
      case 0:
        replace(a, "");
        break;
      case 1:
        replace(a, first + " " + first);
        break;
      case 2:
        replace(a, second);
        break;
      default:
        if (a.begin < b.begin) {
          replace(b, first);
          replace(a, second);
        }
    }
  }

  void insert_word() {
    static const std::vector<std::string> kWords = {"sum[k]",
                                                    "max[j from 0]",
                                                    "where(",
                                                    ")",
                                                    "(",
                                                    "[",
                                                    "]",
                                                    "-inf",
                                                    "true",
                                                    "let a =",
                                                    "in",
                                                    "->",
                                                    "f8e4m3",
                                                    "bool",
                                                    "i32",
                                                    "0",
                                                    "%",
                                                    "/",
                                                    "not",
                                                    "and",
                                                    ",",
                                                    "=",
                                                    "<",
                                                    "acc",
                                                    "from",
                                                    "fn",
                                                    "dims",
                                                    "static",
                                                    "hint",
                                                    "fact",
                                                    "numerics",
                                                    "argmax[i]",
                                                    "softmax[j]",
                                                    "for",
                                                    "buffer",
                                                    "update",
                                                    "output",
                                                    "let",
                                                    ":",
                                                    "\n",
                                                    "\t",
                                                    "\xc3\xa9",
                                                    "\xff",
                                                    "1e999",
                                                    "9223372036854775807",
                                                    "a.b",
                                                    "@",
                                                    "-"};
    text_.insert(any_token().begin, " " + kWords[below(kWords.size())] + " ");
  }

  void repeat_token() {
    const Token t = any_token();
    static const std::vector<std::string> kWords = {
        "(", "-", "not ", "[", "abs(", "sum[k] ", "A[", "1 + ", "let a = 1 in ", "f32(", "  "};
    const std::string word = random_.chance(0.5) ? text_.substr(t.begin, t.end - t.begin) + " "
                                                 : kWords[below(kWords.size())];
    const int64_t times =
        random_.chance(0.3) ? random_.integer(1000, 30000) : random_.integer(2, 300);
    std::string repeated;
    for (int64_t k = 0; k < times && repeated.size() < kMaxBytes; ++k) repeated += word;
    text_.insert(t.begin, repeated);
  }

  void change_number() {
    std::vector<Token> numbers;
    for (const Token& t : tokens_of(text_)) {
      if (text_[t.begin] >= '0' && text_[t.begin] <= '9') numbers.push_back(t);
    }
    if (numbers.empty()) return;
    static const std::vector<std::string> kNumbers = {"0",
                                                      "1",
                                                      "2",
                                                      "3",
                                                      "-1",
                                                      "7",
                                                      "64",
                                                      "1000000",
                                                      "2147483647",
                                                      "2147483648",
                                                      "4294967296",
                                                      "9223372036854775807",
                                                      "9223372036854775808",
                                                      "1e308",
                                                      "1e-320",
                                                      "0.1",
                                                      "1e400",
                                                      "00",
                                                      "1."};
    replace(numbers[below(numbers.size())], kNumbers[below(kNumbers.size())]);
  }

  const std::vector<std::string>& corpus_;
  base::Random random_;
  std::string text_;
};

// A test file holds several texts, with what is expected of each.
void add_cases(std::string_view text, std::vector<std::string>& corpus) {
  std::string part;
  bool is_input = true;
  auto finish = [&] {
    if (!part.empty()) corpus.push_back(std::move(part));
    part.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    if (line.starts_with("====")) {
      finish();
      is_input = true;
    } else if (line.starts_with("----")) {
      is_input = false;
    } else if (is_input) {
      part += line;
    }
    text.remove_prefix(end);
  }
  finish();
}

}  // namespace

std::vector<std::string> load_corpus(const std::string& root) {
  std::vector<std::string> corpus;
  for (const std::string_view folder : {"examples", "lib", "test"}) {
    for (const std::string_view suffix : {".naut", ".spec", ".scalar"}) {
      for (const std::string& path : base::list_files(fmt::format("{}/{}", root, folder), suffix)) {
        std::string error;
        if (const auto text = base::read_file(path, &error)) add_cases(*text, corpus);
      }
    }
  }
  for (size_t k = 0, written = corpus.size(); k < written; ++k) {
    driver::Unit unit;
    const auto program = driver::load_text("example.naut", corpus[k], {}, unit);
    if (!program || program->level->name != "spec") continue;
    corpus.push_back(ir::print(*program));
    ir::PassContext context{unit.pool, unit.sink, {}};
    if (const auto scalar = compile::lower_to("scalar", *program, context))
      corpus.push_back(ir::print(*scalar));
  }
  return corpus;
}

std::string mutate(const std::vector<std::string>& corpus, uint64_t seed) {
  return Mutator(corpus, seed).run();
}

}  // namespace nautilus::fuzz
