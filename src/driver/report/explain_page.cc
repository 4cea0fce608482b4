// SPDX-License-Identifier: Apache-2.0
#include "driver/report/explain_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "diag/render.h"
#include "emit/emit.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "page/html.h"
#include "page/page_style.h"

namespace nautilus::driver {
namespace {

// Levels side by side need the whole width.
constexpr std::string_view kLevelStyle = R"css(
main { max-width: none; }
.levels { display: flex; gap: 12px; overflow-x: auto; align-items: flex-start; }
.level { flex: 1 0 min(46ch, 90vw); min-width: 0; background: var(--card); border-radius: 8px; padding: 10px 14px; }
.level h3 { margin: 0 0 6px; font-size: 14px; }
pre { margin: 0; overflow: auto; font: 12px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.level pre { max-height: 75vh; }
pre i { font-style: normal; }
pre i.on { background: var(--mark); border-radius: 3px; }
.warning { border-left: 3px solid var(--choice); padding-left: 12px; margin: 12px 0; }
select { font: inherit; }
)css";

// One listener for all names: pages of large programs have tens of thousands of them.
constexpr std::string_view kScript = R"js(
const kernels = document.querySelector('#kernel');
function show() {
  for (const e of document.querySelectorAll('[data-kernel]'))
    e.hidden = e.dataset.kernel !== kernels.value;
}
if (kernels) { kernels.addEventListener('change', show); show(); }
let marked = [];
document.addEventListener('mouseover', (event) => {
  const name = event.target.dataset && event.target.dataset.n;
  for (const e of marked) e.classList.remove('on');
  marked = name ? [...document.querySelectorAll('pre i')].filter((e) => e.dataset.n === name) : [];
  for (const e of marked) e.classList.add('on');
});
)js";

bool is_name_begin(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_name_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The text with its names as elements that can be found again. `O.sum` is `O_sum` in CUDA: names
// are compared without the difference.
std::string with_names(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    if (is_name_begin(text[at])) {
      while (end < text.size() &&
             (is_name_part(text[end]) ||
              (text[end] == '.' && end + 1 < text.size() && is_name_begin(text[end + 1]))))
        ++end;
      std::string key(text.substr(at, end - at));
      std::replace(key.begin(), key.end(), '.', '_');
      out += fmt::format("<i data-n=\"{}\">{}</i>", key, text.substr(at, end - at));
    } else {
      while (end < text.size() && !is_name_begin(text[end])) ++end;
      // Digits before letters, `0x1f`, do not begin a name.
      while (end < text.size() && end > at && is_name_part(text[end - 1]) &&
             is_name_part(text[end]))
        ++end;
      out += page::escaped(text.substr(at, end - at));
    }
    at = end;
  }
  return out;
}

std::string level(std::string_view title, std::string_view text, std::string_view kernel = "") {
  if (text.empty()) return "";
  return fmt::format(
      "<div class=\"level\"{}><h3>{}</h3><pre>{}</pre></div>\n",
      kernel.empty() ? "" : fmt::format(" data-kernel=\"{}\"", page::escaped(kernel)),
      page::escaped(title), with_names(text));
}

class PageWriter {
 public:
  PageWriter(const ir::Program& program, const ExplainRequest& request, Unit& unit)
      : program_(program), request_(request), unit_(unit) {}

  std::optional<std::string> run(std::string* error) {
    auto kernels =
        make_kernels(program_, {.schedule = request_.schedule, .trace = &trace_}, unit_, error);
    if (!kernels) return std::nullopt;
    kernels_ = std::move(*kernels);
    facts_ = program_facts(program_, kernels_, unit_);
    const size_t before = unit_.sink.all().size();
    if (request_.warnings) report_warnings(program_, kernels_, *request_.warnings, unit_);
    const std::string name = page::escaped(program_.name);
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width\"/><title>{}</title>"
        "<style>{}{}</style></head><body><main>\n<h1>{}</h1>\n",
        name, page::kPageStyle, kLevelStyle, name);
    out += facts() + warnings(before) + launches() + passed() + levels();
    out += fmt::format("<h2>Schedule</h2>\n<pre>{}</pre>\n", with_names(kernels_.schedule));
    if (kernels_.origin && !kernels_.origin->derivation.empty()) {
      std::string lines;
      for (const std::string& line : kernels_.origin->derivation) lines += line + "\n";
      out += fmt::format("<h2>What joined which kernel, and why</h2>\n<pre>{}</pre>\n",
                         with_names(lines));
    }
    return out + fmt::format("</main><script>{}</script></body></html>\n", kScript);
  }

 private:
  static std::string tile(const std::string& number, std::string_view what) {
    return fmt::format("<div class=\"tile\"><strong>{}</strong><span>{}</span></div>", number,
                       what);
  }

  std::string facts() const {
    std::string sizes;
    if (facts_) {
      for (const auto& [name, size] : facts_->sizes.sizes)
        sizes +=
            fmt::format("{}{} = {}", sizes.empty() ? " · at " : ", ", page::escaped(name), size);
    }
    std::string out = fmt::format("<p class=\"facts\">target {}{}</p>\n",
                                  page::escaped(ir::target_of(kernels_.program).name), sizes);
    if (!facts_) return out;
    out += "<div class=\"tiles\">";
    out += tile(fmt::format("{}", facts_->launches.size()),
                facts_->launches.size() == 1 ? "launch" : "launches");
    if (facts_->work.bytes > 0)
      out += tile(page::number_text(facts_->bytes_us, 3) + " us",
                  fmt::format("least time of memory: {} of inputs and outputs",
                              page::prefixed_text(facts_->work.bytes, "B")));
    if (facts_->work.flops > 0)
      out += tile(page::number_text(facts_->products_us, 3) + " us",
                  fmt::format("least time of the matrix unit: {} of products",
                              page::prefixed_text(facts_->work.flops, "FLOP")));
    return out + "</div>\n";
  }

  std::string warnings(size_t before) const {
    std::string out;
    for (size_t k = before; k < unit_.sink.all().size(); ++k)
      out += fmt::format("<div class=\"warning\"><pre>{}</pre></div>\n",
                         page::escaped(diag::render(unit_.sink.all()[k], unit_.sources)));
    return out.empty() ? "" : "<h2>Warnings</h2>\n" + out;
  }

  std::string launches() const {
    if (!facts_ || facts_->launches.empty()) return "";
    std::string out =
        "<h2>Launches</h2>\n<div class=\"wide\"><table><thead><tr><th>kernel</th><th>form</th>"
        "<th>CTAs</th><th>threads of each</th><th>products</th><th>reads</th><th>writes</th></tr>"
        "</thead><tbody>\n";
    for (const LaunchFacts& l : facts_->launches) {
      std::vector<std::string> reads;
      for (const auto& [tensor, walks] : l.use.reads) reads.push_back(tensor);
      out += fmt::format(
          "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td><td>{}</td></tr>\n",
          page::escaped(l.kernel), l.form(), l.ctas, l.threads,
          l.use.has_products ? "matrix unit" : "",
          page::escaped(fmt::format("{}", fmt::join(reads, ", "))),
          page::escaped(fmt::format("{}", fmt::join(l.use.writes, ", "))));
    }
    return out + "</tbody></table></div>\n";
  }

  std::string passed() const {
    if (!facts_) return "";
    if (facts_->passed.empty()) return "<p>Nothing passes through memory between kernels.</p>\n";
    std::string out =
        "<h2>Through memory</h2>\n<div class=\"wide\"><table><thead><tr><th>tensor</th>"
        "<th>bytes</th><th>from</th><th>to</th><th>why</th></tr></thead><tbody>\n";
    for (const PassedTensor& t : facts_->passed) {
      out += fmt::format(
          "<tr><td><code>{} {}</code></td><td>{}</td><td>{}</td><td>{}</td>"
          "<td>{}</td></tr>\n",
          page::escaped(t.name), page::escaped(ir::print(t.type)),
          page::prefixed_text(t.bytes, "B"),
          page::escaped(fmt::format("{}", fmt::join(t.writers, ", "))),
          page::escaped(fmt::format("{}", fmt::join(t.readers, ", "))),
          page::escaped(fmt::format("{}", fmt::join(t.reasons, "; "))));
    }
    return out + "</tbody></table></div>\n";
  }

  // The last program of that level, of the whole or of one kernel.
  std::string last_step(std::string_view level_name, std::string_view of) const {
    std::string out;
    for (const ir::PassTrace::Step& step : trace_.steps) {
      if (step.program.level->name == level_name && step.unit == of) out = ir::print(step.program);
    }
    return out;
  }

  std::string levels() {
    std::string choices;
    std::string own;
    const auto texts = emit::emit_kernels(kernels_.program, unit_.pool);
    for (const LaunchFacts* l : order()) {
      choices += fmt::format("<option>{}</option>", page::escaped(l->kernel));
      own += level("tiles (VR-tile)", last_step("vrtile", l->kernel), l->kernel);
      for (const ir::Op& op : kernels_.program.body) {
        const auto* k = op.get<matile::Kernel>();
        if (k && k->name.str() == l->kernel)
          own += level("machine (MA-tile)", ir::print(op), l->kernel);
      }
      for (const emit::KernelText& t : texts) {
        if (t.name == l->kernel) own += level("CUDA, without the prelude", t.body, l->kernel);
      }
    }
    std::string equations = last_step("spec", program_.name);
    if (equations.empty()) equations = ir::print(program_);
    return fmt::format(
        "<h2>Levels</h2>\n<p>Kernel <select id=\"kernel\">{}</select>: a name under the pointer is "
        "marked wherever it occurs.</p>\n<div class=\"levels\">\n{}{}{}</div>\n",
        choices, level("equations, after algebra", equations),
        level("loops, scheduled", last_step("scalar", program_.name)), own);
  }

  // Each kernel that is launched, once.
  std::vector<const LaunchFacts*> order() const {
    std::vector<const LaunchFacts*> out;
    if (!facts_) return out;
    for (const LaunchFacts& l : facts_->launches) {
      if (std::none_of(out.begin(), out.end(),
                       [&](const LaunchFacts* o) { return o->kernel == l.kernel; }))
        out.push_back(&l);
    }
    return out;
  }

  const ir::Program& program_;
  const ExplainRequest& request_;
  Unit& unit_;
  ir::PassTrace trace_;
  Kernels kernels_;
  std::optional<ProgramFacts> facts_;
};

}  // namespace

std::optional<std::string> explain_page(const ir::Program& program, const ExplainRequest& request,
                                        Unit& unit, std::string* error) {
  return PageWriter(program, request, unit).run(error);
}

}  // namespace nautilus::driver
