//! `'%d packets' % count`: formatting as `printf` does it.

use super::evaluate::Fault;
use super::value::Value;

/// `text` with its placeholders replaced by `arguments` (one value, or the items of a tuple).
pub fn format(text: &str, arguments: &Value) -> Result<String, Fault> {
    let mut values = match arguments {
        Value::Tuple(items) => items.iter(),
        single => std::slice::from_ref(single).iter(),
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .unwrap_or(rest.len());
        let (width, kind) = (&rest[..end], rest[end..].chars().next());
        let kind = kind.ok_or_else(|| Fault::Wrong("a `%` at the end of a format".to_owned()))?;
        rest = &rest[end + kind.len_utf8()..];
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = values
            .next()
            .ok_or_else(|| Fault::Wrong("too few values for a format".to_owned()))?;
        out.push_str(&one(width, kind, value)?);
    }
    out.push_str(rest);
    Ok(out)
}

fn one(width: &str, kind: char, value: &Value) -> Result<String, Fault> {
    let mismatch = || Fault::Wrong(format!("%{kind} given {}", value.kind()));
    let precision = width.split_once('.').and_then(|(_, digits)| digits.parse().ok());
    let text = match kind {
        's' | 'r' => value.to_string(),
        'd' | 'i' | 'u' => {
            let whole = value.integer().or(value.number().map(|number| number as i128));
            whole.ok_or_else(mismatch)?.to_string()
        }
        'x' => format!("{:x}", value.integer().ok_or_else(mismatch)?),
        'f' => format!(
            "{:.*}",
            precision.unwrap_or(6),
            value.number().ok_or_else(mismatch)?
        ),
        'g' => value.number().ok_or_else(mismatch)?.to_string(),
        _ => {
            return Err(Fault::Unsupported(format!(
                "the placeholder %{kind} in code snippets"
            )));
        }
    };
    let fill: usize = width
        .split('.')
        .next()
        .and_then(|digits| digits.trim_start_matches('-').parse().ok())
        .unwrap_or(0);
    Ok(if width.starts_with('-') {
        format!("{text:<fill$}")
    } else {
        format!("{text:>fill$}")
    })
}
