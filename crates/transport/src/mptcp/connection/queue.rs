//! The data assigned to a subflow that has no room for it.

use std::collections::VecDeque;

/// Half-open ranges of the data, in the order of transmission.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ranges: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Queue {
    /// Returns the queued bytes, including bytes that meanwhile arrived on another subflow.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether no range is left, used up or not.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Appends `start..end`.
    pub fn push(&mut self, start: u64, end: u64) {
        self.bytes += end - start;
        match self.ranges.back_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.ranges.push_back((start, end)),
        }
    }

    /// Removes and returns at most `most` bytes, skipping those below `una`. A used-up range stays until the next
    /// call.
    pub fn pop(&mut self, most: u64, una: u64) -> Option<(u64, u64)> {
        while let Some(front) = self.ranges.front_mut() {
            let start = front.0.max(una);
            if start >= front.1 {
                self.bytes -= front.1 - front.0;
                self.ranges.pop_front();
                continue;
            }
            let end = front.1.min(start + most);
            self.bytes -= end - front.0;
            front.0 = end;
            return Some((start, end));
        }
        None
    }

    /// Drops the leading ranges below `una` and returns whether any range is left.
    pub fn waits(&mut self, una: u64) -> bool {
        while let Some(&(start, end)) = self.ranges.front().filter(|&&(_, end)| end <= una) {
            self.ranges.pop_front();
            self.bytes -= end - start;
        }
        !self.ranges.is_empty()
    }

    /// Removes and returns all ranges.
    pub fn take(&mut self) -> VecDeque<(u64, u64)> {
        self.bytes = 0;
        std::mem::take(&mut self.ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(queue: &Queue) -> u64 {
        queue.ranges.iter().map(|(start, end)| end - start).sum()
    }

    #[test]
    fn counts_bytes_of_all_ranges() {
        let mut queue = Queue::default();
        for (start, end) in [(1, 1001), (1001, 1501), (3001, 4001), (2001, 2501)] {
            queue.push(start, end);
            assert_eq!(queue.bytes(), sum(&queue));
        }
        assert_eq!(queue.ranges.len(), 3);
        assert_eq!(queue.pop(800, 0), Some((1, 801)));
        assert_eq!((queue.bytes(), sum(&queue)), (2200, 2200));
        assert_eq!(
            queue.pop(800, 1401),
            Some((1401, 1501)),
            "the rest arrived on another subflow"
        );
        assert_eq!((queue.bytes(), sum(&queue)), (1500, 1500));
        assert_eq!(
            queue.pop(1000, 0),
            Some((3001, 4001)),
            "ranges do not merge across a gap"
        );
        assert_eq!((queue.bytes(), sum(&queue)), (500, 500));
        assert!(queue.waits(4000));
        assert!(!queue.waits(4001));
        assert_eq!((queue.bytes(), queue.pop(800, 0)), (0, None));
        queue.push(1, 11);
        assert_eq!((queue.take().len(), queue.bytes()), (1, 0));
    }
}
