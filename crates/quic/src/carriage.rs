//! What carries the data of a connection.

/// What carries the data of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carriage {
    /// One stream.
    #[default]
    Stream,
    /// A stream for each request and its response.
    Exchanges,
    /// A stream for each real-time frame.
    Frames,
    /// DATAGRAM frames, one or several for each real-time frame (RFC 9221).
    Datagrams,
}

impl Carriage {
    /// Returns whether each message of the application is carried on its own.
    #[must_use]
    pub const fn has_messages(self) -> bool {
        !matches!(self, Self::Stream)
    }
}
