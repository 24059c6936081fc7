//! The dumbbell: senders on the left, receivers on the right, and one shared link between them.
//!
//! ```text
//! s1 ─access/1─┐                        ┌─exit/1─ r1
//! s2 ─access/2─┤ left ─bottleneck─ right ├─exit/2─ r2
//! s3 ─access/3─┘                        └─exit/3─ r3
//! ```

use foundation::omit_unset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::TopologyKind;
use super::draft::Draft;
use super::links::Links;

omit_unset! {
    /// Senders s1, s2, … on the left, receivers r1, r2, … on the right, and one shared bottleneck between them.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct Dumbbell {
        /// Number of senders, from 1 to 10000; default: the length of the list access.
        pub pairs: Option<u64>,
        /// Number of receivers, to which senders are assigned in turn (1: all send to r1); default: one per sender.
        pub receivers: Option<u64>,
        /// Shared link, a table of path keys.
        pub bottleneck: Option<Links>,
        /// Links from senders to their router, a table of path keys for all or a list with one table each; default: senders attached to the router.
        pub access: Option<Links>,
        /// Links from the router to receivers, a table of path keys for all or a list with one table each; default: receivers attached to the router.
        pub exit: Option<Links>,
    }
}

impl TopologyKind for Dumbbell {
    fn draw(&self, draft: &mut Draft<'_>) {
        let senders = draft.count_or_list("pairs", self.pairs, self.access.as_ref());
        let receivers = match self.receivers {
            Some(receivers) => draft.count("receivers", receivers, senders),
            None => senders,
        };
        let access = draft.optional_links("access", self.access.as_ref(), senders);
        let exit = draft.optional_links("exit", self.exit.as_ref(), receivers);
        let Some(bottleneck) = draft.required("bottleneck", self.bottleneck.as_ref()) else {
            return;
        };
        let bottleneck = draft.links("bottleneck", bottleneck, 1);

        let (left, right) = (draft.router("left"), draft.router("right"));
        // Declared first, so that searches find it first.
        let shared = draft.cable("bottleneck", &bottleneck[0], left, right);
        draft.bottleneck(shared);
        let senders: Vec<_> = (1..)
            .zip(&access)
            .map(|(i, spec): (usize, _)| {
                draft.sender(&format!("s{i}"), left, &format!("access/{i}"), spec.as_ref())
            })
            .collect();
        let receivers: Vec<_> = (1..)
            .zip(&exit)
            .map(|(i, spec): (usize, _)| {
                draft.receiver(&format!("r{i}"), right, &format!("exit/{i}"), spec.as_ref())
            })
            .collect();
        for (&from, &to) in senders.iter().zip(receivers.iter().cycle()) {
            draft.pair(from, to);
        }
    }
}
