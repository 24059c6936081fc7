// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * TCP Vegas for kernels without it.
 *
 * L. S. Brakmo and L. L. Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE
 * Journal on Selected Areas in Communications 13 (8), 1995, as implemented in Linux:
 *  - slow start doubles the window every round trip, as in Reno, not every other one;
 *  - a round is judged by its minimum RTT, which delayed ACKs do not increase;
 *  - slow start ends with the window that fills the path without a queue, plus one packet;
 *  - rounds with few samples, and recovery, follow Reno.
 */
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Packets of the flow in the queue: Linux's defaults, which the loader may replace. */
const volatile __u32 alpha = 2; /* grow below */
const volatile __u32 beta = 4;  /* shrink above */
const volatile __u32 gamma = 1; /* end slow start above */

#define NOTHING_YET 0x7fffffff
/* A round with at most this many samples may consist of delayed ACKs. */
#define FEW_SAMPLES 2
#define LEAST_WINDOW 2

struct vegas {
	__u32 base_us;  /* minimum RTT since the flow last started to send */
	__u32 round_us; /* minimum RTT of this round */
	__u32 samples;  /* RTT samples of this round */
	__u32 end;      /* the round ends when a higher sequence number is acknowledged */
	__u8 judging;   /* not in recovery: rounds are judged */
	__u8 state;     /* the last state, enum tcp_ca_state */
};

_Static_assert(sizeof(struct vegas) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "the state fits in what the kernel keeps for it");

static __u32 least(__u32 one, __u32 other)
{
	return one < other ? one : other;
}

static void begin_round(struct sock *sk, struct vegas *vegas)
{
	vegas->end = tcp(sk)->snd_nxt;
	vegas->samples = 0;
	vegas->round_us = NOTHING_YET;
}

/* The route may change during a pause, so the base RTT is measured again. */
static void begin(struct sock *sk)
{
	struct vegas *vegas = private_state(sk);

	vegas->base_us = NOTHING_YET;
	vegas->judging = 1;
	begin_round(sk, vegas);
}

static bool reducing(const struct vegas *vegas)
{
	return vegas->state == KERNEL_VALUE(tcp_ca_state, TCP_CA_CWR) ||
	       vegas->state == KERNEL_VALUE(tcp_ca_state, TCP_CA_Recovery);
}

/* One decision per round trip: section 3.2 of the paper, and 3.3 for slow start. */
static void judge(struct tcp_sock *tp, const struct vegas *vegas, __u32 acked)
{
	__u64 window = tp->snd_cwnd;
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	/* Expected * base and (Expected - Actual) * base: packets in flight without a queue, and queued packets. */
	__u64 fits = window * vegas->base_us / vegas->round_us;
	__u64 waiting = window * (vegas->round_us - vegas->base_us) / vegas->base_us;

	if (slow_start && waiting > gamma) {
		/* Plus one for the rounding of the division. */
		window = least(window, fits + 1);
		tp->snd_ssthresh = least(tp->snd_ssthresh, window);
	} else if (slow_start) {
		tcp_slow_start(tp, acked);
		window = tp->snd_cwnd;
	} else if (waiting > beta) {
		window -= 1;
		/* Below the threshold, slow start would undo the decision. */
		tp->snd_ssthresh = least(tp->snd_ssthresh, window);
	} else if (waiting < alpha) {
		window += 1;
	}
	if (window < LEAST_WINDOW)
		window = LEAST_WINDOW;
	window = least(window, tp->snd_cwnd_clamp);
	tp->snd_cwnd = window;
	/* Remember three quarters of the window, except during recovery. */
	if (!reducing(vegas)) {
		__u32 remembered = (window >> 1) + (window >> 2);

		if (tp->snd_ssthresh < remembered)
			tp->snd_ssthresh = remembered;
	}
}

SEC("struct_ops/vegas_init")
void BPF_PROG(vegas_init, struct sock *sk)
{
	begin(sk);
}

SEC("struct_ops/vegas_cong_avoid")
void BPF_PROG(vegas_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct vegas *vegas = private_state(sk);
	struct tcp_sock *tp = tcp(sk);

	if (!vegas->judging) {
		tcp_reno_cong_avoid(sk, ack, acked);
		return;
	}
	/* Sequence numbers wrap: RFC 9293, section 3.4. */
	if ((__s32)(vegas->end - ack) >= 0) {
		if (tp->snd_cwnd < tp->snd_ssthresh)
			tcp_slow_start(tp, acked);
		return;
	}
	if (vegas->samples <= FEW_SAMPLES)
		tcp_reno_cong_avoid(sk, ack, acked);
	else
		judge(tp, vegas, acked);
	begin_round(sk, vegas);
}

SEC("struct_ops/vegas_pkts_acked")
void BPF_PROG(vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = private_state(sk);
	__s32 measured = sample->rtt_us;
	__u32 rtt;

	if (measured < 0)
		return;
	rtt = measured + 1; /* a divisor, so never zero */
	vegas->base_us = least(vegas->base_us, rtt);
	vegas->round_us = least(vegas->round_us, rtt);
	vegas->samples += 1;
}

SEC("struct_ops/vegas_set_state")
void BPF_PROG(vegas_set_state, struct sock *sk, __u8 state)
{
	struct vegas *vegas = private_state(sk);

	vegas->state = state;
	/* Samples during recovery do not depend on the window. */
	vegas->judging = state == KERNEL_VALUE(tcp_ca_state, TCP_CA_Open);
	if (vegas->judging)
		begin_round(sk, vegas);
}

SEC("struct_ops/vegas_cwnd_event")
void BPF_PROG(vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
#ifndef CWND_EVENT_TX_START
	if (event == KERNEL_VALUE(tcp_ca_event, CA_EVENT_TX_START))
		begin(sk);
#endif
	if (event == KERNEL_VALUE(tcp_ca_event, CA_EVENT_CWND_RESTART))
		begin(sk);
}

#ifdef CWND_EVENT_TX_START
SEC("struct_ops/vegas_tx_start")
void BPF_PROG(vegas_tx_start, struct sock *sk)
{
	begin(sk);
}
#endif

/* Halves the window after a loss, like Linux's Vegas. */
SEC("struct_ops/vegas_ssthresh")
__u32 BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/vegas_undo_cwnd")
__u32 BPF_PROG(vegas_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops lf_vegas = {
	.init = (void *)vegas_init,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.pkts_acked = (void *)vegas_pkts_acked,
	.set_state = (void *)vegas_set_state,
	.cwnd_event = (void *)vegas_cwnd_event,
#ifdef CWND_EVENT_TX_START
	.cwnd_event_tx_start = (void *)vegas_tx_start,
#endif
	.undo_cwnd = (void *)vegas_undo_cwnd,
	.name = "lf_vegas",
	.flags = NON_RESTRICTED,
};
