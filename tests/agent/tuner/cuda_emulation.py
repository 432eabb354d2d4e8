"""CUDA text as C++ that runs on a CPU: a fibre for each thread, one block after the other.

Every thread of a block runs to its next barrier or shuffle, then the next one does. What a kernel
computes shows, and what it forgets to wait for shows in part; how fast it is does not.
"""

import re

HEAD = r"""
#include <torch/extension.h>
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>
#include <ucontext.h>
#pragma GCC optimize("no-strict-aliasing")
#define __global__ static
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define C10_CUDA_KERNEL_LAUNCH_CHECK()
struct Place { unsigned x; };
static Place threadIdx, blockIdx, gridDim;
using cudaStream_t = int;
namespace c10 { namespace cuda {
struct CUDAGuard { template <class D> explicit CUDAGuard(D) {} };
} }
namespace at { namespace cuda {
static int getCurrentCUDAStream() { return 0; }
} }
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf expf
#define __logf logf
static float __fdividef(float x, float y) { return x / y; }
struct Fibre {
  ucontext_t start;
  jmp_buf here;
  std::vector<char> stack;
  bool begun, ended;
  int turn;
};
static std::vector<Fibre> fibres(1024);
static jmp_buf scheduler;
static std::function<void()> emulated_kernel;
static char emulated_slots[2][1024][8];
static void emulated_thread() {
  emulated_kernel();
  fibres[threadIdx.x].ended = true;
  _longjmp(scheduler, 1);
}
static void __syncthreads() { if (!_setjmp(fibres[threadIdx.x].here)) _longjmp(scheduler, 1); }
template <class T> __attribute__((noinline)) T __shfl_xor_sync(unsigned, T value, int d) {
  const int turn = fibres[threadIdx.x].turn++ % 2;
  std::memcpy(emulated_slots[turn][threadIdx.x], &value, sizeof(T));
  __syncthreads();
  T other;
  std::memcpy(&other, emulated_slots[turn][threadIdx.x ^ (unsigned)d], sizeof(T));
  return other;
}
static void emulate(
    unsigned blocks, int threads, size_t shared, cudaStream_t, std::function<void()> kernel) {
  TORCH_CHECK(threads <= 1024, "invalid configuration");
  gridDim.x = blocks;
  emulated_kernel = kernel;
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    for (int t = 0; t < threads; ++t) {
      fibres[t].stack.resize(65536);
      fibres[t].begun = fibres[t].ended = false;
      fibres[t].turn = 0;
    }
    for (volatile int running = threads; running > 0;) {
      running = 0;
      for (volatile int t = 0; t < threads; t = t + 1) {
        Fibre& fibre = fibres[t];
        if (fibre.ended) continue;
        running = running + 1;
        threadIdx.x = t;
        if (_setjmp(scheduler)) continue;
        if (fibre.begun) _longjmp(fibre.here, 1);
        fibre.begun = true;
        getcontext(&fibre.start);
        fibre.start.uc_stack.ss_sp = fibre.stack.data();
        fibre.start.uc_stack.ss_size = fibre.stack.size();
        fibre.start.uc_link = nullptr;
        makecontext(&fibre.start, emulated_thread, 0);
        setcontext(&fibre.start);
      }
    }
  }
}
""".strip()


def emulated(kernels: str) -> str:
    """The text of `cuda.load` with `cpp_sources` in place of `cuda_sources`."""
    source = kernels.partition('CUDA_SOURCES = r"""\n')[2].partition('"""')[0]
    source = re.sub(r"^#include .*\n|^#pragma unroll.*\n", "", source, flags=re.M)
    source = re.sub(r"(\w+)<<<(.*)>>>\((.*)\);", r"emulate(\2, [=] { \1(\3); });", source)
    source = source.replace(".is_cuda()", ".defined()")
    names = re.findall(r"functions=\[(.*)\]", kernels)[0]
    return f'''\
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
{HEAD}

{source}"""

kernels = load_inline(
    name="emulated", cpp_sources=[SOURCE.lstrip()], functions=[{names}], extra_cflags=["-O1"]
)'''
