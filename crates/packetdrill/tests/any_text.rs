//! Arbitrary text and mutated scripts of the project have an outcome.

use std::path::PathBuf;
use std::sync::LazyLock;

use packetdrill::files::scripts;
use packetdrill::run::{Outcome, run};
use proptest::prelude::*;

use crate::common::NoCode;

static SCRIPTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/packetdrill"));
    let found = scripts(&[directory]).unwrap();
    found
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
});

/// A mutation of a script.
#[derive(Clone, Debug)]
enum Mutation {
    Drop(prop::sample::Index),
    Twice(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Replace(prop::sample::Index, char),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    let characters = prop::sample::select(
        "<>.:(){}[]+~*,`\"%=|-#0159 \nSFRPEWack"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop_oneof![
        at().prop_map(Mutation::Drop),
        at().prop_map(Mutation::Twice),
        (at(), at()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (at(), characters).prop_map(|(at, new)| Mutation::Replace(at, new)),
    ]
}

fn mutate(text: &str, mutations: &[Mutation]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for mutation in mutations {
        let count = lines.len();
        if count < 2 {
            break;
        }
        match mutation {
            Mutation::Drop(at) => {
                lines.remove(at.index(count));
            }
            Mutation::Twice(at) => {
                let line = lines[at.index(count)].clone();
                lines.insert(at.index(count), line);
            }
            Mutation::Swap(a, b) => lines.swap(a.index(count), b.index(count)),
            Mutation::Replace(at, new) => {
                let mut all: Vec<char> = lines.join("\n").chars().collect();
                let place = at.index(all.len());
                all[place] = *new;
                lines = all
                    .iter()
                    .collect::<String>()
                    .lines()
                    .map(str::to_owned)
                    .collect();
            }
        }
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(testing::cases(256)))]

    #[test]
    fn mutated_scripts_have_an_outcome(
        which in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let text = mutate(&SCRIPTS[which.index(SCRIPTS.len())], &mutations);
        let report = run(&text, &mut NoCode);
        if let Outcome::Fail(mismatch) = &report.outcome {
            prop_assert!(mismatch.line >= 1 && mismatch.line as usize <= text.lines().count());
        }
        prop_assert_eq!(run(&text, &mut NoCode), report, "outcomes are reproducible");
    }

    #[test]
    fn random_text_has_an_outcome(text in "\\PC{0,200}") {
        let _ = run(&text, &mut NoCode);
    }
}
