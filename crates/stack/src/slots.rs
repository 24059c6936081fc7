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

/// Values by key.
#[derive(Debug)]
pub struct Slots<T> {
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
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values, in the order of their slots.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, slot)| slot.as_ref())
    }

    /// Adds a value and returns its key.
    pub fn add(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (age, slot) = &mut self.slots[index as usize];
        *slot = Some(value);
        Key { index, age: *age }
    }

    /// Returns the value of a key; `None` if it was removed.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let (age, slot) = self.slots.get(key.index as usize)?;
        slot.as_ref().filter(|_| *age == key.age)
    }

    /// Returns the value of a key; `None` if it was removed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (age, slot) = self.slots.get_mut(key.index as usize)?;
        slot.as_mut().filter(|_| *age == key.age)
    }

    /// Removes and returns the value of a key.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (age, slot) = self.slots.get_mut(key.index as usize)?;
        if *age != key.age {
            return None;
        }
        let value = slot.take()?;
        // The two highest bits of a key's number stay free for its users.
        *age = (*age + 1) & 0x3fff_ffff;
        self.free.push(key.index);
        Some(value)
    }
}
