
/* ---- Maps of the copy engine. */
static inline MapView map_view(const Frame* f, int map) {
  MapView view;
  memset(&view, 0, sizeof view);
  view.address = f->addresses[f->maps[map].tensor];
  return view;
}
/* Bytes that `count` steps along dimension k of the map's tensor are. */
static inline int64_t map_step(const Frame* f, int map, int k, int64_t count) {
  const MapInfo* m = &f->maps[map];
  return i_mul(i_mul(count, f->strides[f->tensors[m->tensor].first + k]), m->bytes);
}

/* The rules of cuTensorMapEncodeTiled, said in the caller's terms. */
static inline int map_flaw(const Frame* f, const MapInfo* m, const MapView* v) {
  const char* tensor = f->tensors[m->tensor].name;
  if (v->address == 0) return fail(f->error, 0, "tensor `%s`: the address is null", tensor);
  if (v->address % 16 != 0)
    return fail(f->error, 0, "tensor `%s`: the address, 0x%llx, is not a multiple of 16", tensor,
                (unsigned long long)v->address);
  if (v->strides[0] != m->bytes)
    return fail(f->error, 0,
                "map `%s` of tensor `%s`: the innermost dimension is not contiguous: its stride is "
                "%lld bytes, an element has %d",
                m->name, tensor, (long long)v->strides[0], m->bytes);
  for (int i = 0; i < m->rank; ++i) {
    if (v->dims[i] < 1 || v->dims[i] > (int64_t)1 << 32)
      return fail(f->error, 0,
                  "map `%s` of tensor `%s`: the extent of dimension %d, %lld, is not in 1 to 2^32",
                  m->name, tensor, i, (long long)v->dims[i]);
    if (i == 0 || v->dims[i] == 1) continue;
    if (v->strides[i] < 0 || v->strides[i] >= (int64_t)1 << 40 || v->strides[i] % 16 != 0)
      return fail(f->error, 0,
                  "map `%s` of tensor `%s`: the stride of dimension %d, %lld bytes, is not a "
                  "multiple of 16 in 0 to 2^40 - 1",
                  m->name, tensor, i, (long long)v->strides[i]);
  }
  return 0;
}

static inline int encode_map(const Frame* f, const MapInfo* m, const MapView* v,
                             unsigned char* to) {
  uint64_t dims[kMaxMapRank];
  uint64_t strides[kMaxMapRank];
  uint32_t box[kMaxMapRank];
  const uint32_t steps[kMaxMapRank] = {1, (uint32_t)m->step, 1, 1, 1};
  for (int i = 0; i < m->rank; ++i) {
    dims[i] = (uint64_t)v->dims[i];
    box[i] = ((uint32_t)m->box[i] - 1) * steps[i] + 1; /* that it reaches over */
    strides[i] = (uint64_t)v->strides[i];
    /* Never used by a copy, but the driver looks at it: what a packed tensor would have. */
    if (i > 0 && v->dims[i] == 1) {
      strides[i] = (strides[i - 1] * dims[i - 1] + 15) / 16 * 16;
      if (strides[i] >= (uint64_t)1 << 40) strides[i] = 16;
    }
  }
  const Driver* driver = &f->bundle->driver;
  const int status = driver->map_encode(to, m->element, (uint32_t)m->rank,
                                        (void*)(uintptr_t)v->address, dims, strides + 1, box, steps,
                                        0, m->swizzle, m->promotion, 0);
  return failed(driver, status, "the driver refuses a tensor map", f->error);
}

/* A map that cannot be made is a tensor that is not aligned: a plan with copies may serve it. */
static inline void put_map(Frame* f, int map, MapView* v, unsigned char* to) {
  const MapInfo* m = &f->maps[map];
  int is_empty = 0;
  for (int a = 0; a < m->rank; ++a) is_empty |= v->dims[a] == 0;
  /* A map has no empty dimensions. One element that is zero reads as the empty tensor does. */
  if (is_empty) {
    v->address = f->bundle->empty + (m->is_stored ? kEmptyBytes / 2 : 0);
    for (int a = 0; a < m->rank; ++a) {
      v->dims[a] = m->is_stored && a == 0 ? 16 / m->bytes : 1;
      v->strides[a] = a == 0 ? m->bytes : 16;
    }
  }
  int is_bad = 0;
  /* The copy engine stores whole 16 bytes, also behind the last element of a row. */
  if (m->is_stored && v->dims[0] * m->bytes % 16 != 0)
    is_bad = fail(f->error, 0,
                  "map `%s` of tensor `%s`: rows of %lld elements do not end at a multiple of 16 "
                  "bytes, and a store would write the rest of the last 16",
                  m->name, f->tensors[m->tensor].name, (long long)v->dims[0]);
  if (is_bad || map_flaw(f, m, v) || (!f->is_measured && encode_map(f, m, v, to)))
    mark_misaligned(f, m->tensor);
}
