//! Storage whose keys are never reused.

/// A key of a slot: its index and how often the slot was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    age: u32,
}

impl Key {
    /// Returns the key as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        (self.age as u64) << 32 | self.index as u64
    }

    /// Returns the key of a [`number`](Self::number).
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        Self {
            index: number as u32,
            age: (number >> 32) as u32,
        }
    }
}

/// A table of values.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn add(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (age, slot) = &mut self.slots[index as usize];
        *slot = Some(value);
        Key { index, age: *age }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let (age, slot) = self.slots.get(key.index as usize)?;
        slot.as_ref().filter(|_| *age == key.age)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (age, slot) = self.slots.get_mut(key.index as usize)?;
        slot.as_mut().filter(|_| *age == key.age)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let (age, slot) = self.slots.get_mut(key.index as usize)?;
        if *age != key.age {
            return None;
        }
        let value = slot.take()?;
        // The two highest bits stay free for the tokens of the event loop.
        *age = (*age + 1) & 0x3fff_ffff;
        self.free.push(key.index);
        Some(value)
    }
}
