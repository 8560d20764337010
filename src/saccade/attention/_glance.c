/* One look in one call, for the steps of a decoder; glance.py calls it through ctypes.
 *
 *   e[n] = factor Σ_p q[p] k[n,p]          dot and its like: without w
 *   e[n] = Σ_p w[p] tanh(q[p] + k[n,p])    additive and concat: q and k are projected, w is the direction
 *   e[n] = Σ_p w[p,n] q[p]                 location: without keys, w has L columns, of which the first N count
 *   c[d] = Σ_n softmax(e)[n] values[n,d]   over the places that the mask allows; 0 where it allows none
 *
 * At a step there is little to compute and much to call: this saves the calls. B examples of M queries each.
 */
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#pragma GCC target("avx2,fma") /* the whole file: saccade_glance_runs is asked before anything else */
#define RUNS (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define RUNS 1
#endif

#define LONGEST 4096 /* keys; glance.py knows it too */
#define LANES 8
#define BLOCK 8 /* vectors of running sums, in registers */
#define ROWS 4
#define INLINE static inline __attribute__((always_inline))

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

INLINE Floats at(const float *x) {
    Floats y;
    memcpy(&y, x, sizeof y);
    return y;
}

INLINE Floats where(Ints yes, Floats x, Floats y) { return (Floats)(((Ints)x & yes) | ((Ints)y & ~yes)); }

/* e^x = 2^n e^r with |r| ≤ ln 2 / 2, to about 2 units in the last place; under e^-87 it stays there. */
INLINE Floats exponential(Floats x) {
    x = where(x < -87.0f, (Floats){} - 87.0f, x);
    x = where(x > 88.0f, (Floats){} + 88.0f, x);
    const Floats shifted = x * 1.44269504f + 12582912.0f; /* so great that its last bits are n, rounded */
    const Floats n = shifted - 12582912.0f, r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    Floats e = 1.9875691500e-4f * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * (r * r) + r + 1.0f;
    return e * (Floats)(((Ints)shifted + 127) << 23); /* 2^n: the other bits are shifted out */
}

INLINE Floats tanh_of(Floats x) {
    const Floats e = exponential(2 * x);
    return (e - 1) / (e + 1);
}

INLINE float sum_of(Floats x) {
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

INLINE float dot(const float *q, const float *k, int64_t P) {
    Floats sums[2] = {}; /* one sum would wait for itself at every addition */
    int64_t p = 0;
    for (; p + 2 * LANES <= P; p += 2 * LANES)
        for (int i = 0; i < 2; i++) sums[i] += at(q + p + i * LANES) * at(k + p + i * LANES);
    float sum = sum_of(sums[0] + sums[1]);
    for (; p < P; p++) sum += q[p] * k[p];
    return sum;
}

INLINE float additive(const float *q, const float *k, const float *w, int64_t P) {
    Floats sum = {};
    int64_t p = 0;
    for (; p + LANES <= P; p += LANES) sum += at(w + p) * tanh_of(at(q + p) + at(k + p));
    if (p < P) { /* the last few, beside zeros */
        float rest[3][LANES] = {{0}};
        const size_t size = sizeof(float) * (P - p);
        memcpy(rest[0], q + p, size), memcpy(rest[1], k + p, size), memcpy(rest[2], w + p, size);
        sum += at(rest[2]) * tanh_of(at(rest[0]) + at(rest[1]));
    }
    return sum_of(sum);
}

/* The scores of a few queries together, so that w is read once for all of them; fills e up to a multiple of LANES. */
INLINE void location(const float *q, const float *w, float e[ROWS][LONGEST + LANES], int64_t rows, int64_t N, int64_t P,
                     int64_t L) {
    const float *query[ROWS];
    for (int i = 0; i < ROWS; i++) query[i] = q + (i < rows ? i : 0) * P; /* where there are fewer, one more often */
    for (int64_t n = 0; n < N; n += LANES) {
        const int64_t width = L - n < LANES ? L - n : LANES;
        const int64_t room = P * L - n - LANES; /* rows of w from which a whole vector can be read */
        const int64_t safe = room < 0 ? 0 : room / L + 1;
        Floats sums[ROWS] = {};
        for (int64_t p = 0; p < safe; p++) {
            const Floats column = at(w + p * L + n);
            for (int i = 0; i < ROWS; i++) sums[i] += query[i][p] * column;
        }
        for (int64_t p = safe; p < P; p++) {
            float rest[LANES] = {0};
            memcpy(rest, w + p * L + n, sizeof(float) * width);
            for (int i = 0; i < ROWS; i++) sums[i] += query[i][p] * at(rest);
        }
        for (int i = 0; i < ROWS; i++) memcpy(e[i] + n, &sums[i], sizeof sums[i]);
    }
}

/* One query; without keys, its scores are in e. */
static void look(const float *q, const float *keys, const float *w, const uint8_t *mask, const float *values,
                 float *restrict e, float *restrict context, int64_t N, int64_t P, int64_t D, float factor) {
    float best = -__builtin_inff(), sum = 0;
    for (int64_t n = 0; n < N; n++) {
        if (mask && !mask[n]) continue;
        if (keys) e[n] = w ? additive(q, keys + n * P, w, P) : factor * dot(q, keys + n * P, P);
        if (!(e[n] <= best)) best = e[n]; /* so that NaN gets through */
    }
    for (int64_t n = N; n % LANES; n++) e[n] = 0;
    for (int64_t n = 0; n < N; n += LANES) {
        const Floats power = exponential(at(e + n) - best);
        memcpy(e + n, &power, sizeof power);
    }
    for (int64_t n = 0; n < N; n++) {
        if (mask && !mask[n]) e[n] = 0;
        sum += e[n];
    }
    const float share = sum == 0 ? 0 : 1 / sum;
    int64_t d = 0;
    for (; d + BLOCK * LANES <= D; d += BLOCK * LANES) {
        Floats total[BLOCK] = {};
        for (int64_t n = 0; n < N; n++)
            for (int i = 0; i < BLOCK; i++) total[i] += e[n] * at(values + n * D + d + i * LANES);
        for (int i = 0; i < BLOCK; i++) total[i] *= share;
        memcpy(context + d, total, sizeof total);
    }
    for (; d < D; d++) {
        float total = 0;
        for (int64_t n = 0; n < N; n++) total += e[n] * values[n * D + d];
        context[d] = total * share;
    }
}

int saccade_glance_runs(void) { return RUNS; }

void saccade_glance(const float *q, const float *keys, const float *w, const uint8_t *mask, const float *values,
                    float *context, int64_t B, int64_t M, int64_t N, int64_t P, int64_t D, int64_t L, float factor,
                    int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < B * M; first += ROWS) {
        const int64_t rows = B * M - first < ROWS ? B * M - first : ROWS;
        float e[ROWS][LONGEST + LANES];
        if (!keys) location(q + first * P, w, e, rows, N, P, L);
        for (int64_t row = first; row < first + rows; row++) {
            const int64_t b = row / M;
            look(q + row * P, keys ? keys + b * N * P : 0, w, mask ? mask + b * N : 0, values + b * N * D,
                 e[row - first], context + row * D, N, P, D, factor);
        }
    }
}
