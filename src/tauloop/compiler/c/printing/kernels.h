/* Kernels as CUDA, and the same text as C of the computer's own processor, where blocks and threads are loops.

   A kernel is written as loops over the samples, or over blocks and, within a block, over its threads. What a block
   shares is an array of the block's; a loop over threads ends before another one begins. What is TL_CALLED stays a
   function of its own: written at each of its places, large ones would not fit into the cache of instructions, and
   their numbers not into registers. The compiler does not know that TL_HIDDEN(x) is equal to x, so that it computes
   again what is written again. */
#ifdef __CUDACC__
#define restrict __restrict__
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000)
#define HUGE_VALF __int_as_float(0x7f800000)
#define TL_KERNEL extern "C" __global__ void
#define TL_CALLED static __noinline__
#define TL_HIDDEN(x) tl_hidden(x)
template <typename T> static T tl_hidden(T x)
{
    if constexpr (sizeof(T) == 8)
        asm volatile("" : "+d"(x));
    else
        asm volatile("" : "+f"(x));
    return x;
}
#define TL_SAMPLES(s, n) \
    for (size_t s = blockIdx.x * (size_t)blockDim.x + threadIdx.x; s < (n); s += gridDim.x * (size_t)blockDim.x)
#define TL_PART(s, first, last) \
    for (size_t s = (first) + blockIdx.x * (size_t)blockDim.x + threadIdx.x; s < (last); \
         s += gridDim.x * (size_t)blockDim.x)
#define TL_BLOCKS(b, n) for (size_t b = blockIdx.x; b < (n); b += gridDim.x)
#define TL_THREADS(t, n) for (int t = (int)threadIdx.x; t < (n); t += (int)blockDim.x)
#define TL_TOGETHER __syncthreads();
#define TL_SHARED(name, n) extern __shared__ double name[];
#else
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define TL_KERNEL void
#define TL_CALLED static
#define TL_HIDDEN(x) (x)
#define TL_SAMPLES(s, n) for (size_t s = 0; s < (n); ++s)
#define TL_PART(s, first, last) for (size_t s = (first); s < (last); ++s)
#define TL_BLOCKS(b, n) for (size_t b = 0; b < (n); ++b)
#define TL_THREADS(t, n) for (int t = 0; t < (n); ++t)
#define TL_TOGETHER
#define TL_SHARED(name, n) double name[n];
#endif
