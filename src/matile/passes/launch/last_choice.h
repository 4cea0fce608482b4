// SPDX-License-Identifier: Apache-2.0
// A decision about a finished kernel, whose other decisions are noted already.
#pragma once

#include "decision/choice.h"
#include "matile/ops.h"

namespace nautilus::matile {

template <class D>
class LastChoice {
 public:
  // Takes the line out of the kernel's body.
  LastChoice(Kernel& kernel, ir::PassContext& context)
      : kernel_(kernel.name),
        context_(context),
        own_(context.with(context.sink, decided_)),
        choice_(own_) {
    choice_.begin(kernel.body);
  }
  LastChoice(const LastChoice&) = delete;
  LastChoice& operator=(const LastChoice&) = delete;

  const D* asked() const { return choice_.asked(); }
  void took(D decision) { choice_.took(decision); }
  void refuse(std::string_view why) { choice_.refuse(why); }
  void drop() { choice_.drop(); }

  // Adds the decision to those of the kernel. False if the line was refused.
  bool end(std::string_view why_none) {
    if (!choice_.end(why_none)) return false;
    for (const ir::Op& decision : decided_) decision::note_of(kernel_, decision, context_);
    return true;
  }

 private:
  ir::Name kernel_;
  ir::PassContext& context_;
  ir::Block decided_;
  ir::PassContext own_;
  decision::Choice<D> choice_;
};

}  // namespace nautilus::matile
