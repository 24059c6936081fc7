//! The thread that flushes complete files to the disk and gives them their names. Files that are complete at the same
//! time are flushed at the same time, because a disk flushes many files in about the time of one.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use super::claims::Claim;
use super::directory::make_executable;
use super::message::Offer;
use super::name;
use super::partial_file::PartialFile;
use super::writer::{MAX_NUMBER, Reply, Store};
use crate::system_error::plain;

/// Flushes at a time.
const FLUSHES: usize = 8;

/// A file whose contents are complete.
#[derive(Debug)]
pub struct Complete {
    /// What the sender offered.
    pub offer: Offer,
    /// The contents.
    pub partial: Box<PartialFile>,
    /// The claim of its name, until it has one.
    pub claim: Claim,
}

/// The thread of a connection. Dropping it waits for the files that it has.
#[derive(Debug)]
pub struct Publisher {
    files: Option<Sender<Complete>>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Starts the thread, which replies to `outbox`.
    ///
    /// # Errors
    /// The system's, if no thread can be started.
    pub fn start(store: Store, outbox: Sender<Reply>) -> io::Result<Self> {
        let (files, inbox) = channel();
        let thread = Builder::new()
            .name("longfat-publisher".into())
            .spawn(move || run(&store, &inbox, &outbox))?;
        Ok(Self {
            files: Some(files),
            thread: Some(thread),
        })
    }

    /// Publishes a file.
    pub fn publish(&self, file: Complete) {
        if let Some(files) = &self.files {
            // The thread lives as long as this sender.
            let _ = files.send(file);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.files.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(store: &Store, inbox: &Receiver<Complete>, outbox: &Sender<Reply>) {
    while let Ok(first) = inbox.recv() {
        let files: Vec<Complete> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let results = publish(store, &files);
        for (mut file, result) in files.into_iter().zip(results) {
            let reply = match result {
                Ok(name) => Reply::Stored(file.offer.file, false, name),
                Err(error) => refused(store, &mut file, &error),
            };
            // Other transfers of the name need not wait any more.
            drop(file.claim);
            // If the other end was dropped, the reply is no longer needed.
            drop(outbox.send(reply));
        }
    }
}

fn refused(store: &Store, file: &mut Complete, error: &io::Error) -> Reply {
    file.partial.give_back_room(error);
    let place = store.directory.path().join(&file.partial.name);
    if file.partial.length == 0 {
        let _ = store.directory.remove(&file.partial.name);
    }
    let reason = format!("cannot store {}: {}", place.display(), plain(error));
    Reply::Refused(file.offer.file, reason)
}

/// Flushes complete files, renames them, and flushes their folders. Returns the name of each.
fn publish(store: &Store, files: &[Complete]) -> Vec<io::Result<String>> {
    let mut results: Vec<io::Result<String>> = flush(store, files)
        .into_iter()
        .zip(files)
        .map(|(flushed, file)| flushed.and_then(|()| rename(store, file)))
        .collect();
    let mut folders: BTreeMap<String, io::Result<()>> = BTreeMap::new();
    for result in &mut results {
        let Ok(name) = result else { continue };
        let folder = name::split(name).0.to_owned();
        let synced = folders
            .entry(folder)
            .or_insert_with(|| store.directory.sync(name));
        if let Err(error) = synced {
            *result = Err(io::Error::new(error.kind(), error.to_string()));
        }
    }
    results
}

/// Flushes the contents of all files to the disk. Returns the result of each.
fn flush(store: &Store, files: &[Complete]) -> Vec<io::Result<()>> {
    let each = |part: &[Complete]| part.iter().map(|file| flush_one(store, file)).collect();
    let share = files.len().div_ceil(FLUSHES);
    let (first, others) = files.split_at(share);
    std::thread::scope(|scope| {
        let others: Vec<_> = others
            .chunks(share)
            .map(|part| (part, Builder::new().spawn_scoped(scope, move || each(part))))
            .collect();
        let mut results: Vec<io::Result<()>> = each(first);
        for (part, thread) in others {
            // Without a further thread, this one flushes.
            let flushed = thread.ok().and_then(|thread| thread.join().ok());
            results.extend(flushed.unwrap_or_else(|| each(part)));
        }
        results
    })
}

fn flush_one(store: &Store, Complete { offer, partial, .. }: &Complete) -> io::Result<()> {
    if offer.modified > 0 {
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(offer.modified);
        // Not every file system stores the time; only the contents matter.
        let _ = partial.file.set_modified(modified);
    }
    if offer.executable && store.executables {
        let _ = make_executable(&partial.file);
    }
    partial.file.sync_all()
}

/// Renames a file, with a number if the name exists. Returns its name.
fn rename(store: &Store, Complete { offer, partial, .. }: &Complete) -> io::Result<String> {
    for number in 0..=MAX_NUMBER {
        let name = name::numbered(&offer.name, number);
        if store.directory.publish(&partial.name, &name)? {
            return Ok(name);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("all {MAX_NUMBER} numbered names are taken"),
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use super::super::budget::Budget;
    use super::super::checksum::Checksum;
    use super::super::claims::Claims;
    use super::super::directory::{Directory, Partial};
    use super::*;

    fn complete(store: &Store, number: u32, name: &str) -> Complete {
        let partial = name::partial(name, number);
        let Partial::Mine(mut file) = store.directory.open_partial(&partial).unwrap() else {
            panic!("{partial} is in use")
        };
        file.write_all(name.as_bytes()).unwrap();
        Complete {
            offer: Offer {
                file: number,
                size: Some(name.len() as u64),
                modified: 0,
                executable: false,
                name: name.to_owned(),
            },
            partial: Box::new(PartialFile {
                name: partial,
                file,
                checksum: Checksum::default(),
                length: name.len() as u64,
                started_at: Some(0),
                reserved: store.budget.reserve(0, u64::MAX).unwrap(),
            }),
            claim: Claims::default().claim(name, 0),
        }
    }

    #[test]
    fn publishes_a_batch_of_more_files_than_flushes_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let store = Store {
            directory: Arc::new(Directory::new(place.path()).unwrap()),
            budget: Budget::new(None),
            executables: false,
            checks: false,
        };
        let names = (0..20).map(|number| format!("folder-{}/{}", number % 3, number % 7));
        let files: Vec<Complete> = names
            .enumerate()
            .map(|(number, name)| complete(&store, number as u32, &name))
            .collect();
        // Another program removes a file that is not yet published.
        std::fs::remove_file(place.path().join(&files[5].partial.name)).unwrap();
        let results = publish(&store, &files);
        assert_eq!(results.len(), 20);
        for (number, (file, result)) in files.iter().zip(results).enumerate() {
            if number == 5 {
                assert!(result.is_err());
                continue;
            }
            let stored = result.unwrap();
            let contents = std::fs::read(place.path().join(&stored)).unwrap();
            assert_eq!(contents, file.offer.name.as_bytes(), "{stored}");
        }
        for (batch, expected) in [(vec![0], "a"), (vec![1, 2], "a (1)")] {
            let files: Vec<Complete> = batch.into_iter().map(|n| complete(&store, n, "a")).collect();
            assert_eq!(publish(&store, &files)[0].as_ref().unwrap(), expected);
        }
        assert!(place.path().join("a (2)").exists());
    }
}
