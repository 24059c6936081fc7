//! The ACE field during the handshake: negotiation, and reflection of the IP header's code point (RFC 9768, section 3.1).

use crate::tcp::segment::Ecn;

/// The feedback that the flags of a SYN or SYN-ACK ask for or accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// No ECN.
    None,
    /// That of RFC 3168.
    Classic,
    /// That of RFC 9768.
    Accurate,
}

/// ACE of a SYN that requests accurate feedback: AE, CWR and ECE.
pub const REQUEST: u8 = 0b111;

/// Returns what a SYN asks for. Combinations that have no meaning yet count as a request for accurate feedback (section
/// 3.1.3).
pub const fn requested(ace: u8) -> Feedback {
    match ace {
        0b000 => Feedback::None,
        0b011 => Feedback::Classic,
        _ => Feedback::Accurate,
    }
}

/// Returns what a SYN-ACK accepts, if the SYN asked for accurate feedback (section 3.1.2, table 2). The reserved value 5 counts
/// as acceptance (section 3.1.3).
pub const fn accepted(ace: u8) -> Feedback {
    match ace {
        0b000 | 0b111 => Feedback::None,
        0b001 => Feedback::Classic,
        _ => Feedback::Accurate,
    }
}

/// Returns the ACE field that reports the code point of a SYN (section 3.1.2, table 2) or SYN-ACK (section 3.2.2.1, table 3).
pub const fn reflection(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Returns the code point that an ACE field of the handshake reports; `None` for values without a meaning, which must
/// not be taken as a sign of a broken path, and for 0, which is one (section 3.2.2.1, table 4 with its notes).
pub const fn reflected(ace: u8) -> Option<Ecn> {
    match ace {
        0b010 => Some(Ecn::NotEct),
        0b011 => Some(Ecn::Ect1),
        0b100 => Some(Ecn::Ect0),
        0b110 => Some(Ecn::Ce),
        _ => None,
    }
}

/// Whether a path that forwards ECN correctly can change the code point of a packet in this way (section 3.2.2.3).
pub fn is_valid_change(sent: Ecn, received: Ecn) -> bool {
    sent == received || !(sent == Ecn::NotEct || received == Ecn::NotEct || sent == Ecn::Ce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];

    #[test]
    fn every_code_point_is_reflected() {
        for ecn in ALL {
            assert_eq!(reflected(reflection(ecn)), Some(ecn));
            assert_eq!(accepted(reflection(ecn)), Feedback::Accurate);
        }
        assert_eq!([0, 1, 5, 7].map(reflected), [None; 4]);
    }

    /// RFC 9768, section 3.2.2.3: not-ECT stays as it is, ECT becomes CE or the other ECT, and CE stays.
    #[test]
    fn changes_of_a_correct_path_are_valid() {
        let valid: Vec<(Ecn, Ecn)> = ALL
            .into_iter()
            .flat_map(|sent| ALL.map(|received| (sent, received)))
            .filter(|&(sent, received)| is_valid_change(sent, received))
            .collect();
        assert_eq!(
            valid,
            [
                (Ecn::NotEct, Ecn::NotEct),
                (Ecn::Ect0, Ecn::Ect0),
                (Ecn::Ect0, Ecn::Ect1),
                (Ecn::Ect0, Ecn::Ce),
                (Ecn::Ect1, Ecn::Ect0),
                (Ecn::Ect1, Ecn::Ect1),
                (Ecn::Ect1, Ecn::Ce),
                (Ecn::Ce, Ecn::Ce),
            ]
        );
    }
}
