//! Runs snippets.

use std::collections::BTreeMap;

use super::format::format;
use super::parser::{Node, Operator, Statement, parse};
use super::value::Value;

/// What a snippet can read besides its own variables (`tcpi_snd_cwnd`, `TCP_CA_Open`).
pub trait Names {
    /// The value called `name`; `None` where there is none.
    ///
    /// # Errors
    /// [`Fault::Unsupported`] for a name that exists, but whose figure is not kept.
    fn get(&self, name: &str) -> Result<Option<Value>, Fault>;
}

/// Why a snippet ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An assertion that does not hold.
    Assertion {
        /// Line within the snippet, from zero.
        line: u32,
        /// What was asserted, with the values of its names.
        seen: String,
        /// The message after the comma, evaluated.
        message: Option<String>,
    },
    /// Python that is known to exist and not understood here.
    Unsupported(String),
    /// No Python, or an operation that its values do not allow.
    Wrong(String),
}

impl Fault {
    pub(super) fn syntax(line: u32, found: impl std::fmt::Display) -> Self {
        Self::Wrong(format!("line {} of the code snippet: {found}", line + 1))
    }
}

/// The variables of a script's snippets, and what they printed.
#[derive(Clone, Debug, Default)]
pub struct Snippets {
    variables: BTreeMap<String, Value>,
    printed: Vec<String>,
}

impl Snippets {
    /// Runs a snippet.
    ///
    /// # Errors
    /// An assertion that does not hold, or why the snippet cannot be run.
    pub fn run(&mut self, text: &str, names: &dyn Names) -> Result<(), Fault> {
        for (statement, line) in parse(text)? {
            match statement {
                Statement::Pass => {}
                Statement::Value(node) => {
                    self.value(&node, names)?;
                }
                Statement::Assign(name, None, node) => {
                    let value = self.value(&node, names)?;
                    self.variables.insert(name, value);
                }
                Statement::Assign(name, Some(operator), node) => {
                    let before = self.name(&name, names)?;
                    let value = self.value(&node, names)?;
                    self.variables.insert(name, binary(operator, &before, &value)?);
                }
                Statement::Assert(test, message) => self.assert(&test, message.as_ref(), line, names)?,
            }
        }
        Ok(())
    }

    /// The lines printed since the last call.
    pub fn take_printed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.printed)
    }

    fn assert(
        &mut self,
        test: &Node,
        message: Option<&Node>,
        line: u32,
        names: &dyn Names,
    ) -> Result<(), Fault> {
        if self.value(test, names)?.truth() {
            return Ok(());
        }
        let message = message.map(|node| self.value(node, names)).transpose()?;
        let mut read = Vec::new();
        collect(test, &mut read);
        let mut seen = String::new();
        for name in read {
            let value = self.name(name, names)?;
            let comma = if seen.is_empty() { "" } else { ", " };
            seen.push_str(&format!("{comma}{name} = {value}", comma = comma));
        }
        Err(Fault::Assertion {
            line,
            seen,
            message: message.map(|value| value.to_string()),
        })
    }

    /// Figures of the connection hide variables of the same name, as they are set anew before each snippet.
    fn name(&self, name: &str, names: &dyn Names) -> Result<Value, Fault> {
        if let Some(value) = names.get(name)? {
            return Ok(value);
        }
        let variable = self.variables.get(name).cloned();
        variable.ok_or_else(|| Fault::Unsupported(format!("the name `{name}` in code snippets")))
    }

    fn value(&mut self, node: &Node, names: &dyn Names) -> Result<Value, Fault> {
        Ok(match node {
            Node::Literal(value) => value.clone(),
            Node::Name(name) => self.name(name, names)?,
            Node::Prefix(operator, inner) => prefix(operator, &self.value(inner, names)?)?,
            Node::Binary(operator, left, right) => {
                let left = self.value(left, names)?;
                binary(operator, &left, &self.value(right, names)?)?
            }
            Node::Compare(first, rest) => {
                let mut left = self.value(first, names)?;
                for (operator, node) in rest {
                    let right = self.value(node, names)?;
                    if !compare(operator, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            Node::And(left, right) => {
                let left = self.value(left, names)?;
                if left.truth() {
                    self.value(right, names)?
                } else {
                    left
                }
            }
            Node::Or(left, right) => {
                let left = self.value(left, names)?;
                if left.truth() {
                    left
                } else {
                    self.value(right, names)?
                }
            }
            Node::Choose(test, yes, no) => {
                let taken = if self.value(test, names)?.truth() { yes } else { no };
                self.value(taken, names)?
            }
            Node::Tuple(items) => Value::Tuple(self.values(items, names)?),
            Node::Call(function, arguments) => {
                let values = self.values(arguments, names)?;
                if function == "print" {
                    let words: Vec<String> = values.iter().map(ToString::to_string).collect();
                    self.printed.push(words.join(" "));
                    return Ok(Value::None);
                }
                call(function, &values)?
            }
        })
    }

    fn values(&mut self, nodes: &[Node], names: &dyn Names) -> Result<Vec<Value>, Fault> {
        nodes.iter().map(|node| self.value(node, names)).collect()
    }
}

/// The names that `node` reads, each once, in order.
fn collect<'a>(node: &'a Node, out: &mut Vec<&'a str>) {
    match node {
        Node::Literal(_) => {}
        Node::Name(name) => {
            if !out.contains(&name.as_str()) {
                out.push(name);
            }
        }
        Node::Prefix(_, inner) => collect(inner, out),
        Node::Binary(_, left, right) | Node::And(left, right) | Node::Or(left, right) => {
            collect(left, out);
            collect(right, out);
        }
        Node::Compare(first, rest) => {
            collect(first, out);
            rest.iter().for_each(|(_, node)| collect(node, out));
        }
        Node::Choose(test, yes, no) => [test, yes, no].into_iter().for_each(|node| collect(node, out)),
        Node::Call(_, nodes) | Node::Tuple(nodes) => nodes.iter().for_each(|node| collect(node, out)),
    }
}

fn prefix(operator: &str, value: &Value) -> Result<Value, Fault> {
    let wrong = || Fault::Wrong(format!("`{operator}` before {}", value.kind()));
    match (operator, value) {
        ("not", value) => Ok(Value::Bool(!value.truth())),
        ("-", Value::Float(number)) => Ok(Value::Float(-number)),
        ("+", Value::Float(number)) => Ok(Value::Float(*number)),
        ("-", _) => Ok(Value::Integer(-value.integer().ok_or_else(wrong)?)),
        ("~", _) => Ok(Value::Integer(!value.integer().ok_or_else(wrong)?)),
        _ => Ok(Value::Integer(value.integer().ok_or_else(wrong)?)),
    }
}

fn binary(operator: Operator, left: &Value, right: &Value) -> Result<Value, Fault> {
    match (operator, left, right) {
        ("%", Value::Text(text), _) => return format(text, right).map(Value::Text),
        ("+", Value::Text(left), Value::Text(right)) => return Ok(Value::Text(format!("{left}{right}"))),
        _ => {}
    }
    let wrong = || {
        Fault::Wrong(format!(
            "`{operator}` between {} and {}",
            left.kind(),
            right.kind()
        ))
    };
    if let (Some(a), Some(b), true) = (left.integer(), right.integer(), operator != "/") {
        let result = whole(operator, a, b);
        return result
            .map(Value::Integer)
            .ok_or_else(|| Fault::Wrong(format!("{a} {operator} {b} has no value")));
    }
    let (a, b) = (
        left.number().ok_or_else(wrong)?,
        right.number().ok_or_else(wrong)?,
    );
    if b == 0.0 && ["/", "//", "%"].contains(&operator) {
        return Err(Fault::Wrong(format!("{left} {operator} {right} has no value")));
    }
    Ok(Value::Float(match operator {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => a - b * (a / b).floor(),
        "**" => a.powf(b),
        _ => return Err(wrong()),
    }))
}

/// Arithmetic of whole numbers; division and remainder round towards minus infinity, as Python's do.
fn whole(operator: Operator, a: i128, b: i128) -> Option<i128> {
    let floor = |a: i128, b: i128| -> Option<i128> {
        let quotient = a.checked_div(b)?;
        Some(quotient - i128::from(a % b != 0 && (a < 0) != (b < 0)))
    };
    match operator {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "//" => floor(a, b),
        "%" => Some(a - b * floor(a, b)?),
        "**" => a.checked_pow(u32::try_from(b).ok()?),
        "|" => Some(a | b),
        "&" => Some(a & b),
        "^" => Some(a ^ b),
        "<<" => a.checked_shl(u32::try_from(b).ok()?),
        ">>" => a.checked_shr(u32::try_from(b).ok()?),
        _ => None,
    }
}

fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, Fault> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => match (left.integer(), right.integer()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left
                .number()
                .zip(right.number())
                .and_then(|(left, right)| left.partial_cmp(&right)),
        },
    };
    match (operator, order) {
        ("==", None) => Ok(left == right),
        ("!=", None) => Ok(left != right),
        (_, None) => Err(Fault::Wrong(format!(
            "`{operator}` between {} and {}",
            left.kind(),
            right.kind()
        ))),
        ("==", Some(order)) => Ok(order == Equal),
        ("!=", Some(order)) => Ok(order != Equal),
        ("<", Some(order)) => Ok(order == Less),
        (">", Some(order)) => Ok(order == Greater),
        ("<=", Some(order)) => Ok(order != Greater),
        (_, Some(order)) => Ok(order != Less),
    }
}

fn call(function: &str, values: &[Value]) -> Result<Value, Fault> {
    let wrong = || Fault::Wrong(format!("{function}() given values that it does not take"));
    let one = || values.first().filter(|_| values.len() == 1).ok_or_else(wrong);
    Ok(match function {
        "min" | "max" => {
            let operator = if function == "min" { "<" } else { ">" };
            let mut best = values.first().ok_or_else(wrong)?;
            for value in &values[1..] {
                if compare(operator, value, best)? {
                    best = value;
                }
            }
            best.clone()
        }
        "abs" => match one()? {
            Value::Float(number) => Value::Float(number.abs()),
            value => Value::Integer(value.integer().ok_or_else(wrong)?.abs()),
        },
        "int" => match one()? {
            Value::Float(number) => Value::Integer(*number as i128),
            value => Value::Integer(value.integer().ok_or_else(wrong)?),
        },
        "float" => Value::Float(one()?.number().ok_or_else(wrong)?),
        "round" => Value::Integer(one()?.number().ok_or_else(wrong)?.round_ties_even() as i128),
        "str" => Value::Text(one()?.to_string()),
        _ => {
            return Err(Fault::Unsupported(format!(
                "the function {function}() in code snippets"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Figures;

    impl Names for Figures {
        fn get(&self, name: &str) -> Result<Option<Value>, Fault> {
            match name {
                "tcpi_snd_cwnd" => Ok(Some(Value::Integer(10))),
                "tcpi_unkept" => Err(Fault::Unsupported("tcpi_unkept".to_owned())),
                _ => Ok(None),
            }
        }
    }

    fn run(text: &str) -> Result<Vec<String>, Fault> {
        let mut snippets = Snippets::default();
        snippets.run(text, &Figures)?;
        Ok(snippets.take_printed())
    }

    #[test]
    fn arithmetic_is_pythons() {
        for holds in [
            "assert 2 + 3 * 4 == 14 and 2 ** 3 ** 2 == 512 and -2 ** 2 == -4",
            "assert -7 // 2 == -4 and -7 % 3 == 2 and 7 / 2 == 3.5",
            "assert 1 < 2 <= 2 != 3 and not 1 > 2",
            "assert (1 if tcpi_snd_cwnd == 10 else 2) == 1",
            "assert 0x7fffffff == (1 << 31) - 1",
            "assert min(3, 1, 2) == 1 and max(1, 2.5) == 2.5 and abs(-3) == 3 and int(2.9) == 2",
            "assert 'a' + 'b' == 'ab' and 1 | 6 & 4 == 5 or True",
            "assert 1e3 == 1000 and round(2.5) == 2",
        ] {
            assert_eq!(run(holds), Ok(Vec::new()), "{holds}");
        }
    }

    #[test]
    fn an_assertion_that_fails_tells_what_it_read() {
        let fault =
            run("\nx = 3\nassert tcpi_snd_cwnd == x + 8, 'cwnd=%d of %s' % (tcpi_snd_cwnd, x)").unwrap_err();
        let expected = Fault::Assertion {
            line: 2,
            seen: "tcpi_snd_cwnd = 10, x = 3".to_owned(),
            message: Some("cwnd=10 of 3".to_owned()),
        };
        assert_eq!(fault, expected);
    }

    #[test]
    fn variables_live_on_and_print_is_kept() {
        let mut snippets = Snippets::default();
        snippets.run("cwnd = tcpi_snd_cwnd; cwnd += 1", &Figures).unwrap();
        snippets
            .run(
                "print(cwnd, 'x')  # why\nassert cwnd == 11; \\\n  assert True",
                &Figures,
            )
            .unwrap();
        assert_eq!(snippets.take_printed(), ["11 x"]);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let unsupported = |text| match run(text).unwrap_err() {
            Fault::Unsupported(what) => what,
            other => panic!("{other:?}"),
        };
        assert!(unsupported("import os").contains("import"));
        assert!(unsupported("assert tcpi_unkept == 1").contains("tcpi_unkept"));
        assert!(unsupported("assert nothing == 1").contains("nothing"));
        assert!(unsupported("len('x')").contains("len"));
        for wrong in [
            "assert",
            "x = ",
            "1 +",
            "'open",
            "1 // 0",
            "(1",
            "assert 1 1",
            "'%d' % 'x'",
            "1 < 'a'",
        ] {
            assert!(matches!(run(wrong), Err(Fault::Wrong(_))), "{wrong}");
        }
    }
}
