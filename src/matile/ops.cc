// SPDX-License-Identifier: Apache-2.0
#include "matile/ops.h"

namespace nautilus::matile {

NAUT_DEFINE_OP(Oracle)
NAUT_DEFINE_OP(Tensor)
NAUT_DEFINE_OP(Let)
NAUT_DEFINE_OP(Map)
NAUT_DEFINE_OP(Kernel)
NAUT_DEFINE_OP(Launch)
NAUT_DEFINE_OP(Cta)
NAUT_DEFINE_OP(Tiles)
NAUT_DEFINE_OP(Ring)
NAUT_DEFINE_OP(SlotTile)
NAUT_DEFINE_OP(Turn)
NAUT_DEFINE_OP(Stage)
NAUT_DEFINE_OP(Role)
NAUT_DEFINE_OP(Tile)
NAUT_DEFINE_OP(Each)
NAUT_DEFINE_OP(Loop)
NAUT_DEFINE_OP(Unroll)
NAUT_DEFINE_OP(If)
NAUT_DEFINE_OP(Fill)
NAUT_DEFINE_OP(Copy)
NAUT_DEFINE_OP(Fetch)
NAUT_DEFINE_OP(Get)
NAUT_DEFINE_OP(Release)
NAUT_DEFINE_OP(Skip)
NAUT_DEFINE_OP(Jump)
NAUT_DEFINE_OP(Enter)
NAUT_DEFINE_OP(Leave)
NAUT_DEFINE_OP(Dot)
NAUT_DEFINE_OP(WarpDot)
NAUT_DEFINE_OP(Take)
NAUT_DEFINE_OP(Wait)
NAUT_DEFINE_OP(Set)
NAUT_DEFINE_OP(Fold)
NAUT_DEFINE_OP(Reduce)
NAUT_DEFINE_OP(Convert)
NAUT_DEFINE_OP(Lanes)
NAUT_DEFINE_OP(Shares)
NAUT_DEFINE_OP(Warps)
NAUT_DEFINE_OP(Groups)
NAUT_DEFINE_OP(Ctas)
NAUT_DEFINE_OP(Load)
NAUT_DEFINE_OP(Prefetch)
NAUT_DEFINE_OP(Forget)
NAUT_DEFINE_OP(Vote)
NAUT_DEFINE_OP(Ticket)
NAUT_DEFINE_OP(Store)
NAUT_DEFINE_OP(Put)
NAUT_DEFINE_OP(EachPoints)
NAUT_DEFINE_OP(LayoutLines)
NAUT_DEFINE_OP(Points)
NAUT_DEFINE_OP(Value)
NAUT_DEFINE_OP(Assign)
NAUT_DEFINE_OP(SharedLoop)
NAUT_DEFINE_OP(Join)
NAUT_DEFINE_OP(LaneLoop)
NAUT_DEFINE_OP(LaneScan)
NAUT_DEFINE_OP(Write)
NAUT_DEFINE_OP(Scatter)
NAUT_DEFINE_OP(Sort)
NAUT_DEFINE_OP(Search)

const std::vector<const ir::OpInfo*>& layout_vocabulary() {
  static const std::vector<const ir::OpInfo*> all = {
      &decision::Resident::info(), &decision::Lanes::info(),   &EachPoints::info(),
      &decision::Across::info(),   &decision::Spread::info(),  &decision::Patch::info(),
      &decision::Held::info(),     &decision::Private::info(), &decision::Unroll::info(),
      &decision::Windows::info(),  &decision::Threads::info()};
  return all;
}

const std::vector<std::string_view>& words(LastPoints) {
  static const std::vector<std::string_view> spellings = {"whole", "ragged"};
  return spellings;
}

const std::vector<std::string_view>& words(SortFirst) {
  static const std::vector<std::string_view> spellings = {"largest", "smallest"};
  return spellings;
}

const std::vector<std::string_view>& words(TensorRole) {
  static const std::vector<std::string_view> spellings = {"input", "output", "scratch", "temp"};
  return spellings;
}

const std::vector<std::string_view>& words(MapSwizzle) {
  static const std::vector<std::string_view> spellings = {"b128", "b64", "b32", "none"};
  return spellings;
}

const std::vector<std::string_view>& words(TileSource) {
  static const std::vector<std::string_view> spellings = {"static", "dynamic"};
  return spellings;
}

const std::vector<std::string_view>& words(RoleUnit) {
  static const std::vector<std::string_view> spellings = {"warp", "groups"};
  return spellings;
}

const std::vector<std::string_view>& words(Spread) {
  static const std::vector<std::string_view> spellings = {"unset", "acc",  "row",
                                                          "col",   "line", "own"};
  return spellings;
}

const std::vector<std::string_view>& words(WalkOrder) {
  static const std::vector<std::string_view> spellings = {"up", "down"};
  return spellings;
}

const std::vector<std::string_view>& words(ScanReach) {
  static const std::vector<std::string_view> spellings = {"upto", "before"};
  return spellings;
}

const std::vector<std::string_view>& words(Direction) {
  static const std::vector<std::string_view> spellings = {"up", "down"};
  return spellings;
}

const std::vector<std::string_view>& words(DotMode) {
  static const std::vector<std::string_view> spellings = {"init", "add"};
  return spellings;
}

const std::vector<std::string_view>& words(Trans) {
  static const std::vector<std::string_view> spellings = {"plain", "trans"};
  return spellings;
}

const std::vector<std::string_view>& words(Reuse) {
  static const std::vector<std::string_view> spellings = {"once", "often"};
  return spellings;
}

const std::vector<std::string_view>& words(Reach) {
  static const std::vector<std::string_view> spellings = {"own", "multicast"};
  return spellings;
}

const std::vector<std::string_view>& words(Begins) {
  static const std::vector<std::string_view> spellings = {"late", "early"};
  return spellings;
}

const std::vector<std::string_view>& words(KernelForm) {
  static const std::vector<std::string_view> spellings = {"final", "nest", "roles"};
  return spellings;
}

const std::vector<std::string_view>& words(ConvertKind) {
  static const std::vector<std::string_view> spellings = {"free", "lanes", "shared"};
  return spellings;
}

namespace {

// Names for the text after an op.
void declare(const ir::Op& op, expr::Scope& scope) {
  if (ir::declare_decl(op, scope)) return;
  const auto tensor = [&](ir::Name name, const ir::TensorType& type) {
    scope.add_tensor(name.str(), type.dtype, type.dims.size());
  };
  if (const auto* t = op.get<Tensor>()) tensor(t->name, t->type);
  if (const auto* t = op.get<Tile>()) tensor(t->name, t->type);
  if (const auto* c = op.get<Cta>()) {
    scope.add_var(c->index.str(), ir::DType::I64);
    scope.add_var(c->count.str(), ir::DType::I64);
  }
  if (const auto* l = op.get<Let>()) scope.add_var(l->name.str(), l->value.dtype());
  if (const auto* v = op.get<Value>()) scope.add_var(v->name.str(), v->dtype);
  if (const auto* s = op.get<Search>()) {
    for (const ir::Axis& a : s->axes) scope.add_var(a.name.str(), ir::DType::I64);
  }
  if (const auto* t = op.get<Ticket>()) scope.add_var(t->name.str(), ir::DType::Bool);
  if (const auto* v = op.get<Vote>()) scope.add_var(v->name.str(), ir::DType::Bool);
}

// Names for an op's own block.
void open(const ir::OpInfo& info, const void* data, expr::Scope& scope) {
  const auto index = [&](ir::Name name) {
    if (name) scope.add_var(name.str(), ir::DType::I64);
  };
  if (&info == &Kernel::info()) index(static_cast<const Kernel*>(data)->rank);
  if (&info == &Role::info()) index(static_cast<const Role*>(data)->index);
  if (&info == &Each::info()) index(static_cast<const Each*>(data)->var);
  if (&info == &Loop::info()) index(static_cast<const Loop*>(data)->var);
  if (&info == &SharedLoop::info()) index(static_cast<const SharedLoop*>(data)->var);
  if (&info == &LaneLoop::info()) index(static_cast<const LaneLoop*>(data)->var);
  if (&info == &Sort::info()) index(static_cast<const Sort*>(data)->place);
  if (&info == &Fill::info()) index(static_cast<const Fill*>(data)->group);
}

}  // namespace

const ir::Level& level() {
  static const ir::Level kLevel{"matile",
                                ".matile",
                                {
#define OP(name) &name::info(),
#include "matile/ops.def"
#undef OP
                                },
                                declare,
                                open};
  return kLevel;
}

Kind kind(const ir::Op& op) { return static_cast<Kind>(level().position_of(op)); }

std::map<std::string, ir::TensorType> tensors(const ir::Program& program, TensorRole role) {
  std::map<std::string, ir::TensorType> out;
  for (const ir::Op& op : program.body) {
    const auto* t = op.get<Tensor>();
    if (t && t->role == role) out.emplace(t->name.str(), t->type);
  }
  return out;
}

std::vector<expr::DType> output_dtypes(const ir::Program& program) {
  std::vector<expr::DType> out;
  for (const auto& [name, type] : tensors(program, TensorRole::Output)) out.push_back(type.dtype);
  return out;
}

}  // namespace nautilus::matile
