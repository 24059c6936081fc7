//! Named paths with typical values.

use foundation::{Duration, Probability, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{LinkConfig, PathConfig};
use crate::impairment::{JitterConfig, LossConfig};
use crate::queue::{QueueConfig, QueueLimit};

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

/// A named path with typical values, which other keys override.
///
/// An asymmetric preset has a subscriber at one end ([`Subscriber`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Switched Ethernet: 1 Gbit/s, 0.1 ms, 500 packets.
    Lan,
    /// Home wireless network: 100 Mbit/s, 2 ms ± 1 ms, 0.1 % loss, 250 packets.
    Wifi,
    /// Mobile phone: 13 Mbit/s down and 6 Mbit/s up, 35 ms ± 5 ms, a deep queue of 500 packets.
    Lte,
    /// ADSL2+: 16 Mbit/s down and 1 Mbit/s up, 15 ms, 100 packets down and 64 KiB up.
    Dsl,
    /// New York to London: 1 Gbit/s, 38 ms, 0.01 % loss, a queue of 4 MB.
    Transatlantic,
    /// Geostationary satellite: 50 Mbit/s down and 10 Mbit/s up, 280 ms, 0.01 % loss, 1000 packets.
    GeoSatellite,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 6] = [
        Self::Lan,
        Self::Wifi,
        Self::Lte,
        Self::Dsl,
        Self::Transatlantic,
        Self::GeoSatellite,
    ];

    /// Returns the name in study files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lan => "lan",
            Self::Wifi => "wifi",
            Self::Lte => "lte",
            Self::Dsl => "dsl",
            Self::Transatlantic => "transatlantic",
            Self::GeoSatellite => "geo-satellite",
        }
    }

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

    /// Returns the keys of the preset; forward is the download.
    ///
    /// LTE: median rates of Huang et al., "A close examination of performance and power characteristics of
    /// 4G LTE networks", MobiSys 2012; the radio layer retransmits, hence jitter and no loss. ADSL2+: ITU-T G.992.5, with
    /// the delay of an interleaver. Satellite: RFC 2488, section 2 (279 ms one way at the edge of the beam). The other values
    /// are typical, not measured.
    #[must_use]
    pub fn path(self) -> PathConfig {
        match self {
            Self::Lan => PathConfig {
                rate: mbit(1000.0),
                delay: millis(0.1),
                queue: packets(500),
                ..PathConfig::default()
            },
            Self::Wifi => PathConfig {
                rate: mbit(100.0),
                delay: millis(2.0),
                jitter: millis(1.0).map(JitterConfig::uniform),
                loss: percent(0.1),
                queue: packets(250),
                ..PathConfig::default()
            },
            Self::Lte => PathConfig {
                rate: mbit(13.0),
                delay: millis(35.0),
                jitter: millis(5.0).map(JitterConfig::uniform),
                queue: packets(500),
                reverse: Some(LinkConfig {
                    rate: mbit(6.0),
                    ..LinkConfig::default()
                }),
                ..PathConfig::default()
            },
            Self::Dsl => PathConfig {
                rate: mbit(16.0),
                delay: millis(15.0),
                queue: packets(100),
                reverse: Some(LinkConfig {
                    rate: mbit(1.0),
                    queue: bytes(65_536),
                    ..LinkConfig::default()
                }),
                ..PathConfig::default()
            },
            Self::Transatlantic => PathConfig {
                rate: mbit(1000.0),
                delay: millis(38.0),
                loss: percent(0.01),
                queue: bytes(4_000_000),
                ..PathConfig::default()
            },
            Self::GeoSatellite => PathConfig {
                rate: mbit(50.0),
                delay: millis(280.0),
                loss: percent(0.01),
                queue: packets(1000),
                reverse: Some(LinkConfig {
                    rate: mbit(10.0),
                    ..LinkConfig::default()
                }),
                ..PathConfig::default()
            },
        }
    }
}

fn mbit(mbit: f64) -> Option<Rate> {
    Rate::from_bits_per_second((mbit * 1e6).round() as u64)
}

fn millis(millis: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(millis / 1e3))
}

fn percent(percent: f64) -> Option<LossConfig> {
    Probability::new(percent / 100.0).map(LossConfig::bernoulli)
}

const fn packets(packets: u64) -> Option<QueueConfig> {
    Some(QueueConfig::drop_tail(QueueLimit::Packets(packets)))
}

const fn bytes(bytes: u64) -> Option<QueueConfig> {
    Some(QueueConfig::drop_tail(QueueLimit::Bytes(Size::from_bytes(bytes))))
}
