//! Handshake messages with the sizes of TLS 1.3 (RFC 8446, section 4): X25519, AES-128-GCM with SHA-256, an ECDSA signature with
//! P-256, and ALPN "h3". Bodies are zeros, except for the transport parameters.

/// Type and length of a handshake message.
pub(super) const HEADER: usize = 4;

/// A handshake message type (RFC 8446, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Message {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateVerify = 15,
    Finished = 20,
}

/// Header of an extension: type and length.
const EXTENSION: usize = 4;
/// Version, random and an empty session ID, as QUIC requires (RFC 9001, section 8.4).
const HELLO: usize = 2 + 32 + 1;
/// ALPN with "h3".
const ALPN: usize = EXTENSION + 2 + 1 + 2;
/// Extensions of a ClientHello but the transport parameters.
const CLIENT_EXTENSIONS: usize = (EXTENSION + 1 + 2) // supported_versions
    + (EXTENSION + 2 + 2 * 2) // supported_groups
    + (EXTENSION + 2 + 8 * 2) // signature_algorithms
    + (EXTENSION + 2 + 2 + 2 + 32) // key_share
    + (EXTENSION + 2 + 1 + 2 + 11) // server_name "example.com"
    + (EXTENSION + 2) // psk_key_exchange_modes
    + ALPN;

/// A ticket that names a session in the cache of the server.
const TICKET: usize = 32;
/// First byte of the messages of a resumed session.
const RESUMED: u8 = 1;

/// Bytes of the extensions that a message of a resumed session with early data has besides (RFC 8446, sections 4.2.10 and 4.2.11).
const fn resumption(message: Message) -> usize {
    match message {
        // early_data, and pre_shared_key with one identity and a binder of SHA-256.
        Message::ClientHello => EXTENSION + (EXTENSION + 2 + (2 + TICKET + 4) + 2 + (1 + 32)),
        // pre_shared_key.
        Message::ServerHello => EXTENSION + 2,
        // early_data.
        Message::EncryptedExtensions => EXTENSION,
        _ => 0,
    }
}

/// Returns the body of a message. `parameters` are the transport parameters of this end; `resumes` adds the extensions of a resumed
/// session.
pub(super) fn body(message: Message, parameters: &[u8], certificate_chain: usize, resumes: bool) -> Vec<u8> {
    // Cipher suites, compression methods and the length of the extensions follow in the hello of a client.
    let fixed = match message {
        // Lifetime, age, nonce, ticket, and the extension early_data with the size of early data.
        Message::NewSessionTicket => 4 + 4 + (1 + 32) + (2 + TICKET) + 2 + (EXTENSION + 4),
        Message::ClientHello => HELLO + (2 + 3 * 2) + 2 + 2 + CLIENT_EXTENSIONS + EXTENSION,
        // Cipher suite, compression method, supported_versions and key_share.
        Message::ServerHello => HELLO + 2 + 1 + 2 + (EXTENSION + 2) + (EXTENSION + 2 + 2 + 32),
        Message::EncryptedExtensions => 2 + ALPN + EXTENSION,
        // Context, length of the list, and length and extensions of two certificates.
        Message::Certificate => 1 + 3 + 2 * (3 + 2) + certificate_chain,
        // Algorithm, and a signature with a typical DER encoding.
        Message::CertificateVerify => 2 + 2 + 71,
        Message::Finished => 32,
    };
    let mut body = vec![0; fixed + if resumes { resumption(message) } else { 0 }];
    body[0] = if resumes { RESUMED } else { 0 };
    if matches!(message, Message::ClientHello | Message::EncryptedExtensions) {
        body.extend_from_slice(parameters);
    }
    body
}

/// Appends a message with its header.
pub(super) fn write(
    message: Message,
    parameters: &[u8],
    certificate_chain: usize,
    resumes: bool,
    out: &mut Vec<u8>,
) {
    let body = body(message, parameters, certificate_chain, resumes);
    out.push(message as u8);
    out.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&body);
}

/// Takes the first complete message off `buffer`: its type and its body.
pub(super) fn take(buffer: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let &[kind, high, middle, low] = buffer.first_chunk::<HEADER>()?;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if buffer.len() < HEADER + length {
        return None;
    }
    let body = buffer[HEADER..HEADER + length].to_vec();
    buffer.drain(..HEADER + length);
    Some((kind, body))
}

/// Returns whether the message of this body belongs to a resumed session.
pub(super) fn resumes(body: &[u8]) -> bool {
    body.first() == Some(&RESUMED)
}

/// Returns the transport parameters at the end of a message body.
pub(super) fn parameters(message: Message, body: &[u8]) -> &[u8] {
    let fixed = self::body(message, &[], 0, resumes(body)).len();
    body.get(fixed..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ServerHello without session ID and with X25519 has 90 bytes (RFC 8448, section 3).
    #[test]
    fn server_hello_has_the_size_of_rfc_8448() {
        let mut out = Vec::new();
        write(Message::ServerHello, &[1, 2, 3], 0, false, &mut out);
        assert_eq!(out.len(), 90);
    }

    /// A Finished with SHA-256 has 36 bytes (RFC 8448, section 3).
    #[test]
    fn finished_has_the_size_of_rfc_8448() {
        let mut out = Vec::new();
        write(Message::Finished, &[], 0, false, &mut out);
        assert_eq!(out.len(), 36);
    }

    #[test]
    fn messages_survive_any_split() {
        let mut all = Vec::new();
        write(Message::EncryptedExtensions, b"parameters", 0, true, &mut all);
        write(Message::Certificate, &[], 500, false, &mut all);
        let (mut buffer, mut found) = (Vec::new(), Vec::new());
        for byte in all {
            buffer.push(byte);
            found.extend(take(&mut buffer));
        }
        assert_eq!(found.len(), 2);
        assert_eq!(
            parameters(Message::EncryptedExtensions, &found[0].1),
            b"parameters"
        );
        assert_eq!(found[1].1.len(), 1 + 3 + 10 + 500);
    }
}
