// SPDX-License-Identifier: Apache-2.0
// The commands of cases and what each asserts.
#include "driver/check/test_case.h"

namespace nautilus::driver {

const std::vector<std::pair<std::string, std::string>>& test_commands() {
  static const std::vector<std::pair<std::string, std::string>> commands = {
      {"roundtrip", "the text is exactly what printing the parsed program gives"},
      {"verify", "lines with `#~ CODE message` are rejected so, no other line is"},
      {"pass=NAME[,NAME]", "the program after these passes is the expectation"},
      {"print[=LEVEL]", "the program at that level (spec) is the expectation"},
      {"lower=LEVEL", "the program lowered by the pipeline is the expectation"},
      {"same pass=NAME", "all cases of the file give the same program"},
      {"graph", "the block graph is the expectation"},
      {"emit", "the body of the emitted kernels is the expectation"},
      {"resources", "what the kernels occupy is the expectation"},
      {"schedule [SIZE=n] [seed=n] [inputs=exact] [split=n] [combine=last] [costs=shown]",
       "the first schedule's program is the expectation, and agrees with the definition; split, "
       "combine: as for kernels, and why not, if that is refused; costs: predicted cycles as they "
       "are, not as `...`"},
      {"run_scheduled [SIZE=n] [seed=n] [inputs=exact]",
       "the first schedule's program agrees with the definition; no expectation"},
      {"sweep [SIZE=n] [limit=n] [costs=shown]",
       "the schedules to try at these sizes, and what was left out, are the expectation"},
      {"fill=PROGRAM",
       "the input is a schedule with holes; why it makes no kernels and its fillings are the "
       "expectation"},
      {"replay=PROGRAM [kernel=NAME]",
       "the input is a schedule, of it only the kernel; the complete schedule that comes of it, or "
       "why it is refused, is the expectation"},
      {"launches=PROGRAM [SIZE=n[,n]]",
       "the input is a schedule; how its plan chooses by sizes, and the kernels that it launches "
       "at "
       "these, are the expectation; the kernels, in the emulator, agree with the oracle"},
      {"explain [costs=shown] [passes=shown] [kernel=NAME]",
       "the derivation of the first schedule is the expectation; passes: instead of it what each "
       "pass did to the program and its kernels, `programs`: in their texts"},
      {"summary [costs=shown]", "the first lines of explain, at the hints, are the expectation"},
      {"warnings [intermediate=BYTES]",
       "what is reported about the program's kernels is the expectation; intermediate: of tensors "
       "that pass through memory, those that are larger"},
      {"fusion [SIZE=n] [seed=n] [inputs=exact]",
       "what each kernel computes, how its reductions follow each other, and why others stayed "
       "outside is the expectation; the kernels agree with the oracle"},
      {"eval [SIZE=n] [seed=n] [inputs=exact]", "the printed outputs are the expectation"},
      {"run [SIZE=n] [seed=n] [inputs=exact]", "all evaluators agree; no expectation"},
      {"kernels [SIZE=n] [seed=n] [inputs=exact] [every=1] [split=n] [combine=last] "
       "[reference=WAY]",
       "the kernels, in the emulator, agree with the oracle; every: each kernel that the plan "
       "chooses between; split, combine: the first schedule with so many parts of every streamed "
       "axis, and who puts them together; reference: with that line; no expectation"},
      {"fires=RULE[,RULE] [quiet=RULE[,RULE]] [SIZE=n] [seed=n] [inputs=exact] [every=1]",
       "these rules (passes, lines of the schedule) fire on the program and those do not, and its "
       "kernels, in the emulator, agree with the oracle; options as for kernels; no expectation"},
      {"check=ORACLE [pass=NAME[,NAME]] [SIZE=n[,n]]",
       "the program after these passes, interpreted, is within the bounds of the oracle"},
      {"like=FILE [pass=NAME[,NAME]]",
       "the program after these passes is that of the file but for names"},
      {"regenerate=FILE [kernel=NAME]",
       "the input is a schedule; how the kernel from the oracle of that file differs from the "
       "file's is the expectation"},
      {"diag", "the rendered messages are the expectation"},
  };
  return commands;
}

}  // namespace nautilus::driver
