// SPDX-License-Identifier: Apache-2.0
// The words of the math language by their part of speech, for those who show programs: editors,
// grammars, hovers. Everything is taken from the tables that the front end itself reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nautilus::spec {

struct LibraryFunction {
  std::string name;
  std::string about;      // the comment above it, without its signs
  std::string text;       // "fn relu(x) = max(x, 0)"
  std::string_view file;  // "lib/activation.naut"
};
const std::vector<LibraryFunction>& library_functions();

struct Vocabulary {
  std::vector<std::string> keywords;
  std::vector<std::string> reducers;
  std::vector<std::string> dtypes;
  std::vector<std::string> functions;  // built in
  std::vector<std::string> library;
};
const Vocabulary& vocabulary();

}  // namespace nautilus::spec
