/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of libnautilus: programs on the tensors of another framework in the same process
 * (bench/nautilus_lib.py). A program is a text of any level: math is scheduled and lowered, MA-tile
 * text is taken as it is. One kernel object must not be used by two threads at a time. */
#ifndef NAUTILUS_H
#define NAUTILUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Parses (a path, or the text itself if it has a line end), emits, compiles (cached on disk) and
 * loads. Null on failure, with the reason in `error`. */
void* nautilus_open(const char* text_or_path, const char* target, char* error, int error_bytes);
/* The same with values for static sizes of a program of the math language: "D=128,G=4". For other
 * sizes they are hints by which kernels are chosen; names that the program does not have are
 * ignored, so that one list can serve several programs. */
void* nautilus_open_sized(const char* text_or_path, const char* sizes, const char* target,
                          char* error, int error_bytes);
/* The same with the decisions of a schedule (docs/scheduling.md), a path or the text itself, in
 * place of the first one. One that does not apply is refused with the reason. */
void* nautilus_open_scheduled(const char* text_or_path, const char* sizes,
                              const char* schedule_text_or_path, const char* target, char* error,
                              int error_bytes);
/* As nautilus_open, with a hand-edited CUDA file in place of the emitted one. */
void* nautilus_open_source(const char* text_or_path, const char* cuda_path, const char* target,
                           char* error, int error_bytes);
/* 0 if the program has such a tensor of this rank. Its shape gives the program's sizes. */
int nautilus_bind(void* kernel, const char* tensor, void* device_pointer, int rank,
                  const long long* shape, const long long* strides_in_elements);
/* The same with the element type, by the language's name ("bf16", "f32"), so that a tensor of
 * another type is refused instead of read as if it had the right one. 0 ok; 1: no such tensor; 2:
 * the program declares another type; 3: another rank. */
int nautilus_bind_typed(void* kernel, const char* tensor, const char* dtype, void* device_pointer,
                        int rank, const long long* shape, const long long* strides_in_elements);
/* The declared element type of a tensor, or null. */
const char* nautilus_dtype(void* kernel, const char* tensor);
/* 0 if the program has such a scalar or size. */
int nautilus_set(void* kernel, const char* scalar_or_size, double value);
/* 0 if the plan's kernels were launched on the stream. Launches of one kernel object must follow
 * one another: they share its scratch memory. The first one allocates it and must not be captured.
 */
int nautilus_launch(void* kernel, void* cuda_stream, char* error, int error_bytes);
/* Waits for the device's work first. */
void nautilus_close(void* kernel);
/* The CUDA text of the first kernel; it lives as long as the kernel object. */
const char* nautilus_source(void* kernel);

#ifdef __cplusplus
}
#endif
#endif
