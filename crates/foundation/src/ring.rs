//! A first-in, first-out ring of values that can be copied.

/// A growing ring. Its capacity is a power of two, so that a position is one bit mask; links and TCP push and pop per packet.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    values: Box<[T]>,
    /// Numbers of the first value and of the next one, counted from the start of the ring; they wrap.
    head: u32,
    tail: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            values: Box::default(),
            head: 0,
            tail: 0,
        }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head) as usize
    }

    /// Whether there are no values.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline]
    fn position(&self, number: u32) -> usize {
        number as usize & self.values.len().wrapping_sub(1)
    }

    /// Adds a value at the end.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len() == self.values.len() {
            self.grow();
        }
        let position = self.position(self.tail);
        self.values[position] = value;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Doubles the capacity.
    #[cold]
    fn grow(&mut self) {
        let capacity = (self.values.len() * 2).max(4);
        let mut values = Vec::with_capacity(capacity);
        values.extend(self.iter_from(0));
        self.tail = values.len() as u32;
        self.head = 0;
        values.resize(capacity, T::default());
        self.values = values.into_boxed_slice();
    }

    /// Returns the first value.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        if self.head == self.tail {
            return None;
        }
        self.values.get(self.position(self.head))
    }

    /// Returns the value at `index` from the front.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len() {
            return None;
        }
        self.values
            .get(self.position(self.head.wrapping_add(index as u32)))
    }

    /// Returns the value at `index` from the front, to change it.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        let position = self.position(self.head.wrapping_add(index as u32));
        self.values.get_mut(position)
    }

    /// Removes the first value, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.head = self.head.wrapping_add(1);
        Some(value)
    }

    /// Removes the first `count` values, or all.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count.min(self.len()) as u32);
    }

    /// Returns the last value.
    #[inline]
    #[must_use]
    pub fn back(&self) -> Option<&T> {
        if self.head == self.tail {
            return None;
        }
        self.values.get(self.position(self.tail.wrapping_sub(1)))
    }

    /// Removes the last value, if there is one.
    pub fn pop_back(&mut self) -> Option<T> {
        let value = *self.back()?;
        self.tail = self.tail.wrapping_sub(1);
        Some(value)
    }

    /// Returns the values in order, without the first `skipped`.
    pub fn iter_from(&self, skipped: usize) -> impl Iterator<Item = T> + '_ {
        (skipped..self.len()).map(|number| self.values[self.position(self.head.wrapping_add(number as u32))])
    }

    /// Returns all values in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.iter_from(0)
    }

    /// Returns the number of values at the front for which `is_before` is true; it is false for all later ones.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(&self.values[self.position(self.head.wrapping_add(middle as u32))]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_like_a_queue(actions in prop::collection::vec(0..6, 0..300), start in any::<u32>()) {
            // Any start covers numbers that wrap.
            let mut ring = Ring { values: Box::default(), head: start, tail: start };
            let mut model = VecDeque::new();
            for (number, action) in actions.into_iter().enumerate() {
                match action {
                    0..3 => {
                        ring.push(number);
                        model.push_back(number);
                    }
                    3 => prop_assert_eq!(ring.pop(), model.pop_front()),
                    4 => {
                        ring.skip(number % 4);
                        model.drain(..model.len().min(number % 4));
                    }
                    _ => prop_assert_eq!(ring.pop_back(), model.pop_back()),
                }
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.back(), model.back());
                let index = number % 7;
                prop_assert_eq!(ring.get(index), model.get(index));
                prop_assert_eq!(ring.get_mut(index), model.get_mut(index));
                prop_assert_eq!(ring.is_empty(), model.is_empty());
                prop_assert_eq!(ring.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                let limit = number / 2;
                prop_assert_eq!(ring.partition_point(|&value| value < limit), model.partition_point(|&value| value < limit));
            }
        }
    }
}
