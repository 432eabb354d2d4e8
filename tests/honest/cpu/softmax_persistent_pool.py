"""Its own thread pool, asleep between calls.

problem: level1_4_softmax
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

class Pool {
 public:
  explicit Pool(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  // Calls f(0), ..., f(pieces - 1), on the caller's thread as well; returns when all are done.
  void run(int pieces, std::function<void(int)> f) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = std::move(f);
      next_ = 0;
      pieces_ = pieces;
      busy_ = static_cast<int>(threads_.size());
      ++round_;
    }
    wake_.notify_all();
    drain();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void drain() {
    for (int i = next_++; i < pieces_; i = next_++) job_(i);
  }
  void work() {
    long seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
      lock.unlock();
      drain();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::function<void(int)> job_;
  std::atomic<int> next_{0};
  int pieces_ = 0, busy_ = 0;
  long round_ = 0;
  bool stop_ = false;
};

torch::Tensor softmax(torch::Tensor x) {
  static Pool* pool = new Pool(std::max(1u, std::thread::hardware_concurrency()) - 1);
  const int64_t rows = x.size(0), cols = x.size(1), step = 64;
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  pool->run(static_cast<int>((rows + step - 1) / step), [=](int piece) {
    for (int64_t r = piece * step; r < std::min(rows, (piece + 1) * step); ++r) {
      const float* row = in + r * cols;
      const float top = *std::max_element(row, row + cols);
      float sum = 0.0f;
      for (int64_t c = 0; c < cols; ++c) sum += out[r * cols + c] = std::exp(row[c] - top);
      for (int64_t c = 0; c < cols; ++c) out[r * cols + c] /= sum;
    }
  });
  return y;
}
"""

extension = load_inline(
    name="softmax_pool",
    cpp_sources=source,
    functions=["softmax"],
    extra_cflags=["-O2", "-pthread"],
    extra_ldflags=["-lpthread"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax(x)
