/* A libcuda.so.1 without a GPU: memory is the host's, copies are done, kernels are not. What an encode takes with it is the host's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t word;
#define OK(name, ...) int name(__VA_ARGS__) { return 0; }

/* SIMULATE=1: launches take time on their streams, by kernel; events are done at their time. Streams do not slow each other. */
#include <time.h>
static int simulate = -1;
static double waited;        /* microseconds */
static double now(void) {    /* the process's own time, and what it waited: other programs on this machine do not matter */
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3 + waited;
}
double simulated_seconds(void) { return now() * 1e-6; }
static double at[1 << 16];   /* by handle: streams, events: until when; kernels, graphs: how long */
#define T(h) at[((h) >> 6) & 0xffff]
static int on(void) { if (simulate < 0) simulate = getenv("SIMULATE") != 0; return simulate; }
static void work(word stream, double us) { if (!on()) return; double n = now(); double *t = &T(stream); *t = (*t > n ? *t : n) + us; }
static void await_(word handle) {
  double left = on() ? T(handle) - now() : 0;
  if (left > 0) waited += left;
}
static double cost(const char *name) {
  static const struct { const char *name; double us; } table[] = {
    {"mode_decision_b", 657}, {"rd_candidates_b", 147}, {"refine", 60}, {"full_search", 60}, {"neighbour_vectors", 34}, {"mode_decision", 201},
    {"inter_residual_b", 77}, {"inter_residual", 118}, {"intra_given", 54}, {"intra_fixed", 54}, {"intra_8x8_cost", 3000}, {"intra_16", 3000}, {"rd_candidates", 166}, {"bipredict", 54}, {"intra_estimate", 34}, {"make_bins", 31},
    {"settle_qp", 10}, {"place_bins", 10}, {"compose_chunks", 10}, {"walk_states", 20}, {"deblock_tiles", 30}, {"interpolate", 20}, {"lookahead_search", 20}, {"lookahead_refine", 20},
  };
  for (unsigned k = 0; k < sizeof table / sizeof *table; ++k) if (!strncmp(name, table[k].name, strlen(table[k].name))) return table[k].us;
  return 5;
}
static word next_handle = 4096;
static int give(word *handle) { *handle = __atomic_add_fetch(&next_handle, 64, __ATOMIC_RELAXED); return 0; }

OK(cuInit, unsigned flags)
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "no GPU"); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 97 ? 227 << 10 : 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(word *context, int device) { return give(context); }
OK(cuDevicePrimaryCtxRelease_v2, int device)
static _Thread_local word contexts[16];
static _Thread_local int depth;
int cuCtxPushCurrent_v2(word context) { contexts[depth++ & 15] = context; return 0; }
int cuCtxPopCurrent_v2(word *context) { *context = depth ? contexts[--depth & 15] : 0; return 0; }
int cuCtxGetCurrent(word *context) { *context = depth ? contexts[(depth - 1) & 15] : 0; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
OK(cuCtxSynchronize, void)
int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0, *greatest = -5; return 0; }

int cuStreamCreate(word *stream, unsigned flags) { return give(stream); }
int cuStreamCreateWithPriority(word *stream, unsigned flags, int priority) { return give(stream); }
OK(cuStreamDestroy_v2, word stream)
int cuStreamSynchronize(word stream) { await_(stream); return 0; }
int cuStreamWaitEvent(word stream, word event, unsigned flags) { if (T(event) > T(stream)) T(stream) = T(event); return 0; }
int cuEventCreate(word *event, unsigned flags) { return give(event); }
OK(cuEventDestroy_v2, word event)
int cuEventRecord(word event, word stream) { double n = now(); T(event) = T(stream) > n ? T(stream) : n; return 0; }
int cuEventSynchronize(word event) { await_(event); return 0; }
int cuEventQuery(word event) { return on() && T(event) > now() ? 600 : 0; }
int cuEventElapsedTime(float *ms, word start, word end) { *ms = 0.001f; return 0; }
OK(cuStreamWaitValue64_v2, word stream, word address, uint64_t value, unsigned flags)

int cuMemAlloc_v2(word *address, size_t bytes) { *address = (word)aligned_alloc(256, (bytes + 511) / 256 * 256); memset((void *)*address, 0, bytes); return 0; }
int cuMemFree_v2(word address) { free((void *)address); return 0; }
int cuMemGetInfo_v2(size_t *left, size_t *total) { *left = (size_t)79 << 30, *total = (size_t)80 << 30; return 0; }
int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) { *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); return 0; }
int cuMemFreeHost(void *address) { free(address); return 0; }
OK(cuMemHostRegister_v2, void *address, size_t bytes, unsigned flags)
OK(cuMemHostUnregister, void *address)
int cuMemHostGetDevicePointer_v2(word *address, void *host, unsigned flags) { *address = (word)host; return 0; }
int cuPointerGetAttribute(void *value, int attribute, word address) { *(unsigned *)value = attribute == 2 ? 2 : 0; return 0; }
int cuMemcpyHtoDAsync_v2(word to, const void *from, size_t bytes, word stream) { memcpy((void *)to, from, bytes); work(stream, 2 + bytes / 25e3); return 0; }
int cuMemcpyDtoHAsync_v2(void *to, word from, size_t bytes, word stream) { memcpy(to, (void *)from, bytes); work(stream, 2 + bytes / 25e3); return 0; }
int cuMemcpyDtoDAsync_v2(word to, word from, size_t bytes, word stream) { return 0; }
OK(cuMemsetD8Async, word to, unsigned char byte, size_t count, word stream)

int cuModuleLoadData(word *module, const void *code) { return give(module); }
OK(cuModuleUnload, word module)
int cuModuleGetFunction(word *function, word module, const char *name) { give(function); T(*function) = cost(name); return 0; }
OK(cuFuncSetAttribute, word function, int attribute, int value)
int cuFuncGetAttribute(int *value, int attribute, word function) { *value = 90; return 0; }
int cuLaunchKernel(word function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared, word stream, void **arguments, void **more) { work(stream, T(function)); return 0; }
int cuLaunchKernelEx(const void *config, word function, void **arguments, void **more) { work(*(const word *)((const char *)config + 32), T(function)); return 0; }
int cuGraphCreate(word *graph, unsigned flags) { give(graph); T(*graph) = 0; return 0; }
OK(cuGraphDestroy, word graph)
int cuGraphAddKernelNode_v2(word *node, word graph, const void *before, size_t count, const void *parameters) { T(graph) += T(*(const word *)parameters); return give(node); }
OK(cuGraphAddDependencies_v2, word graph, const void *from, const void *to, const void *edges, size_t count)
int cuGraphInstantiateWithFlags(word *made, word graph, uint64_t flags) { give(made); T(*made) = T(graph); return 0; }
OK(cuGraphExecDestroy, word made)
int cuGraphLaunch(word made, word stream) { work(stream, T(made)); return 0; }
OK(cuGraphExecKernelNodeSetParams_v2, word made, word node, const void *parameters)
int cuGetErrorString(int code, const char **text) { *text = "an error"; return 0; }

#include <dlfcn.h>
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, void *status) {
  static const char *const forms[] = {"%s_v2", "%s"};
  char symbol[128];
  for (int k = 0; k < 2; ++k) {
    snprintf(symbol, sizeof symbol, forms[k], name);
    if ((*function = dlsym(RTLD_DEFAULT, symbol))) return 0;
  }
  return 500;
}
int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags) { return cuGetProcAddress_v2(name, function, version, flags, 0); }
