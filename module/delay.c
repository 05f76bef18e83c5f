// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The delay: strategy, cap, jitter, in this order. The ceiling saturates and is capped before
 * anything is drawn, and jitter moves the range of the draw, never its result, so no delay passes
 * the cap and none piles up at it.
 */
#include "delay.h"

#define KRETRY_SLOT_DOUBLINGS	10

/* A number from 1.0 on: mantissa / 2^63 * 2^exponent, with the top bit of the mantissa set. */
struct kretry_power {
	u64 mantissa;
	u32 exponent;
};

/* A range to draw from, both ends included. */
struct kretry_range {
	u64 lo;
	u64 hi;
};

u64 kretry_base(const struct kretry_backoff *b, u8 event)
{
	if (b->strategy == KRETRY_TABLE)
		return b->table_ns[0];
	if (event == KRETRY_EVENT_THROTTLED && b->base_throttled_ns)
		return b->base_throttled_ns;
	return b->base_ns;
}

static struct kretry_power kretry_power_mul(struct kretry_power a, struct kretry_power b)
{
	struct kretry_power product = {
		.mantissa = mul_u64_u64_shr(a.mantissa, b.mantissa, 64),
		.exponent = a.exponent + b.exponent + 1,
	};

	if (!(product.mantissa >> 63)) {
		product.mantissa = mul_u64_u64_shr(a.mantissa, b.mantissa, 63);
		product.exponent--;
	}
	return product;
}

/* @ppm / 10^6, which is at least 1.0 and below 2^13. */
static struct kretry_power kretry_power_from_ppm(u32 ppm)
{
	u64 high = (u64)ppm << 32, whole = div64_u64(high, KRETRY_PPM);
	u64 low = (high - whole * KRETRY_PPM) << 32;
	struct kretry_power power = { .exponent = 31 };
	u64 fraction = div64_u64(low, KRETRY_PPM);

	/* whole.fraction is ppm / 10^6 * 2^32, with 32 bits behind the point. */
	while (!(whole >> 63)) {
		whole = whole << 1 | (fraction >> 31 & 1);
		fraction <<= 1;
		power.exponent--;
	}
	power.mantissa = whole;
	return power;
}

/*
 * @base * multiplier^@n by squaring, from the top bit of @n down. Each product is cut to 64 bits,
 * which makes the power too small by less than 4n of its last bits; adding these back makes whole
 * results come out whole. The error stays below 2 * 10^-11 of the result, or 1 ns. As a multiplier
 * above 1.0 is at least 1.000001, the result grows with @n all the same.
 */
static noinline u64 kretry_compound(u64 base, u32 multiplier_ppm, u32 n)
{
	struct kretry_power power = { .mantissa = 1ULL << 63 }, factor;
	u32 bit, shift;
	u64 bias;

	if (multiplier_ppm == KRETRY_PPM || !base || !n)
		return base;

	factor = kretry_power_from_ppm(multiplier_ppm);
	for (bit = 1U << (31 - __builtin_clz(n)); bit; bit >>= 1) {
		power = kretry_power_mul(power, power);
		if (n & bit)
			power = kretry_power_mul(power, factor);
		if (power.exponent > 62)
			return KRETRY_NS_MAX;
	}

	bias = 4ULL * n;
	power.mantissa += min(bias, U64_MAX - power.mantissa);
	shift = 63 - power.exponent;
	if (mul_u64_u64_shr(base, power.mantissa, 64) >> (shift - 1))
		return KRETRY_NS_MAX;
	return mul_u64_u64_shr(base, power.mantissa, shift);
}

/* Doubling, the usual case, is exact and cheap. */
static inline u64 kretry_exponential(u64 base, u32 multiplier_ppm, u32 n)
{
	if (multiplier_ppm != 2 * KRETRY_PPM)
		return kretry_compound(base, multiplier_ppm, n);
	if (n < 63 && base <= KRETRY_NS_MAX >> n)
		return base << n;
	return base ? KRETRY_NS_MAX : 0;
}

/* The least and the most slots of @base that SLOTTED may draw. The floor goes before the rest. */
static struct kretry_range kretry_slots(const struct kretry_backoff *b, u64 base, u32 n)
{
	u32 doublings = n < KRETRY_SLOT_DOUBLINGS ? n + 1 : KRETRY_SLOT_DOUBLINGS;
	u64 last = (1U << doublings) - 1, fit = div64_u64(b->cap_ns, base);
	struct kretry_range r = { .lo = b->floor_ns ? div64_u64(b->floor_ns - 1, base) + 1 : 0 };

	last = min(last, fit);
	r.hi = max(r.lo, last);
	return r;
}

static __always_inline u64 kretry_ceiling_of(const struct kretry_backoff *b, u64 base, u32 n)
{
	u64 ceiling = base;

	switch (b->strategy) {
	case KRETRY_LINEAR:
		ceiling = kretry_sat_mul(base, (u64)n + 1);
		break;
	case KRETRY_EXPONENTIAL:
		ceiling = kretry_exponential(base, b->multiplier_ppm, n);
		break;
	case KRETRY_DECORRELATED:
		ceiling = b->cap_ns;
		break;
	case KRETRY_SLOTTED:
		ceiling = kretry_slots(b, base, n).hi * base;
		break;
	case KRETRY_TABLE:
		ceiling = b->table_ns[n < b->table_len ? n : b->table_len - 1U];
		break;
	}
	return max(min(ceiling, b->cap_ns), b->floor_ns);
}

u64 kretry_ceiling(const struct kretry_backoff *b, u64 base, u32 n)
{
	return kretry_ceiling_of(b, base, n);
}

/* Slide @r down until it ends at or under @cap. */
static struct kretry_range kretry_slide(struct kretry_range r, u64 cap)
{
	u64 excess = kretry_sat_sub(r.hi, cap);

	r.hi -= excess;
	r.lo = kretry_sat_sub(r.lo, excess);
	return r;
}

/* What a jitter other than FULL makes of ceiling @c: it gives 0 only where the ceiling does. */
static noinline struct kretry_range kretry_window(const struct kretry_backoff *b, u64 c)
{
	struct kretry_range r = { .lo = c, .hi = c };
	u64 width, low = max(b->floor_ns, min(c, 1ULL));

	switch (b->jitter) {
	case KRETRY_JITTER_EQUAL:
		r.lo = c - c / 2;
		break;
	case KRETRY_JITTER_PROPORTIONAL:
		width = kretry_share(c, b->jitter_ppm);
		r.lo = c - width;
		r.hi = c + width;
		break;
	case KRETRY_JITTER_ADDITIVE:
		r.hi = c + kretry_share(c, b->jitter_ppm);
		break;
	}
	r = kretry_slide(r, b->cap_ns);
	r.lo = max(r.lo, low);
	return r;
}

static noinline u64 kretry_decorrelated(const struct kretry_backoff *b, u64 base, u64 previous,
					u64 rnd)
{
	u64 lo = max(base, b->floor_ns);
	u64 hi = min(kretry_sat_mul(max(previous, base), 3), b->cap_ns);

	return kretry_uniform(lo, max(lo, hi), rnd);
}

static noinline u64 kretry_slotted(const struct kretry_backoff *b, u64 base, u32 n, u64 rnd)
{
	struct kretry_range r = kretry_slots(b, base, n);

	return kretry_uniform(r.lo, r.hi, rnd) * base;
}

u64 kretry_delay(const struct kretry_backoff *b, u8 event, u32 n, u64 previous, u64 rnd)
{
	u64 base = kretry_base(b, event), ceiling;
	struct kretry_range r;

	if (b->strategy == KRETRY_DECORRELATED)
		return kretry_decorrelated(b, base, previous, rnd);
	if (b->strategy == KRETRY_SLOTTED)
		return kretry_slotted(b, base, n, rnd);

	ceiling = kretry_ceiling_of(b, base, n);
	if (b->jitter == KRETRY_JITTER_FULL)
		return kretry_uniform(b->floor_ns, ceiling, rnd);
	r = kretry_window(b, ceiling);
	return kretry_uniform(r.lo, r.hi, rnd);
}
