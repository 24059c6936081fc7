//! Dispatch to the retransmission policies of the built-in protocols.

use foundation::{Duration, Instant};

use super::go_back_n::GoBackN;
use super::retransmission::{AckFacts, RetransmissionPolicy};
use super::selective_repeat::SelectiveRepeat;
use super::stop_and_wait::StopAndWait;
use super::window::{SendWindow, Slot};

macro_rules! protocols {
    ($($name:ident),+) => {
        /// Any of the protocols. Uses a `match` instead of a virtual call, because it runs for every packet.
        #[derive(Clone, Debug)]
        pub enum AnyPolicy {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)+
        }

        impl AnyPolicy {
            /// See [`RetransmissionPolicy::BUFFERS_OUT_OF_ORDER`].
            #[must_use]
            pub const fn buffers_out_of_order(&self) -> bool {
                match self { $(Self::$name(_) => $name::BUFFERS_OUT_OF_ORDER,)+ }
            }

            /// See [`RetransmissionPolicy::on_timeout`].
            pub fn on_timeout(
                &mut self, window: &mut SendWindow, now: Instant, timeout: Duration, lost: impl FnMut(&Slot),
            ) {
                match self { $(Self::$name(d) => d.on_timeout(window, now, timeout, lost),)+ }
            }

            /// See [`RetransmissionPolicy::on_acknowledgement`].
            pub fn on_acknowledgement(
                &mut self, window: &mut SendWindow, facts: AckFacts, lost: impl FnMut(&Slot),
            ) {
                match self { $(Self::$name(d) => d.on_acknowledgement(window, facts, lost),)+ }
            }
        }
    };
}

protocols!(StopAndWait, GoBackN, SelectiveRepeat);
