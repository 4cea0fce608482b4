
/* ---- A program: its plan, and plans with aligned copies of some tensors. */
typedef int (*PlanFunction)(const Bundle*, const Tensor*, const void* const*, const Call*, size_t*,
                            unsigned char*, Error*);
typedef struct Variant {
  const unsigned char* copied; /* of the first plan's tensors */
  PlanFunction run;
} Variant;

/* Runs the first plan, or a later one for tensors that the first cannot use. `misaligned` has room
 * for the tensors of every plan; plans with few copies come first. */
static inline int run_plans(const Variant* plans, int plan_count, const TensorInfo* tensors,
                            int tensor_count, unsigned char* misaligned, const Bundle* bundle,
                            const Tensor* given, const void* const* values, const Call* call,
                            size_t* workspace_bytes, Error* error) {
  int status = plans[0].run(bundle, given, values, call, workspace_bytes, misaligned, error);
  if (status != kMisaligned) return status;
  for (int i = 1; i < plan_count; ++i) {
    int serves = 1;
    for (int t = 0; t < tensor_count; ++t) serves &= !misaligned[t] || plans[i].copied[t];
    if (!serves) continue;
    clear(error);
    memset(misaligned, 0, (size_t)tensor_count);
    status = plans[i].run(bundle, given, values, call, workspace_bytes, misaligned, error);
    return status ? kFailed : kDone;
  }
  if (!error) return kFailed;
  size_t length = strlen(error->text);
  const char* join = "; build the bundle with --copies ";
  for (int t = 0; t < tensor_count && length < sizeof error->text; ++t) {
    if (!misaligned[t]) continue;
    const int n =
        snprintf(error->text + length, sizeof error->text - length, "%s%s", join, tensors[t].name);
    length += n > 0 ? (size_t)n : 0;
    join = "+";
  }
  return kFailed;
}

/* A call of a program from outside: in the bundle's context. */
static inline int run_in_context(const Variant* plans, int plan_count, const TensorInfo* tensors,
                                 int tensor_count, unsigned char* misaligned, const Bundle* bundle,
                                 const Tensor* given, const void* const* values, const Call* call,
                                 size_t* workspace_bytes, Error* error) {
  clear(error);
  if (!bundle || !given) return fail(error, 0, "no %s given", bundle ? "arguments" : "bundle");
  const int is_pushed = workspace_bytes ? 0 : enter(bundle);
  const int status = run_plans(plans, plan_count, tensors, tensor_count, misaligned, bundle, given,
                               values, call, workspace_bytes, error);
  leave(bundle, is_pushed);
  return status;
}
