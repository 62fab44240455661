/*
 * Loops whose data are near, for benchmarks/cores.py: what a core of another issue width does with them is asked of
 * llvm-mca, loop by loop.
 */
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void copy(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i]+1.0;
}

void axpy(double *restrict a, const double *restrict b, double s, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] += s*b[i];
}

void triad(double *restrict a, const double *restrict b, const double *restrict c, double s, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = c[i]+s*b[i];
}

double dot(const double *restrict a, const double *restrict b, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i]*b[i];
    return s;
}

double dot4(const double *restrict a, const double *restrict b, size_t n) {
    double s = 0, t = 0, u = 0, v = 0;
    for (size_t i = 0; i < n; i += 4) {
        s += a[i]*b[i];
        t += a[i+1]*b[i+1];
        u += a[i+2]*b[i+2];
        v += a[i+3]*b[i+3];
    }
    return s+t+u+v;
}

void stencil(double *restrict a, const double *restrict b, size_t n, size_t m) {
    for (size_t i = 0; i < n; i++) a[i] = 0.25*(b[i]+b[i+1]+b[i+m]+b[i+2*m])-b[i+3*m];
}

double gather(const double *restrict a, const uint32_t *restrict j, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[j[i]];
    return s;
}

void scatter(double *restrict a, const uint32_t *restrict j, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[j[i]] += b[i];
}

void poly(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double x = b[i];
        a[i] = ((((((0.1*x+.2)*x+.3)*x+.4)*x+.5)*x+.6)*x+.7)*x+.8;
    }
}

void divide(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = 1.0/b[i];
}

void root(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = sqrt(b[i])+a[i];
}

double recur(const double *restrict b, size_t n) {
    double x = 0;
    for (size_t i = 0; i < n; i++) x = x*0.5+b[i];
    return x;
}

uint64_t hash(const uint64_t *restrict b, size_t n) {
    uint64_t h = 1469598103934665603ull;
    for (size_t i = 0; i < n; i++) {
        h ^= b[i];
        h *= 1099511628211ull;
    }
    return h;
}

uint64_t mixed(const uint64_t *restrict b, size_t n) {
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t z = b[i];
        z ^= z >> 30;
        z *= 0xbf58476d1ce4e5b9ull;
        z ^= z >> 27;
        z *= 0x94d049bb133111ebull;
        s += z^(z >> 31);
    }
    return s;
}

uint32_t sumint(const uint32_t *restrict b, size_t n) {
    uint32_t s = 0;
    for (size_t i = 0; i < n; i++) s += b[i];
    return s;
}

void prefix(uint32_t *restrict b, size_t n) {
    for (size_t i = 1; i < n; i++) b[i] += b[i-1];
}

double nbody(const double *restrict x, const double *restrict y, double px, double py, size_t n) {
    double f = 0;
    for (size_t i = 0; i < n; i++) {
        double dx = x[i]-px, dy = y[i]-py;
        double r = dx*dx+dy*dy+.01;
        f += dx/(r*sqrt(r));
    }
    return f;
}

void hist(uint32_t *restrict h, const uint8_t *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) h[b[i]]++;
}

size_t chase(const size_t *a, size_t n) {
    size_t j = 0;
    for (size_t i = 0; i < n; i++) j = a[j];
    return j;
}

double maxabs(const double *restrict a, size_t n) {
    double s = 0;
    for (size_t i = 0; i < n; i++) {
        double t = fabs(a[i]);
        s = t>s?t:s;
    }
    return s;
}

void flux(double *restrict f, const double *restrict r, const double *restrict u, const double *restrict p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double e = p[i]*2.5+0.5*r[i]*u[i]*u[i];
        f[3*i] = r[i]*u[i];
        f[3*i+1] = r[i]*u[i]*u[i]+p[i];
        f[3*i+2] = u[i]*(e+p[i]);
    }
}

void cmul(double *restrict a, const double *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        double x = a[2*i], y = a[2*i+1];
        a[2*i] = x*b[2*i]-y*b[2*i+1];
        a[2*i+1] = x*b[2*i+1]+y*b[2*i];
    }
}
