//! The files that the connections of this process are receiving.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// File names in reception, with the sessions that receive them.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    holders: Arc<Mutex<HashMap<String, Vec<u64>>>>,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<u64>>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that `session` receives `name`, until the claim is dropped.
    #[must_use]
    pub fn claim(&self, name: &str, session: u64) -> Claim {
        self.lock().entry(name.to_owned()).or_default().push(session);
        Claim {
            claims: self.clone(),
            name: name.to_owned(),
            session,
        }
    }

    /// Returns the other sessions that receive `name`.
    #[must_use]
    pub fn others(&self, name: &str, session: u64) -> Vec<u64> {
        let holders = self.lock();
        let all = holders.get(name).map_or(&[][..], Vec::as_slice);
        all.iter().copied().filter(|&other| other != session).collect()
    }
}

/// One entry, removed when dropped.
#[derive(Debug)]
pub struct Claim {
    claims: Claims,
    name: String,
    session: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut holders = self.claims.lock();
        if let Some(sessions) = holders.get_mut(&self.name) {
            if let Some(at) = sessions.iter().position(|&s| s == self.session) {
                sessions.swap_remove(at);
            }
            if sessions.is_empty() {
                holders.remove(&self.name);
            }
        }
    }
}
