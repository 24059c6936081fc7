//! Declaration of the ARQ protocols, and dispatch to their retransmission policies.

/// Declares the protocols: the number in a setup frame, the type of the policy, and its file. The doc comment is the help for
/// users.
macro_rules! protocols {
    ($($(#[$help:meta])* $code:literal => $name:ident in $file:ident,)+) => {
        $(pub mod $file; use $file::$name;)+

        /// The ARQ protocols, with their numbers in setup frames.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(rename_all = "kebab-case")]
        #[repr(u8)]
        pub enum ArqProtocol {
            $($(#[$help])* $name = $code,)+
        }

        impl ArqProtocol {
            /// Returns the protocol with this number in a setup frame.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }
        }

        /// The policy of any of the protocols. Uses a `match` instead of a virtual call, because it runs for every packet.
        #[derive(Clone, Debug)]
        pub enum AnyPolicy {
            $(#[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)+
        }

        impl AnyPolicy {
            /// Returns the policy of these settings.
            #[must_use]
            pub fn of(config: &ArqConfig) -> Self {
                match config.kind { $(ArqProtocol::$name => Self::$name($name::of(config)),)+ }
            }

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

            /// See [`RetransmissionPolicy::gap`].
            #[must_use]
            pub fn gap(&self) -> u64 {
                match self { $(Self::$name(d) => d.gap(),)+ }
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

pub(super) use protocols;
