//! Tokens of a snippet into statements.

use super::evaluate::Fault;
use super::lexer::{Placed, Token, tokens};
use super::value::Value;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `assert test, message`.
    Assert(Node, Option<Node>),
    /// `name = value`, `name += value`.
    Assign(String, Option<Operator>, Node),
    /// A value that nobody keeps.
    Value(Node),
    /// `pass`.
    Pass,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A literal.
    Literal(Value),
    /// A name.
    Name(String),
    /// `-a`, `+a`, `~a`, `not a`.
    Prefix(&'static str, Box<Node>),
    /// `a + b`.
    Binary(Operator, Box<Node>, Box<Node>),
    /// `a < b <= c`.
    Compare(Box<Node>, Vec<(&'static str, Node)>),
    /// `a and b`.
    And(Box<Node>, Box<Node>),
    /// `a or b`.
    Or(Box<Node>, Box<Node>),
    /// `a if b else c`: the test, then both values.
    Choose(Box<Node>, Box<Node>, Box<Node>),
    /// `f(a)`.
    Call(String, Vec<Node>),
    /// `(a, b)`.
    Tuple(Vec<Node>),
}

/// An operator between two numbers, as it is written.
pub type Operator = &'static str;

/// Statements with their line within the snippet, from zero.
pub fn parse(text: &str) -> Result<Vec<(Statement, u32)>, Fault> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
    };
    let mut statements = Vec::new();
    while parser.at < parser.tokens.len() {
        if parser.peek() == &Token::End {
            parser.at += 1;
            continue;
        }
        let line = parser.line();
        let statement = parser.statement()?;
        if parser.peek() != &Token::End {
            return Err(parser.unexpected("the end of the statement"));
        }
        statements.push((statement, line));
    }
    Ok(statements)
}

/// Statements of Python that snippets may hold and this program does not run.
const UNKNOWN: [&str; 14] = [
    "if", "for", "while", "def", "class", "import", "from", "with", "try", "raise", "return", "del",
    "global", "lambda",
];
const WORDS: [&str; 7] = ["and", "or", "not", "if", "else", "in", "is"];
const ASSIGNING: [(&str, Operator); 12] = [
    ("+=", "+"),
    ("-=", "-"),
    ("*=", "*"),
    ("/=", "/"),
    ("//=", "//"),
    ("%=", "%"),
    ("**=", "**"),
    ("|=", "|"),
    ("&=", "&"),
    ("^=", "^"),
    ("<<=", "<<"),
    (">>=", ">>"),
];
/// Binary operators, from those that bind least to those that bind most.
const LEVELS: [&[Operator]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "//", "/", "%"],
];

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |(token, _)| token)
    }

    fn line(&self) -> u32 {
        self.tokens
            .get(self.at)
            .or(self.tokens.last())
            .map_or(0, |(_, line)| *line)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let here = matches!(self.peek(), Token::Mark(found) if *found == mark);
        self.at += usize::from(here);
        here
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let here = matches!(self.peek(), Token::Name(found) if found == word);
        self.at += usize::from(here);
        here
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.peek() {
            Token::Name(name) => format!("`{name}`"),
            Token::Integer(value) => format!("`{value}`"),
            Token::Float(value) => format!("`{value}`"),
            Token::Text(text) => format!("'{text}'"),
            Token::Mark(mark) => format!("`{mark}`"),
            Token::End => "the end of the statement".to_owned(),
        };
        Fault::syntax(self.line(), format!("{found} where {wanted} should stand"))
    }

    fn statement(&mut self) -> Result<Statement, Fault> {
        if self.eat_word("pass") {
            return Ok(Statement::Pass);
        }
        if self.eat_word("assert") {
            let test = self.expression()?;
            let message = if self.eat(",") {
                Some(self.expression()?)
            } else {
                None
            };
            return Ok(Statement::Assert(test, message));
        }
        if let Token::Name(name) = self.peek()
            && UNKNOWN.contains(&name.as_str())
        {
            return Err(Fault::Unsupported(format!("`{name}` in code snippets")));
        }
        let first = self.expressions()?;
        let Node::Name(name) = &first else {
            return Ok(Statement::Value(first));
        };
        if self.eat("=") {
            return Ok(Statement::Assign(name.clone(), None, self.expressions()?));
        }
        for (mark, operator) in ASSIGNING {
            if self.eat(mark) {
                return Ok(Statement::Assign(
                    name.clone(),
                    Some(operator),
                    self.expression()?,
                ));
            }
        }
        Ok(Statement::Value(first))
    }

    /// One expression, or several with commas between: a tuple.
    fn expressions(&mut self) -> Result<Node, Fault> {
        let first = self.expression()?;
        if !self.eat(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while !matches!(self.peek(), Token::End | Token::Mark(")")) {
            items.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        Ok(Node::Tuple(items))
    }

    fn expression(&mut self) -> Result<Node, Fault> {
        let value = self.either()?;
        if !self.eat_word("if") {
            return Ok(value);
        }
        let test = self.either()?;
        if !self.eat_word("else") {
            return Err(self.unexpected("`else`"));
        }
        let other = self.expression()?;
        Ok(Node::Choose(Box::new(test), Box::new(value), Box::new(other)))
    }

    fn either(&mut self) -> Result<Node, Fault> {
        let mut left = self.both()?;
        while self.eat_word("or") {
            left = Node::Or(Box::new(left), Box::new(self.both()?));
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Node, Fault> {
        let mut left = self.negation()?;
        while self.eat_word("and") {
            left = Node::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Node, Fault> {
        if self.eat_word("not") {
            return Ok(Node::Prefix("not", Box::new(self.negation()?)));
        }
        let first = self.level(0)?;
        let mut rest = Vec::new();
        'more: loop {
            for mark in ["==", "!=", "<=", ">=", "<", ">"] {
                if self.eat(mark) {
                    rest.push((mark, self.level(0)?));
                    continue 'more;
                }
            }
            break;
        }
        Ok(if rest.is_empty() {
            first
        } else {
            Node::Compare(Box::new(first), rest)
        })
    }

    fn level(&mut self, level: usize) -> Result<Node, Fault> {
        let Some(operators) = LEVELS.get(level) else {
            return self.prefix();
        };
        let mut left = self.level(level + 1)?;
        'more: loop {
            for operator in *operators {
                if self.eat(operator) {
                    let right = self.level(level + 1)?;
                    left = Node::Binary(operator, Box::new(left), Box::new(right));
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn prefix(&mut self) -> Result<Node, Fault> {
        for mark in ["-", "+", "~"] {
            if self.eat(mark) {
                return Ok(Node::Prefix(mark, Box::new(self.prefix()?)));
            }
        }
        let base = self.atom()?;
        if self.eat("**") {
            return Ok(Node::Binary("**", Box::new(base), Box::new(self.prefix()?)));
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<Node, Fault> {
        let node = match self.peek().clone() {
            Token::Integer(value) => Node::Literal(Value::Integer(value)),
            Token::Float(value) => Node::Literal(Value::Float(value)),
            Token::Text(mut text) => {
                while let Some((Token::Text(more), _)) = self.tokens.get(self.at + 1) {
                    text.push_str(more);
                    self.at += 1;
                }
                Node::Literal(Value::Text(text))
            }
            Token::Mark("(") => {
                self.at += 1;
                let inner = if self.peek() == &Token::Mark(")") {
                    Node::Tuple(Vec::new())
                } else {
                    self.expressions()?
                };
                if self.peek() != &Token::Mark(")") {
                    return Err(self.unexpected("`)`"));
                }
                inner
            }
            Token::Name(name) if WORDS.contains(&name.as_str()) => return Err(self.unexpected("a value")),
            Token::Name(name) => {
                self.at += 1;
                return self.named(name);
            }
            _ => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok(node)
    }

    fn named(&mut self, name: String) -> Result<Node, Fault> {
        if matches!(self.peek(), Token::Mark("." | "[")) {
            return Err(Fault::Unsupported(
                "attributes and items in code snippets".to_owned(),
            ));
        }
        if !self.eat("(") {
            return Ok(match name.as_str() {
                "True" => Node::Literal(Value::Bool(true)),
                "False" => Node::Literal(Value::Bool(false)),
                "None" => Node::Literal(Value::None),
                _ => Node::Name(name),
            });
        }
        let mut arguments = Vec::new();
        while !self.eat(")") {
            arguments.push(self.expression()?);
            if !self.eat(",") && self.peek() != &Token::Mark(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        Ok(Node::Call(name, arguments))
    }
}
