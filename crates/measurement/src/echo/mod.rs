//! The server that answers: datagrams, connections and connections with data on their SYN, on one port number.

pub mod message;
