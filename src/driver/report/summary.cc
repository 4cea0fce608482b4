// SPDX-License-Identifier: Apache-2.0
#include "driver/report/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "decision/decisions.h"
#include "diag/diagnostic.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "page/html.h"

namespace nautilus::driver {
namespace {

std::string us_text(double us) { return page::number_text(us, 3) + " us"; }

std::string sizes_text(const ir::Program& kernels, const ProgramFacts& facts) {
  std::string out;
  for (const ir::Op& op : kernels.body) {
    const auto* d = op.get<ir::Dim>();
    if (!d) continue;
    const bool is_guess =
        std::find(facts.guessed.begin(), facts.guessed.end(), d->name.str()) != facts.guessed.end();
    out +=
        fmt::format("{}{} = {}{}", out.empty() ? "at " : ", ", d->name.str(),
                    facts.sizes.sizes.at(std::string(d->name.str())), is_guess ? " (no hint)" : "");
  }
  return out.empty() ? "" : out + ":\n";
}

std::string launch_text(const LaunchFacts& l) {
  std::vector<std::string> reads;
  for (const auto& [tensor, walks] : l.use.reads)
    reads.push_back(walks > 1 && !l.use.has_products ? fmt::format("{} {} times", tensor, walks)
                                                     : tensor);
  return fmt::format("  {}: {}, {} of {} threads{}; reads {}; writes {}\n", l.kernel, l.form(),
                     diag::counted(static_cast<size_t>(l.ctas), "CTA", "CTAs"), l.threads,
                     l.use.has_products ? ", on the matrix unit" : "",
                     reads.empty() ? "nothing" : fmt::format("{}", fmt::join(reads, ", ")),
                     fmt::join(l.use.writes, ", "));
}

// How often all kernels together read each input. A tile kernel reads an operand once for each tile
// of the other, from the cache: that counts as once.
std::string passes_over_inputs(const ir::Program& kernels, const ProgramFacts& facts) {
  std::vector<std::string> often;
  size_t inputs = 0;
  for (const ir::Op& op : kernels.body) {
    const auto* t = op.get<matile::Tensor>();
    if (!t || t->role != matile::TensorRole::Input) continue;
    ++inputs;
    int times = 0;
    for (const LaunchFacts& l : facts.launches) {
      const auto it = l.use.reads.find(std::string(t->name.str()));
      if (it != l.use.reads.end()) times += l.use.has_products ? 1 : it->second;
    }
    if (times != 1) often.push_back(fmt::format("{} {} times", t->name.str(), times));
  }
  if (inputs == 0) return "";
  if (often.empty()) return inputs == 1 ? "the input is read once\n" : "each input is read once\n";
  return fmt::format("passes over inputs: {}{}\n", fmt::join(often, ", "),
                     often.size() < inputs ? ", others once" : "");
}

std::string work_text(const ProgramFacts& facts) {
  if (facts.work.bytes <= 0) return "";
  std::string out =
      fmt::format("; {} take {} at the speed of memory", page::prefixed_text(facts.work.bytes, "B"),
                  us_text(facts.bytes_us));
  if (facts.work.flops > 0)
    out += fmt::format(", {} of products {} on the matrix unit{}",
                       page::prefixed_text(facts.work.flops, "FLOP"), us_text(facts.products_us),
                       facts.work.may_skip ? ", if no condition on data skips any" : "");
  return out;
}

}  // namespace

std::string summary_text(const ir::Program& kernels, const ProgramFacts& facts) {
  std::string out = sizes_text(kernels, facts);
  out += diag::counted(facts.launches.size(), "launch", "launches") + work_text(facts) + "\n";
  for (const LaunchFacts& l : facts.launches) out += launch_text(l);
  out += passes_over_inputs(kernels, facts);
  if (facts.passed.empty()) return out + "nothing passes through memory between kernels\n";
  out += "through memory:\n";
  for (const PassedTensor& t : facts.passed) {
    out += fmt::format("  {} {}, {}: from {} to {}\n", t.name, ir::print(t.type),
                       page::prefixed_text(t.bytes, "B"), fmt::join(t.writers, ", "),
                       fmt::join(t.readers, ", "));
    for (const std::string& r : t.reasons) out += "    " + r + "\n";
  }
  return out;
}

}  // namespace nautilus::driver
