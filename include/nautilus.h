/* SPDX-License-Identifier: Apache-2.0 */
/* libnautilus: programs of the math language, and of every level below it, in another program.
 *
 *     nautilus_program* attention = NULL;
 *     nautilus_plan* plan = NULL;
 *     nautilus_open_options options = NAUTILUS_OPEN_OPTIONS_INIT;
 *     options.sizes = "D=128";
 *     if (nautilus_open_file("attention.naut", &options, &attention) != NAUTILUS_OK ||
 *         nautilus_prepare(attention, NULL, &plan) != NAUTILUS_OK)
 *       return fail(nautilus_last_error());
 *     ...
 *     nautilus_arguments arguments = NAUTILUS_ARGUMENTS_INIT;  // pointers, shapes, strides
 *     if (nautilus_launch(plan, &arguments, &launch_options) != NAUTILUS_OK) ...
 *
 * docs/c_interface.md is the guide. In short:
 *
 * - A program is what was opened: it can be asked about its tensors, sizes, kernels, source and
 *   schedule, and be run on host memory, all without a GPU. A plan is a program on a device.
 * - Every function that can fail returns a nautilus_status; what went wrong is then the text of
 *   nautilus_last_error(). No function ends the process, prints, or throws. A broken invariant of
 *   the compiler is NAUTILUS_ERROR_INTERNAL with the report; what that call held is lost (a thread
 *   that sleeps and its memory), the program object refuses everything but nautilus_close from then
 *   on, and other objects are not touched.
 * - All functions may be called from several threads at a time with the same objects, except that
 *   nautilus_close and nautilus_plan_close must be the last call for their object.
 * - Texts and structs that a program hands out live until nautilus_close; those of a plan until
 *   nautilus_plan_close.
 * - Structs that may grow begin with struct_size, which the caller sets (the _INIT macros do): what
 *   lies behind it counts as 0. Fields are never removed or moved within a major version.
 */
#ifndef NAUTILUS_H
#define NAUTILUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define NAUTILUS_API
#else
#define NAUTILUS_API __attribute__((visibility("default")))
#endif

/* ---- Version ---- */

#define NAUTILUS_VERSION_MAJOR 0
#define NAUTILUS_VERSION_MINOR 1
#define NAUTILUS_VERSION_PATCH 0
#define NAUTILUS_VERSION_NUMBER \
  (NAUTILUS_VERSION_MAJOR * 10000 + NAUTILUS_VERSION_MINOR * 100 + NAUTILUS_VERSION_PATCH)

/* Of the library that runs: as NAUTILUS_VERSION_NUMBER, and as "0.1.0". */
NAUTILUS_API int nautilus_version(void);
NAUTILUS_API const char* nautilus_version_text(void);

/* ---- Errors ---- */

typedef enum nautilus_status {
  NAUTILUS_OK = 0,
  /* A null pointer, an index out of range, a struct_size of 0: a mistake in the call itself. */
  NAUTILUS_ERROR_USAGE = 1,
  /* The program, the schedule or the options are wrong; the text has places and carets. */
  NAUTILUS_ERROR_PROGRAM = 2,
  /* A tensor, size or scalar of a call does not fit the program; the text names it, with what was
     expected and what came. */
  NAUTILUS_ERROR_ARGUMENT = 3,
  /* A launch without (enough) workspace; the text says how many bytes it needs. */
  NAUTILUS_ERROR_WORKSPACE = 4,
  /* The tensors of a launch need a kernel that was not prepared for (nautilus_prepare_for). */
  NAUTILUS_ERROR_NOT_PREPARED = 5,
  /* A file, the driver, the device compiler, or memory of the machine. */
  NAUTILUS_ERROR_SYSTEM = 6,
  /* Not in this build, or not for this program: an emulator, an oracle. */
  NAUTILUS_ERROR_UNSUPPORTED = 7,
  /* A broken invariant of the compiler: a bug. The text is the report. */
  NAUTILUS_ERROR_INTERNAL = 8
} nautilus_status;

/* The text of the last call of this thread that failed; never null. Valid until the thread's next
 * call of a function that fails, or its end. */
NAUTILUS_API const char* nautilus_last_error(void);

/* "NAUTILUS_ERROR_ARGUMENT"; "unknown" for other numbers. */
NAUTILUS_API const char* nautilus_status_name(int status);

/* ---- Element types ---- */

typedef enum nautilus_dtype {
  NAUTILUS_BOOL = 0, /* one byte, 0 or 1 */
  NAUTILUS_I8 = 1,
  NAUTILUS_U8 = 2,
  NAUTILUS_I32 = 3,
  NAUTILUS_I64 = 4,
  NAUTILUS_F8E4M3 = 5, /* largest value 448, no infinities ("e4m3fn") */
  NAUTILUS_F8E5M2 = 6,
  NAUTILUS_F16 = 7,
  NAUTILUS_BF16 = 8,
  NAUTILUS_F32 = 9,
  NAUTILUS_F64 = 10,
  NAUTILUS_TF32 = 11 /* f32 without its 13 low bits, in 4 bytes */
} nautilus_dtype;

/* The language's name, "bf16"; null for other numbers. */
NAUTILUS_API const char* nautilus_dtype_name(int dtype);
/* Of an element; 0 for other numbers. */
NAUTILUS_API int nautilus_dtype_bytes(int dtype);
/* The number of a name, -1 if there is no such type. */
NAUTILUS_API int nautilus_dtype_of_name(const char* name);

/* ---- Programs ---- */

typedef struct nautilus_program nautilus_program;
typedef struct nautilus_plan nautilus_plan;

/* flags of nautilus_open_options */
enum {
  /* Kernels are made when first asked for, not by nautilus_open: for host evaluation alone, where
     they are not needed. Errors of the schedule appear then. */
  NAUTILUS_OPEN_DEFERRED = 1,
  /* The first schedule, whatever trials say. */
  NAUTILUS_OPEN_UNTUNED = 2,
  /* `sizes` may have names that the program has not: one list for several programs. */
  NAUTILUS_OPEN_MORE_SIZES = 4
};

typedef struct nautilus_open_options {
  size_t struct_size;
  uint32_t flags;
  /* Values of static sizes, "D=128,G=4". For other sizes they are hints, by which schedules are
     chosen. A name that the program has not is an error, unless the flags say otherwise. */
  const char* sizes;
  /* The text of a schedule (docs/scheduling.md) in place of the tuned or the first one. */
  const char* schedule;
  /* "sm_90a"; null: what the program says, or the default. */
  const char* target;
  /* A database of trials (nautilus tune): null is $NAUTILUS_DB or that of the user. Where it has
     nothing for the program, trials that came with the library are looked at. */
  const char* database;
  /* Hand-edited CUDA text in place of what is emitted, for the kernels that it defines. */
  const char* cuda_source;
  /* What messages call the text; null: its path, or "program". */
  const char* name;
} nautilus_open_options;
#define NAUTILUS_OPEN_OPTIONS_INIT \
  { sizeof(nautilus_open_options), 0, 0, 0, 0, 0, 0, 0 }

/* Parses and checks a text of any level, chooses its schedule and makes its kernels, as text: no
 * device is touched. `options` may be null. */
NAUTILUS_API nautilus_status nautilus_open_text(const char* text,
                                                const nautilus_open_options* options,
                                                nautilus_program** program);
NAUTILUS_API nautilus_status nautilus_open_file(const char* path,
                                                const nautilus_open_options* options,
                                                nautilus_program** program);
/* Null is allowed. Plans of the program stay valid. */
NAUTILUS_API void nautilus_close(nautilus_program* program);

/* ---- What a program is ---- */

/* The name that the text gives the program, "attention". */
NAUTILUS_API const char* nautilus_program_name(const nautilus_program* program);

typedef struct nautilus_tensor_info {
  size_t struct_size;
  const char* name;
  int32_t dtype; /* nautilus_dtype */
  int32_t rank;
  int32_t is_output;       /* else an input */
  const char* const* dims; /* rank expressions of sizes: "B", "4*Hk", "128" */
} nautilus_tensor_info;
#define NAUTILUS_TENSOR_INFO_INIT \
  { sizeof(nautilus_tensor_info), 0, 0, 0, 0, 0 }

/* Inputs in the order of the text, then outputs in the order of the text. This is the order of
 * nautilus_arguments.tensors. */
NAUTILUS_API int32_t nautilus_tensor_count(const nautilus_program* program);
NAUTILUS_API nautilus_status nautilus_tensor_at(const nautilus_program* program, int32_t index,
                                                nautilus_tensor_info* info);
/* -1 if there is none of that name. */
NAUTILUS_API int32_t nautilus_tensor_index(const nautilus_program* program, const char* name);

typedef enum nautilus_value_kind {
  NAUTILUS_SIZE = 0,        /* of each call: from shapes, or given, or the hint */
  NAUTILUS_STATIC_SIZE = 1, /* fixed by nautilus_open: it cannot be given in a call */
  NAUTILUS_SCALAR = 2       /* of each call: given, or the default */
} nautilus_value_kind;

typedef struct nautilus_value_info {
  size_t struct_size;
  const char* name;
  int32_t kind;  /* nautilus_value_kind */
  int32_t dtype; /* nautilus_dtype; sizes are i64 */
  /* Of a size: its hint or, if static, its value. */
  int32_t has_hint;
  int64_t hint;
  /* Of a scalar: the expression of its default, "1 / sqrt(D)"; null if it must be given. */
  const char* default_text;
  /* Of a size: the first input, and the dimension of it, whose extent determines it, given the
     sizes that other inputs determine; -1 if the shapes of inputs do not: then a call must give it,
     or the hint is taken. */
  int32_t bound_tensor;
  int32_t bound_dimension;
} nautilus_value_info;
#define NAUTILUS_VALUE_INFO_INIT \
  { sizeof(nautilus_value_info), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Sizes, static ones among them, and scalars, in the order of the text. */
NAUTILUS_API int32_t nautilus_value_count(const nautilus_program* program);
NAUTILUS_API nautilus_status nautilus_value_at(const nautilus_program* program, int32_t index,
                                               nautilus_value_info* info);
/* -1 if there is none of that name. */
NAUTILUS_API int32_t nautilus_value_index(const nautilus_program* program, const char* name);

typedef enum nautilus_text_kind {
  /* The program as it was understood: equations with every extent and conversion explicit. */
  NAUTILUS_TEXT_PROGRAM = 0,
  /* The schedule that the kernels were made with; empty for a program that has none (kernels that
     came as such). */
  NAUTILUS_TEXT_SCHEDULE = 1,
  /* Where the schedule comes from, one line: given, the best of so many trials on which machine, or
     the first, and why no tuned one was taken. */
  NAUTILUS_TEXT_NOTE = 2,
  /* How the program became its kernels, for people (nautilus explain). */
  NAUTILUS_TEXT_EXPLAIN = 3,
  /* Warnings about the program and about kernels that are far slower than they need be at its
     hints, with their places (docs/fast_and_slow.md); empty if there are none. */
  NAUTILUS_TEXT_WARNINGS = 4,
  /* One CUDA file with all kernels. */
  NAUTILUS_TEXT_CUDA = 5,
  /* The kernels and their plan, as MA-tile text. */
  NAUTILUS_TEXT_KERNELS = 6
} nautilus_text_kind;

NAUTILUS_API nautilus_status nautilus_text(nautilus_program* program, nautilus_text_kind kind,
                                           const char** text);

typedef struct nautilus_kernel_info {
  size_t struct_size;
  const char* name;
  const char* form; /* "tile", "rows", "points", "parts"; "" if the kernel came as such */
  int32_t threads;  /* of a CTA */
  int32_t shared_bytes;
  const char* source; /* its CUDA file, complete in itself */
} nautilus_kernel_info;
#define NAUTILUS_KERNEL_INFO_INIT \
  { sizeof(nautilus_kernel_info), 0, 0, 0, 0, 0 }

/* All kernels that the plan may launch. */
NAUTILUS_API nautilus_status nautilus_kernel_count(nautilus_program* program, int32_t* count);
NAUTILUS_API nautilus_status nautilus_kernel_at(nautilus_program* program, int32_t index,
                                                nautilus_kernel_info* info);

/* ---- Arguments of a call ---- */

#define NAUTILUS_ABSENT (-1)
#define NAUTILUS_MAX_RANK 16

/* A tensor of the caller's. This struct never grows. */
typedef struct nautilus_tensor {
  void* data;           /* device memory for launches, host memory for nautilus_evaluate; questions
                           about shapes do not look at it */
  const int64_t* shape; /* rank extents */
  const int64_t* strides; /* in elements; null: dense, the last axis fastest */
  int32_t rank;           /* NAUTILUS_ABSENT: not given, in questions about shapes */
  int32_t dtype;          /* nautilus_dtype */
} nautilus_tensor;

/* A size or a scalar of the caller's: floats are read from `number`, all others from `integer`.
 * This struct never grows. */
typedef struct nautilus_value {
  int32_t index; /* of nautilus_value_at */
  int32_t reserved;
  int64_t integer;
  double number;
} nautilus_value;

typedef struct nautilus_arguments {
  size_t struct_size;
  const nautilus_tensor* tensors; /* in the program's order */
  int32_t tensor_count;           /* nautilus_tensor_count; questions about shapes may give fewer */
  int32_t value_count;
  const nautilus_value* values; /* those that are given, in any order */
} nautilus_arguments;
#define NAUTILUS_ARGUMENTS_INIT \
  { sizeof(nautilus_arguments), 0, 0, 0, 0 }

/* ---- Questions about a call, without a device ---- */

/* All sizes of a call: `sizes` has nautilus_value_count numbers; those of scalars are 0. */
NAUTILUS_API nautilus_status nautilus_solve_sizes(nautilus_program* program,
                                                  const nautilus_arguments* arguments,
                                                  int64_t* sizes);
/* The shape of tensor `index`, an output usually, in a call whose inputs have the shapes that are
 * given: `shape` has the rank of it. */
NAUTILUS_API nautilus_status nautilus_shape(nautilus_program* program,
                                            const nautilus_arguments* arguments, int32_t index,
                                            int64_t* shape);

typedef struct nautilus_launch_info {
  const char* kernel;
  const char* form; /* as in nautilus_kernel_info */
  int64_t grid;     /* CTAs; 0: the plan does not launch it at these sizes */
  int32_t threads;  /* of a CTA */
  int32_t reserved;
} nautilus_launch_info;

/* What a call launches, in order, for a device of so many multiprocessors (0: as the target says):
 * up to `capacity` of them, and how many there are in `count`. `launches` may be null if the
 * capacity is 0. */
NAUTILUS_API nautilus_status nautilus_launches(nautilus_program* program,
                                               const nautilus_arguments* arguments,
                                               int32_t multiprocessors,
                                               nautilus_launch_info* launches, int32_t capacity,
                                               int32_t* count);
/* Bytes of workspace that a call needs on such a device, if its tensors are aligned (else
 * nautilus_plan_workspace says it). */
NAUTILUS_API nautilus_status nautilus_workspace(nautilus_program* program,
                                                const nautilus_arguments* arguments,
                                                int32_t multiprocessors, uint64_t* bytes);

/* ---- Running on the host ---- */

typedef enum nautilus_evaluator {
  /* In fp64, blocked and threaded: what kernels are checked against. */
  NAUTILUS_EVALUATE_ORACLE = 0,
  /* In fp64, point by point as the equations are written: slow, the definition itself. */
  NAUTILUS_EVALUATE_DEFINITION = 1,
  /* The kernels themselves, on the emulated device: needs a C++ compiler at run time. */
  NAUTILUS_EVALUATE_EMULATOR = 2
} nautilus_evaluator;

typedef struct nautilus_evaluate_options {
  size_t struct_size;
  int32_t evaluator; /* nautilus_evaluator */
  int32_t threads;   /* 0: all */
  uint64_t seed;     /* of the emulator's order of threads */
  /* Of NAUTILUS_EVALUATE_ORACLE: how far a legal kernel may be from each element. Null, or one
     pointer for each tensor of the program, null or to as many doubles as the output has elements,
     dense. */
  double* const* bounds;
} nautilus_evaluate_options;
#define NAUTILUS_EVALUATE_OPTIONS_INIT \
  { sizeof(nautilus_evaluate_options), 0, 0, 0, 0 }

/* Runs the program on host memory: reads the inputs, writes the outputs. A float tensor may have
 * any float dtype here: inputs are rounded to the declared one, outputs from it to that of the
 * memory (f64 holds them all). `options` may be null. */
NAUTILUS_API nautilus_status nautilus_evaluate(nautilus_program* program,
                                               const nautilus_arguments* arguments,
                                               const nautilus_evaluate_options* options);

/* ---- Running on a device ---- */

/* Memory of the caller's, in the order of a stream: what is released may be handed out again at
 * once to work that follows on the same stream. Both are called within nautilus_launch, from its
 * thread. Null from `allocate` is a failure. Pointers have to be multiples of 256. */
typedef struct nautilus_allocator {
  void* (*allocate)(void* user, size_t bytes, void* cuda_stream);
  void (*release)(void* user, void* pointer, size_t bytes, void* cuda_stream);
  void* user;
} nautilus_allocator;

typedef struct nautilus_prepare_options {
  size_t struct_size;
  /* Where the calling thread has no current CUDA context: the device whose primary context is
     used. */
  int32_t device;
  /* Threads that may be in nautilus_launch at once before one of them allocates host memory. 0: 8.
   */
  int32_t threads;
  /* For launches without a workspace; null: those fail if they need one. */
  const nautilus_allocator* allocator;
  /* Arguments as in nautilus_prepare_for; null: of aligned tensors. */
  const nautilus_arguments* arguments;
} nautilus_prepare_options;
#define NAUTILUS_PREPARE_OPTIONS_INIT \
  { sizeof(nautilus_prepare_options), 0, 0, 0, 0 }

/* Compiles the kernels (NVRTC, or the disk cache) and loads them into the calling thread's current
 * CUDA context, in which all launches of the plan then run. `options` may be null. */
NAUTILUS_API nautilus_status nautilus_prepare(nautilus_program* program,
                                              const nautilus_prepare_options* options,
                                              nautilus_plan** plan);
/* Kernels move 16 bytes at a time, so tensors whose address or strides are no multiples of that
 * need others, with copies: this compiles those for launches with tensors as misaligned as these.
 * Nothing to do if all are aligned. */
NAUTILUS_API nautilus_status nautilus_prepare_for(nautilus_plan* plan,
                                                  const nautilus_arguments* arguments);
/* Waits for the device's work. Graphs that captured launches of the plan must be gone. Null is
 * allowed. */
NAUTILUS_API void nautilus_plan_close(nautilus_plan* plan);

/* Bytes of workspace that a launch with these arguments needs. */
NAUTILUS_API nautilus_status nautilus_plan_workspace(nautilus_plan* plan,
                                                     const nautilus_arguments* arguments,
                                                     uint64_t* bytes);

/* flags of nautilus_launch_options */
enum {
  /* The workspace was zero before its first use and since then only launches of this plan with the
     same sizes have used it, one after the other: nothing has to be cleared. Else a launch that
     needs zeros clears them on the stream. */
  NAUTILUS_LAUNCH_WORKSPACE_KEPT = 1
};

typedef struct nautilus_launch_options {
  size_t struct_size;
  uint32_t flags;
  void* stream;    /* CUstream or cudaStream_t of the plan's context; null: the default stream */
  void* workspace; /* device memory, a multiple of 256; for one launch at a time */
  uint64_t workspace_bytes;
} nautilus_launch_options;
#define NAUTILUS_LAUNCH_OPTIONS_INIT \
  { sizeof(nautilus_launch_options), 0, 0, 0, 0 }

/* Puts the kernels on the stream. All tensors are given; shapes and strides may be others in each
 * launch. No compilation, no device memory but the allocator's, no waiting: the launch may be the
 * first and may be captured into a graph. `options` may be null. */
NAUTILUS_API nautilus_status nautilus_launch(nautilus_plan* plan,
                                             const nautilus_arguments* arguments,
                                             const nautilus_launch_options* options);

typedef struct nautilus_plan_info {
  size_t struct_size;
  int32_t device;
  int32_t multiprocessors;
  const char* device_name;
  int32_t kernels;        /* loaded */
  int32_t cached_kernels; /* of them from the disk cache */
} nautilus_plan_info;
#define NAUTILUS_PLAN_INFO_INIT \
  { sizeof(nautilus_plan_info), 0, 0, 0, 0, 0 }
NAUTILUS_API nautilus_status nautilus_plan_describe(nautilus_plan* plan, nautilus_plan_info* info);

#ifdef __cplusplus
}
#endif
#endif
