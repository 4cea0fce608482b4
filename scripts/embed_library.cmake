# SPDX-License-Identifier: Apache-2.0
# Writes the texts of lib/*.naut as C++ string literals (OUTPUT, TEXTS are given with -D).
set(rows "")
foreach(text IN LISTS TEXTS)
  get_filename_component(name ${text} NAME)
  file(READ ${text} content)
  string(APPEND rows "    {\"lib/${name}\", R\"naut(${content})naut\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from lib/*.naut.
#include \"spec/language/library.h\"

namespace nautilus::spec {

const std::vector<LibraryText>& library_texts() {
  static const std::vector<LibraryText> texts = {
${rows}  };
  return texts;
}

}  // namespace nautilus::spec
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
