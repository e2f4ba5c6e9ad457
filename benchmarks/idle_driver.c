// A libcuda.so.1 without a GPU, for host_work.py: memory is the host's; kernels and copies of samples are not done.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t word;
#define OK(name, ...) int name(__VA_ARGS__) { return 0; }

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
OK(cuStreamSynchronize, word stream)
OK(cuStreamWaitEvent, word stream, word event, unsigned flags)
int cuEventCreate(word *event, unsigned flags) { return give(event); }
OK(cuEventDestroy_v2, word event)
OK(cuEventRecord, word event, word stream)
OK(cuEventSynchronize, word event)
OK(cuEventQuery, word event)
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
static int copy(void *to, const void *from, size_t bytes) { return bytes < 65536 ? memcpy(to, from, bytes), 0 : 0; }
int cuMemcpyHtoDAsync_v2(word to, const void *from, size_t bytes, word stream) { return copy((void *)to, from, bytes); }
int cuMemcpyDtoHAsync_v2(void *to, word from, size_t bytes, word stream) { return copy(to, (const void *)from, bytes); }
int cuMemcpyDtoDAsync_v2(word to, word from, size_t bytes, word stream) { return 0; }
OK(cuMemsetD8Async, word to, unsigned char byte, size_t count, word stream)

int cuModuleLoadData(word *module, const void *code) { return give(module); }
OK(cuModuleUnload, word module)
int cuModuleGetFunction(word *function, word module, const char *name) { return give(function); }
OK(cuFuncSetAttribute, word function, int attribute, int value)
int cuFuncGetAttribute(int *value, int attribute, word function) { *value = 90; return 0; }
OK(cuLaunchKernel, word function, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned shared, word stream, void **arguments, void **more)
OK(cuLaunchKernelEx, const void *config, word function, void **arguments, void **more)
int cuGraphCreate(word *graph, unsigned flags) { return give(graph); }
OK(cuGraphDestroy, word graph)
int cuGraphAddKernelNode_v2(word *node, word graph, const void *before, size_t count, const void *parameters) { return give(node); }
OK(cuGraphAddDependencies_v2, word graph, const void *from, const void *to, const void *edges, size_t count)
int cuGraphInstantiateWithFlags(word *executable, word graph, uint64_t flags) { return give(executable); }
OK(cuGraphExecDestroy, word executable)
OK(cuGraphLaunch, word executable, word stream)
OK(cuGraphExecKernelNodeSetParams_v2, word executable, word node, const void *parameters)
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
