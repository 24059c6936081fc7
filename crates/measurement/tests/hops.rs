//! Probes to loopback, a path of one hop. UDP needs no privilege.

#![cfg(target_os = "linux")]

use foundation::Duration;
use measurement::Error;
use measurement::hops::{AnswerKind, Options, ProbeSpec, Prober, Protocol};
use testing::Requirement;

fn options(to: &str, protocol: Protocol, window: usize) -> Options {
    Options {
        to: to.parse().unwrap(),
        protocol,
        port: 33434,
        interval: Duration::from_millis(1),
        timeout: Duration::from_secs(10),
        window,
    }
}

fn open(options: Options) -> Option<Prober> {
    match Prober::open(options) {
        Ok(prober) => Some(prober),
        Err(error @ Error::Permission { .. }) => {
            testing::skip(Requirement::Raw, error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn specs() -> Vec<ProbeSpec> {
    [(1, 60), (2, 1400), (1, 600), (9, 100)]
        .map(|(ttl, size)| ProbeSpec { ttl, size })
        .to_vec()
}

#[test]
fn each_probe_reaches_the_host_and_is_timestamped() {
    let header = |is_v4| if is_v4 { 20 } else { 40 };
    for to in ["127.0.0.1", "::1"] {
        for (protocol, window) in [
            (Protocol::Udp, 1),
            (Protocol::Udp, 4),
            (Protocol::Icmp, 1),
            (Protocol::Icmp, 4),
        ] {
            let options = options(to, protocol, window);
            let Some(mut prober) = open(options) else { continue };
            // The kernel starts timestamping shortly after it was enabled.
            prober.run(&specs(), &mut |_| true).unwrap();
            // Linux limits the total rate of ICMP errors (icmp_msgs_per_sec), and tests run concurrently.
            let mut results = (0..8)
                .map(|_| prober.run(&specs(), &mut |_| true).unwrap())
                .find(|results| results.iter().all(|one| one.answer.is_some()))
                .expect("a loopback loses nothing");
            assert_eq!(results.len(), 4);
            results.sort_by_key(|one| one.spec.size);
            let mut sizes: Vec<_> = specs();
            sizes.sort_by_key(|one| one.size);
            for (one, spec) in results.iter().zip(sizes) {
                assert_eq!(one.spec, spec);
                let answer = one.answer.expect("a loopback loses nothing");
                assert_eq!((answer.kind, answer.from), (AnswerKind::Reached, options.to));
                let (kernel, application) = (one.kernel_s.unwrap(), one.application_s.unwrap());
                assert!(0.0 < kernel && kernel <= application, "{one:?}");
                // An echo reply has the same length; a port-unreachable message quotes as much as fits.
                let quote = match protocol {
                    Protocol::Icmp => spec.size.into(),
                    Protocol::Udp => u32::from(spec.size) + header(to == "127.0.0.1") + 8,
                };
                let maximum = if to == "127.0.0.1" { 576 } else { 1280 };
                let expected = if protocol == Protocol::Icmp {
                    quote
                } else {
                    quote.min(maximum)
                };
                assert_eq!(answer.size, expected, "{one:?}");
            }
        }
    }
}

#[test]
fn a_stopped_run_sends_no_more_probes() {
    let mut prober = open(options("127.0.0.1", Protocol::Udp, 1)).unwrap();
    let many = vec![ProbeSpec { ttl: 1, size: 100 }; 5000];
    let mut seen = 0;
    let results = prober
        .run(&many, &mut |ended| {
            seen += ended.len();
            false
        })
        .unwrap();
    assert!(results.len() < many.len());
    assert_eq!(seen, results.len());
}

#[test]
fn refuses_invalid_options() {
    let mut prober = open(options("127.0.0.1", Protocol::Udp, 1)).unwrap();
    for (ttl, size) in [(1, 35), (0, 100), (1, 65_001)] {
        let refused = prober.run(&[ProbeSpec { ttl, size }], &mut |_| true);
        assert!(matches!(refused, Err(Error::Option(_))), "{refused:?}");
    }
    assert!(matches!(
        Prober::open(options("127.0.0.1", Protocol::Udp, 0)).err(),
        Some(Error::Option(_))
    ));
    let mut last = options("127.0.0.1", Protocol::Udp, 2);
    last.port = u16::MAX;
    assert!(matches!(Prober::open(last).err(), Some(Error::Option(_))));
}
