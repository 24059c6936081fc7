//! Whatever stands in a script, running it ends with an outcome: mutilated scripts of the project's own.

use std::path::PathBuf;
use std::sync::LazyLock;

use packetdrill::files::scripts;
use packetdrill::run::{Outcome, run};
use proptest::prelude::*;

static SCRIPTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/packetdrill"));
    let found = scripts(&[directory]).unwrap();
    found
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
});

/// What is done to a script: lines go, come twice, change places, or lose a character to another.
#[derive(Clone, Debug)]
enum Harm {
    Drop(prop::sample::Index),
    Twice(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Replace(prop::sample::Index, char),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<prop::sample::Index>;
    let characters = prop::sample::select(
        "<>.:(){}[]+~*,`\"%=|-#0159 \nSFRPEWack"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop_oneof![
        at().prop_map(Harm::Drop),
        at().prop_map(Harm::Twice),
        (at(), at()).prop_map(|(a, b)| Harm::Swap(a, b)),
        (at(), characters).prop_map(|(at, new)| Harm::Replace(at, new)),
    ]
}

fn suffer(text: &str, harms: &[Harm]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for harm in harms {
        let count = lines.len();
        if count < 2 {
            break;
        }
        match harm {
            Harm::Drop(at) => {
                lines.remove(at.index(count));
            }
            Harm::Twice(at) => {
                let line = lines[at.index(count)].clone();
                lines.insert(at.index(count), line);
            }
            Harm::Swap(a, b) => lines.swap(a.index(count), b.index(count)),
            Harm::Replace(at, new) => {
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
    #[test]
    fn harmed_scripts_end_with_an_outcome(
        which in any::<prop::sample::Index>(),
        harms in prop::collection::vec(harm(), 1..6),
    ) {
        let text = suffer(&SCRIPTS[which.index(SCRIPTS.len())], &harms);
        let report = run(&text);
        if let Outcome::Fail(departure) = &report.outcome {
            prop_assert!(departure.line >= 1 && departure.line as usize <= text.lines().count());
        }
        prop_assert_eq!(run(&text), report, "the same text, the same outcome");
    }

    #[test]
    fn noise_is_no_script(text in "\\PC{0,200}") {
        let _ = run(&text);
    }
}
