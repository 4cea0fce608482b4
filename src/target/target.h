// SPDX-License-Identifier: Apache-2.0
// What a machine is, as data: every number of a machine that a pass, the verifier, the cost model
// or the emulator needs. A program names its target (ir/target_of.h); no pass knows a machine by
// itself. docs/targets.md says what each group is for and how to add a target; machine.h has the
// parts of a machine, this file what kernels cost on it and from where on a form is worth it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "target/machine.h"

namespace nautilus::target {

// Code size of functions, in instructions. Functions exact to a few ulp contain code for ranges in
// which numbers hardly ever are; coarse ones do not.
struct FunctionCode {
  double sine;  // and cosine
  double power;
  double logarithm;
  double error_function;
  double hyperbolic_tangent;
  double sigmoid;
  double coarse_logarithm;
  double coarse_error_function;
  double coarse_hyperbolic_tangent;
};

// Slots of functions that are made of several special ones, in multiples of `special_slots`.
struct FunctionSlots {
  double sine;      // and cosine
  double near_one;  // log1p, expm1
  double power;
  double error_function;
  double hyperbolic_tangent;
  double sigmoid;
};

// Constants of the cost model: least-squares values from measured kernels, in cycles if nothing
// else is said.
struct Costs {
  double memory_bytes_per_cycle;  // of the whole machine
  double launch_cycles;           // of a kernel, until the first tile and after the last
  double next_kernel_cycles;      // of one more that begins while another runs

  // Matrix unit.
  double products_per_cycle;      // multiply-adds of 16-bit operands, of a multiprocessor
  double alone_factor;            // what power and issue add in loops of products alone
  ByGroups<double> mixed_factor;  // the same in loops with products and register work
  ByGroups<double> turn_cycles;  // of a group and step with register work: until its products start
  double shared_bytes_per_cycle;  // of a multiprocessor
  double copy_bytes_per_cycle;    // of a multiprocessor, out of the second-level cache
  double cluster_factor;          // CTAs that wait for each other
  double unaligned_factor;  // rows that are not a whole number of cache lines touch two lines each

  // Register work: issue slots of one warp for an element.
  double special_slots;           // exponentials, reciprocals, roots
  FunctionSlots functions;        // of those that are made of them
  double select_slots;            // of a selection by data; one by positions costs nothing
  double extreme_slots;           // maximum, minimum
  double speculated_slots;        // of an extreme value that most steps do not look for
  double cast_slots;              // to another dtype
  double load_slots;              // an element that is read from memory where it is used
  double take_slots;              // an element of a box that the copy engine loads
  double line_slots;              // of a piece of a row, which every row of a thread shares
  double row_slots;               // of a step: votes, barriers, values per row
  FunctionCode code;              // of functions without an instruction of their own
  double other_registers;         // of a thread, in addition to tiles
  double spill_cycles;            // of a step, for each register that is missing
  double crowded_factor;          // of a step beyond tiles.crowded_registers
  ByGroups<double> group_factor;  // how well groups fill the slots that others leave
  ByGroups<double> hiding;        // how well register work hides behind products, an exponent

  // A tile of a loop with register work, beside its steps.
  double tile_cycles;     // beginning and end
  double tile_steps;      // the same, in steps
  double result_cycles;   // of one result of a tile: rounded, staged and stored
  double start_cycles;    // until the ring of a loop of products is filled
  double step_floor;      // barriers and issue of one step
  double dynamic_cycles;  // fetching the number of a tile

  // Loops whose steps depend on data.
  int64_t live_one_of;  // of so many steps one is assumed to be left

  // Parts of a streamed axis.
  double part_cycles;      // combining one more part
  double exposed_steps;    // of a part: until the first data are there, and after the last
  double last_tile_bytes;  // of parts that the last tile combines in a cycle
};

// Registers of a thread in addition to its tiles: addresses, cursors, loop variables, temporaries.
// How many the assembler needs is not known before it runs, so each question has its own number.
// The cost of a step that spills uses one more (costs.other_registers), which is fitted to
// measurements.
struct SpareRegisters {
  int64_t checked;  // a kernel with fewer is refused
  int64_t tried;    // sizes that leave fewer are not candidates
  int64_t mixed;    // the same with register work between the products of one or two groups
  int64_t taken;    // boxes are taken early where at least this many are left
};

// Tile kernels: what is worth trying and keeping.
struct Tiles {
  int64_t groups;                  // that share a tile, at most
  int64_t usual_groups;            // the same of the sizes tried first
  int64_t product_groups;          // the same of products alone
  int64_t step;                    // of the streamed axis: of products alone, and a short one
  int64_t deep_step;               // the shortest, where products in the loop are deep
  std::vector<int64_t> tap_steps;  // others, where each step is one tap of many
  // Rows are another axis if no more than 1 / this of a tile's rows exist: of sums of several
  // products, and of products alone.
  int64_t least_filled;
  int64_t least_filled_alone;
  std::vector<int64_t> few_columns;  // of tiles of such products, where there are no more
  int64_t most_step;                 // the longest that is tried
  std::vector<int64_t> usual_steps;  // tried first, the longest first
  std::vector<int64_t> columns;      // of tiles that hold a part of an axis, the widest first
  // Of a tile that one group computes alone, where groups alternate.
  std::vector<int64_t> whole_rows;
  std::vector<int64_t> whole_columns;  // the same
  int64_t cluster_extent;          // rows and columns of a tile, at least, that is worth sharing
  int64_t stage_columns;           // of results that wait in shared memory, at most
  int64_t most_registers;          // of a thread that computes, whatever the loaders leave
  SpareRegisters spare;            // registers of a thread that its tiles leave
  int64_t crowded_registers;       // in tiles: beyond it a step takes costs.crowded_factor
  int64_t barrier_bytes;           // of shared memory: more than all barriers of a kernel need
  int64_t whole_extent;            // longest axis that is held whole in a tile
  int64_t whole_depth;             // the same if products in the loop reduce it
  size_t kernels;                  // for one group of statements, at most
  size_t long_kernels;             // the same where even short steps are long code
  double worth_on_average;         // one more kernel pays if it gains so much, as a share
  double worth_somewhere;          // or so much at one problem
  double long_code;                // instructions of a step: beyond it the assembler is slow
  int64_t most_slots;              // of a ring of small tiles
  int64_t slots_alone;             // of loops with other work, for one group
  int64_t product_slots;           // of operands of products, at least, before others have two
  int64_t small_slots;             // of a ring of small slots in a loop
  int64_t resident_slots;          // of a ring, where tiles share a multiprocessor
  int64_t most_stages;             // buffers of a store that a schedule may ask for
  int64_t small_slot_bytes;        // a ring of such slots may always have a few
  int64_t least_loader_registers;  // of a thread of a loading role
  int64_t busy_loader_registers;   // the same if it numbers tiles or serves a cluster
  int64_t raster_rows;             // rows of tiles that are walked together
  int64_t most_raster_rows;        // that a schedule may ask for
  int64_t taken_bytes;             // of a row of a box that is taken to registers
  int64_t hoisted_columns;         // of a value of the columns that gets a tile of its own
  int64_t fold_chains;             // partial results of a thread's part of a reduction
  int64_t most_chains;             // that a schedule may ask for
  int64_t chained_terms;           // of a thread for a result, at least, where it has several
  int64_t many_positions;  // of a thread in a row: from here on they are computed anew, not kept
  int64_t speculating_groups;  // at least, for references that are guessed
  double speculating_share;    // of a thread's registers in the tiles of a step's products
  int64_t speculating_depth;   // depth of the product and columns of the others
  int64_t reference_lag;       // powers of two that a lazy reference may lag
};

// Parts of a streamed axis, each with tiles of its own.
struct Parts {
  int64_t long_axis;       // steps: shorter ones are over before a second kernel has started
  int64_t few_states;      // values of a tile that its last part combines at once
  int64_t filled;          // rounds of CTAs that fill `filled` of `filled_of` of the machine
  int64_t filled_of;       // stay as few as they are
  int64_t rounds;          // of shorter parts, where they do not
  int64_t worth_a_round;   // steps of a part that are worth a round of CTAs
  double worth_other;      // sizes other than the usual ones need at most this share of the time
  double worth_smaller;    // the same for blocks of rows; their usual sizes are not measured
  int64_t least_steps;     // of a part: with so many, handing over its states is always worth it
  int64_t points_of_last;  // that the last tile combines at a time
  int64_t loads_of_last;   // of a thread in flight, for a loop over parts
  int64_t parts_of_last;   // of a step of that loop
};

// Kernels that work along rows.
struct Rows {
  int64_t threads;                       // of a group
  int64_t registers;                     // of a thread for what is kept of a row
  int64_t early_registers;               // for what is loaded early and could be loaded later
  int64_t groups;                        // that share a long row
  int64_t group_columns;                 // longer rows are shared by them
  int64_t pair_registers;                // of a thread of such groups, if two CTAs shall fit
  int64_t alone_registers;               // the same if one shall
  int64_t spare_registers;               // of those, the ones that tiles leave free
  int64_t resident_least;                // registers of a thread that keeps its row, at least
  int64_t walking_least;                 // of one that walks along it
  std::vector<int64_t> columns;          // kept rows, for programs that leave their number open
  std::vector<int64_t> shifted_columns;  // the same of rows that are no whole vectors
  std::vector<int64_t> short_columns;    // the same of rows that a few lanes of a warp keep
  int64_t lane_vectors;                  // of such a row, that a lane has
  int64_t lane_elements;                 // the same where rows are no whole vectors
  int64_t most_columns;                  // of a row that several groups keep
  std::vector<int64_t> ctas;             // of a cluster that keeps a longer row, fewest first
  std::vector<double> pair_shares;       // of the memory's speed that each of these reaches, if two
                                         // CTAs fit a multiprocessor
  std::vector<double> alone_shares;      // the same if one fits
  double walk_share;                     // the same of rows that are walked over
  int64_t columns_of_group;              // of a row that one group keeps
  int64_t positions_of_group;            // of a group among several, if columns are used as numbers
  int64_t least_columns;                 // of a row that is worth a CTA
  int64_t least_vector;                  // neighbours of a thread, where a row is loaded in vectors
  int64_t most_vector;                   // the same at most
  int64_t turn_elements;                 // of a thread in a step along a row, one by one
  int64_t walked_rows;                   // that a step loads, of reductions over several axes
  int64_t most_walked_rows;              // that a schedule may ask for
  int64_t ahead_bytes;                   // of rows asked for early, for each multiprocessor
  int64_t ahead_row;                     // bytes of a row, at most, that is asked for early
  int64_t ahead_row_of_groups;           // the same where groups share it
  int64_t other_registers;      // registers of a thread in addition to tiles: addresses, limits
  int64_t other_per_tile;       // more for each tile but the first two
  int64_t late_pieces;          // of a row, at most, that is loaded where it is used
  std::vector<int64_t> pieces;  // columns of pieces of long rows, where rows are few; longest first
  int64_t resident_pieces;      // for each multiprocessor, that leave no need for shorter ones
};

// Kernels with a thread for each point.
struct Points {
  int64_t threads;            // of a CTA
  int64_t each;               // points of a thread, where there are many
  int64_t many;               // points that are widened
  int64_t part_lanes;         // lanes of a point that share a loop over parts
  int64_t many_parts;         // parts that are worth it
  int64_t few;                // points that it is worth it for
  int64_t line;               // most points of a thread, along the last axis
  int64_t transposed_points;  // most points of a thread that transposes a tensor
  int64_t lines_across;    // neighbouring threads along the last axis, where a tensor is transposed
  double worth_narrower;   // of the share of threads with a point, that narrower tiles gain
  int64_t unrolled;        // most turns of a window with all points of a thread, written one by one
  int64_t loads;           // of a thread in flight, for loops with an unknown number of turns
  int64_t parts_turns;     // of a loop over parts, with their loads in flight together
  int64_t worth_turns;     // of a loop, at least: fewer are left to the compiler of the text
  int64_t most_unrolled;   // turns of a loop that a line may ask for
  int64_t window_threads;  // of a multiprocessor, that kernels of windows leave registers for
  int64_t patch_side;      // most points of a thread along one axis of a patch
  int64_t patch_points;    // most of all its points: each has a number in registers
  int64_t patch_usual;     // that it has by rule
  int64_t patch_turns;     // of windows with all points of a patch, written one by one
  int64_t patch_threads;   // of a multiprocessor, that patches leave registers for
  int64_t held_registers;  // of a thread, for elements that loops read several times
  int64_t walk_each;       // most elements of a thread in a round of a scan
  int64_t walk_vectors;    // that it usually has
  int64_t walk_threads;    // that walk along a long row
  int64_t walk_rounds;     // at least, of so many threads
  int64_t first_bytes;     // of a thread that writes what terms are combined with
  int64_t first_threads;   // of a CTA that does
  int64_t sort_each;       // most elements of a lane that puts a row in order
  int64_t sort_usual;      // that it has by rule
  int64_t sort_row;        // most elements of such a row
  int64_t few_places;      // places before this one are all walked over, beyond the row, too
  int64_t merge_each;      // neighbours of a run in a thread that merges
  int64_t merge_runs;      // that are merged at once; of more, pairs are before
  int64_t private_bytes;   // of a result, copies of which CTAs have in shared memory
  int64_t walk_resident;   // threads of a multiprocessor that scans leave registers for
  int64_t column_piece;    // elements of a piece of an axis that is not contiguous
  uint32_t column_nodes;   // of the expression of an element in such a walk; larger: two kernels
  int64_t column_pieces;   // that are worth it, at least
  int64_t parts_of_one;    // parts of a long reduction to one number
  int64_t parts_of_many;   // of one to many numbers
  int64_t long_reduction;  // elements that are worth parts
  int64_t few_results;     // results; a reduction with more of them needs no parts
};

// Costs of row and point kernels, to choose among them (choose/nest_cost.h): cycles unless another
// unit is given.
struct NestCosts {
  int64_t small_extent;  // assumed values of unknown sizes
  int64_t usual_extent;
  int64_t large_extent;
  double strided_lines;   // of the cache, that a warp touches if its lanes read far from each other
  double same_lines;      // the same if its lanes read one element
  double scatter_reads;   // what combining an element in memory takes, in readings of one
  double meeting_cycles;  // between two terms that memory combines with one element
  double cache_bytes;     // that a multiprocessor reads from the second-level cache in a cycle
  double operation_slots;      // of a thread for an operation of a value
  double function_operations;  // that a function or a division counts as
  double thread_cycles;        // until the first load of a thread is there
  double turn_cycles;          // of a loop of a thread that waits for nothing but its loads
  double row_cycles;           // of a row, from its loads to its stores
  double row_turn_cycles;      // of a step along a row that is walked over
  double reduction_cycles;     // of one reduction of a row
  double lane_operations;      // of a lane that shares a short row: to find it, to load and store
  double resident_rows;        // rows in flight on a multiprocessor
  double sort_own;             // slots of a key for a step of sorting: inside a thread,
  double sort_lanes;           // between lanes of a warp,
  double sort_shared;          // and in shared memory
  double sort_step_cycles;     // that a step between lanes takes at least
  double search_step;          // slots of a thread for a step of a search in memory
  double search_step_cycles;   // that it takes at least
  double patch_share;          // of the slots for instructions that patches use
  double place_slots;          // of a thread for the place of an element that a patch loads
  double single_share;         // of the memory's speed, where a thread loads one element at a time
  double empty_tiles;  // share of a tile that is filled: with less, other forms are considered
  double worth_without_tiles;  // other forms are chosen below this share of the time with tiles
};

// Rewrites of the equations.
struct Algebra {
  double worth_limbs;       // share of the time of scalar code; sums of groups, too
  double worth_apart;       // share of the time of two passes over memory
  int64_t unrolled_points;  // of a small sum: each has an accumulator of its own
  int64_t short_row;        // of an argmax that is not rewritten
  int64_t tile_elements;    // columns of an operand, at least, that is worth a copy
  double copied_steps;      // steps of a product that take as long as a copy of what a step reads
  int64_t chunk_steps;      // of a chunk of a scan whose decays are data
  int64_t long_chunk;       // the same with decays that are known, or none
  int64_t most_chunk;       // that a line may ask for
  int64_t piece_columns;    // of a product, that its kernel reduces
  int64_t rank_piece;  // at least, of an axis whose elements with few before them are asked for
  int64_t rank_step;   // of which such a piece is a multiple
  int64_t rank_row;    // elements of a row, at most, that is not divided into pieces
  int64_t most_ranks;  // that are looked for in pieces
};

// Thresholds of warnings (driver/report/warnings.h).
struct Cliffs {
  double intermediate_bytes;  // of a tensor that passes through memory
  int64_t few_threads;        // of a launch, that leave most of the machine idle
  double thread_bytes;        // that each of those reads
  double filled_tiles;        // share of a tile: with less, nearly all work is wasted
  size_t code_bytes;          // of a kernel
};

struct Target {
  std::string_view name;
  std::string_view architecture;  // for the device compiler; empty: it runs only in the emulator
  Limits limits;
  Matrix matrix;
  Copies copies;
  Board board;
  Memory memory;
  Costs costs;
  Tiles tiles;
  Parts parts;
  Rows rows;
  Points points;
  NestCosts nests;
  Algebra algebra;
  Cliffs cliffs;
};

const Target& sm_90a();
const Target& toy();  // for tests: a machine that does not exist
// The target of programs that name none.
const Target& default_target();

// All targets; null if there is none of that name.
const std::vector<const Target*>& targets();
const Target* find_target(std::string_view name);

}  // namespace nautilus::target
