//! What the coupled loss-based controllers of multipath connections share (LIA, OLIA, BALIA): all but congestion
//! avoidance is Reno's, and there every byte acknowledged is worth a part of a byte, which follows from the
//! windows and round-trip times of all subflows. How it follows is their own: [`Coupling`].

use std::fmt::Debug;
use std::marker::PhantomData;

use foundation::{Problem, Size};

use super::hystart::HyStartKind;
use super::loss_based::{Avoidance, LossBased, LossBasedSettings, MIN_SSTHRESH};
use super::reno::AdditiveIncrease;
use super::rules::{RenoRules, Rules, packets};
use super::settings::{ConnectionContext, ControllerSettings, check_initial_window};
use super::siblings::{Sibling, Siblings};
use super::{Acknowledgement, Controller};

/// One way to couple windows.
pub trait Coupling: Debug + Default + Clone + Send + Sync + 'static {
    /// The least threshold while there are several subflows, in packets.
    const MIN_SSTHRESH: u64 = MIN_SSTHRESH;

    /// What the windows of all subflows make of that of the one that is told, which has a round-trip sample, as at
    /// least one other has; `segment` is the payload of its full packets in bytes.
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains;
}

/// How one window moves while all are as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoupledGains {
    /// Packets of growth for a packet acknowledged; below zero the window shrinks.
    pub increase: f64,
    /// What a loss leaves of the window, between 0 and 1.
    pub beta: f64,
}

/// Bytes a nanosecond: the window over the round-trip time.
pub(super) fn rate(sibling: &Sibling) -> f64 {
    sibling.window.max(1) as f64 / sibling.rtt.as_nanos() as f64
}

/// Coupled with the other subflows of a multipath connection; alone it is Reno.
#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, bound = "")]
#[schemars(bound = "")]
pub struct CoupledSettings<C: Coupling> {
    /// Window of each subflow at the start, in packets (default 10, RFC 6928).
    pub initial_window: u64,
    /// Slow start threshold of each subflow at the start, as ns-3 sets one (default: none).
    pub initial_threshold: Option<Size>,
    /// End slow start before a loss: "off", "hystart++" (RFC 9406) or "classic", as Linux does beside CUBIC
    /// (default "off").
    pub hystart: HyStartKind,
    /// Whose rules count: "rfc", "linux" or "ns3" (default those of the TCP profile, else "rfc").
    pub rules: Option<RenoRules>,
    /// Spread the window over the round trip instead of sending on each ACK (default false).
    pub pacing: bool,
    #[serde(skip)]
    coupling: PhantomData<C>,
}

impl<C: Coupling> Default for CoupledSettings<C> {
    fn default() -> Self {
        Self {
            initial_window: 10,
            initial_threshold: None,
            hystart: HyStartKind::Off,
            rules: None,
            pacing: false,
            coupling: PhantomData,
        }
    }
}

impl<C: Coupling> ControllerSettings for CoupledSettings<C> {
    fn validate(&self) -> Vec<Problem> {
        check_initial_window(self.initial_window).into_iter().collect()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let rules = self.rules.map_or(context.rules, Rules::from);
        let settings = LossBasedSettings {
            initial_window: context.initial_window.unwrap_or(self.initial_window),
            initial_ssthresh: self.initial_threshold.map(Size::bytes),
            hystart: self.hystart,
            pacing: self.pacing,
            rules,
        };
        let growth = Coupled {
            coupling: PhantomData::<C>,
            reno: AdditiveIncrease::new(context.segment, rules),
            segment: context.segment,
            rules,
            gains: None,
            credit: 0.0,
        };
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

/// Congestion avoidance beside other subflows.
#[derive(Clone, Debug)]
struct Coupled<C> {
    coupling: PhantomData<C>,
    /// For a subflow that is alone.
    reno: AdditiveIncrease,
    segment: u64,
    rules: Rules,
    /// `None` while there is nothing to be coupled with.
    gains: Option<CoupledGains>,
    /// Bytes of growth, or below zero of shrinking, that do not make a packet yet.
    credit: f64,
}

impl<C: Coupling> Avoidance for Coupled<C> {
    fn is_coupled(&self) -> bool {
        true
    }

    fn on_siblings(&mut self, siblings: &Siblings<'_>) {
        // A single subflow is an ordinary TCP; without a sample of its own there is nothing to compare.
        let coupled = !siblings.own().rtt.is_zero() && siblings.measured().nth(1).is_some();
        self.gains = coupled.then(|| C::gains(siblings, self.segment));
    }

    fn min_ssthresh(&self) -> u64 {
        self.gains.map_or(MIN_SSTHRESH, |_| C::MIN_SSTHRESH)
    }

    fn increase(&mut self, ack: &Acknowledgement, bytes: u64, window: u64) -> u64 {
        let Some(gains) = self.gains else {
            return self.reno.increase(ack, bytes, window);
        };
        let bytes = match self.rules {
            // Windows are whole packets.
            Rules::Linux => packets(bytes, self.segment) * self.segment,
            Rules::Rfc => bytes,
            // ACKs are counted, however much they acknowledge.
            Rules::Ns3 => bytes.min(self.segment),
        };
        // OLIA adds up to one and a half packets a packet to a window of one: no window grows faster than in slow start
        // (RFC 5681, section 3.1).
        self.credit += bytes as f64 * gains.increase.min(1.0);
        if self.credit < self.segment as f64 {
            return 0;
        }
        let whole = self.credit as u64 / self.segment * self.segment;
        self.credit -= whole as f64;
        whole
    }

    fn shrink(&mut self) -> u64 {
        if self.credit > -(self.segment as f64) {
            return 0;
        }
        self.credit += self.segment as f64;
        self.segment
    }

    fn decrease(&mut self, window: u64) -> u64 {
        self.credit = 0.0;
        let half = self.reno.decrease(window);
        let Some(gains) = self.gains else { return half };
        let kept = (window as f64 * gains.beta) as u64;
        if self.rules == Rules::Linux {
            kept / self.segment * self.segment
        } else {
            kept
        }
    }

    fn restart(&mut self) {
        self.credit = 0.0;
        self.reno.restart();
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        if let Some(gains) = self.gains {
            report("increase_per_packet", gains.increase);
        }
    }
}
