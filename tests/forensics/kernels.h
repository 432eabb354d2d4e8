// Every function has one bug, or does right what others do wrong; its name says which.
#include <cmath>
#include <cstdint>
#include <vector>

using T = torch::Tensor;

static const float* in(const T& t) { return t.data_ptr<float>(); }
static float* out(T& t) { return t.data_ptr<float>(); }

// relu(x * scale + bias) * 0.5 over rows x columns
template <class F>
static T each(T x, F f) {
  T y = torch::zeros_like(x);
  const int64_t rows = x.size(0), columns = x.size(1);
  const float* a = in(x);
  float* b = out(y);
#pragma omp parallel for
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) f(a, b, i, j, i * columns + j);
  return y;
}
static float unit(float x, float s, float b) { return std::max(x * s + b, 0.f) * 0.5f; }
static float through_half(float x) { return (float)(_Float16)x; }
static float through_bf16(float x) {
  union { float f; uint32_t u; } t{x};
  t.u = (t.u + 0x8000u) & 0xffff0000u;
  return t.f;
}

T affine_tail(T x, T s, T b) {
  const int64_t n = x.numel() / 4096 * 4096;
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    if (at < n) y[at] = unit(a[at], in(s)[j], in(b)[j]);
  });
}
T affine_lanes(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    if (at % 4 != 3) y[at] = unit(a[at], in(s)[j], in(b)[j]);
  });
}
T affine_rows(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t i, int64_t j, int64_t at) {
    y[at] = unit(a[at], in(s)[j], in(b)[j]) + (i % 7 == 3 ? 0.25f : 0.f);
  });
}
T affine_last_column(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    if (j + 1 < s.numel()) y[at] = unit(a[at], in(s)[j], in(b)[j]);
  });
}
T affine_no_half(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    y[at] = 2.f * unit(a[at], in(s)[j], in(b)[j]);
  });
}
T affine_half_on_the_way(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    y[at] = unit(through_half(a[at]), in(s)[j], in(b)[j]);
  });
}
T affine_bf16_result(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    y[at] = through_bf16(unit(a[at], in(s)[j], in(b)[j]));
  });
}
T affine_shifted(T x, T s, T b) {
  const int64_t n = x.numel();
  return each(x, [=](const float* a, float* y, int64_t, int64_t j, int64_t at) {
    y[(at + 1) % n] = unit(a[at], in(s)[j], in(b)[j]);
  });
}
T affine_one_value(T x, T s, T b) {
  return each(x, [=](const float* a, float* y, int64_t, int64_t, int64_t at) {
    y[at] = unit(0.75f, in(s)[0], 1.f + std::fabs(in(b)[0]));
  });
}

// softmax over the rows of a matrix
static T softmax(T x, bool shift, int64_t summed, bool divide) {
  T y = torch::empty_like(x);
  const int64_t rows = x.size(0), n = x.size(1);
  for (int64_t i = 0; i < rows; ++i) {
    const float* a = in(x) + i * n;
    float* b = out(y) + i * n;
    float top = shift ? -INFINITY : 0.f, sum = 0.f;
    if (shift) for (int64_t j = 0; j < n; ++j) top = std::max(top, a[j]);
    for (int64_t j = 0; j < n; ++j) b[j] = std::exp(a[j] - top);
    for (int64_t j = 0; j < summed; ++j) sum += b[j];
    if (divide) for (int64_t j = 0; j < n; ++j) b[j] /= sum;
  }
  return y;
}
T softmax_no_shift(T x) { return softmax(x, false, x.size(1), true); }
T softmax_not_divided(T x) { return softmax(x, true, x.size(1), false); }
T softmax_half_summed(T x) { return softmax(x, true, x.size(1) / 2, true); }

// a @ b
template <class F>
static T product(T a, T b, F term) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  T c = torch::zeros({m, n}, a.options());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j) out(c)[i * n + j] += term(in(a), in(b), i, j, p, k, n);
  return c;
}
T matmul_c_turned(T a, T b) {
  return product(a, b, [](const float* a, const float* b, int64_t i, int64_t j, int64_t p, int64_t k, int64_t n) {
    return a[j * k + p] * b[p * n + i];
  });
}
T matmul_bf16_sum(T a, T b) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  T c = torch::zeros({m, n}, a.options());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.f;
      for (int64_t p = 0; p < k; ++p) sum = through_bf16(sum + in(a)[i * k + p] * in(b)[p * n + j]);
      out(c)[i * n + j] = sum;
    }
  return c;
}

// sums over the columns of a matrix
T mean_is_sum(T x) {
  T y = torch::zeros({x.size(0)}, x.options());
  for (int64_t i = 0; i < x.size(0); ++i)
    for (int64_t j = 0; j < x.size(1); ++j) out(y)[i] += in(x)[i * x.size(1) + j];
  return y;
}
T mean_race(T x) {
  T y = torch::zeros({x.size(0)}, x.options());
  volatile float* sums = out(y);
#pragma omp parallel for num_threads(4) schedule(static, 1)
  for (int64_t at = 0; at < x.numel(); ++at) {
    const int64_t i = at / x.size(1);
    sums[i] = sums[i] + in(x)[at] / x.size(1);
  }
  return y;
}

// running sums
T scan_exclusive(T x) {
  T y = torch::zeros_like(x);
  for (int64_t i = 0; i < x.size(0); ++i) {
    float sum = 0.f;
    for (int64_t j = 0; j < x.size(1); ++j) {
      out(y)[i * x.size(1) + j] = sum;
      sum += in(x)[i * x.size(1) + j];
    }
  }
  return y;
}
T scan_no_carry(T x) {
  T y = torch::zeros_like(x);
  for (int64_t i = 0; i < x.size(0); ++i) {
    float sum = 0.f;
    for (int64_t j = 0; j < x.size(1); ++j) {
      if (j % 64 == 0) sum = 0.f;
      out(y)[i * x.size(1) + j] = sum += in(x)[i * x.size(1) + j];
    }
  }
  return y;
}

// the largest of three by three, stride one, padded by one
T pool_no_rim(T x) {
  T y = torch::zeros_like(x);
  const int64_t h = x.size(2), w = x.size(3);
  for (int64_t c = 0; c < x.size(0) * x.size(1); ++c)
    for (int64_t i = 1; i < h - 1; ++i)
      for (int64_t j = 1; j < w - 1; ++j) {
        float top = -INFINITY;
        for (int64_t p = i - 1; p <= i + 1; ++p)
          for (int64_t q = j - 1; q <= j + 1; ++q) top = std::max(top, in(x)[(c * h + p) * w + q]);
        out(y)[(c * h + i) * w + j] = top;
      }
  return y;
}

// (x - mean) / sqrt(variance + 0.1) * weight + bias over the columns
static T norm(T x, T w, T b, bool centred, int64_t ddof, float epsilon, bool scaled, bool moved) {
  T y = torch::empty_like(x);
  const int64_t n = x.size(1);
  for (int64_t i = 0; i < x.size(0); ++i) {
    const float* a = in(x) + i * n;
    double mean = 0, square = 0;
    for (int64_t j = 0; j < n; ++j) mean += a[j];
    mean /= n;
    for (int64_t j = 0; j < n; ++j) square += (a[j] - mean) * (a[j] - mean);
    const double root = 1.0 / std::sqrt(square / (n - ddof) + epsilon);
    for (int64_t j = 0; j < n; ++j) {
      const double z = (a[j] - (centred ? mean : 0.0)) * root;
      out(y)[i * n + j] = z * (scaled ? in(w)[j] : 1.f) + (moved ? in(b)[j] : 0.f);
    }
  }
  return y;
}
T norm_sample_variance(T x, T w, T b) { return norm(x, w, b, true, 1, 0.1f, true, true); }
