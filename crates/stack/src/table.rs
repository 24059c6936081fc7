//! The connections of a stack, by number and by endpoints.

use std::collections::HashMap;

use transport::tcp::wire::Endpoints;

use crate::slots::{Key, Slots};
use crate::stream::Stream;

/// Identifies a stream of one stack. IDs are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(Key);

/// All streams of a stack.
#[derive(Debug, Default)]
pub(crate) struct Table {
    streams: Slots<Box<Stream>>,
    /// For lookups only: iteration order would not be deterministic.
    by_endpoints: HashMap<Endpoints, StreamId>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(crate) fn find(&self, endpoints: Endpoints) -> Option<StreamId> {
        self.by_endpoints.get(&endpoints).copied()
    }

    pub(crate) fn add(&mut self, stream: Stream) -> StreamId {
        let endpoints = stream.endpoints;
        let id = StreamId(self.streams.add(Box::new(stream)));
        self.by_endpoints.insert(endpoints, id);
        id
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(id.0).map(Box::as_ref)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.values().map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.get_mut(id.0).map(Box::as_mut)
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.streams.remove(id.0)?;
        if self.find(stream.endpoints) == Some(id) {
            self.by_endpoints.remove(&stream.endpoints);
        }
        Some(*stream)
    }

    /// Frees the endpoints of a stream for another one. The stream keeps its ID.
    pub(crate) fn give_up_endpoints(&mut self, endpoints: Endpoints) {
        self.by_endpoints.remove(&endpoints);
    }
}
