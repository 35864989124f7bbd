//! Parses an expression into a syntax tree.

mod grammar;
mod lexer;
mod literal;
mod macros;
mod member;
mod predict;
mod primary;
mod recovery;

use std::ops::Range;

use crate::ast::{Ast, Id, Kind, Name, operator};
use crate::issue::Issues;
use lexer::{Lexeme, Token};

/// The depth to which each rule of the grammar may be nested.
const MAX_DEPTH: usize = 250;

/// The length of the longest expression, in characters.
const MAX_LENGTH: usize = 100_000;

/// The number of nodes that an expression may have, with expanded macros.
const MAX_NODES: usize = 44_000;

/// The parts of the language that can be turned on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Syntax {
    /// `a.?b`, `a[?b]`, `[?a]`, and the macros `optMap` and `optFlatMap`.
    pub(crate) optionals: bool,
    /// Macros with two variables, `transformList`, `transformMap` and `transformMapEntry`.
    pub(crate) two_variables: bool,
    /// The macro `sortBy`.
    pub(crate) sort_by: bool,
    /// The macro `cel.bind`.
    pub(crate) bind: bool,
    /// Fields in back quotes.
    pub(crate) escaped_fields: bool,
    /// The macros `math.least` and `math.greatest`.
    pub(crate) math: bool,
    /// True if no macro is expanded.
    pub(crate) no_macros: bool,
}

/// Parses an expression.
pub(crate) fn parse(source: &str, syntax: Syntax) -> Result<Ast, Issues> {
    let mut issues = Issues::new(source);
    let length = source.chars().count();
    if length > MAX_LENGTH {
        issues.add_general(format!(
            "expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}"
        ));
        return Err(issues);
    }
    let (lexemes, unknown) = lexer::tokens(source);
    for text in &unknown {
        let message = format!("Syntax error: token recognition error at: '{}'", &source[text.clone()]);
        issues.add(source, text.start, message);
    }
    let mut parser = Parser {
        source,
        syntax,
        lexemes,
        at: 0,
        ast: Ast::default(),
        issues,
        depths: [0; RULES],
        heights: Vec::new(),
        syntax_error: None,
        lacks_field: false,
    };
    let root = parser.expression().and_then(|root| parser.expect_end().map(|()| root));
    parser.describe_syntax_errors(&unknown);
    match root {
        Ok(root) if parser.issues.is_empty() => {
            parser.ast.root = root;
            Ok(parser.ast)
        }
        _ => Err(parser.issues),
    }
}

/// The number of rules of the grammar whose depth is limited.
const RULES: usize = 8;

/// A rule of the grammar that recurs.
#[derive(Clone, Copy)]
enum Rule {
    Expression,
    Or,
    And,
    Relation,
    Sum,
    Unary,
    Member,
    Primary,
}

/// The parser has reported an issue, and stops.
struct Stop;

type Parsed<T = Id> = Result<T, Stop>;

struct Parser<'a> {
    source: &'a str,
    syntax: Syntax,
    lexemes: Vec<Lexeme>,
    at: usize,
    ast: Ast,
    issues: Issues,
    /// The current depth of each rule.
    depths: [usize; RULES],
    /// The numbers of nested operators, fields and calls, of nodes.
    heights: Vec<usize>,
    /// The offset of the first token that does not fit, and the message.
    syntax_error: Option<(usize, String)>,
    /// The token that does not fit should be a field after `.?`.
    lacks_field: bool,
}

const EXPECTED: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
                        STRING, BYTES, IDENTIFIER}";

impl Parser<'_> {
    fn peek(&self) -> Lexeme {
        self.lexemes[self.at]
    }

    fn peek_second(&self) -> Token {
        self.lexemes.get(self.at + 1).map_or(Token::End, |lexeme| lexeme.token)
    }

    fn text(&self, lexeme: Lexeme) -> &str {
        &self.source[lexeme.start..lexeme.end]
    }

    fn advance(&mut self) -> Lexeme {
        let lexeme = self.peek();
        if lexeme.token != Token::End {
            self.at += 1;
        }
        lexeme
    }

    /// Takes the token if it is the symbol.
    fn take(&mut self, symbol: &str) -> Option<Lexeme> {
        matches!(self.peek().token, Token::Symbol(found) if found == symbol).then(|| self.advance())
    }

    fn expect(&mut self, symbol: &str) -> Parsed<Lexeme> {
        match self.take(symbol) {
            Some(lexeme) => Ok(lexeme),
            None => Err(self.mismatch(&format!("'{symbol}'"))),
        }
    }

    fn expect_end(&mut self) -> Parsed<()> {
        if self.peek().token == Token::End { Ok(()) } else { Err(self.mismatch("<EOF>")) }
    }

    /// Reports the current token, which does not fit.
    fn mismatch(&mut self, expected: &str) -> Stop {
        let lexeme = self.peek();
        let found = if lexeme.token == Token::End { "<EOF>" } else { self.text(lexeme) };
        let message = format!("Syntax error: mismatched input '{found}' expecting {expected}");
        self.syntax_error = Some((lexeme.start, message));
        Stop
    }

    /// Reports the syntax errors; `unknown` are the texts that are no tokens. The parser stops at the first error, and kube-apiserver reports later errors, too.
    fn describe_syntax_errors(&mut self, unknown: &[Range<usize>]) {
        let Some((offset, message)) = self.syntax_error.take() else { return };
        let errors = recovery::syntax_errors(self.source, &self.lexemes, unknown);
        if errors.is_empty() {
            self.report(offset, message);
        }
        for error in errors {
            let lacks_field = self.lacks_field && error.message.contains("mismatched");
            match error.at {
                Some(at) => self.report(at, error.message),
                None => self.issues.add_general(error.message),
            }
            if lacks_field && error.at == Some(offset) {
                self.report(offset, "unsupported ident kind");
            }
        }
    }

    fn report(&mut self, offset: usize, message: impl Into<String>) {
        self.issues.add(self.source, offset, message);
    }

    /// Adds a node, unless the expression has too many nodes or the nodes are nested too deep.
    fn node(&mut self, offset: usize, kind: Kind) -> Parsed {
        self.check_size()?;
        let counts = match &kind {
            Kind::Select { test, .. } => !test,
            Kind::Call { target, function, .. } => {
                target.is_some()
                    || &**function == operator::IN
                    || function.starts_with('_') && !matches!(&**function, operator::AND | operator::OR)
            }
            _ => false,
        };
        let id = self.ast.add(offset, kind);
        let mut below = Vec::new();
        self.ast.for_each_child(id, &mut |child| below.push(child));
        self.set_height(id, &below, counts)?;
        Ok(id)
    }

    /// Notes how deep the operators, fields and calls below a node are nested.
    fn set_height(&mut self, id: Id, below: &[Id], counts: bool) -> Parsed<()> {
        let of = |child: &Id| self.heights.get(*child as usize).copied().unwrap_or_default();
        let height = below.iter().map(of).max().unwrap_or_default() + usize::from(counts);
        self.heights.resize(self.ast.kinds.len(), 0);
        self.heights[id as usize] = height;
        if height > MAX_DEPTH || self.ast.too_deep {
            self.issues.add_general("max recursion depth exceeded");
            return Err(Stop);
        }
        Ok(())
    }

    fn check_size(&mut self) -> Parsed<()> {
        if self.ast.kinds.len() >= MAX_NODES {
            self.issues.add_general(format!("the expression has more than {MAX_NODES} nodes"));
            return Err(Stop);
        }
        Ok(())
    }

    fn enter(&mut self, rule: Rule) -> Parsed<()> {
        let depth = &mut self.depths[rule as usize];
        *depth += 1;
        if *depth > MAX_DEPTH {
            self.issues.add_general(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
            return Err(Stop);
        }
        Ok(())
    }

    /// Leaves a rule. A chain of operators leaves it once for each operator and once more, though it has entered the rule
    /// once: so cel-go counts.
    fn leave(&mut self, rule: Rule, count: usize) {
        let depth = &mut self.depths[rule as usize];
        *depth = depth.saturating_sub(count);
    }

    fn call(&mut self, offset: usize, function: &str, arguments: Vec<Id>) -> Parsed {
        self.node(offset, Kind::Call { function: Name::from(function), target: None, arguments })
    }

    /// Parses `a ? b : c`, or an expression of higher precedence.
    fn expression(&mut self) -> Parsed {
        self.enter(Rule::Expression)?;
        let condition = self.logic(Rule::Or)?;
        let result = match self.take("?") {
            None => condition,
            Some(question) => {
                let truthy = self.logic(Rule::Or)?;
                self.expect(":")?;
                let falsy = self.expression()?;
                self.call(question.start, operator::CONDITIONAL, vec![condition, truthy, falsy])?
            }
        };
        self.leave(Rule::Expression, 1);
        Ok(result)
    }

    /// Parses terms with `||` or `&&` between them, to a balanced tree.
    fn logic(&mut self, rule: Rule) -> Parsed {
        self.enter(rule)?;
        let (symbol, function) =
            if matches!(rule, Rule::Or) { ("||", operator::OR) } else { ("&&", operator::AND) };
        let mut terms = vec![self.logic_term(rule)?];
        let mut offsets = Vec::new();
        while let Some(lexeme) = self.take(symbol) {
            offsets.push(lexeme.start);
            terms.push(self.logic_term(rule)?);
        }
        self.leave(rule, 1);
        if offsets.is_empty() { Ok(terms[0]) } else { self.balance(function, &terms, &offsets) }
    }

    fn logic_term(&mut self, rule: Rule) -> Parsed {
        if matches!(rule, Rule::Or) { self.logic(Rule::And) } else { self.relation(0) }
    }

    /// Builds a balanced tree of an operator: `offsets` are the places of the operators between the terms.
    fn balance(&mut self, function: &str, terms: &[Id], offsets: &[usize]) -> Parsed {
        let middle = offsets.len() / 2;
        let side = |parser: &mut Self, terms: &[Id], offsets: &[usize]| {
            if offsets.is_empty() { Ok(terms[0]) } else { parser.balance(function, terms, offsets) }
        };
        let left = side(self, &terms[..=middle], &offsets[..middle])?;
        let right = side(self, &terms[middle + 1..], &offsets[middle + 1..])?;
        self.call(offsets[middle], function, vec![left, right])
    }

    /// Parses comparisons, from left to right. `level` is 1 for the right side of a comparison.
    fn relation(&mut self, level: usize) -> Parsed {
        self.enter(Rule::Relation)?;
        let mut count = 1;
        let mut left = self.sum(0)?;
        while level == 0
            && let Some(function) = relation_operator(self.peek().token)
        {
            let lexeme = self.advance();
            count += 1;
            let right = self.relation(1)?;
            left = self.call(lexeme.start, function, vec![left, right])?;
        }
        self.leave(Rule::Relation, count);
        Ok(left)
    }

    /// Parses sums and products: with a `level` of 1 only products, with 2 neither.
    fn sum(&mut self, level: usize) -> Parsed {
        self.enter(Rule::Sum)?;
        let mut count = 1;
        let mut left = self.unary()?;
        while let Some((function, precedence)) = sum_operator(self.peek().token)
            && precedence > level
        {
            let lexeme = self.advance();
            count += 1;
            let right = self.sum(precedence)?;
            left = self.call(lexeme.start, function, vec![left, right])?;
        }
        self.leave(Rule::Sum, count);
        Ok(left)
    }

    /// Parses any number of `!`, or of `-`, before a member.
    fn unary(&mut self) -> Parsed {
        self.enter(Rule::Unary)?;
        let symbol = match self.peek().token {
            Token::Symbol("!") => Some("!"),
            Token::Symbol("-") if !matches!(self.peek_second(), Token::Int | Token::Double) => Some("-"),
            _ => None,
        };
        let Some(symbol) = symbol else {
            let member = self.member();
            self.leave(Rule::Unary, 1);
            return member;
        };
        let first = self.advance();
        let mut count = 1;
        while self.take(symbol).is_some() {
            count += 1;
        }
        let operand = self.member()?;
        self.leave(Rule::Unary, 1);
        let function = if symbol == "!" { operator::NOT } else { operator::NEGATE };
        if count % 2 == 0 { Ok(operand) } else { self.call(first.start, function, vec![operand]) }
    }
}

fn relation_operator(token: Token) -> Option<&'static str> {
    Some(match token {
        Token::In => operator::IN,
        Token::Symbol("<") => operator::LESS,
        Token::Symbol("<=") => operator::LESS_EQUALS,
        Token::Symbol(">") => operator::GREATER,
        Token::Symbol(">=") => operator::GREATER_EQUALS,
        Token::Symbol("==") => operator::EQUALS,
        Token::Symbol("!=") => operator::NOT_EQUALS,
        _ => return None,
    })
}

fn sum_operator(token: Token) -> Option<(&'static str, usize)> {
    Some(match token {
        Token::Symbol("+") => (operator::ADD, 1),
        Token::Symbol("-") => (operator::SUBTRACT, 1),
        Token::Symbol("*") => (operator::MULTIPLY, 2),
        Token::Symbol("/") => (operator::DIVIDE, 2),
        Token::Symbol("%") => (operator::MODULO, 2),
        _ => return None,
    })
}
