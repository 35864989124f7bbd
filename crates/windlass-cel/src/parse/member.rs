//! Fields, calls and indices after a primary expression.

use super::lexer::{Lexeme, Token};
use super::{Parsed, Parser, Rule};
use crate::ast::{Id, Kind, Literal, Name, operator};

impl Parser<'_> {
    pub(super) fn member(&mut self) -> Parsed {
        self.enter(Rule::Member)?;
        let mut count = 1;
        let mut operand = self.primary()?;
        loop {
            let next = if let Some(dot) = self.take(".") {
                self.field_or_call(operand, dot)?
            } else if let Some(bracket) = self.take("[") {
                self.index(operand, bracket)?
            } else {
                self.leave(Rule::Member, count);
                return Ok(operand);
            };
            operand = next;
            count += 1;
        }
    }

    fn field_or_call(&mut self, operand: Id, dot: Lexeme) -> Parsed {
        let optional = self.take("?").is_some();
        let lexeme = self.peek();
        if !matches!(lexeme.token, Token::Identifier | Token::Escaped) {
            self.lacks_field = optional;
            return Err(self.mismatch("IDENTIFIER"));
        }
        self.advance();
        if !optional
            && lexeme.token == Token::Identifier
            && let Some(open) = self.take("(")
        {
            let name = self.text(lexeme).to_owned();
            let arguments = self.arguments()?;
            return self.member_call(operand, &name, open.start, arguments);
        }
        let field = self.field_name(lexeme);
        if !optional {
            return self.node(dot.start, Kind::Select { operand, field, test: false });
        }
        if !self.syntax.optionals {
            self.report(dot.start, "unsupported syntax '.?'");
            return self.node(dot.start, Kind::Invalid);
        }
        let field = self.node(lexeme.start, Kind::Literal(Literal::String(field)))?;
        self.call(dot.start, operator::OPTIONAL_SELECT, vec![operand, field])
    }

    /// Returns the name of a field, without back quotes.
    pub(super) fn field_name(&mut self, lexeme: Lexeme) -> Name {
        let text = self.text(lexeme);
        if lexeme.token != Token::Escaped {
            return Name::from(text);
        }
        let name = Name::from(text.trim_matches('`'));
        if !self.syntax.escaped_fields {
            self.report(lexeme.start, "unsupported syntax: '`'");
        }
        name
    }

    fn index(&mut self, operand: Id, bracket: Lexeme) -> Parsed {
        let optional = self.take("?").is_some();
        let index = self.expression()?;
        self.expect("]")?;
        if optional && !self.syntax.optionals {
            self.report(bracket.start, "unsupported syntax '[?'");
            return self.node(bracket.start, Kind::Invalid);
        }
        let function = if optional { operator::OPTIONAL_INDEX } else { operator::INDEX };
        self.call(bracket.start, function, vec![operand, index])
    }

    /// Parses the arguments of a call, up to the closing parenthesis.
    pub(super) fn arguments(&mut self) -> Parsed<Vec<Id>> {
        let mut arguments = Vec::new();
        if self.take(")").is_some() {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(",").is_none() {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    fn member_call(&mut self, target: Id, name: &str, offset: usize, arguments: Vec<Id>) -> Parsed {
        if let Some(expanded) = self.expand_member(target, name, offset, &arguments)? {
            let below: Vec<Id> = arguments.into_iter().chain([target]).collect();
            self.set_height(expanded, &below, true)?;
            return Ok(expanded);
        }
        let kind = Kind::Call { function: Name::from(name), target: Some(target), arguments };
        self.node(offset, kind)
    }
}
