//! The connections of a stack, by number and by endpoints.

use std::collections::HashMap;

use transport::tcp::wire::Endpoints;

use crate::stream::Stream;

/// Identifies a stream of one stack. Slots are reused with a new generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    place: u32,
    age: u32,
}

#[derive(Debug, Default)]
struct Slot {
    age: u32,
    stream: Option<Box<Stream>>,
}

/// All streams of a stack.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// For lookups only: iteration order would not be deterministic.
    by_endpoints: HashMap<Endpoints, StreamId>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn find(&self, endpoints: Endpoints) -> Option<StreamId> {
        self.by_endpoints.get(&endpoints).copied()
    }

    pub(crate) fn add(&mut self, stream: Stream) -> StreamId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[place as usize];
        let id = StreamId { place, age: slot.age };
        self.by_endpoints.insert(stream.endpoints, id);
        slot.stream = Some(Box::new(stream));
        id
    }

    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        let slot = self.slots.get(id.place as usize)?;
        slot.stream.as_deref().filter(|_| slot.age == id.age)
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let slot = self.slots.get_mut(id.place as usize)?;
        slot.stream.as_deref_mut().filter(|_| slot.age == id.age)
    }

    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        let slot = self.slots.get_mut(id.place as usize)?;
        if slot.age != id.age {
            return None;
        }
        let stream = slot.stream.take()?;
        slot.age = slot.age.wrapping_add(1);
        self.free.push(id.place);
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
