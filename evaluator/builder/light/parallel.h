// at::parallel_for. As in PyTorch's own header, it is parallel where -fopenmp is on.
#pragma once

#include "core.h"

#ifdef _OPENMP
#include <omp.h>

#include <atomic>
#include <exception>
#endif

namespace at {
inline namespace refinery_ {

inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }
inline int get_num_threads() { return ::refinery::num_threads(); }
inline int get_thread_num() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  if (begin >= end) return;
#ifdef _OPENMP
  const int64_t count = end - begin;
  if (count > grain_size && !omp_in_parallel() && get_num_threads() > 1) {
    std::atomic_flag failed = ATOMIC_FLAG_INIT;
    std::exception_ptr error;
    int64_t workers = get_num_threads();
    if (grain_size > 0) workers = std::min(workers, divup(count, grain_size));
#pragma omp parallel num_threads(workers)
    {
      const int64_t chunk = divup(count, omp_get_num_threads());
      const int64_t first = begin + omp_get_thread_num() * chunk;
      if (first < end) {
        try {
          f(first, std::min(end, first + chunk));
        } catch (...) {
          if (!failed.test_and_set()) error = std::current_exception();
        }
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  f(begin, end);
}

}  // namespace refinery_
}  // namespace at
