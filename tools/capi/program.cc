// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <new>

#include "base/guarded.h"
#include "base/nearest.h"
#include "diag/render.h"
#include "driver/load/hints.h"
#include "ir/print.h"
#include "matile/ops.h"
#include "target/target.h"
#include "tune/records/near_best.h"

namespace nautilus::capi {

void (*test_hook)() = nullptr;

std::string messages_since(const driver::Unit& unit, size_t before) {
  std::string text;
  for (size_t i = before; i < unit.sink.all().size(); ++i)
    text += diag::render(unit.sink.all()[i], unit.sources);
  return text;
}

Failure with_state(const std::shared_ptr<State>& state, const char* what,
                   std::function<Failure(State&)> work) {
  const std::lock_guard lock(state->mutex);
  if (!state->broken.empty())
    return {NAUTILUS_ERROR_INTERNAL,
            "the program is broken since an earlier call: " + state->broken};
  auto result = std::make_shared<Failure>();
  std::string broken = base::run_guarded(what, [state, result, work = std::move(work)] {
    // The core throws nothing; the standard library does, where memory is short.
    try {
      if (test_hook) test_hook();
      *result = work(*state);
    } catch (const std::bad_alloc&) {
      *result = {NAUTILUS_ERROR_SYSTEM, "out of memory"};
    } catch (const std::exception& e) {
      *result = {NAUTILUS_ERROR_INTERNAL, e.what()};
    }
  });
  if (broken.empty()) return *result;
  state->broken = broken;
  new std::shared_ptr<State>(state);  // threads of the work may still use it
  return {NAUTILUS_ERROR_INTERNAL, std::move(broken)};
}

namespace {

Failure wrong(std::string text) { return {NAUTILUS_ERROR_PROGRAM, std::move(text)}; }

// "D=128,G=4".
Failure parse_sizes(std::string_view text, std::map<std::string, int64_t>& sizes) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const std::string_view number = equals < item.size() ? item.substr(equals + 1) : "";
    int64_t value = 0;
    const auto r = std::from_chars(number.data(), number.data() + number.size(), value);
    if (equals == 0 || number.empty() || r.ec != std::errc() ||
        r.ptr != number.data() + number.size() || value < 0)
      return wrong(fmt::format("the size `{}` is not a name, `=` and a number from 0", item));
    if (!sizes.emplace(item.substr(0, equals), value).second)
      return wrong(fmt::format("the size `{}` is given twice", item.substr(0, equals)));
  }
  return {};
}

// Sizes that the program has not.
Failure check_sizes(const std::map<std::string, int64_t>& sizes, const State& state) {
  if (state.request.flags & NAUTILUS_OPEN_MORE_SIZES) return {};
  std::vector<std::string> names;
  for (const driver::Signature::Value& v : state.signature.values) {
    if (v.kind != driver::Signature::Kind::Scalar) names.push_back(v.name);
  }
  for (const auto& [name, value] : sizes) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = base::nearest_name(name, names);
    return wrong(fmt::format("the program has no size `{}`{}", name,
                             near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
  }
  return {};
}

// Declarations alone, on the level that plans are made of.
ir::Program declarations(const ir::Program& program, const driver::Signature& signature,
                         expr::ExprPool& pool) {
  ir::Program out{&matile::level(), program.name, {}};
  for (const ir::Op& op : program.body) {
    if (op.is<ir::Dim>() || op.is<ir::Static>() || op.is<ir::Param>() || op.is<ir::Fact>())
      out.body.push_back(op);
  }
  for (const driver::Signature::Tensor& t : signature.tensors) {
    const auto role = t.is_output ? matile::TensorRole::Output : matile::TensorRole::Input;
    out.body.push_back(ir::make(matile::Tensor{pool.name(t.name), t.type, role}, {}));
  }
  return out;
}

void set_signature(const ir::Program& program, State& state) {
  state.signature = driver::signature_of(program);
  for (const driver::Signature::Tensor& t : state.signature.tensors) {
    state.dims.emplace_back();
    for (const std::string& d : t.dims) state.dims.back().push_back(d.c_str());
  }
  state.frame_program = declarations(program, state.signature, state.unit.pool);
  state.sizing =
      std::make_unique<plan::Prepared>(*state.frame_program, std::vector<emit::KernelText>());
}

}  // namespace

Failure load(State& state) {
  const OpenRequest& request = state.request;
  if (request.target) {
    state.unit.target = target::find_target(*request.target);
    if (!state.unit.target) return wrong(fmt::format("there is no target `{}`", *request.target));
  }
  std::map<std::string, int64_t> sizes;
  if (Failure f = parse_sizes(request.sizes, sizes); !f.is_ok()) return f;
  auto loaded = driver::load_text(request.name, request.text, sizes, state.unit);
  if (!loaded) return wrong(messages_since(state.unit, 0));
  state.loaded = driver::with_hints(std::move(*loaded), sizes);
  state.warnings = messages_since(state.unit, 0);
  const std::string_view level = state.loaded->level->name;
  if (level == "spec" || level == "matile") {
    set_signature(*state.loaded, state);
  } else {
    // The levels between have no list of their tensors; their kernels have.
    if (Failure f = lower(state); !f.is_ok()) return f;
    set_signature(state.lowered->kernels.program, state);
  }
  return check_sizes(sizes, state);
}

namespace {

// The schedule that trials say is best, and what the note says of it.
std::optional<std::string> tuned_schedule(const State& state, std::string* note) {
  if (state.request.flags & NAUTILUS_OPEN_UNTUNED) {
    *note = "the first schedule: trials were not asked";
    return std::nullopt;
  }
  const std::string path =
      state.request.database ? *state.request.database : tune::default_database();
  std::string error;
  const auto best = tune::best_of(*state.loaded, path, &error);
  if (best) {
    *note = tune::note(*best);
    return best->winner.schedule;
  }
  const auto near = error.empty() ? tune::near_best_of(*state.loaded, path, &error) : std::nullopt;
  if (near) {
    *note = tune::note(*near);
    return near->is_used() ? std::optional(near->best.winner.schedule) : std::nullopt;
  }
  *note = "the first schedule: there are no trials of this program at these sizes or near them";
  if (!error.empty()) *note += ", and no database: " + error;
  return std::nullopt;
}

std::vector<std::string> forms_of(const Lowered& l) {
  std::vector<std::string> out;
  for (const emit::KernelText& k : l.texts) {
    std::string form;
    for (const driver::KernelNote& n : l.kernels.notes) {
      if (n.kernel == k.name) form = decision::words(n.form)[static_cast<size_t>(n.form)];
    }
    out.push_back(std::move(form));
  }
  return out;
}

Failure set_sources(const State& state, Lowered& l) {
  for (const emit::KernelText& k : l.texts) l.sources.push_back(emit::device_source(k));
  if (!state.request.cuda_source) return {};
  l.edited.push_back({"", "cuda_source", *state.request.cuda_source});
  std::vector<std::string> names;
  for (const emit::KernelText& k : l.texts) names.push_back(k.name);
  std::string error;
  const auto assigned = plan::assign_sources(names, l.edited, &error);
  if (!assigned) return wrong(error);
  for (size_t k = 0; k < names.size(); ++k) {
    if (assigned->contains(names[k])) l.sources[k] = assigned->at(names[k])->text;
  }
  return {};
}

}  // namespace

Failure lower(State& state) {
  if (state.lowered) return {};
  const size_t before = state.unit.sink.all().size();
  auto l = std::make_unique<Lowered>();
  std::string error;
  driver::KernelRequest request{.schedule = state.request.schedule};
  const runtime::KernelCache cache;
  const bool is_math = state.loaded->level->name == "spec";
  if (request.schedule)
    l->note = "the schedule is the one that was given";
  else if (is_math)
    request.schedule = tuned_schedule(state, &l->note);
  else
    l->note = "no schedule: the program came as loops or kernels";
  auto kernels = driver::stored_kernels(*state.loaded, request, cache, state.unit, &error);
  if (!kernels && !state.request.schedule && request.schedule) {
    request.schedule.reset();
    l->note = "the first schedule: the best of the trials has no kernels";
    kernels = driver::stored_kernels(*state.loaded, request, cache, state.unit, &error);
  }
  if (!kernels) {
    std::string text = messages_since(state.unit, before);
    if (!error.empty()) text += "the schedule: " + error;
    return wrong(std::move(text));
  }
  l->kernels = std::move(*kernels);
  l->schedule = std::move(request.schedule);
  l->texts = emit::emit_kernels(l->kernels.program, state.unit.pool);
  l->forms = forms_of(*l);
  l->plan = std::make_unique<plan::Prepared>(l->kernels.program, l->texts);
  if (Failure f = set_sources(state, *l); !f.is_ok()) return f;
  state.lowered = std::move(l);
  return {};
}

Failure lowered_of(const std::shared_ptr<State>& state, const Lowered** lowered) {
  {
    const std::lock_guard lock(state->mutex);
    *lowered = state->broken.empty() ? state->lowered.get() : nullptr;
  }
  if (*lowered) return {};
  Failure f = with_state(state, "making kernels", lower);
  if (f.is_ok()) *lowered = state->lowered.get();
  return f;
}

}  // namespace nautilus::capi
