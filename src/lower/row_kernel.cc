// SPDX-License-Identifier: Apache-2.0
#include "lower/row_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/row_padding.h"
#include "lower/row_variants.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using expr::Reducer;
using Kind = RowStatement::Kind;
using EK = expr::Op;

bool is_half(DType d) { return expr::bytes(d) == 2; }

// Worth keeping rather than computing again.
bool is_expensive(Expr e, Expr column) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    const bool is_slow = (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div;
    found |= is_slow && expr::depends_on(x, column);  // else it is one number of the row
  });
  return found;
}

struct ReadOrder {
  bool operator()(const std::pair<Expr, bool>& a, const std::pair<Expr, bool>& b) const {
    return std::make_pair(a.first.node(), a.second) < std::make_pair(b.first.node(), b.second);
  }
};

class RowLowering {
 public:
  RowLowering(const RowGroup& group, const std::set<std::string>& kept,
              const std::map<std::string, ir::TensorType>& buffers, const expr::Facts& facts,
              const RowVariant& variant, ir::Name kernel, const FreshNames& names,
              expr::ExprPool& pool)
      : group_(group),
        kept_(kept),
        buffers_(buffers),
        facts_(facts),
        v_(variant),
        kernel_(kernel),
        names_(names),
        pool_(pool) {}

  matile::Kernel run() {
    for (const ir::Axis& a : group_.rows) names_.take(a.name.str());
    for (const RowStatement& s : group_.statements) {  // a buffer that is a tile has no other use
      if (!kept_.contains(std::string(s.target.str()))) names_.release(s.target.str());
    }
    column_ = pool_.index(names_.make(group_.column.name.str()));
    at_ = column_;
    place_ = column_;
    extent_ = v_.columns;
    choose_padding();
    ir::Block body;
    main_ = &body;
    const ir::Name tile = is_blocked() ? decode_block(body) : decode_row(body);
    if (is_blocked())
      block(body);
    else if (v_.is_resident)
      resident(body);
    else
      walking(body);
    const ir::Name tiles = names_.make("rows");
    ir::Block role;
    for (const auto& [name, type] : tiles_) {
      matile::Tile t{name, type, matile::Spread::Line, {}};
      if (!type.dims.empty()) t.by = v_.by;
      role.push_back(ir::make(std::move(t)));
    }
    role.push_back(ir::make(matile::Each{tile, tiles, {}, std::move(body)}));
    ir::Block kernel;
    kernel.push_back(ir::make(matile::Tiles{tiles, count(), matile::TileSource::Static, {}}));
    kernel.push_back(ir::make(matile::Role{
        names_.make("compute"), matile::RoleUnit::Groups, 1, {}, registers(), std::move(role)}));
    return {.name = kernel_, .body = std::move(kernel)};
  }

  Expr count() const {
    Expr n = is_blocked() ? steps() : Expr();
    for (const ir::Axis& a : group_.rows) n = n ? pool_.binary(EK::Mul, n, a.extent) : a.extent;
    return n ? n : pool_.integer(1);
  }

  int64_t row_registers() const {
    int64_t sum = 0;
    for (const auto& [name, type] : tiles_)
      sum += type.dims.empty() ? 1 : row_tile_registers(type.dtype, type.dims[0].integer());
    return sum;
  }

 private:
  int64_t registers() const {
    // Beside the tiles: addresses, limits, a few partial results, and numbers unpacked of each
    // tile. A walk has more addresses.
    const auto lines = std::count_if(tiles_.begin(), tiles_.end(),
                                     [](const auto& t) { return !t.second.dims.empty(); });
    const int64_t beside = 16 + 16 * std::max<int64_t>(lines - 2, 0);
    const int64_t least = v_.is_resident ? 40 : 72;
    return std::clamp<int64_t>((row_registers() + beside + 7) / 8 * 8, least, 248);
  }

  // --- rows and columns -----------------------------------------------------------------------

  // Without reductions a row need not stay together: a CTA has a block of its columns.
  bool is_blocked() const { return has_elements_only(group_); }
  Expr steps() const {
    const Expr more = pool_.binary(EK::Add, v_.limit, pool_.integer(v_.columns - 1));
    return pool_.binary(EK::FloorDiv, more, pool_.integer(v_.columns));
  }

  ir::Name decode_block(ir::Block& body) {
    const ir::Name tile = names_.make("block");
    const ir::Name count = names_.make("steps");
    const ir::Name step = names_.make("step");
    body.push_back(ir::make(matile::Let{count, steps()}));
    const Expr all = pool_.index(count);
    body.push_back(ir::make(matile::Let{step, pool_.binary(EK::Mod, pool_.index(tile), all)}));
    at_ = pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.integer(v_.columns), pool_.index(step)),
                       column_);
    if (group_.rows.empty()) return tile;
    const ir::Name row = names_.make("row");
    body.push_back(ir::make(matile::Let{row, pool_.binary(EK::FloorDiv, pool_.index(tile), all)}));
    decode(pool_.index(row), body);
    return tile;
  }

  // The row's indices from the number of the tile; returns the tile's name.
  ir::Name decode_row(ir::Block& body) {
    if (group_.rows.size() == 1) return group_.rows[0].name;
    const ir::Name tile = names_.make("row");
    decode(pool_.index(tile), body);
    return tile;
  }

  void decode(Expr rest, ir::Block& body) {
    for (size_t k = group_.rows.size(); k-- > 0;) {
      const ir::Axis& a = group_.rows[k];
      if (k == 0) {
        body.push_back(ir::make(matile::Let{a.name, rest}));
        continue;
      }
      body.push_back(ir::make(matile::Let{a.name, pool_.binary(EK::Mod, rest, a.extent)}));
      const ir::Name above = k > 1 ? names_.make("rest") : ir::Name();
      const Expr quotient = pool_.binary(EK::FloorDiv, rest, a.extent);
      if (above) body.push_back(ir::make(matile::Let{above, quotient}));
      rest = above ? pool_.index(above) : quotient;
    }
  }

  bool is_whole() const { return v_.is_resident && v_.limit.is_int(v_.columns); }
  Expr in_range() { return pool_.binary(EK::Lt, at_, v_.limit); }
  ir::Axes columns() { return {{column_.name(), pool_.integer(extent_)}}; }

  // --- what is kept ---------------------------------------------------------------------------

  ir::Name add_tile(std::string_view stem, DType dtype, bool is_line) {
    const ir::Name name = names_.make(stem);
    ir::TensorType type{dtype, {}};
    if (is_line) type.dims.push_back(pool_.integer(extent_));
    tiles_.emplace_back(name, type);
    return name;
  }

  // A read that a tile of the row may stand for: consecutive columns, and inside of the tensor
  // wherever it is evaluated.
  bool is_row_read(Expr e, bool is_always) {
    if (e.op() != EK::Read || e.args().empty()) return false;
    if (e.dtype() != DType::F32 && !is_half(e.dtype())) return false;
    const Expr column = pool_.index(group_.column.name);
    const size_t last = e.args().size() - 1;
    if (e[last] != column) return false;
    for (size_t k = 0; k < last; ++k) {
      if (expr::depends_on(e[k], column)) return false;
    }
    return is_always || is_inside(e);
  }

  bool is_inside(Expr read) {
    const auto it = buffers_.find(std::string(read.name().str()));
    if (it == buffers_.end()) return false;
    expr::Facts facts = facts_;
    for (const ir::Axis& a : group_.rows) facts.add_axis(pool_.index(a.name), a.extent);
    facts.add_axis(pool_.index(group_.column.name), group_.column.extent);
    for (size_t k = 0; k < read.args().size(); ++k) {
      const Expr low = pool_.binary(EK::Ge, read[k], pool_.integer(0));
      const Expr high = pool_.binary(EK::Lt, read[k], it->second.dims[k]);
      if (facts.prove(low) != expr::Truth::True || facts.prove(high) != expr::Truth::True)
        return false;
    }
    return true;
  }

  // Reads of a value that become tiles, in order of their first use.
  void collect_row_reads(Expr e, bool is_always, std::vector<Expr>& out) {
    if (!visited_.emplace(e, is_always).second) return;
    if (e.op() == EK::Read && element(e)) return collect_row_reads(*element(e), is_always, out);
    if (!own(e) && is_row_read(e, is_always)) {
      if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
      return;
    }
    const bool is_lazy = e.op() == EK::Select || e.op() == EK::And || e.op() == EK::Or;
    for (size_t k = 0; k < e.args().size(); ++k)
      collect_row_reads(e[k], is_always && !(is_lazy && k > 0), out);
  }

  bool own(Expr read) const {
    return read.op() == EK::Read &&
           (numbers_.contains(std::string(read.name().str())) || element(read));
  }
  // The value of an element of the group that is computed again where it is read.
  const Expr* element(Expr read) const {
    const auto it = elements_.find(std::string(read.name().str()));
    return it == elements_.end() ? nullptr : &it->second;
  }

  // What a column beyond the row reads: chosen so that reductions need no condition.
  void choose_padding() {
    std::map<std::string, Expr> values;
    int best = -1;
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double candidate : {0.0, -infinity, infinity}) {
      int count = 0;
      for (const RowStatement& s : group_.statements)
        count += s.kind == Kind::Reduction && vanishes(s, candidate) ? 1 : 0;
      if (count <= best) continue;
      best = count;
      padding_ = candidate;
    }
  }

  bool vanishes(const RowStatement& s, double padding) {
    // With the group's elements written out.
    std::map<std::string, Expr> elements;
    for (const RowStatement& t : group_.statements) {
      if (t.target == s.target) break;
      if (t.kind == Kind::Element) elements[std::string(t.target.str())] = t.value;
    }
    return is_identity_outside(
        s.value, s.reducer, padding,
        [&](Expr read) -> Expr {
          const auto it = elements.find(std::string(read.name().str()));
          return it == elements.end() ? Expr() : it->second;
        },
        [&](Expr read) { return is_row_read(read, true); },
        [&](Expr read) -> Expr {
          for (const RowStatement& t : group_.statements) {
            if (t.target == read.name() && t.kind == Kind::Number) return t.value;
          }
          return {};
        });
  }

  // --- values ---------------------------------------------------------------------------------

  // A value in terms of the kernel: tiles instead of reads, the kernel's column.
  Expr rewrite(Expr e) {
    std::unordered_map<Expr, Expr> memo;
    const auto go = [&](const auto& self, Expr x) -> Expr {
      if (const auto it = memo.find(x); it != memo.end()) return it->second;
      Expr y;
      if (x.op() == EK::Read) {
        const std::string name(x.name().str());
        if (const auto n = numbers_.find(name); n != numbers_.end()) {
          y = pool_.cast(x.dtype(), pool_.read(n->second, DType::F32, {}));
        } else if (const auto t = loaded_.find(x); t != loaded_.end()) {
          y = pool_.read(t->second, x.dtype(), {{is_late(x) ? column_ : place_}});
        } else if (const auto k = kept_elements_.find(name); k != kept_elements_.end()) {
          y = pool_.cast(x.dtype(), pool_.read(k->second, DType::F32, {{place_}}));
        } else if (const Expr* value = element(x)) {
          y = self(self, *value);
        }
      } else if (x == pool_.index(group_.column.name)) {
        y = at_;
      }
      if (!y) {
        std::vector<Expr> args(x.args().begin(), x.args().end());
        bool is_changed = false;
        for (Expr& a : args) {
          const Expr b = self(self, a);
          is_changed |= b != a;
          a = b;
        }
        y = is_changed ? pool_.with_args(x, args) : x;
      }
      memo.emplace(x, y);
      return y;
    };
    return go(go, e);
  }

  bool is_tile(ir::Name name) const {
    return std::any_of(tiles_.begin(), tiles_.end(),
                       [&](const auto& tile) { return tile.first == name; });
  }

  // Reads of global memory inside of a value go beyond the row if nothing keeps them.
  bool has_direct_reads(Expr rewritten) {
    bool found = false;
    expr::for_each(rewritten, [&](Expr e) {
      found |= e.op() == EK::Read && !is_tile(e.name()) && expr::depends_on(e, column_);
    });
    return found;
  }

  bool reads_line(Expr rewritten) {
    bool found = false;
    expr::for_each(rewritten, [&](Expr e) {
      found |= e.op() == EK::Read && e.args().size() == 1 && e[0] == column_ && is_tile(e.name());
    });
    return found;
  }

  Expr constant(Reducer reducer) {
    return pool_.floating(expr::identity(reducer, DType::F32).f, DType::F32);
  }

  bool is_broadcast(Expr read) {
    return std::none_of(group_.rows.begin(), group_.rows.end(), [&](const ir::Axis& a) {
      return expr::depends_on(read, pool_.index(a.name));
    });
  }

  void load(Expr read, ir::Block& out) {
    auto it = loaded_.find(read);
    if (it == loaded_.end()) {
      const ir::Name name = add_tile(fmt::format("{}_row", read.name().str()), read.dtype(), true);
      it = loaded_.emplace(read, name).first;
    }
    std::vector<Expr> indices;
    for (Expr i : read.args()) indices.push_back(rewrite(i));
    out.push_back(ir::make(matile::Load{
        it->second, columns(), pool_.read(read.name(), read.dtype(), indices),
        is_whole() ? Expr() : in_range(), is_whole() ? Expr() : pool_.floating(padding_),
        is_broadcast(read) ? matile::Reuse::Often : matile::Reuse::Once}));
  }

  // A tile that holds the value, for ops that need one.
  Expr as_line(Expr rewritten, std::string_view stem, ir::Block& out) {
    if (reads_line(rewritten)) return rewritten;
    const ir::Name name = add_tile(stem, DType::F32, true);
    const Expr value = pool_.cast(DType::F32, rewritten);
    out.push_back(ir::make(matile::Set{name, columns(), value}));
    return pool_.cast(rewritten.dtype(), pool_.read(name, DType::F32, {{column_}}));
  }

  // --- numbers of the row inside of values
  // --------------------------------------------------------

  // Work that is the same for all columns, done once: `e[j] / (l[] + 1)` with the sum as a number.
  Expr hoisted(Expr e) {
    if (const auto known = without_numbers_.find(e); known != without_numbers_.end())
      return known->second;
    const Expr out = hoist(e);
    without_numbers_.emplace(e, out);
    return out;
  }

  Expr hoist(Expr e) {
    if (is_number(e) && has_slow_op(e)) {
      auto it = hoisted_.find(e);
      if (it == hoisted_.end()) {
        const ir::Name name = add_tile("number", DType::F32, false);
        main_->push_back(ir::make(matile::Set{name, {}, e}));
        it = hoisted_.emplace(e, name).first;
      }
      return pool_.read(it->second, DType::F32, {});
    }
    std::vector<Expr> args(e.args().begin(), e.args().end());
    bool is_changed = false;
    for (Expr& a : args) {
      const Expr b = hoisted(a);
      is_changed |= b != a;
      a = b;
    }
    return is_changed ? pool_.with_args(e, args) : e;
  }

  // Of tiles without columns, sizes and scalars: nothing that is read under a condition.
  bool is_number(Expr e) const {
    if (e.dtype() != DType::F32) return false;
    bool ok = true;
    expr::for_each(e, [&](Expr x) {
      ok &= x.op() != EK::Read || (x.args().empty() && is_tile(x.name()));
      ok &= x.op() != EK::Var || !expr::depends_on(at_, x);
    });
    return ok;
  }

  static bool has_slow_op(Expr e) {
    bool found = false;
    expr::for_each(e, [&](Expr x) {
      found |= (x.op() >= EK::Exp && x.op() <= EK::Cos) || x.op() == EK::Div ||
               (x.op() == EK::Select && x.dtype() == DType::F32);
    });
    return found;
  }

  // --- statements -----------------------------------------------------------------------------

  // acc = acc with the thread's own columns.
  void fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out) {
    Expr value = hoisted(pool_.cast(DType::F32, rewrite(s.value)));
    const bool is_masked =
        !is_whole() && (has_direct_reads(value) || !vanishes(s, padding_) || !reads_line(value));
    if (is_masked) value = pool_.select(in_range(), value, constant(s.reducer));
    value = as_line(value, fmt::format("{}_terms", s.target.str()), out);
    const Expr extent = pool_.integer(v_.columns);
    Expr sum = pool_.reduce(s.reducer, value, {{column_}}, {{extent}});
    if (!is_first)
      sum = pool_.binary(expr::combiner(s.reducer), pool_.read(acc, DType::F32, {}), sum);
    out.push_back(ir::make(matile::Fold{acc, {}, sum}));
  }

  // The parts of all threads, and what the reduction starts from.
  void finish(const RowStatement& s, ir::Name acc, ir::Block& out) {
    out.push_back(ir::make(matile::Lanes{acc, s.reducer}));
    out.push_back(ir::make(matile::Warps{acc, s.reducer}));
    const expr::Value identity = expr::identity(s.reducer, DType::F32);
    const Expr now = pool_.read(acc, DType::F32, {});
    Expr value = now;
    if (!(s.init.op() == EK::FloatConst && s.init.number() == identity.f))
      value =
          pool_.binary(expr::combiner(s.reducer), pool_.cast(DType::F32, rewrite(s.init)), value);
    if (s.dtype != DType::F32) value = pool_.cast(DType::F32, pool_.cast(s.dtype, value));
    if (value != now) out.push_back(ir::make(matile::Set{acc, {}, value}));
    numbers_[std::string(s.target.str())] = acc;
    put_number(s, acc, out);
  }

  void number(const RowStatement& s, ir::Block& out) {
    const ir::Name name = add_tile(s.target.str(), DType::F32, false);
    out.push_back(ir::make(matile::Set{name, {}, pool_.cast(DType::F32, rewrite(s.value))}));
    numbers_[std::string(s.target.str())] = name;
    put_number(s, name, out);
  }

  void put_number(const RowStatement& s, ir::Name tile, ir::Block& out) {
    if (!kept_.contains(std::string(s.target.str()))) return;
    ir::Exprs row;
    for (const ir::Axis& a : group_.rows) row.push_back(pool_.index(a.name));
    out.push_back(ir::make(
        matile::Put{{}, s.target, row, pool_.cast(s.dtype, pool_.read(tile, DType::F32, {})), {}}));
  }

  void put_element(const RowStatement& s, ir::Block& out) {
    ir::Exprs indices;
    for (const ir::Axis& a : group_.rows) indices.push_back(pool_.index(a.name));
    indices.push_back(at_);
    Expr value = rewrite(s.value);
    if (value.op() == EK::Cast && value.dtype() == s.dtype) value = value[0];
    value = hoisted(value);
    if (!is_whole() && has_direct_reads(value))
      value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
    value = as_line(value, fmt::format("{}_line", s.target.str()), out);
    out.push_back(ir::make(matile::Put{columns(), s.target, indices, pool_.cast(s.dtype, value),
                                       is_whole() ? Expr() : in_range()}));
  }

  // --- what all rows share, 1024 columns at a time ----------------------------------------------

  bool is_late(Expr read) const {
    return std::find(late_.begin(), late_.end(), read) != late_.end();
  }

  // If all that is read would fill the registers.
  void choose_late(const std::vector<Expr>& reads) {
    int64_t sum = 0;
    for (Expr r : reads) sum += row_tile_registers(r.dtype(), v_.columns);
    if (sum <= kEarlyRegisters || v_.columns % piece() != 0 || v_.columns / piece() > 64) return;
    for (Expr r : shared_by_rows(group_, pool_)) {
      if (std::find(reads.begin(), reads.end(), r) != reads.end()) late_.push_back(r);
    }
  }
  int64_t piece() const { return kRowThreads * v_.by; }

  void put_pieces(const RowStatement& s, ir::Block& out) {
    std::vector<Expr> reads;
    visited_.clear();
    collect_row_reads(s.value, true, reads);
    std::erase_if(reads, [&](Expr r) { return !is_late(r); });
    if (reads.empty()) return put_element(s, out);
    matile::Unroll unroll{{{names_.make("piece"), pool_.integer(v_.columns / piece())}}, {}};
    extent_ = piece();
    place_ = pool_.binary(
        EK::Add, pool_.binary(EK::Mul, pool_.integer(piece()), pool_.index(unroll.axes[0].name)),
        column_);
    at_ = place_;
    for (Expr r : reads) load(r, unroll.body);
    put_element(s, unroll.body);
    extent_ = v_.columns;
    place_ = column_;
    at_ = column_;
    out.push_back(ir::make(std::move(unroll)));
  }

  int uses_after(size_t index) const {
    int uses = 0;
    for (size_t k = index + 1; k < group_.statements.size(); ++k) {
      for (ir::Name t : expr::tensors_read(group_.statements[k].value))
        uses += t == group_.statements[index].target ? 1 : 0;
    }
    return uses;
  }

  bool is_worth_keeping(size_t index) const {
    return uses_after(index) > 1 &&
           is_expensive(group_.statements[index].value, pool_.index(group_.column.name));
  }

  // Whether statements after `index` need the read, other than through that statement's elements.
  bool is_read_after(size_t index, Expr read) const {
    const auto reaches = [&](const auto& self, Expr value) -> bool {
      bool is_found = false;
      expr::for_each(value, [&](Expr e) {
        if (is_found || e.op() != EK::Read) return;
        is_found = e == read;
        if (e.name() == group_.statements[index].target) return;
        const auto it = elements_.find(std::string(e.name().str()));
        if (it != elements_.end()) is_found = is_found || self(self, it->second);
      });
      return is_found;
    };
    for (size_t k = index + 1; k < group_.statements.size(); ++k)
      if (reaches(reaches, group_.statements[k].value)) return true;
    return false;
  }

  // A read whose tile the elements of a statement may take over: its last use is in them. Empty if
  // there is none.
  Expr replaced_by(size_t index, const std::vector<Expr>& reads) const {
    for (Expr r : reads) {
      if (r.dtype() == DType::F32 && loaded_.contains(r) &&
          r.args().back() == pool_.index(group_.column.name) && !is_read_after(index, r))
        return r;
    }
    return {};
  }

  // --- a row in registers ---------------------------------------------------------------------

  void resident(ir::Block& out) {
    std::vector<Expr> reads;
    std::vector<size_t> known;  // how many of the reads the statements up to each need
    visited_.clear();
    for (size_t k = 0; k < group_.statements.size(); ++k) {
      const RowStatement& s = group_.statements[k];
      const bool is_needed = s.kind != Kind::Element || is_worth_keeping(k) ||
                             kept_.contains(std::string(s.target.str()));
      if (is_needed) collect_row_reads(s.value, true, reads);
      known.push_back(reads.size());
      if (s.kind == Kind::Element) elements_[std::string(s.target.str())] = s.value;
    }
    elements_.clear();
    // Everything that comes from memory is asked for at once, except what all rows share if that
    // would fill the registers: the cache has it when it is needed.
    choose_late(reads);
    const bool is_delayed = reads.size() > 2;
    for (Expr r : reads) {
      if (!is_late(r) && (!is_delayed || !is_broadcast(r))) load(r, out);
    }
    for (size_t k = 0; k < group_.statements.size(); ++k) {
      const RowStatement& s = group_.statements[k];
      for (size_t r = k ? known[k - 1] : 0; r < known[k]; ++r) {
        if (is_delayed && is_broadcast(reads[r]) && !is_late(reads[r])) load(reads[r], out);
      }
      const std::string target(s.target.str());
      if (s.kind == Kind::Number) number(s, out);
      if (s.kind == Kind::Reduction) {
        const ir::Name acc = add_tile(target, DType::F32, false);
        fold(s, acc, true, out);
        for (Expr r : reads) {
          if (is_half(r.dtype()) && loaded_.contains(r) && k + 1 < group_.statements.size())
            out.push_back(ir::make(matile::Forget{loaded_.at(r)}));
        }
        finish(s, acc, out);
      }
      if (s.kind != Kind::Element) continue;
      const Expr replaced = replaced_by(k, reads);
      const int64_t more = replaced ? 0 : v_.columns / kRowThreads;
      const bool is_line_worth = late_.empty() && is_worth_keeping(k) &&
                                 (!more || row_registers() + more <= kRowRegisters);
      if (is_line_worth) {
        Expr value = hoisted(rewrite(s.value));
        if (!is_whole() && has_direct_reads(value))
          value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
        const ir::Name tile = replaced ? loaded_.at(replaced) : add_tile(target, DType::F32, true);
        loaded_.erase(replaced);
        out.push_back(ir::make(matile::Set{tile, columns(), pool_.cast(DType::F32, value)}));
        kept_elements_[target] = tile;
      }
      if (kept_.contains(target)) put_pieces(s, out);
      if (!is_line_worth) elements_[target] = s.value;
    }
  }

  // --- a block of elements ----------------------------------------------------------------------

  void block(ir::Block& out) {
    std::vector<Expr> reads;
    visited_.clear();
    for (const RowStatement& s : group_.statements) {
      if (kept_.contains(std::string(s.target.str()))) collect_row_reads(s.value, true, reads);
      elements_[std::string(s.target.str())] = s.value;
    }
    for (Expr r : reads) load(r, out);
    for (const RowStatement& s : group_.statements) {
      if (kept_.contains(std::string(s.target.str()))) put_element(s, out);
    }
  }

  // --- a row walked over, once for each reduction -----------------------------------------------

  void walking(ir::Block& out) {
    const ir::Name count = names_.make("steps");
    out.push_back(ir::make(matile::Let{count, steps()}));
    for (size_t k = 0; k < group_.statements.size();) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Number) {
        number(s, out);
        ++k;
        continue;
      }
      // Reductions and elements that need no number computed among them share a walk.
      size_t end = k;
      std::set<std::string> among;
      for (; end < group_.statements.size(); ++end) {
        const RowStatement& t = group_.statements[end];
        if (t.kind == Kind::Number || depends(t.value, among)) break;
        if (t.kind == Kind::Reduction) among.emplace(t.target.str());
        if (t.kind == Kind::Element) elements_[std::string(t.target.str())] = t.value;
      }
      walk(k, end, count, out);
      k = end;
    }
  }

  // Whether a value needs one of the numbers, through elements that are computed again too.
  bool depends(Expr value, const std::set<std::string>& numbers) const {
    bool found = false;
    expr::for_each(value, [&](Expr e) {
      if (e.op() != EK::Read) return;
      found |= numbers.contains(std::string(e.name().str()));
      if (const Expr* inner = element(e)) found |= depends(*inner, numbers);
    });
    return found;
  }

  void walk(size_t begin, size_t end, ir::Name count, ir::Block& out) {
    std::vector<ir::Name> accs(end - begin);
    bool has_work = false;
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      has_work |= s.kind == Kind::Reduction || kept_.contains(std::string(s.target.str()));
      if (s.kind != Kind::Reduction) continue;
      accs[k - begin] = add_tile(s.target.str(), DType::F32, false);
      out.push_back(ir::make(matile::Set{accs[k - begin], {}, constant(s.reducer)}));
    }
    if (!has_work) return;
    matile::Loop loop{
        names_.make("step"), pool_.integer(0), matile::Direction::Up, pool_.index(count), {}};
    at_ = pool_.binary(
        EK::Add, pool_.binary(EK::Mul, pool_.integer(v_.columns), pool_.index(loop.var)), column_);
    std::vector<Expr> reads;
    visited_.clear();
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction || kept_.contains(std::string(s.target.str())))
        collect_row_reads(s.value, true, reads);
    }
    for (Expr r : reads) load(r, loop.body);
    for (size_t k = begin; k < end; ++k) {
      const RowStatement& s = group_.statements[k];
      if (s.kind == Kind::Reduction) fold(s, accs[k - begin], false, loop.body);
      if (s.kind == Kind::Element && kept_.contains(std::string(s.target.str())))
        put_element(s, loop.body);
    }
    out.push_back(ir::make(std::move(loop)));
    at_ = column_;
    for (size_t k = begin; k < end; ++k) {
      if (accs[k - begin]) finish(group_.statements[k], accs[k - begin], out);
    }
  }

  const RowGroup& group_;
  const std::set<std::string>& kept_;
  const std::map<std::string, ir::TensorType>& buffers_;
  const expr::Facts& facts_;
  const RowVariant& v_;
  ir::Name kernel_;
  FreshNames names_;
  expr::ExprPool& pool_;
  Expr column_;                                 // of the tiles
  Expr at_;                                     // the column of the row that it means
  Expr place_;                                  // the column of tiles that hold the whole row
  int64_t extent_ = 0;                          // of the ops that are written
  std::vector<Expr> late_;                      // reads that are loaded piece by piece
  ir::Block* main_ = nullptr;                   // the block of a row: outside of walks
  std::unordered_map<Expr, ir::Name> hoisted_;  // numbers that values have in common
  std::unordered_map<Expr, Expr> without_numbers_;
  double padding_ = 0;
  std::set<std::pair<Expr, bool>, ReadOrder> visited_;  // by collect_row_reads
  std::vector<std::pair<ir::Name, ir::TensorType>> tiles_;
  std::unordered_map<Expr, ir::Name> loaded_;      // reads that are tiles
  std::map<std::string, ir::Name> numbers_;        // of the row
  std::map<std::string, ir::Name> kept_elements_;  // as tiles
  std::map<std::string, Expr> elements_;           // computed where they are read
};

}  // namespace

ir::Block lower_rows(const RowGroup& group, const std::set<std::string>& kept,
                     const std::map<std::string, ir::TensorType>& buffers, const expr::Facts& facts,
                     FreshNames& names, expr::ExprPool& pool) {
  const std::string stem = row_stem(group);
  ir::Block out;
  ir::Block launches;
  ir::Name single;  // takes tensors of any alignment; the first of the list
  for (const RowVariant& v : row_variants(group, buffers, facts, names, pool, out)) {
    const ir::Name name = names.make(fmt::format("{}_rows{}", stem, v.suffix));
    RowLowering lowering(group, kept, buffers, facts, v, name, names, pool);
    out.push_back(ir::make(lowering.run()));
    const Expr rows = lowering.count();
    const Expr grid =
        v.condition.is_true() ? rows : pool.select(v.condition, rows, pool.integer(0));
    const bool is_never = v.condition.op() == EK::BoolConst && !v.condition.is_true();
    if (!is_never) launches.push_back(ir::make(matile::Launch{name, grid, single}));
    if (!single) single = name;
  }
  for (ir::Op& op : launches) out.push_back(std::move(op));
  return out;
}

}  // namespace nautilus::lower
