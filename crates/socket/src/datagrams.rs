//! A UDP socket that sends and receives trains of datagrams with one system call: GSO, GRO and `recvmmsg` where the
//! system supports them, otherwise one datagram at a time.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use foundation::Ecn;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes of one receive slot: the largest datagram, or the largest train joined by GRO.
const SLOT: usize = 65_536;
/// Fewest bytes for which a whole receive buffer may be kept instead of copied: the rest of it is lost until then.
pub const MIN_SHARED: usize = SLOT / 32 * 31;
/// Most kept buffers that an inbox recycles.
const MAX_LENT: usize = 128;
/// Most bytes in one train: GSO cuts a train from one IP packet.
pub const MAX_TRAIN: usize = 65_000;
/// Longest UDP payload over IPv4.
#[cfg(target_os = "linux")]
const MAX_DATAGRAM: usize = 65_507;
/// Requested size of each socket buffer; the system may grant less.
const SOCKET_BUFFER: usize = 16 << 20;

/// A remote address, and the local address that it sends to. Replies leave from that local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The peer's address.
    pub address: SocketAddr,
    /// The local address that the peer sends to, where the system reports it.
    pub local: Option<IpAddr>,
}

impl Peer {
    /// A peer that is reached from any local address that the system chooses.
    #[must_use]
    pub const fn new(address: SocketAddr) -> Self {
        Self { address, local: None }
    }
}

/// A nonblocking UDP socket.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Datagrams {
    /// Opens a socket that receives from everybody.
    ///
    /// # Errors
    /// The system's, if the address is in use or does not belong to this machine.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(address, None)
    }

    /// Opens a socket for one peer. It reports when the peer's port is closed.
    ///
    /// # Errors
    /// The system's, if there is no route to the peer.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = if peer.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        Self::new(any, Some(peer))
    }

    /// As [`connect`](Self::connect), from a local address; port 0 stands for any.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or if the address does not belong to this machine.
    pub fn connect_from(local: SocketAddr, peer: SocketAddr) -> io::Result<Self> {
        Self::new(local, Some(peer))
    }

    fn new(address: SocketAddr, peer: Option<SocketAddr>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind(&address.into())?;
        enlarge_buffers(&socket);
        // Other systems refuse an explicit destination on a connected socket, which trains need.
        if let Some(peer) = peer.filter(|_| cfg!(target_os = "linux")) {
            socket.connect(&peer.into())?;
        }
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// Returns the local address.
    ///
    /// # Errors
    /// The system's.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the socket, to wait for it.
    #[must_use]
    pub const fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns how many datagrams one train may contain.
    #[must_use]
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Returns the longest datagram to the peer of a connected socket that the local interface carries; 0 if unknown.
    #[must_use]
    pub fn longest_datagram(&self) -> usize {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt;
            let is_ipv4 = self.socket.local_addr().is_ok_and(|address| address.is_ipv4());
            let (mtu, headers) = if is_ipv4 {
                (sockopt::ip_mtu(&self.socket), 20 + 8)
            } else {
                (sockopt::ipv6_mtu(&self.socket), 40 + 8)
            };
            let mtu = mtu.map_or(0, |mtu| usize::try_from(mtu).unwrap_or(0));
            mtu.saturating_sub(headers).min(MAX_DATAGRAM)
        }
        #[cfg(not(target_os = "linux"))]
        {
            0
        }
    }

    /// Fills `inbox` and returns the number of filled slots; 0 if nothing has arrived.
    ///
    /// # Errors
    /// The system's, among them `ConnectionRefused` on a connected socket: the peer's port is closed.
    pub fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        inbox.reclaim();
        let slots = inbox.meta.len();
        let mut parts = inbox.slots.iter_mut().filter_map(Arc::get_mut);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().map_or(&mut [], Vec::as_mut_slice)));
        inbox.filled = 0;
        match self
            .state
            .recv((&self.socket).into(), &mut buffers[..slots], &mut inbox.meta)
        {
            Ok(filled) => {
                inbox.filled = filled;
                Ok(filled)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a train: datagrams of `segment` bytes each; only the last may be shorter.
    ///
    /// # Errors
    /// The system's: `WouldBlock` if there is no room now (nothing was sent).
    pub fn send(&self, to: Peer, train: &[u8], segment: usize) -> io::Result<()> {
        self.send_marked(to, train, segment, Ecn::NotEct)
    }

    /// As [`send`](Self::send), with this code point in each IP header.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_marked(&self, to: Peer, train: &[u8], segment: usize, ecn: Ecn) -> io::Result<()> {
        let mut sent = 0;
        while sent < train.len() {
            // The limit falls to one if the system turns out not to segment.
            let most = self.max_segments().max(1) * segment;
            let part = &train[sent..train.len().min(sent + most)];
            let transmit = Transmit {
                destination: to.address,
                ecn: match ecn {
                    Ecn::NotEct => None,
                    Ecn::Ect0 => Some(EcnCodepoint::Ect0),
                    Ecn::Ect1 => Some(EcnCodepoint::Ect1),
                    Ecn::Ce => Some(EcnCodepoint::Ce),
                },
                contents: part,
                segment_size: (part.len() > segment).then_some(segment),
                src_ip: to.local,
            };
            match self.state.try_send((&self.socket).into(), &transmit) {
                Ok(()) => sent += part.len(),
                // A part of the train has left; the rest is lost, as at a router whose queue is full.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && sent > 0 => return Ok(()),
                Err(_) if part.len() > segment && self.max_segments() * segment < part.len() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn enlarge_buffers(socket: &Socket) {
    // Best effort. Congestion control adapts to whatever the system grants.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        // A privileged process may exceed the system-wide limit.
        let _ = sockopt::set_socket_recv_buffer_size_force(socket, SOCKET_BUFFER);
    }
}

/// Receive slots for [`Datagrams::receive`].
#[derive(Debug)]
pub struct Inbox {
    slots: Vec<Arc<Vec<u8>>>,
    meta: Vec<RecvMeta>,
    filled: usize,
    /// Buffers that somebody kept, oldest first. They are used again after their release.
    lent: VecDeque<Arc<Vec<u8>>>,
}

fn new_slot() -> Arc<Vec<u8>> {
    Arc::new(vec![0; SLOT])
}

impl Inbox {
    /// Allocates room for `slots` datagrams or trains, at most the system's batch size.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let slots = slots.clamp(1, BATCH_SIZE);
        Self {
            slots: std::iter::repeat_with(new_slot).take(slots).collect(),
            meta: vec![RecvMeta::default(); slots],
            filled: 0,
            lent: VecDeque::new(),
        }
    }

    /// An empty inbox, left in place of one that is being read.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            slots: Vec::new(),
            meta: Vec::new(),
            filled: 0,
            lent: VecDeque::new(),
        }
    }

    /// Replaces the buffers that were kept.
    fn reclaim(&mut self) {
        for slot in &mut self.slots[..self.filled] {
            if Arc::get_mut(slot).is_some() {
                continue;
            }
            let is_released = self
                .lent
                .front_mut()
                .is_some_and(|buffer| Arc::get_mut(buffer).is_some());
            let next = if is_released { self.lent.pop_front() } else { None };
            self.lent
                .push_back(std::mem::replace(slot, next.unwrap_or_else(new_slot)));
            if self.lent.len() > MAX_LENT {
                self.lent.pop_front();
            }
        }
    }

    /// Returns the received trains in order.
    pub fn trains(&self) -> impl Iterator<Item = Train<'_>> {
        let slots = self.slots.iter().zip(&self.meta);
        slots.take(self.filled).map(|(buffer, meta)| Train {
            from: Peer {
                address: meta.addr,
                local: meta.dst_ip,
            },
            stamp: meta.timestamp,
            ecn: meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
            bytes: &buffer[..meta.len],
            stride: meta.stride.max(1),
        })
    }

    /// Returns the received trains in order. Each can be read once: a kept buffer no longer belongs to the inbox.
    pub fn trains_mut(&mut self) -> impl Iterator<Item = TrainMut<'_>> {
        let slots = self.slots.iter_mut().zip(&self.meta);
        slots.take(self.filled).map(|(buffer, meta)| TrainMut {
            from: Peer {
                address: meta.addr,
                local: meta.dst_ip,
            },
            buffer,
            length: meta.len,
            stride: meta.stride.max(1),
        })
    }
}

/// Datagrams that arrived together from one peer, which may be decrypted in place.
#[derive(Debug)]
pub struct TrainMut<'a> {
    /// Where they came from.
    pub from: Peer,
    buffer: &'a mut Arc<Vec<u8>>,
    length: usize,
    stride: usize,
}

impl<'a> TrainMut<'a> {
    /// Returns the datagrams in order, without empty ones.
    pub fn datagrams(self) -> impl Iterator<Item = DatagramMut<'a>> {
        let is_whole = self.length <= self.stride && self.length >= MIN_SHARED;
        let (whole, parts) = if is_whole {
            (Some(DatagramMut::Whole(self.buffer, self.length)), &mut [][..])
        } else {
            let bytes = Arc::get_mut(self.buffer).map_or(&mut [][..], |bytes| &mut bytes[..self.length]);
            (None, bytes)
        };
        whole
            .into_iter()
            .chain(parts.chunks_mut(self.stride).map(DatagramMut::Part))
    }
}

/// A received datagram.
#[derive(Debug)]
pub enum DatagramMut<'a> {
    /// It shares its receive buffer with others, or leaves most of it empty.
    Part(&'a mut [u8]),
    /// It fills its receive buffer up to this length. The buffer may be kept.
    Whole(&'a mut Arc<Vec<u8>>, usize),
}

impl DatagramMut<'_> {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Part(bytes) => bytes,
            Self::Whole(buffer, length) => &buffer[..*length],
        }
    }

    /// Returns the bytes for changes; none if the buffer was kept already.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Part(bytes) => bytes,
            Self::Whole(buffer, length) => {
                Arc::get_mut(buffer).map_or(&mut [], |bytes| &mut bytes[..*length])
            }
        }
    }

    /// Returns the receive buffer, to keep it, if the datagram fills it.
    #[must_use]
    pub fn buffer(&self) -> Option<&Arc<Vec<u8>>> {
        match self {
            Self::Part(_) => None,
            Self::Whole(buffer, _) => Some(buffer),
        }
    }
}

/// Datagrams that arrived together from one peer.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// Where they came from.
    pub from: Peer,
    /// When the kernel received the first, on the system's wall clock, if known.
    pub stamp: Option<std::time::Duration>,
    /// Their ECN code point.
    pub ecn: Ecn,
    bytes: &'a [u8],
    stride: usize,
}

impl<'a> Train<'a> {
    /// Returns the datagrams in order, without empty ones.
    pub fn datagrams(self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.stride)
    }
}
