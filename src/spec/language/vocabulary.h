// SPDX-License-Identifier: Apache-2.0
// The words of the math language by their part of speech, for editors, grammars and hovers. All
// words come from the tables of the front end itself.
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
