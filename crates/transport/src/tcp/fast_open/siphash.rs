//! SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), with which Linux computes cookies.

/// Returns the hash of `data` as little-endian bytes.
pub fn siphash(key: &[u8; 16], data: &[u8]) -> [u8; 8] {
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let chunks = data.chunks_exact(8);
    let tail = word(chunks.remainder()) | (data.len() as u64) << 56;
    for block in chunks.map(word).chain([tail]) {
        v[3] ^= block;
        rounds(&mut v, 2);
        v[0] ^= block;
    }
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    (v[0] ^ v[1] ^ v[2] ^ v[3]).to_le_bytes()
}

/// Reads up to eight little-endian bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn rounds(v: &mut [u64; 4], count: u32) {
    for _ in 0..count {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_vector_of_the_paper() {
        // Appendix A: key 00..0f, message 00..0e.
        let key = std::array::from_fn(|index| index as u8);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(siphash(&key, &message), 0xa129_ca61_49be_45e5_u64.to_le_bytes());
    }
}
