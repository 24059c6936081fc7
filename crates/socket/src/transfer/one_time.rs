//! One-time codes: a code admits senders until one of them finishes, and a new code replaces it then. A sender that is
//! interrupted before resumes with the same code.

use std::collections::HashMap;

use security::Code;

use crate::error::{Error, random};

/// The codes of a receiver, by number.
#[derive(Debug, Default)]
pub struct OneTimeCodes {
    /// The number of the current code, from 0.
    current: u64,
    /// The number of the code of each connection.
    admitted: HashMap<u64, u64>,
}

impl OneTimeCodes {
    /// Records that the current code has admitted connection `number`.
    pub fn admit(&mut self, number: u64) {
        self.admitted.insert(number, self.current);
    }

    /// Handles the end of connection `number`.
    pub fn forget(&mut self, number: u64) {
        self.admitted.remove(&number);
    }

    /// Handles a sender on connection `number` that has finished. Returns a new code if it used the current one.
    ///
    /// # Errors
    /// [`Error`] if the system has no randomness.
    pub fn finish(&mut self, number: u64) -> Result<Option<Code>, Error> {
        if self.admitted.remove(&number) != Some(self.current) {
            return Ok(None);
        }
        self.current += 1;
        random().map(|secret| Some(Code::new(secret)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_sender_ends_its_code_once() {
        let mut codes = OneTimeCodes::default();
        for number in [1, 2, 3] {
            codes.admit(number);
        }
        codes.forget(3);
        let second = codes
            .finish(1)
            .unwrap()
            .expect("the first sender of the first code");
        assert_eq!(codes.finish(1).unwrap(), None, "finished already");
        assert_eq!(codes.finish(2).unwrap(), None, "admitted by the first code");
        codes.admit(4);
        assert_eq!(codes.finish(3).unwrap(), None, "interrupted");
        let third = codes
            .finish(4)
            .unwrap()
            .expect("the first sender of the second code");
        assert_ne!(second, third);
    }
}
