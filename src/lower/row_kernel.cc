// SPDX-License-Identifier: Apache-2.0
#include "lower/row_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "lower/row_padding.h"
#include "matile/ops.h"

namespace nautilus::lower {
namespace {

using expr::DType;
using expr::Expr;
using expr::Reducer;
using Kind = RowStatement::Kind;
using EK = expr::Op;

constexpr int64_t kThreads = 128;
// Registers of a thread for what is kept of a row; more would leave too few CTAs to hide latency.
constexpr int64_t kRowRegisters = 96;
// Columns of a row that is kept, for programs that leave their number open.
constexpr int64_t kCaps[] = {1024, 4096, 16384};

struct Variant {
  std::string suffix;
  int64_t columns = 0;      // of the tiles
  int64_t by = 1;           // neighbours of a thread
  bool is_resident = true;  // a row fits the tiles
  Expr limit;               // the number of columns, as a kernel sees it
  Expr condition;           // of the launch
};

int64_t tile_registers(DType dtype, int64_t columns) {
  return columns / kThreads * (expr::bytes(dtype) == 2 ? 1 : 2) / 2;
}

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
              const Variant& variant, ir::Name kernel, const FreshNames& names,
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
    choose_padding();
    ir::Block body;
    const ir::Name tile = decode_row(body);
    if (v_.is_resident)
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
    Expr n;
    for (const ir::Axis& a : group_.rows) n = n ? pool_.binary(EK::Mul, n, a.extent) : a.extent;
    return n ? n : pool_.integer(1);
  }

  int64_t row_registers() const {
    int64_t sum = 0;
    for (const auto& [name, type] : tiles_)
      sum += type.dims.empty() ? 1 : tile_registers(type.dtype, v_.columns);
    return sum;
  }

 private:
  int64_t registers() const {
    // Beside the tiles: addresses, limits, a few partial results, and numbers unpacked of each
    // tile. A walk has more addresses.
    const auto lines = std::count_if(tiles_.begin(), tiles_.end(),
                                     [](const auto& t) { return !t.second.dims.empty(); });
    const int64_t beside = 12 + 16 * std::max<int64_t>(lines - 2, 0);
    const int64_t least = v_.is_resident ? 40 : 72;
    return std::clamp<int64_t>((row_registers() + beside + 7) / 8 * 8, least, 248);
  }

  // --- rows and columns -----------------------------------------------------------------------

  // The row's indices from the number of the tile; returns the tile's name.
  ir::Name decode_row(ir::Block& body) {
    if (group_.rows.size() == 1) return group_.rows[0].name;
    const ir::Name tile = names_.make("row");
    Expr rest = pool_.index(tile);
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
    return tile;
  }

  bool is_whole() const { return v_.is_resident && v_.limit.is_int(v_.columns); }
  Expr in_range() { return pool_.binary(EK::Lt, at_, v_.limit); }
  ir::Axes columns() { return {{column_.name(), pool_.integer(v_.columns)}}; }

  // --- what is kept ---------------------------------------------------------------------------

  ir::Name add_tile(std::string_view stem, DType dtype, bool is_line) {
    const ir::Name name = names_.make(stem);
    ir::TensorType type{dtype, {}};
    if (is_line) type.dims.push_back(pool_.integer(v_.columns));
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
          y = pool_.read(t->second, x.dtype(), {{column_}});
        } else if (const auto k = kept_elements_.find(name); k != kept_elements_.end()) {
          y = pool_.cast(x.dtype(), pool_.read(k->second, DType::F32, {{column_}}));
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

  // Reads of global memory inside of a value go beyond the row if nothing keeps them.
  bool has_direct_reads(Expr rewritten) {
    bool found = false;
    expr::for_each(rewritten, [&](Expr e) {
      found |= e.op() == EK::Read && buffers_.contains(std::string(e.name().str())) &&
               expr::depends_on(e, column_);
    });
    return found;
  }

  bool reads_line(Expr rewritten) {
    bool found = false;
    expr::for_each(rewritten, [&](Expr e) {
      found |= e.op() == EK::Read && e.args().size() == 1 && e[0] == column_ &&
               !buffers_.contains(std::string(e.name().str()));
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

  // --- statements -----------------------------------------------------------------------------

  // acc = acc with the thread's own columns.
  void fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out) {
    Expr value = pool_.cast(DType::F32, rewrite(s.value));
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
    if (!is_whole() && has_direct_reads(value))
      value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
    value = as_line(value, fmt::format("{}_line", s.target.str()), out);
    out.push_back(ir::make(matile::Put{columns(), s.target, indices, pool_.cast(s.dtype, value),
                                       is_whole() ? Expr() : in_range()}));
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
    const bool is_late = reads.size() > 2;
    for (Expr r : reads) {
      if (!is_late || !is_broadcast(r)) load(r, out);
    }
    for (size_t k = 0; k < group_.statements.size(); ++k) {
      const RowStatement& s = group_.statements[k];
      for (size_t r = k ? known[k - 1] : 0; r < known[k]; ++r) {
        if (is_late && is_broadcast(reads[r])) load(reads[r], out);
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
      const bool is_line_worth =
          is_worth_keeping(k) && row_registers() + v_.columns / kThreads <= kRowRegisters;
      if (is_line_worth) {
        Expr value = rewrite(s.value);
        if (!is_whole() && has_direct_reads(value))
          value = pool_.select(in_range(), value, pool_.constant(0, value.dtype()));
        const ir::Name tile = add_tile(target, DType::F32, true);
        out.push_back(ir::make(matile::Set{tile, columns(), pool_.cast(DType::F32, value)}));
        kept_elements_[target] = tile;
      }
      if (kept_.contains(target)) put_element(s, out);
      if (!is_line_worth) elements_[target] = s.value;
    }
  }

  // --- a row walked over, once for each reduction -----------------------------------------------

  void walking(ir::Block& out) {
    const ir::Name steps = names_.make("steps");
    out.push_back(ir::make(matile::Let{
        steps,
        pool_.binary(EK::FloorDiv, pool_.binary(EK::Add, v_.limit, pool_.integer(v_.columns - 1)),
                     pool_.integer(v_.columns))}));
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
      walk(k, end, steps, out);
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

  void walk(size_t begin, size_t end, ir::Name steps, ir::Block& out) {
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
        names_.make("step"), pool_.integer(0), matile::Direction::Up, pool_.index(steps), {}};
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
  const Variant& v_;
  ir::Name kernel_;
  FreshNames names_;
  expr::ExprPool& pool_;
  Expr column_;  // of the tiles
  Expr at_;      // the column of the row that it means
  double padding_ = 0;
  std::set<std::pair<Expr, bool>, ReadOrder> visited_;  // by collect_row_reads
  std::vector<std::pair<ir::Name, ir::TensorType>> tiles_;
  std::unordered_map<Expr, ir::Name> loaded_;      // reads that are tiles
  std::map<std::string, ir::Name> numbers_;        // of the row
  std::map<std::string, ir::Name> kept_elements_;  // as tiles
  std::map<std::string, Expr> elements_;           // computed where they are read
};

// The variants of a group, each for the sizes of its condition; one of them holds for any size.
class Variants {
 public:
  Variants(const RowGroup& group, const std::map<std::string, ir::TensorType>& buffers,
           const expr::Facts& facts, FreshNames& names, expr::ExprPool& pool)
      : group_(group), buffers_(buffers), facts_(facts), names_(names), pool_(pool) {}

  std::vector<Variant> run(ir::Block& plan) {
    const Expr n = group_.column.extent;
    const int64_t width = vector_width();
    std::vector<Variant> out;
    const Expr is_vector =
        pool_.binary(EK::Eq, pool_.binary(EK::Mod, n, pool_.integer(width)), pool_.integer(0));
    if (n.op() == EK::IntConst) {
      const bool is_whole = n.integer() % width == 0;
      const int64_t unit = kThreads * (is_whole ? width : 1);
      const int64_t columns = std::max<int64_t>((n.integer() + unit - 1) / unit, 1) * unit;
      const bool is_kept = fits(columns) && columns <= kCaps[2];
      const int64_t step = kThreads * width * (is_whole ? 2 : 1);
      out.push_back({is_kept ? fmt::format("_{}", columns) : "_long", is_kept ? columns : step,
                     is_whole ? width : 1, is_kept, n, pool_.boolean(true)});
      return out;
    }
    const bool is_never = truth(is_vector) == expr::Truth::False;
    const bool is_always = truth(is_vector) == expr::Truth::True || is_a_fact(is_vector);
    Expr whole = n;
    if (!is_always && !is_never) {
      // A multiple of the width, which the kernel can see.
      const ir::Name vectors = names_.make(fmt::format("{}_vectors", stem()));
      plan.push_back(
          ir::make(matile::Let{vectors, pool_.binary(EK::FloorDiv, n, pool_.integer(width))}));
      whole = pool_.binary(EK::Mul, pool_.integer(width), pool_.index(vectors));
    }
    if (!is_never) {
      Expr above = is_always ? pool_.boolean(true) : is_vector;
      bool is_open = true;
      for (const int64_t cap : kCaps) {
        if (!is_open || !fits(cap)) break;
        const Expr below = pool_.binary(EK::Le, n, pool_.integer(cap));
        if (truth(below) == expr::Truth::True) is_open = false;
        if (truth(below) == expr::Truth::False) continue;
        out.push_back({fmt::format("_{}", cap), cap, width, true, whole,
                       is_open ? both(above, below) : above});
        above = both(is_always ? pool_.boolean(true) : is_vector,
                     pool_.binary(EK::Gt, n, pool_.integer(cap)));
      }
      if (is_open) out.push_back({"_long", kThreads * width * 2, width, false, whole, above});
    }
    if (!is_always)
      out.push_back({"_odd", kThreads * 8, 1, false, n,
                     pool_.binary(EK::Ne, is_vector[0], pool_.integer(0))});
    return out;
  }

  std::string stem() const {
    std::string name(group_.statements.back().target.str());
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }

 private:
  expr::Truth truth(Expr condition) const { return facts_.prove(condition); }
  // Divisibility is no inequality: it holds if it is declared.
  bool is_a_fact(Expr condition) const { return facts_.prove(condition) == expr::Truth::True; }
  Expr both(Expr a, Expr b) { return a.is_true() ? b : pool_.binary(EK::And, a, b); }

  std::vector<ir::TensorType> row_tensors() const {
    std::map<std::string, ir::TensorType> found;
    const Expr column = pool_.index(group_.column.name);
    for (const RowStatement& s : group_.statements) {
      expr::for_each(s.value, [&](Expr e) {
        if (e.op() != EK::Read || e.args().empty() || e.args().back() != column) return;
        const auto it = buffers_.find(std::string(e.name().str()));
        if (it != buffers_.end()) found.insert(*it);
      });
      if (s.kind == Kind::Element) found.insert(*buffers_.find(std::string(s.target.str())));
    }
    std::vector<ir::TensorType> out;
    for (const auto& [name, type] : found) out.push_back(type);
    return out;
  }

  // Elements of the narrowest tensor in 16 bytes, at most 8.
  int64_t vector_width() const {
    int64_t width = 4;
    for (const ir::TensorType& t : row_tensors())
      width = std::max<int64_t>(width, std::min<int64_t>(16 / expr::bytes(t.dtype), 8));
    return width;
  }

  bool fits(int64_t columns) const {
    int64_t sum = 0;
    std::set<std::string> own;
    for (const RowStatement& s : group_.statements) own.emplace(s.target.str());
    std::set<std::string> read;
    const Expr column = pool_.index(group_.column.name);
    for (const RowStatement& s : group_.statements) {
      expr::for_each(s.value, [&](Expr e) {
        if (e.op() != EK::Read || e.args().empty() || e.args().back() != column) return;
        if (own.contains(std::string(e.name().str()))) return;
        if (read.emplace(e.name().str()).second) sum += tile_registers(e.dtype(), columns);
      });
    }
    return sum <= kRowRegisters;
  }

  const RowGroup& group_;
  const std::map<std::string, ir::TensorType>& buffers_;
  const expr::Facts& facts_;
  FreshNames& names_;
  expr::ExprPool& pool_;
};

}  // namespace

std::vector<KernelParts> lower_rows(const RowGroup& group, const std::set<std::string>& kept,
                                    const std::map<std::string, ir::TensorType>& buffers,
                                    const expr::Facts& facts, FreshNames& names,
                                    expr::ExprPool& pool) {
  std::vector<KernelParts> out;
  Variants variants(group, buffers, facts, names, pool);
  ir::Block plan;
  for (const Variant& v : variants.run(plan)) {
    const ir::Name name = names.make(fmt::format("{}_rows{}", variants.stem(), v.suffix));
    RowLowering lowering(group, kept, buffers, facts, v, name, names, pool);
    ir::Op kernel = ir::make(lowering.run());
    const Expr rows = lowering.count();
    const Expr grid =
        v.condition.is_true() ? rows : pool.select(v.condition, rows, pool.integer(0));
    out.push_back({std::move(plan), std::move(kernel), ir::make(matile::Launch{name, grid})});
    plan.clear();
  }
  return out;
}

}  // namespace nautilus::lower
