//! Named paths with typical values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{LinkConfig, PathConfig};

/// The end of the subscriber of an asymmetric preset. The forward direction leads from the near end to the far end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subscriber {
    /// The far end: forward is the download, as from a server to a home.
    #[default]
    Far,
    /// The near end: forward is the upload.
    Near,
}

/// Declares presets: the doc comment is the help for users, and the keys are those of a path in JSON; forward is the download.
macro_rules! presets {
    ($($(#[$help:meta])* $preset:ident = $name:literal: $keys:literal,)+) => {
        /// A named path with typical values, which other keys override.
        ///
        /// An asymmetric preset has a subscriber at one end ([`Subscriber`]).
        ///
        /// LTE: median rates of Huang et al., "A close examination of performance and power characteristics of 4G LTE networks",
        /// MobiSys 2012; the radio layer retransmits, hence jitter and no loss. 3G and 4G: rates and RTTs of WebPageTest's profiles "3G"
        /// and "4G" (`connectivity.ini.sample`), half of the RTT each way. 5G: Ookla's worldwide median rates of 5G in the third
        /// quarter of 2021 (166.13 and 21.08 Mbit/s), and half of the lowest 5G latency of operators in the United States in the
        /// second quarter of 2023 (51 ms). Queues of mobile networks are deep (Jiang et al., "Tackling bufferbloat in 3G/4G
        /// networks", IMC 2012); their limits are typical, not measured. ADSL2+: ITU-T G.992.5, with the delay of an
        /// interleaver. Satellite: RFC 2488, section 2 (279 ms one way at the edge of the beam). The other values are typical, not
        /// measured.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[schemars(description = "A named path with typical values, which other keys override.")]
        pub enum Preset {
            $($(#[$help])* #[serde(rename = $name)] $preset,)+
        }

        impl Preset {
            /// All presets.
            pub const ALL: &[Self] = &[$(Self::$preset,)+];

            /// Returns the name in study files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$preset => $name,)+ }
            }

            /// Returns the keys of the preset; forward is the download.
            ///
            /// # Panics
            /// If the keys of a preset are invalid.
            #[must_use]
            pub fn path(self) -> PathConfig {
                let keys = match self { $(Self::$preset => $keys,)+ };
                serde_json::from_str(keys).expect("presets have valid keys")
            }
        }
    };
}

presets! {
    /// Switched Ethernet: 1 Gbit/s, 0.1 ms, 500 packets.
    Lan = "lan": r#"{"rate": "1Gbit/s", "delay": "0.1ms", "queue": "500pkt"}"#,
    /// Home wireless network: 100 Mbit/s, 2 ms ± 1 ms, 0.1 % loss, 250 packets.
    Wifi = "wifi": r#"{"rate": "100Mbit/s", "delay": "2ms", "jitter": "1ms", "loss": "0.1%", "queue": "250pkt"}"#,
    /// 3G phone: 1.6 Mbit/s down and 768 kbit/s up, 150 ms, a deep queue of 100 packets.
    ThirdGeneration = "3g": r#"{"rate": "1.6Mbit/s", "delay": "150ms", "queue": "100pkt", "reverse": {"rate": "768kbit/s"}}"#,
    /// 4G phone: 9 Mbit/s, 85 ms, a deep queue of 300 packets.
    FourthGeneration = "4g": r#"{"rate": "9Mbit/s", "delay": "85ms", "queue": "300pkt"}"#,
    /// 5G phone: 166 Mbit/s down and 21 Mbit/s up, 25 ms, a deep queue of 2000 packets down and 500 up.
    FifthGeneration = "5g": r#"{"rate": "166Mbit/s", "delay": "25ms", "queue": "2000pkt", "reverse": {"rate": "21Mbit/s", "queue": "500pkt"}}"#,
    /// Mobile phone: 13 Mbit/s down and 6 Mbit/s up, 35 ms ± 5 ms, a deep queue of 500 packets.
    Lte = "lte": r#"{"rate": "13Mbit/s", "delay": "35ms", "jitter": "5ms", "queue": "500pkt", "reverse": {"rate": "6Mbit/s"}}"#,
    /// ADSL2+: 16 Mbit/s down and 1 Mbit/s up, 15 ms, 100 packets down and 64 KiB up.
    Dsl = "dsl": r#"{"rate": "16Mbit/s", "delay": "15ms", "queue": "100pkt", "reverse": {"rate": "1Mbit/s", "queue": "64KiB"}}"#,
    /// New York to London: 1 Gbit/s, 38 ms, 0.01 % loss, a queue of 4 MB.
    Transatlantic = "transatlantic": r#"{"rate": "1Gbit/s", "delay": "38ms", "loss": "0.01%", "queue": "4MB"}"#,
    /// Geostationary satellite: 50 Mbit/s down and 10 Mbit/s up, 280 ms, 0.01 % loss, 1000 packets.
    GeoSatellite = "geo-satellite": r#"{"rate": "50Mbit/s", "delay": "280ms", "loss": "0.01%", "queue": "1000pkt", "reverse": {"rate": "10Mbit/s"}}"#,
}

impl Preset {
    /// Returns the forward and reverse keys, with the subscriber at the given end.
    #[must_use]
    pub fn directions(self, subscriber: Subscriber) -> (LinkConfig, LinkConfig) {
        let path = self.path();
        let download = path.link_keys();
        let upload = path.reverse.unwrap_or_default().or(&download);
        match subscriber {
            Subscriber::Far => (download, upload),
            Subscriber::Near => (upload, download),
        }
    }
}
