// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Linux's own Reno (RFC 5681), called through BPF. It makes no decisions, so its difference from the kernel's
 * "reno" is the effect of BPF alone. A study of another BPF controller uses it as a control.
 */
#include "kernel.h"

char _license[] SEC("license") = "Dual MIT/GPL";

SEC("struct_ops/reno_ssthresh")
__u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}

SEC("struct_ops/reno_cong_avoid")
void BPF_PROG(reno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/reno_undo_cwnd")
__u32 BPF_PROG(reno_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops lf_reno = {
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.name = "lf_reno",
	.flags = NON_RESTRICTED,
};
