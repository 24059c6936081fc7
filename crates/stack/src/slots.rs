//! Storage whose keys are never reused.

/// Uses of a slot after which it is retired. The two highest bits of a key's number stay free for its users.
const LAST_AGE: u32 = (1 << 30) - 1;

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
    /// Number of slots without a value that are not used again.
    retired: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            retired: 0,
        }
    }
}

impl<T> Slots<T> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len() - self.retired
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
        if *age == LAST_AGE {
            self.retired += 1;
        } else {
            *age += 1;
            self.free.push(key.index);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retires_a_slot_after_its_last_key() {
        let mut slots = Slots::default();
        let first = slots.add('a');
        assert_eq!((slots.remove(first), slots.get(first)), (Some('a'), None));
        // As after all uses but two.
        slots.slots[0].0 = LAST_AGE - 1;
        let mut keys = vec![first];
        for value in ['b', 'c', 'd'] {
            let key = slots.add(value);
            assert!(keys.iter().all(|stale| slots.get(*stale).is_none()), "{value}");
            assert_eq!((slots.get(key), slots.len()), (Some(&value), 1));
            assert_eq!(key.number() >> 62, 0);
            assert_eq!(Key::from_number(key.number()), key);
            assert_eq!((slots.remove(key), slots.remove(key)), (Some(value), None));
            assert!(slots.is_empty());
            keys.push(key);
        }
        assert_eq!(keys.iter().map(|key| key.index).collect::<Vec<_>>(), [0, 0, 0, 1]);
    }
}
