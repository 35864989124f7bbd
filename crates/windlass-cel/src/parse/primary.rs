//! Names, calls of functions, literals, lists, maps and messages.

use super::lexer::{Lexeme, Token};
use super::{EXPECTED, Parsed, Parser, Rule, Stop, literal};
use crate::ast::{Entry, Init, Kind, Literal, Name};
use crate::escape::RESERVED;

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed {
        self.enter(Rule::Primary)?;
        let lexeme = self.peek();
        let result = match lexeme.token {
            Token::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                inner
            }
            Token::Symbol("[") => self.list()?,
            Token::Symbol("{") => self.map()?,
            Token::Symbol(".") | Token::Identifier => self.name()?,
            _ => self.literal()?,
        };
        self.leave(Rule::Primary, 1);
        Ok(result)
    }

    fn literal(&mut self) -> Parsed {
        let start = self.peek().start;
        let negative = self.take("-").is_some();
        let lexeme = self.peek();
        let sign = if negative { "-" } else { "" };
        let text = self.text(lexeme).to_owned();
        let parsed = match lexeme.token {
            Token::Int => int(sign, &text).map(Literal::Int).ok_or("invalid int literal"),
            Token::Double => double(sign, &text).map(Literal::Double).ok_or("invalid double literal"),
            _ if negative => return Err(self.mismatch(EXPECTED)),
            Token::Uint => uint(&text).map(Literal::Uint).ok_or("invalid uint literal"),
            Token::String => literal::unquote(&text).map(|text| Literal::String(text.into())),
            Token::Bytes => literal::unquote_bytes(&text[1..]).map(|bytes| Literal::Bytes(bytes.into())),
            Token::True => Ok(Literal::Bool(true)),
            Token::False => Ok(Literal::Bool(false)),
            Token::Null => Ok(Literal::Null),
            _ => return Err(self.mismatch(EXPECTED)),
        };
        self.advance();
        match parsed {
            Ok(literal) => self.node(start, Kind::Literal(literal)),
            Err(message) => {
                self.report(start, message);
                self.node(start, Kind::Invalid)
            }
        }
    }

    /// Parses a name: of a variable, a function that is called, or a message.
    fn name(&mut self) -> Parsed {
        let start = self.peek().start;
        let leading = self.take(".").is_some();
        let lexeme = self.peek();
        if lexeme.token != Token::Identifier {
            return Err(self.mismatch("IDENTIFIER"));
        }
        if let Some((name, open)) = self.message_name(leading) {
            return self.message(name, open);
        }
        self.advance();
        let text = self.text(lexeme);
        let reserved = RESERVED.contains(&text);
        let name = if leading { format!(".{text}") } else { text.to_owned() };
        if reserved {
            self.report(start, format!("reserved identifier: {}", name.trim_start_matches('.')));
        }
        let Some(open) = self.take("(") else {
            return self.node(lexeme.start, Kind::Ident(Name::from(name)));
        };
        let arguments = self.arguments()?;
        if let Some(expanded) = self.expand_global(&name, open.start, &arguments)? {
            return Ok(expanded);
        }
        self.call(open.start, &name, arguments)
    }

    /// Returns the name of a message that begins here, and consumes the name up to the opening brace.
    fn message_name(&mut self, leading: bool) -> Option<(Name, Lexeme)> {
        let mut at = self.at;
        let mut name = if leading { ".".to_owned() } else { String::new() };
        loop {
            let identifier = self.lexemes[at];
            if identifier.token != Token::Identifier {
                return None;
            }
            name.push_str(self.text(identifier));
            let next = *self.lexemes.get(at + 1)?;
            match next.token {
                Token::Symbol("{") => {
                    self.at = at + 2;
                    return Some((Name::from(name), next));
                }
                Token::Symbol(".") => name.push('.'),
                _ => return None,
            }
            at += 2;
        }
    }

    fn message(&mut self, name: Name, open: Lexeme) -> Parsed {
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            let optional = self.optional_mark()?;
            let lexeme = self.peek();
            if !matches!(lexeme.token, Token::Identifier | Token::Escaped) {
                return Err(self.mismatch("IDENTIFIER"));
            }
            self.advance();
            let field = self.field_name(lexeme);
            let offset = self.peek().start;
            self.expect(":")?;
            fields.push(Init { field, value: self.expression()?, optional, offset });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(open.start, Kind::Struct { name, fields })
    }

    /// Takes a `?` before an element, and returns whether there is one.
    fn optional_mark(&mut self) -> Parsed<bool> {
        let Some(mark) = self.take("?") else { return Ok(false) };
        if self.syntax.optionals {
            return Ok(true);
        }
        self.report(mark.start, "unsupported syntax '?'");
        Err(Stop)
    }

    fn list(&mut self) -> Parsed {
        let open = self.advance();
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        if self.take(",").is_some() {
            self.expect("]")?;
            return self.node(open.start, Kind::List { elements, optional });
        }
        while self.take("]").is_none() {
            if self.optional_mark()? {
                optional.push(elements.len());
            }
            elements.push(self.expression()?);
            if self.take(",").is_none() {
                self.expect("]")?;
                break;
            }
        }
        self.node(open.start, Kind::List { elements, optional })
    }

    fn map(&mut self) -> Parsed {
        let open = self.advance();
        let mut entries = Vec::new();
        if self.take(",").is_some() {
            self.expect("}")?;
            return self.node(open.start, Kind::Map(entries));
        }
        while self.take("}").is_none() {
            let optional = self.optional_mark()?;
            let key = self.expression()?;
            self.expect(":")?;
            entries.push(Entry { key, value: self.expression()?, optional });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(open.start, Kind::Map(entries))
    }
}

fn int(sign: &str, text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => format!("{sign}{text}").parse().ok(),
    }
}

fn uint(text: &str) -> Option<u64> {
    let digits = &text[..text.len() - 1];
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

fn double(sign: &str, text: &str) -> Option<f64> {
    format!("{sign}{text}").parse().ok().filter(|value: &f64| value.is_finite())
}
