//! Splits commands in back quotes into arguments. No shell ever runs them.

/// Returns the arguments of each command in `text`. Handles comments, redirections and continued lines; `;`, `&&` and
/// `||` separate commands.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let text = expanded(text);
    let mut all = vec![Vec::new()];
    let mut argument: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => argument.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                argument.get_or_insert_default();
            }
            (None, '\\') => {
                if let Some(next) = characters.next().filter(|next| *next != '\n') {
                    argument.get_or_insert_default().push(next);
                }
            }
            (None, '#') if argument.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            (None, '\n' | ';') => {
                finish(&mut all, &mut argument);
                all.push(Vec::new());
            }
            (None, '&' | '|') if characters.peek() == Some(&c) => {
                characters.next();
                finish(&mut all, &mut argument);
                all.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => finish(&mut all, &mut argument),
            (None, _) => argument.get_or_insert_default().push(c),
        }
    }
    finish(&mut all, &mut argument);
    for command in &mut all {
        drop_redirections(command);
    }
    all.retain(|command| !command.is_empty());
    all
}

/// Returns the text with the values of products such as `$((15*1024*1024))`; other arithmetic stays.
fn expanded(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$((") {
        result.push_str(before);
        let product = after.split_once("))").and_then(|(factors, rest)| {
            let factors = factors.split('*').map(|factor| factor.trim().parse::<u64>().ok());
            let product = factors.reduce(|a, b| a?.checked_mul(b?))??;
            Some((product, rest))
        });
        match product {
            Some((product, after)) => {
                result.push_str(&product.to_string());
                rest = after;
            }
            None => {
                result.push_str("$((");
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

fn finish(all: &mut [Vec<String>], argument: &mut Option<String>) {
    if let (Some(argument), Some(command)) = (argument.take(), all.last_mut()) {
        command.push(argument);
    }
}

/// Removes redirections to `/dev/null`, which have no effect (`> /dev/null 2>&1`, `2>/dev/null`), but keeps `echo 3 >
/// file`.
fn drop_redirections(command: &mut Vec<String>) {
    let quiet = |argument: &str| ["2>&1", "2>/dev/null", "&>/dev/null", ">/dev/null"].contains(&argument);
    let mut kept: Vec<String> = Vec::new();
    let mut arguments = std::mem::take(command).into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let arrow = [">", "2>", "&>"].contains(&argument.as_str());
        if quiet(&argument) {
            continue;
        }
        if arrow && arguments.next_if(|next| next == "/dev/null").is_some() {
            continue;
        }
        kept.push(argument);
    }
    *command = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_computed() {
        let text = "sysctl a=\"4096 $((256 * 1024)) $((2*3*7))\" b=$((x)) c=$((1+1))";
        assert_eq!(
            commands(text)[0][1..],
            ["a=4096 262144 42", "b=$((x))", "c=$((1+1))"]
        );
    }

    #[test]
    fn splits_commands() {
        let text = "../common/defaults.sh\n# why\nsysctl -q a=\"1 2\" \\\n  b=3 &> /dev/null # more\n\
                    tc qdisc delete 2>/dev/null ; echo 3 > /sys/x && true";
        let arguments: Vec<String> = commands(text).iter().map(|command| command.join("|")).collect();
        assert_eq!(
            arguments,
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
