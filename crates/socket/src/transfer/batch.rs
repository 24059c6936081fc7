//! The files of a sender and their results, over all of its connections.

use super::outgoing::{Outcome, Outgoing, total};
use super::reader::Source;
use super::send::SentFile;

/// Files to send, with what is known about each.
#[derive(Debug, Default)]
pub struct Batch {
    sources: Vec<Source>,
    names: Vec<String>,
    outcomes: Vec<Option<Outcome>>,
    resumed: Vec<Option<u64>>,
    /// Bytes of the files that the receiver has.
    there: u64,
    /// Bytes of these files that this sender has sent.
    sent: u64,
    /// Bytes of other files that the receiver had at the end of the last connection. The next one confirms them.
    unconfirmed: u64,
}

/// Progress of a batch.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The current file.
    pub name: &'a str,
    /// Its number.
    pub file: usize,
    /// Number of files.
    pub files: usize,
    /// Bytes of all files that the receiver has.
    pub done: u64,
    /// Bytes of all files, if they are known.
    pub total: Option<u64>,
    /// Whether there is no connection.
    pub waiting: bool,
}

impl Batch {
    /// Adds a file.
    pub fn add(&mut self, source: Source, name: String) {
        self.sources.push(source);
        self.names.push(name);
        self.outcomes.push(None);
        self.resumed.push(None);
    }

    /// Whether every file has a result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.outcomes.iter().all(Option::is_some)
    }

    /// Returns the numbers of the files without a result.
    #[must_use]
    pub fn open(&self) -> Vec<usize> {
        (0..self.outcomes.len())
            .filter(|&file| self.outcomes[file].is_none())
            .collect()
    }

    /// Returns the sources and names of these files.
    #[must_use]
    pub fn select(&self, files: &[usize]) -> (Vec<Source>, Vec<String>) {
        let sources = files.iter().map(|&file| self.sources[file].clone()).collect();
        (
            sources,
            files.iter().map(|&file| self.names[file].clone()).collect(),
        )
    }

    /// Takes over the results of a connection that sent `files`.
    pub fn update(&mut self, files: &[usize], outgoing: &Outgoing) {
        let before = self.there;
        for (at, &file) in files.iter().enumerate() {
            self.outcomes[file].clone_from(&outgoing.outcomes()[at]);
            // Later connections also resume what this sender itself has sent.
            self.resumed[file] = self.resumed[file].or(outgoing.resumed()[at]);
            if let Some(Outcome::Stored(_) | Outcome::Already(_)) = self.outcomes[file] {
                // Standard input is the only file of its connection.
                let size = *self.sources[file].size.get_or_insert(outgoing.streamed());
                self.there += size;
                self.sent += size - self.resumed[file].unwrap_or(0).min(size);
            }
        }
        if outgoing.is_confirmed() {
            self.unconfirmed = outgoing.done().saturating_sub(self.there - before);
        }
    }

    /// Returns the progress while a connection sends `files`.
    #[must_use]
    pub fn state(&self, files: &[usize], outgoing: Option<&Outgoing>) -> State<'_> {
        let current = outgoing.map_or(0, Outgoing::current);
        let file = files.get(current).copied().unwrap_or(0);
        let open = match outgoing {
            Some(outgoing) if outgoing.is_confirmed() => outgoing.done(),
            _ => self.unconfirmed,
        };
        let total = total(&self.sources);
        State {
            name: &self.names[file],
            file,
            files: self.names.len(),
            done: (self.there + open).min(total.unwrap_or(u64::MAX)),
            total,
            waiting: outgoing.is_none(),
        }
    }

    /// Returns how many bytes of the files that arrived this sender has sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether all files can be sent again. Standard input cannot.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        total(&self.sources).is_some()
    }

    /// Returns the files with their results.
    #[must_use]
    pub fn into_files(self) -> Vec<SentFile> {
        let missing = || Outcome::Failed("the connection ended before it was transferred".to_owned());
        self.sources
            .into_iter()
            .zip(self.outcomes)
            .zip(self.resumed)
            .map(|((source, outcome), resumed)| SentFile {
                path: source.path,
                size: source.size,
                resumed: resumed.unwrap_or(0),
                outcome: outcome.unwrap_or_else(missing),
            })
            .collect()
    }
}
