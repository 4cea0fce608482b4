// SPDX-License-Identifier: Apache-2.0
#include "tune_subject.h"

#include <fmt/format.h>

#include "base/files.h"

namespace nautilus::tool {

void add_subject_options(CLI::App& command, SubjectOptions& o) {
  command.add_option("FILE", o.file, "a program of the math language (.naut)")->required();
  command.add_option("--shape", o.shape, "sizes: M=64,N=80; others from the program's hints")
      ->allow_extra_args(false);
  command.add_option("--target", o.target, kTargetHelp);
  command.add_option("--seed", o.seed, "of the inputs and of the search")->capture_default_str();
  command.add_flag("--emulate", o.emulate,
                   "in the emulator instead of on a GPU; times are its steps");
  command.add_option("--sms", o.sms, "multiprocessors of the emulated device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--repetitions", o.repetitions, "launches that are timed (default: 30)")
      ->check(CLI::PositiveNumber);
}

bool read_subject(const SubjectOptions& o, tune::Subject& subject, int& exit_code) {
  exit_code = kUsageError;
  driver::Unit unit;
  if (!parse_sizes(o.shape, subject.sizes) || !choose_target(o.target, unit)) return false;
  std::string error;
  const auto text = base::read_file(o.file, &error);
  if (!text) {
    usage_error(error);
    return false;
  }
  subject.path = o.file;
  subject.text = *text;
  subject.target = unit.target;
  subject.emulates = o.emulate;
  subject.multiprocessors = o.sms;
  subject.repetitions = o.repetitions;
  subject.seed = o.seed;
  exit_code = kOk;
  return true;
}

std::vector<std::string> subject_arguments(const SubjectOptions& o) {
  std::vector<std::string> out = {o.file, "--seed", std::to_string(o.seed), "--sms",
                                  std::to_string(o.sms)};
  const auto add = [&](const char* name, const std::string& value) {
    out.insert(out.end(), {name, value});
  };
  if (!o.shape.empty()) add("--shape", fmt::format("{}", fmt::join(o.shape, ",")));
  if (!o.target.empty()) add("--target", o.target);
  if (o.repetitions > 0) add("--repetitions", std::to_string(o.repetitions));
  if (o.emulate) out.emplace_back("--emulate");
  return out;
}

}  // namespace nautilus::tool
