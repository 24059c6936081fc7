// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * DCTCP for kernels without it.
 *
 * RFC 8257, "Data Center TCP (DCTCP): TCP Congestion Control for Data Centers", in integers and packets as in Linux:
 *  - alpha, the average share of marked packets, has units of 1/1024 and is updated once per window of data;
 *  - a mark reduces the window by half of alpha, once per window of data; a loss halves it; growth follows Reno;
 *  - each ACK covers packets with the same mark: a delayed ACK leaves when the mark changes (section 3.2).
 * Without ECN, which the handshake negotiates, a connection uses Linux's Reno.
 */
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

/* Linux's defaults, which the loader may replace. */
const volatile __u32 shift_g = 4;          /* g = 1 / 2^shift_g, the weight of the last window of data */
const volatile __u32 alpha_on_init = 1024; /* alpha at the start */

#define UNIT_BITS 10
#define MOST_ALPHA (1U << UNIT_BITS)
#define LEAST_WINDOW 2

struct dctcp {
	__u32 alpha;
	/* Sender: the current window of data. */
	__u32 end; /* it ends when this sequence number is acknowledged */
	__u32 delivered;
	__u32 delivered_marked;
	__u32 reduced_from; /* the window before the last reduction, for undo */
	/* Receiver: DCTCP.CE of RFC 8257, and the end of the data that arrived with it. */
	__u32 received;
	__u8 marked;
	__u8 state; /* the last state, enum tcp_ca_state */
};

_Static_assert(sizeof(struct dctcp) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "the state fits in what the kernel keeps for it");

static __u32 least(__u32 one, __u32 other)
{
	return one < other ? one : other;
}

static __u32 most(__u32 one, __u32 other)
{
	return one > other ? one : other;
}

static void begin_window(const struct tcp_sock *tp, struct dctcp *dctcp)
{
	dctcp->end = tp->snd_nxt;
	dctcp->delivered = tp->delivered;
	dctcp->delivered_marked = tp->delivered_ce;
}

/* RFC 8257, section 3.3, steps 6 and 7: alpha = alpha * (1 - g) + g * M. */
static void update_alpha(const struct tcp_sock *tp, struct dctcp *dctcp)
{
	__u32 delivered = most(tp->delivered - dctcp->delivered, 1);
	__u64 marked = tp->delivered_ce - dctcp->delivered_marked;
	__u32 decay = dctcp->alpha >> shift_g;

	/* An alpha too small to shift becomes zero. */
	dctcp->alpha -= decay ? decay : dctcp->alpha;
	dctcp->alpha = least(dctcp->alpha + (marked << UNIT_BITS >> shift_g) / delivered, MOST_ALPHA);
}

/* RFC 8257, section 3.4: a loss counts as in Reno, regardless of alpha. */
static void halve(struct tcp_sock *tp, struct dctcp *dctcp)
{
	dctcp->reduced_from = tp->snd_cwnd;
	tp->snd_ssthresh = most(tp->snd_cwnd / 2, LEAST_WINDOW);
}

static void echo(struct tcp_sock *tp, bool marked)
{
	if (marked)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* RFC 8257, section 3.2. The kernel has counted the packet in rcv_nxt already. */
static void receive(struct sock *sk, struct dctcp *dctcp, bool marked)
{
	struct inet_connection_sock *connection = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = tcp(sk);

	if (dctcp->marked != marked) {
		/* A delayed ACK leaves with the previous echo, for the packets before this one. */
		if (connection->icsk_ack.pending & KERNEL_VALUE(inet_csk_ack_state_t, ICSK_ACK_TIMER)) {
			echo(tp, dctcp->marked);
			bpf_tcp_send_ack(tp, dctcp->received);
		}
		connection->icsk_ack.pending |= KERNEL_VALUE(inet_csk_ack_state_t, ICSK_ACK_NOW);
	}
	dctcp->received = tp->rcv_nxt;
	dctcp->marked = marked;
	echo(tp, marked);
}

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	struct dctcp *dctcp = private_state(sk);
	struct tcp_sock *tp = tcp(sk);
	__u8 state = sk->__sk_common.skc_state;

	if (!(tp->ecn_flags & TCP_ECN_OK) && state != TCP_LISTEN && state != TCP_CLOSE) {
		/* Otherwise its packets would be marked and the marks ignored. */
		char reno[] = "reno";

		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
		return;
	}
	dctcp->alpha = least(alpha_on_init, MOST_ALPHA);
	dctcp->received = tp->rcv_nxt;
	begin_window(tp, dctcp);
}

SEC("struct_ops/dctcp_in_ack_event")
void BPF_PROG(dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
	struct dctcp *dctcp = private_state(sk);
	struct tcp_sock *tp = tcp(sk);

	/* Sequence numbers wrap: RFC 9293, section 3.4. */
	if ((__s32)(tp->snd_una - dctcp->end) < 0)
		return;
	update_alpha(tp, dctcp);
	begin_window(tp, dctcp);
}

/* RFC 8257, section 3.3, step 9. The kernel calls it for losses, too, but then `halve` replaces the result. */
SEC("struct_ops/dctcp_ssthresh")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	struct dctcp *dctcp = private_state(sk);
	__u64 window = tcp(sk)->snd_cwnd;

	dctcp->reduced_from = window;
	return most(window - (window * dctcp->alpha >> (UNIT_BITS + 1)), LEAST_WINDOW);
}

SEC("struct_ops/dctcp_cong_avoid")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/dctcp_set_state")
void BPF_PROG(dctcp_set_state, struct sock *sk, __u8 state)
{
	struct dctcp *dctcp = private_state(sk);
	__u8 recovery = KERNEL_VALUE(tcp_ca_state, TCP_CA_Recovery);

	if (state == recovery && dctcp->state != recovery)
		halve(tcp(sk), dctcp);
	dctcp->state = state;
}

SEC("struct_ops/dctcp_cwnd_event")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct dctcp *dctcp = private_state(sk);

	if (event == KERNEL_VALUE(tcp_ca_event, CA_EVENT_ECN_IS_CE))
		receive(sk, dctcp, true);
	else if (event == KERNEL_VALUE(tcp_ca_event, CA_EVENT_ECN_NO_CE))
		receive(sk, dctcp, false);
	else if (event == KERNEL_VALUE(tcp_ca_event, CA_EVENT_LOSS))
		halve(tcp(sk), dctcp);
}

SEC("struct_ops/dctcp_undo_cwnd")
__u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk)
{
	struct dctcp *dctcp = private_state(sk);

	return most(tcp(sk)->snd_cwnd, dctcp->reduced_from);
}

SEC(".struct_ops")
struct tcp_congestion_ops lf_dctcp = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_cong_avoid,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.name = "lf_dctcp",
	.flags = NON_RESTRICTED | NEEDS_ECN,
};
