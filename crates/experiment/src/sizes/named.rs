//! Parameters of published flow size distributions.

/// A lognormal component: weight, sigma of the logarithm, median in bytes.
pub type Lognormal = (f64, f64, f64);

/// Sizes of TCP flows on the border of a university's campus over 30 days: Jurkiewicz, Rzym, Boryło, "Flow length and
/// size distributions in campus Internet traffic", Computer Communications 167 (2021), the fit for TCP by flows.
pub const CAMPUS: [Lognormal; 8] = [
    (0.356_22, 0.3907, 97.45),
    (0.245_96, 0.8091, 309.4),
    (0.299_37, 1.0768, 2126.7),
    (0.080_65, 1.3083, 25_681.0),
    (0.015_039, 1.3513, 416_681.0),
    (0.002_074_7, 1.0825, 5_602_172.0),
    (0.000_682_63, 1.0191, 53_432_349.0),
    (8.2e-6, 1.1905, 5.14e8),
];

/// A point of a cumulative distribution: size in bytes, and the share of flows of at most this size.
pub type Point = (f64, f64);

/// Web search: Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010, figure 4, in the points that later work uses.
pub const WEB_SEARCH: [Point; 12] = [
    (1.0, 0.0),
    (10_000.0, 0.15),
    (20_000.0, 0.2),
    (30_000.0, 0.3),
    (50_000.0, 0.4),
    (80_000.0, 0.53),
    (200_000.0, 0.6),
    (1_000_000.0, 0.7),
    (2_000_000.0, 0.8),
    (5_000_000.0, 0.9),
    (10_000_000.0, 0.97),
    (30_000_000.0, 1.0),
];

/// Payload of a full packet, the unit of the next distribution.
const PACKET: f64 = 1460.0;

/// Data mining: Greenberg et al., "VL2", SIGCOMM 2009, in the points that Alizadeh et al., "pFabric", SIGCOMM 2013, uses.
pub const DATA_MINING: [Point; 9] = [
    (PACKET, 0.0),
    (PACKET, 0.5),
    (2.0 * PACKET, 0.6),
    (3.0 * PACKET, 0.7),
    (7.0 * PACKET, 0.8),
    (267.0 * PACKET, 0.9),
    (2107.0 * PACKET, 0.95),
    (66_667.0 * PACKET, 0.99),
    (666_667.0 * PACKET, 1.0),
];
