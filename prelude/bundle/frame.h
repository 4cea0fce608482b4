
/* ---- A plan run for given tensors. */
enum { kInput, kOutput, kScratch, kTemp };
typedef struct TensorInfo {
  const char* name;
  int role;
  int argument; /* number among the caller's tensors, or -1 */
  int rank;
  int first; /* of its extents and strides among those of all tensors */
  int bytes; /* of an element */
} TensorInfo;
typedef struct MapInfo {
  const char* name;
  int tensor;
  int bytes;
  int is_stored;
  int rank;
  int element;
  int swizzle;
  int promotion;
  int step; /* of the second dimension: the box has every so many of its elements */
  int box[kMaxMapRank];
} MapInfo;
typedef struct Launch {
  int kernel;
  int grid;
  unsigned char* params;
} Launch;
typedef struct Frame {
  const Bundle* bundle;
  const TensorInfo* tensors;
  int tensor_count;
  const MapInfo* maps;
  uint64_t* addresses;
  int64_t* shapes;
  int64_t* strides;
  unsigned char* misaligned; /* of tensors: no kernel can use them as they are */
  int misaligned_count;
  Launch* launches;
  int launch_count;
  unsigned char* params; /* for the next launch */
  int is_measured;       /* only the workspace is asked for: nothing is encoded or launched */
  uint64_t workspace;
  uint64_t workspace_bytes; /* placed so far */
  uint64_t zero_bytes;      /* of them, those that are zero before the launches */
  Error* error;
} Frame;

typedef struct MapView {
  uint64_t address;
  int64_t dims[kMaxMapRank];
  int64_t strides[kMaxMapRank]; /* bytes */
} MapView;

static inline int bind(Frame* f, const Tensor* given) {
  for (int i = 0; i < f->tensor_count; ++i) {
    const TensorInfo* t = &f->tensors[i];
    if (t->argument < 0) continue;
    const Tensor* from = &given[t->argument];
    if (from->rank != t->rank)
      return fail(f->error, 0, "tensor `%s` has %d dimensions, %d were given", t->name, t->rank,
                  (int)from->rank);
    if (t->rank > 0 && !from->shape) return fail(f->error, 0, "tensor `%s` has no shape", t->name);
    int64_t step = 1;
    int is_empty = 0;
    for (int k = t->rank; k-- > 0;) {
      const int64_t extent = from->shape[k];
      if (extent < 0)
        return fail(f->error, 0, "dimension %d of tensor `%s` is %lld", k + 1, t->name,
                    (long long)extent);
      f->shapes[t->first + k] = extent;
      f->strides[t->first + k] = from->strides ? from->strides[k] : step;
      step = i_mul(step, extent);
      is_empty |= extent == 0;
    }
    f->addresses[i] = (uint64_t)(uintptr_t)from->data;
    if (from->data || is_empty) continue;
    if (!f->is_measured) return fail(f->error, 0, "tensor `%s` has no address", t->name);
    f->addresses[i] = kWorkspaceAlignment;
  }
  return 0;
}

/* Values that the caller may give: null if it did not. */
static inline int given_size(const Frame* f, const void* given, const char* name, int64_t* value,
                             int* is_known) {
  if (!given) return 0;
  memcpy(value, given, sizeof *value);
  *is_known = 1;
  if (*value >= 0) return 0;
  return fail(f->error, 0, "size `%s` is %lld", name, (long long)*value);
}
static inline int64_t given_int(const void* given) {
  int64_t value = 0;
  memcpy(&value, given, sizeof value);
  return value;
}
static inline double given_float(const void* given) {
  double value = 0;
  memcpy(&value, given, sizeof value);
  return value;
}

/* coefficient * size + rest is the extent; returns whether the size was found. */
static inline int solve(int64_t extent, int64_t coefficient, int64_t rest, int64_t* size,
                        int* is_known) {
  const int64_t difference = i_sub(extent, rest);
  if (coefficient == 0 || i_mod(difference, coefficient) != 0) return 0;
  const int64_t value = i_floor_div(difference, coefficient);
  if (value < 0) return 0;
  *size = value;
  *is_known = 1;
  return 1;
}

static inline int check_extent(const Frame* f, int tensor, int k, const char* text, int64_t wanted) {
  const TensorInfo* t = &f->tensors[tensor];
  if (wanted < 0) wanted = 0;
  const int64_t extent = f->shapes[t->first + k];
  if (extent == wanted) return 0;
  return fail(f->error, 0, "dimension %d of tensor `%s` is %s = %lld, the one given is %lld", k + 1,
              t->name, text, (long long)wanted, (long long)extent);
}

/* Gives a tensor of the plan its place in the workspace; its extents are there already. */
static inline int place(Frame* f, int tensor) {
  const TensorInfo* t = &f->tensors[tensor];
  int64_t step = 1;
  int64_t bytes = t->bytes;
  for (int k = t->rank; k-- > 0;) {
    int64_t* extent = &f->shapes[t->first + k];
    if (*extent < 0) *extent = 0;
    f->strides[t->first + k] = step;
    step = i_mul(step, *extent);
    if (*extent > 0 && bytes > ((int64_t)1 << 60) / *extent)
      return fail(f->error, 0, "`%s` of the workspace is too large", t->name);
    bytes = bytes * *extent;
  }
  f->addresses[tensor] = f->workspace + f->workspace_bytes;
  const uint64_t unit = kWorkspaceAlignment;
  f->workspace_bytes += ((uint64_t)bytes + unit - 1) / unit * unit;
  if (t->role == kScratch) f->zero_bytes = f->workspace_bytes;
  return 0;
}

/* A tensor that this launch cannot use; other launches and tensors are still looked at. */
static inline void mark_misaligned(Frame* f, int tensor) {
  if (!f->misaligned[tensor]) ++f->misaligned_count;
  f->misaligned[tensor] = 1;
}

/* Whether a kernel may move the tensor 16 bytes at a time. */
static inline int is_aligned(const Frame* f, int tensor) {
  const TensorInfo* t = &f->tensors[tensor];
  int ok = f->addresses[tensor] % 16 == 0;
  for (int k = 0; k < t->rank; ++k) {
    if (f->shapes[t->first + k] <= 1) continue;
    const int64_t stride = f->strides[t->first + k];
    ok &= k + 1 == t->rank ? stride == 1 : stride * t->bytes % 16 == 0;
  }
  return ok;
}
static inline void want_aligned(Frame* f, int tensor) {
  if (is_aligned(f, tensor)) return;
  fail(f->error, 0,
       "tensor `%s`: the kernel moves 16 bytes at a time, so the last axis must be contiguous, the "
       "address and all other strides multiples of 16 bytes",
       f->tensors[tensor].name);
  mark_misaligned(f, tensor);
}

/* The blocks of a launch: whole clusters; 0 if there is nothing to do, -1 if there are too many. */
static inline int grid_of(Frame* f, int64_t tiles, int cluster) {
  if (tiles <= 0) return 0;
  if (tiles <= INT32_MAX) tiles = (tiles + cluster - 1) / cluster * cluster;
  if (tiles <= INT32_MAX) return (int)tiles;
  fail(f->error, 0, "the grid is too large");
  return -1;
}

static inline unsigned char* add_launch(Frame* f, int kernel, int grid, int param_bytes) {
  Launch* launch = &f->launches[f->launch_count++];
  launch->kernel = kernel;
  launch->grid = grid;
  launch->params = f->params;
  f->params += (param_bytes + kMapBytes - 1) / kMapBytes * kMapBytes;
  return launch->params;
}

static inline void put_address(const Frame* f, unsigned char* to, int tensor) {
  memcpy(to, &f->addresses[tensor], sizeof(uint64_t));
}
static inline void put_stride(const Frame* f, unsigned char* to, int tensor, int k) {
  memcpy(to, &f->strides[f->tensors[tensor].first + k], sizeof(int64_t));
}
static inline int put_int(const Frame* f, unsigned char* to, const char* name, int64_t value) {
  if (value > INT32_MAX || value < INT32_MIN)
    return fail(f->error, 0, "`%s` is %lld, kernels count in 32 bits", name, (long long)value);
  const int32_t narrow = (int32_t)value;
  memcpy(to, &narrow, sizeof narrow);
  return 0;
}
static inline void put_float(unsigned char* to, double value) {
  const float narrow = (float)value;
  memcpy(to, &narrow, sizeof narrow);
}
static inline void put_long(unsigned char* to, int64_t value) { memcpy(to, &value, sizeof value); }
static inline void put_double(unsigned char* to, double value) { memcpy(to, &value, sizeof value); }
