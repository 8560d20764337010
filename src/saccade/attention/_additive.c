/* Additive attention in one pass through registers; additive.py calls it through ctypes.
 *
 *   forward    e[m,n]  = Σ_p v[p] (1 − 2 r)      with r = 1 / (1 + x[m,p] y[n,p]), x = e^{2q}, y = e^{2k}
 *   backward   dq[m,p] = 4 v[p] Σ_n g[m,n] (r − r²)
 *              dk[n,p] = 4 v[p] Σ_m g[m,n] (r − r²)
 *              dv[p]   = Σ_mn g[m,n] (1 − 2 r)
 *
 * x and y are finite and positive. Their product may overflow; r is then 0, as it should be. The cost is one division
 * for each pair and feature, in vectors of 256 bits, which divide faster than those of 512 where a processor has both.
 *
 * G groups (examples × heads, the head running fastest) lie one after the other; v has a row for each of H heads.
 * Threads share out queries (forward) or features (backward), so that no two write to the same place. They are
 * OpenMP's, and so torch's own where both were linked to one libgomp. dk comes in as zeros.
 */
#include <stdint.h>

#define CHUNK 256 /* features whose running sums stay in the L1 cache */
#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
#define HAS_WIDE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define WIDE
#define HAS_WIDE 1
#endif

/* One query against N keys. */
#define FORWARD(REAL) (const REAL *x, const REAL *y, const REAL *v, REAL *e, int64_t N, int64_t P)
/* One group, for the features from ≤ p < to. */
#define BACKWARD(REAL)                                                                               \
    (const REAL *g, const REAL *x, const REAL *y, const REAL *v, REAL *restrict dq, REAL *restrict dk, \
     REAL *restrict dv, int64_t M, int64_t N, int64_t P, int64_t from, int64_t to)

#define KERNELS(NAME, REAL)                                                                           \
    INLINE void forward_##NAME FORWARD(REAL) {                                                        \
        REAL total = 0;                                                                               \
        for (int64_t p = 0; p < P; p++) total += v[p];                                                \
        for (int64_t n = 0; n < N; n++) {                                                             \
            const REAL *yn = y + n * P;                                                               \
            REAL sum = 0;                                                                             \
            _Pragma("omp simd reduction(+ : sum)")                                                    \
            for (int64_t p = 0; p < P; p++) sum += v[p] / (1 + x[p] * yn[p]);                         \
            e[n] = total - 2 * sum;                                                                   \
        }                                                                                             \
    }                                                                                                 \
    INLINE void backward_##NAME BACKWARD(REAL) {                                                           \
        double total = 0;                                                                                  \
        for (int64_t i = 0; i < M * N; i++) total += g[i];                                                 \
        for (int64_t start = from; start < to; start += CHUNK) {                                           \
            const int64_t width = to - start < CHUNK ? to - start : CHUNK;                                 \
            double all[CHUNK] = {0}; /* Σ over m and n has too many terms for a float to add one by one */ \
            for (int64_t m = 0; m < M; m++) {                                                              \
                const REAL *xm = x + m * P + start;                                                        \
                REAL query[CHUNK] = {0}, row[CHUNK] = {0}; /* Σ over n */                                  \
                for (int64_t n = 0; n < N; n++) {                                                          \
                    const REAL *yn = y + n * P + start, ge = g[m * N + n];                                 \
                    REAL *restrict key = dk + n * P + start;                                               \
                    _Pragma("omp simd")                                                                    \
                    for (int64_t p = 0; p < width; p++) {                                                  \
                        const REAL r = 1 / (1 + xm[p] * yn[p]), gr = ge * r, slope = gr - gr * r;          \
                        query[p] += slope;                                                                 \
                        key[p] += slope;                                                                   \
                        row[p] += gr;                                                                      \
                    }                                                                                      \
                }                                                                                          \
                for (int64_t p = 0; p < width; p++) {                                                      \
                    dq[m * P + start + p] = 4 * v[start + p] * query[p];                                   \
                    all[p] += row[p];                                                                      \
                }                                                                                          \
            }                                                                                              \
            for (int64_t p = 0; p < width; p++) dv[start + p] = (REAL)(total - 2 * all[p]);                \
            for (int64_t n = 0; n < N; n++)                                                                \
                for (int64_t p = start; p < start + width; p++) dk[n * P + p] *= 4 * v[p];                 \
        }                                                                                                  \
    }                                                                                                      \
    static void forward_any_##NAME FORWARD(REAL) { forward_##NAME(x, y, v, e, N, P); }                \
    WIDE static void forward_wide_##NAME FORWARD(REAL) { forward_##NAME(x, y, v, e, N, P); }          \
    static void backward_any_##NAME BACKWARD(REAL) {                                                  \
        backward_##NAME(g, x, y, v, dq, dk, dv, M, N, P, from, to);                                   \
    }                                                                                                 \
    WIDE static void backward_wide_##NAME BACKWARD(REAL) {                                            \
        backward_##NAME(g, x, y, v, dq, dk, dv, M, N, P, from, to);                                   \
    }                                                                                                 \
    void saccade_additive_forward_##NAME(const REAL *x, const REAL *y, const REAL *v, REAL *e, int64_t G, \
                                         int64_t H, int64_t M, int64_t N, int64_t P, int threads) {   \
        void(*const kernel) FORWARD(REAL) = HAS_WIDE ? forward_wide_##NAME : forward_any_##NAME;      \
        _Pragma("omp parallel for num_threads(threads)")                                              \
        for (int64_t row = 0; row < G * M; row++) {                                                   \
            const int64_t g = row / M;                                                                \
            kernel(x + row * P, y + g * N * P, v + g % H * P, e + row * N, N, P);                     \
        }                                                                                             \
    }                                                                                                 \
    void saccade_additive_backward_##NAME(const REAL *g, const REAL *x, const REAL *y, const REAL *v, REAL *dq, \
                                          REAL *dk, REAL *dv, int64_t G, int64_t H, int64_t M, int64_t N, \
                                          int64_t P, int threads) {                                   \
        void(*const kernel) BACKWARD(REAL) = HAS_WIDE ? backward_wide_##NAME : backward_any_##NAME;   \
        const int64_t cuts = G % threads ? threads : 1; /* groups that share out evenly stay whole */ \
        _Pragma("omp parallel for num_threads(threads)")                                              \
        for (int64_t task = 0; task < G * cuts; task++) {                                             \
            const int64_t i = task / cuts, cut = task % cuts;                                         \
            kernel(g + i * M * N, x + i * M * P, y + i * N * P, v + i % H * P, dq + i * M * P, dk + i * N * P, \
                   dv + i * P, M, N, P, P * cut / cuts, P * (cut + 1) / cuts);                        \
        }                                                                                             \
    }

KERNELS(f32, float)
KERNELS(f64, double)
