// SPDX-License-Identifier: Apache-2.0
#include "driver/check/test_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diff.h"
#include "base/files.h"
#include "base/parallel.h"
#include "driver/check/test_case.h"

namespace nautilus::driver {
namespace {

constexpr std::string_view kExpect = "---- expect\n";
constexpr std::string_view kSeparator = "====";
constexpr std::string_view kSuffixes[] = {".naut",   ".spec",   ".scalar",
                                          ".vrtile", ".matile", ".sched"};

struct TestFile {
  std::string path;
  std::vector<TestCase> cases;
  std::vector<std::string> raw;         // input of each case, unchanged
  std::vector<std::string> separators;  // the `====` line before each case (empty for the first)
};

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const size_t begin = std::min(line.find_first_not_of(" \t\r\n"), line.size());
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r\n"), line.size());
    if (end) out.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

// `# test: same pass=simplify M=3`
bool read_header(std::string_view input, TestCase& test) {
  const size_t at = input.find("# test:");
  if (at == std::string_view::npos) return false;
  const std::string_view line = input.substr(at + 7, input.find('\n', at) - at - 7);
  for (const std::string& word : words(line)) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (test.command.empty()) {
      test.command = name;
      test.argument = value;
    } else if (test.command == "same" && name == "pass") {
      test.argument = value;
    } else {
      test.options.insert_or_assign(name, value);
    }
  }
  return !test.command.empty();
}

TestFile split(std::string path, const std::string& text) {
  TestFile file;
  file.path = std::move(path);
  size_t line_number = 0;
  size_t begin = 0;
  TestCase inherited;
  std::string separator;
  while (begin <= text.size()) {
    size_t end = begin;
    // A case ends before the next line that starts with ====.
    while (end < text.size() && std::string_view(text).substr(end, 4) != kSeparator) {
      end = std::min(text.find('\n', end), text.size() - 1) + 1;
    }
    const std::string part = text.substr(begin, end - begin);
    TestCase test;
    std::string input = part;
    if (const size_t at = part.find(kExpect); at != std::string::npos) {
      input = part.substr(0, at);
      test.expect = part.substr(at + kExpect.size());
      test.has_expect = true;
    }
    if (!read_header(input, test)) {
      test.command = inherited.command;
      test.argument = inherited.argument;
      test.options = inherited.options;
    }
    inherited = test;
    test.input = std::string(line_number, '\n') + input;
    test.folder = file.path.substr(0, file.path.find_last_of('/') + 1);
    file.raw.push_back(input);
    file.separators.push_back(separator);
    file.cases.push_back(std::move(test));
    if (end >= text.size()) break;
    const size_t next = std::min(text.find('\n', end), text.size() - 1) + 1;
    separator = text.substr(end, next - end);
    line_number += static_cast<size_t>(std::count(text.begin() + static_cast<long>(begin),
                                                  text.begin() + static_cast<long>(next), '\n'));
    begin = next;
  }
  return file;
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

struct FileReport {
  int passed = 0;
  int failed = 0;
  bool is_updated = false;
  std::string text;
};

FileReport run_file(const std::string& path, const TestOptions& options) {
  FileReport report;
  std::string error;
  const auto text = base::read_file(path, &error);
  if (!text) {
    report.failed = 1;
    report.text = fmt::format("FAIL {}\n  {}\n", path, error);
    return report;
  }
  TestFile file = split(path, *text);
  const std::string name = base_name(path);
  std::string first_output;
  std::string rewritten;
  auto fail = [&](size_t k, const std::string& message) {
    ++report.failed;
    report.text += fmt::format("FAIL {}{}\n{}{}", path,
                               file.cases.size() > 1 ? fmt::format(" (case {})", k + 1) : "",
                               message, message.empty() || message.back() == '\n' ? "" : "\n");
  };
  for (size_t k = 0; k < file.cases.size(); ++k) {
    const TestCase& test = file.cases[k];
    rewritten += file.separators[k] + file.raw[k];
    if (test.command.empty()) {
      fail(k, "  the file has no `# test:` line");
      continue;
    }
    if (options.on_device && !runs_kernels(test)) continue;
    const CaseResult result =
        run_case(test, name, options.on_device ? RunsOn::Device : RunsOn::Emulator);
    const bool wants_expect = result.has_output && test.command != "same";
    if (wants_expect) rewritten += std::string(kExpect) + result.output;
    if (!wants_expect && test.has_expect) rewritten += std::string(kExpect) + test.expect;
    if (!result.is_ok) {
      fail(k, result.message);
    } else if (test.command == "same" && file.cases.size() < 2) {
      fail(k, "  `same` compares several cases");
    } else if (test.command == "same") {
      if (k == 0) first_output = result.output;
      const std::string diff =
          base::unified_diff(first_output, result.output, "case 1", fmt::format("case {}", k + 1));
      diff.empty() ? void(++report.passed) : fail(k, diff);
    } else if (!wants_expect || result.output == test.expect || options.update) {
      ++report.passed;
    } else {
      fail(k, base::unified_diff(test.expect, result.output, "expected", "actual") +
                  fmt::format("to accept: nautilus test --update {}", path));
    }
  }
  if (options.update && report.failed == 0 && rewritten != *text) {
    if (base::write_file_atomic(path, rewritten, &error)) {
      report.is_updated = true;
      report.text += fmt::format("updated {}\n", path);
    } else {
      fail(0, error);
    }
  }
  return report;
}

}  // namespace

TestReport run_text_tests(const std::vector<std::string>& paths, const TestOptions& options) {
  std::vector<std::string> files;
  TestReport report;
  for (const std::string& path : paths) {
    std::vector<std::string> found;
    for (std::string_view suffix : kSuffixes) {
      for (std::string& f : base::list_files(path, suffix)) found.push_back(std::move(f));
    }
    if (found.empty() && !base::is_folder(path)) found.push_back(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  std::sort(files.begin(), files.end());
  std::vector<FileReport> reports(files.size());
  // A new expectation moves the lines of the cases after it, and messages show lines: again until
  // nothing moves.
  auto run = [&](const std::string& file) {
    FileReport r = run_file(file, options);
    for (int again = 0; again < 4 && r.is_updated; ++again) {
      const FileReport next = run_file(file, options);
      if (!next.is_updated) break;
    }
    return r;
  };
  base::parallel_for(
      static_cast<int64_t>(files.size()),
      options.threads > 0 ? options.threads : base::default_threads(),
      [&](int64_t i) { reports[static_cast<size_t>(i)] = run(files[static_cast<size_t>(i)]); });
  for (const FileReport& r : reports) {
    report.passed += r.passed;
    report.failed += r.failed;
    report.updated += r.is_updated ? 1 : 0;
    report.text += r.text;
  }
  return report;
}

}  // namespace nautilus::driver
