//! What tells one ARQ protocol from another: what to send again, and when.
//!
//! A new protocol is one file with a [`Discipline`] and one line in [`protocols!`] below.

use foundation::{Duration, Instant};

use super::go_back_n::GoBackN;
use super::selective_repeat::SelectiveRepeat;
use super::stop_and_wait::StopAndWait;
use super::window::{SendWindow, Slot};

/// What an ACK told, after the window took in what it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFacts {
    /// It acknowledged nothing new though packets were outstanding, and a data frame triggered it.
    pub duplicate: bool,
    /// The number of the transmission that triggered it, where that can be told.
    pub delivered_order: Option<u64>,
    /// It answers an earlier transmission of a packet that was sent again since: the retransmission
    /// was needless (RFC 3522).
    pub spurious: bool,
}

/// A retransmission rule.
pub trait Discipline {
    /// Whether the receiver keeps packets that arrive out of order.
    const BUFFERS_OUT_OF_ORDER: bool;

    /// The timer of the oldest packet in flight ran out after `timeout`. Declares lost what this
    /// protocol sends again then.
    fn on_timeout(
        &mut self,
        window: &mut SendWindow,
        now: Instant,
        timeout: Duration,
        lost: impl FnMut(&Slot),
    );

    /// An ACK was taken in. Declares lost what this protocol sends again then.
    fn on_acknowledgement(&mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot));
}

macro_rules! protocols {
    ($($name:ident),+) => {
        /// Any of the protocols; a `match` instead of a virtual call on the way of every packet.
        #[derive(Clone, Debug)]
        pub enum AnyDiscipline {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)+
        }

        impl AnyDiscipline {
            /// See [`Discipline::BUFFERS_OUT_OF_ORDER`].
            #[must_use]
            pub const fn buffers_out_of_order(&self) -> bool {
                match self { $(Self::$name(_) => $name::BUFFERS_OUT_OF_ORDER,)+ }
            }

            /// See [`Discipline::on_timeout`].
            pub fn on_timeout(
                &mut self, window: &mut SendWindow, now: Instant, timeout: Duration, lost: impl FnMut(&Slot),
            ) {
                match self { $(Self::$name(d) => d.on_timeout(window, now, timeout, lost),)+ }
            }

            /// See [`Discipline::on_acknowledgement`].
            pub fn on_acknowledgement(
                &mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot),
            ) {
                match self { $(Self::$name(d) => d.on_acknowledgement(window, facts, lost),)+ }
            }
        }
    };
}

protocols!(StopAndWait, GoBackN, SelectiveRepeat);
