//! The common part of the coupled loss-based controllers of multipath connections (LIA, OLIA, BALIA). They differ
//! from Reno in congestion avoidance: the growth per acknowledged byte depends on the windows and round-trip times of
//! all subflows. An algorithm implements [`Coupling`].

use std::fmt::Debug;
use std::marker::PhantomData;

use foundation::Problem;

use super::loss_based::{Avoidance, LossBased, MIN_SSTHRESH};
use super::reno::{AdditiveIncrease, RenoSettings};
use super::rules::{Rules, packets};
use super::settings::{ConnectionContext, ControllerSettings};
use super::siblings::{Sibling, Siblings};
use super::{Acknowledgement, Controller};

/// A coupling algorithm.
pub trait Coupling: Debug + Default + Clone + Send + Sync + 'static {
    /// Minimum ssthresh in packets while there are several subflows.
    const MIN_SSTHRESH: u64 = MIN_SSTHRESH;

    /// Returns the gains of the subflow `siblings.own_index`, given that it and at least one other subflow have a
    /// round-trip sample; `segment` is the payload of its full packets in bytes.
    fn gains(siblings: &Siblings<'_>, segment: u64) -> CoupledGains;
}

/// Response of one window while the state of all subflows is constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoupledGains {
    /// Packets of growth per acknowledged packet; the window shrinks if negative.
    pub increase: f64,
    /// Multiplicative decrease factor at a loss, 0 to 1.
    pub beta: f64,
}

/// Returns the window over the round-trip time in bytes/ns.
pub(super) fn rate(sibling: &Sibling) -> f64 {
    sibling.window.max(1) as f64 / sibling.rtt.as_nanos() as f64
}

/// Coupled with the other subflows of a multipath connection; Reno with a single subflow.
#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, bound = "")]
#[schemars(bound = "", deny_unknown_fields)]
pub struct CoupledSettings<C: Coupling> {
    /// Settings of each subflow, those of Reno.
    #[serde(flatten)]
    pub reno: RenoSettings,
    #[serde(skip)]
    coupling: PhantomData<C>,
}

impl<C: Coupling> Default for CoupledSettings<C> {
    fn default() -> Self {
        Self {
            reno: RenoSettings::default(),
            coupling: PhantomData,
        }
    }
}

impl<C: Coupling> ControllerSettings for CoupledSettings<C> {
    fn validate(&self) -> Vec<Problem> {
        self.reno.validate()
    }

    fn build_for(&self, context: &ConnectionContext) -> Box<dyn Controller> {
        let settings = self.reno.loss_based(context);
        let growth = Coupled {
            coupling: PhantomData::<C>,
            reno: AdditiveIncrease::new(context.segment, settings.rules),
            segment: context.segment,
            rules: settings.rules,
            gains: None,
            credit: 0.0,
        };
        Box::new(LossBased::new(growth, settings, context.segment))
    }
}

/// Congestion avoidance of one coupled subflow.
#[derive(Clone, Debug)]
struct Coupled<C> {
    coupling: PhantomData<C>,
    /// Used by a single subflow.
    reno: AdditiveIncrease,
    segment: u64,
    rules: Rules,
    /// `None` for a single subflow.
    gains: Option<CoupledGains>,
    /// Bytes of growth, or of decrease if negative, below one packet.
    credit: f64,
}

impl<C: Coupling> Avoidance for Coupled<C> {
    fn is_coupled(&self) -> bool {
        true
    }

    fn on_siblings(&mut self, siblings: &Siblings<'_>) {
        // A single subflow is ordinary TCP, and coupling requires a sample of this subflow.
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
            // Count ACKs, regardless of the bytes they acknowledge.
            Rules::Ns3 => bytes.min(self.segment),
        };
        // OLIA can increase a window of one packet by 1.5 packets per packet. No window may grow faster than in slow
        // start (RFC 5681, section 3.1).
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
