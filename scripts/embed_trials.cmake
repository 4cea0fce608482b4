# SPDX-License-Identifier: Apache-2.0
# Writes the trials of share/*.jsonl as C++ string literals (OUTPUT, TEXTS are given with -D).
set(rows "")
foreach(text IN LISTS TEXTS)
  get_filename_component(name ${text} NAME)
  file(READ ${text} content)
  string(APPEND rows "    {\"share/${name}\", R\"naut(${content})naut\"},\n")
endforeach()
file(WRITE ${OUTPUT}.new "// Generated from share/*.jsonl.
#include \"tune/records/shipped.h\"

namespace nautilus::tune {

const std::vector<ShippedText>& shipped_texts() {
  static const std::vector<ShippedText> texts = {
${rows}  };
  return texts;
}

}  // namespace nautilus::tune
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
