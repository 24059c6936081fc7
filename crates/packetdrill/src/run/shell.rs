//! Commands in back quotes: their lines into words. Nothing is ever handed to a shell.

/// The words of each command of `text`: comments, redirections and continued lines are taken care of,
/// and `;`, `&&` and `||` end a command.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => {
                if let Some(next) = characters.next().filter(|next| *next != '\n') {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, '#') if word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            (None, '\n' | ';') => {
                finish(&mut all, &mut word);
                all.push(Vec::new());
            }
            (None, '&' | '|') if characters.peek() == Some(&c) => {
                characters.next();
                finish(&mut all, &mut word);
                all.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => finish(&mut all, &mut word),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    finish(&mut all, &mut word);
    for command in &mut all {
        drop_redirections(command);
    }
    all.retain(|command| !command.is_empty());
    all
}

fn finish(all: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(word), Some(command)) = (word.take(), all.last_mut()) {
        command.push(word);
    }
}

/// Output that goes to nowhere (`> /dev/null 2>&1`, `2>/dev/null`) changes nothing. `echo 3 > file` keeps its.
fn drop_redirections(command: &mut Vec<String>) {
    let quiet = |word: &str| ["2>&1", "2>/dev/null", "&>/dev/null", ">/dev/null"].contains(&word);
    let mut kept: Vec<String> = Vec::new();
    let mut words = std::mem::take(command).into_iter().peekable();
    while let Some(word) = words.next() {
        let arrow = [">", "2>", "&>"].contains(&word.as_str());
        if quiet(&word) {
            continue;
        }
        if arrow && words.next_if(|next| next == "/dev/null").is_some() {
            continue;
        }
        kept.push(word);
    }
    *command = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_apart() {
        let text = "../common/defaults.sh\n# why\nsysctl -q a=\"1 2\" \\\n  b=3 &> /dev/null # more\n\
                    tc qdisc delete 2>/dev/null ; echo 3 > /sys/x && true";
        let words: Vec<String> = commands(text).iter().map(|command| command.join("|")).collect();
        assert_eq!(
            words,
            [
                "../common/defaults.sh",
                "sysctl|-q|a=1 2|b=3",
                "tc|qdisc|delete",
                "echo|3|>|/sys/x",
                "true"
            ]
        );
    }
}
