// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Kernel structures and functions that the controllers use.
 *
 * Each structure has only the members in use. With preserve_access_index the loader finds their offsets in the
 * running kernel (from its BTF), so the same object fits any kernel, without the kernel's headers or bpftool.
 */
#ifndef LONGFAT_KERNEL_H
#define LONGFAT_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common {
	volatile __u8 skc_state;
};

struct sock {
	struct sock_common __sk_common;
};

struct inet_connection_sock {
	struct {
		__u8 pending; /* enum inet_csk_ack_state_t */
	} icsk_ack;
	__u64 icsk_ca_priv[13]; /* state of the controller, zero at the start */
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 delivered;    /* packets, including those delivered out of order */
	__u32 delivered_ce; /* packets acknowledged with ECN-Echo */
	__u8 ecn_flags;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
};

struct ack_sample {
	__s32 rtt_us; /* negative without a measurement */
};

enum tcp_ca_event {
	CA_EVENT_TX_START = 0,
	CA_EVENT_CWND_RESTART = 1,
	CA_EVENT_LOSS = 3,
	CA_EVENT_ECN_NO_CE = 4,
	CA_EVENT_ECN_IS_CE = 5,
};

enum inet_csk_ack_state_t {
	ICSK_ACK_TIMER = 2,
	ICSK_ACK_NOW = 16,
};

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
#ifdef CWND_EVENT_TX_START /* Linux 7.1 and later report the first packet of a flight here */
	void (*cwnd_event_tx_start)(struct sock *sk);
#endif
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

/* The value of an enumerator in the running kernel. */
#define KERNEL_VALUE(type, name) __builtin_preserve_enum_value(*(typeof(enum type) *)name, 1)

/* TCP_CONG_NON_RESTRICTED: any user may select the controller. */
#define NON_RESTRICTED 1
/* TCP_CONG_NEEDS_ECN: requests and accepts ECN in handshakes, and reports the mark of each segment. */
#define NEEDS_ECN 2

/* Bits of tcp_sock.ecn_flags: ECN of RFC 3168 was negotiated; ACKs carry ECN-Echo. */
#define TCP_ECN_OK 1
#define TCP_ECN_DEMAND_CWR 4

/* RFC 9293, section 3.3.2, as numbered in sock_common.skc_state. */
#define TCP_CLOSE 7
#define TCP_LISTEN 10

#define SOL_TCP 6
#define TCP_CONGESTION 13

/* Functions that Linux exports to such programs: its Reno. */
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;

/* Every operation gets a tcp_sock, which starts with an inet_connection_sock and a sock. */
static inline struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline void *private_state(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

#endif
