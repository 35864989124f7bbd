//! Describes syntax errors as kube-apiserver does: all errors of an expression, in its words.
//!
//! The parser of kube-apiserver goes on after an error: with a token that is left out or put in, or behind tokens that do not fit. Here
//! a second, slow pass does the same, for an expression in which the fast parser has found an error.

use std::ops::Range;

use super::grammar::{Alternative, Grammar, Part, RuleNumber, State, TokenSet, grammar};
use super::lexer::{Lexeme, Token};
use super::predict::{Choice, choose};

/// A syntax error.
pub(super) struct SyntaxError {
    /// The offset of the token, in bytes; `None` for the whole expression.
    pub(super) at: Option<usize>,
    pub(super) message: String,
}

/// The attempts to go on after an error.
const MAX_ATTEMPTS: usize = 30;
/// The tokens that one attempt may pass.
const MAX_PASSED: usize = 256;
/// The work of a pass. Afterwards the error of the fast parser stands alone.
const MAX_WORK: usize = 400_000;
/// The depth of the rules.
const MAX_DEPTH: usize = 2_000;

/// Returns the syntax errors of an expression. Empty if the pass finds none, or takes too much work.
///
/// `unknown` are the texts that are no tokens.
pub(super) fn syntax_errors(source: &str, lexemes: &[Lexeme], unknown: &[Range<usize>]) -> Vec<SyntaxError> {
    let mut recovery = Recovery {
        grammar: grammar(),
        source,
        lexemes,
        unknown,
        tokens: lexemes.iter().map(|lexeme| TokenSet::of(lexeme.token)).collect(),
        at: 0,
        state: 0,
        follows: Vec::new(),
        is_recovering: false,
        last: None,
        attempts: 0,
        work: MAX_WORK,
        errors: Vec::new(),
    };
    match recovery.rule(0, 0) {
        Err(Stop::TooMuchWork) => Vec::new(),
        Ok(()) | Err(_) => recovery.errors,
    }
}

struct Recovery<'a> {
    grammar: &'static Grammar,
    source: &'a str,
    lexemes: &'a [Lexeme],
    unknown: &'a [Range<usize>],
    tokens: Vec<TokenSet>,
    at: usize,
    state: State,
    /// The states at which the callers of the rule go on.
    follows: Vec<State>,
    /// No token has been read since the last error: further errors are not reported.
    is_recovering: bool,
    /// The place of the last error, and the states of the errors since a token has fit.
    last: Option<(usize, Vec<State>)>,
    attempts: usize,
    work: usize,
    errors: Vec<SyntaxError>,
}

/// The reason that a rule ends early.
enum Stop {
    /// The current token does not fit.
    Mismatch,
    /// No alternative fits the tokens from the current token up to this place.
    NoAlternative(usize),
    /// The expression has too many errors.
    TooManyErrors,
    TooMuchWork,
}

type Step<T = ()> = Result<T, Stop>;

impl Recovery<'_> {
    fn token(&self) -> TokenSet {
        self.tokens[self.at]
    }

    fn second(&self) -> TokenSet {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)]
    }

    fn consume(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn expected(&self) -> TokenSet {
        self.grammar.expected(self.state, &self.follows)
    }

    /// Reads a rule. An error ends the rule, and the caller goes on.
    fn rule(&mut self, rule: RuleNumber, precedence: usize) -> Step {
        if self.follows.len() > MAX_DEPTH {
            return Err(Stop::TooMuchWork);
        }
        let grammar = self.grammar;
        match self.parts(&grammar.rules[rule].parts, precedence) {
            Err(stop @ (Stop::Mismatch | Stop::NoAlternative(_))) => {
                self.report_stop(&stop);
                self.recover()
            }
            done => done,
        }
    }

    fn parts(&mut self, parts: &[Part], precedence: usize) -> Step {
        parts.iter().try_for_each(|part| self.part(part, precedence))
    }

    fn part(&mut self, part: &Part, precedence: usize) -> Step {
        match part {
            Part::Token { state, tokens, next } => self.read(*state, *tokens, *next),
            Part::Rule { state, rule, precedence, follow } => {
                self.state = *state;
                self.follows.push(*follow);
                let done = self.rule(*rule, *precedence);
                self.follows.pop();
                self.state = *state;
                done
            }
            Part::Block { state, alternatives, optional } => {
                self.state = *state;
                self.begin()?;
                match self.alternative(alternatives, *optional, precedence)? {
                    Some(alternative) => self.parts(&alternative.parts, precedence),
                    None => Ok(()),
                }
            }
            Part::Loop { entry, back, exit, alternatives, once } => {
                self.state = *entry;
                self.begin()?;
                let mut is_due = *once;
                loop {
                    let exit = Some(*exit).filter(|_| !is_due);
                    let Some(alternative) = self.alternative(alternatives, exit, precedence)? else {
                        return Ok(());
                    };
                    self.parts(&alternative.parts, precedence)?;
                    self.state = *back;
                    self.skip_to_next();
                    is_due = false;
                }
            }
        }
    }

    /// Reads a token of the set.
    fn read(&mut self, state: State, tokens: TokenSet, next: State) -> Step {
        self.state = state;
        if tokens.contains(self.token()) {
            self.end_error();
            self.consume();
            return Ok(());
        }
        self.attempt()?;
        if self.leave_out() {
            self.consume();
            return Ok(());
        }
        if self.grammar.expected(next, &self.follows).contains(self.token()) {
            let message = format!("missing {} at {}", self.expected().describe(), self.shown());
            self.report(message);
            return Ok(());
        }
        Err(Stop::Mismatch)
    }

    /// Chooses an alternative by the next tokens; `None` is the `exit`.
    fn alternative<'p>(
        &mut self,
        alternatives: &'p [Alternative],
        exit: Option<State>,
        precedence: usize,
    ) -> Step<Option<&'p Alternative>> {
        let is_first =
            |alternative: &&Alternative| self.grammar.next(alternative.start).contains(self.token());
        let binds =
            |alternative: &&Alternative| alternative.precedence.is_none_or(|found| found >= precedence);
        if exit.is_some() && alternatives.iter().any(|alternative| alternative.precedence.is_some()) {
            let usable: Vec<_> = alternatives.iter().filter(binds).filter(is_first).collect();
            return match usable[..] {
                [] => Ok(None),
                [single] => Ok(Some(single)),
                _ => self.predict(&usable, None),
            };
        }
        let all: Vec<_> = alternatives.iter().collect();
        let starts = all.iter().map(|alternative| alternative.start).chain(exit);
        let sets: Vec<TokenSet> = starts.map(|start| self.grammar.next_anywhere(start)).collect();
        let overlap =
            |(number, set): (usize, &TokenSet)| sets[..number].iter().any(|other| other.overlaps(*set));
        if sets.iter().enumerate().any(overlap) {
            return self.predict(&all, exit);
        }
        match all.into_iter().find(is_first) {
            None if exit.is_none() => Err(Stop::NoAlternative(self.at)),
            found => Ok(found),
        }
    }

    fn predict<'p>(
        &mut self,
        alternatives: &[&'p Alternative],
        exit: Option<State>,
    ) -> Step<Option<&'p Alternative>> {
        let starts = alternatives.iter().map(|alternative| alternative.start).chain(exit);
        let starts: Vec<State> = starts.collect();
        match choose(self.grammar, &starts, &self.tokens[self.at..], &mut self.work) {
            Choice::Alternative(number) => Ok(alternatives.get(number).copied()),
            Choice::None(place) => Err(Stop::NoAlternative(self.at + place)),
            Choice::TooMuchWork => Err(Stop::TooMuchWork),
        }
    }

    /// Leaves out a token before a block or a loop, if the token after it fits.
    fn begin(&mut self) -> Step {
        if self.fits() || self.leave_out() { Ok(()) } else { Err(Stop::Mismatch) }
    }

    /// Passes tokens after a part of a loop until a token fits.
    fn skip_to_next(&mut self) {
        if self.fits() {
            return;
        }
        self.report_extraneous();
        let until = self.expected().and(self.callers_expect());
        while self.token() != TokenSet::of(Token::End) && !until.contains(self.token()) {
            self.consume();
        }
    }

    fn fits(&self) -> bool {
        let next = self.grammar.next(self.state);
        self.is_recovering || next.contains(TokenSet::END_OF_RULE) || next.contains(self.token())
    }

    /// Leaves out the current token if the token after it is expected.
    fn leave_out(&mut self) -> bool {
        let is_expected = self.expected().contains(self.second());
        if is_expected {
            self.report_extraneous();
            self.consume();
            self.end_error();
        }
        is_expected
    }

    /// Notes that a token fits.
    fn end_error(&mut self) {
        self.is_recovering = false;
        self.last = None;
    }

    fn attempt(&mut self) -> Step {
        if self.attempts == MAX_ATTEMPTS {
            self.add(format!("error recovery attempt limit exceeded: {MAX_ATTEMPTS}"));
            return Err(Stop::TooManyErrors);
        }
        self.attempts += 1;
        Ok(())
    }

    /// Passes tokens until a token may follow a rule that is open.
    fn recover(&mut self) -> Step {
        self.attempt()?;
        let is_repeated =
            self.last.as_ref().is_some_and(|(at, states)| *at == self.at && states.contains(&self.state));
        let mut passed = 0;
        if is_repeated {
            self.consume();
            passed += 1;
        }
        let mut states = self.last.take().map(|(_, states)| states).unwrap_or_default();
        states.push(self.state);
        self.last = Some((self.at, states));
        let until = self.callers_expect();
        while self.token() != TokenSet::of(Token::End) && !until.contains(self.token()) {
            if passed == MAX_PASSED {
                let message = format!("error recovery token lookahead limit exceeded: {MAX_PASSED}");
                self.errors.push(SyntaxError { at: None, message });
                return Err(Stop::TooManyErrors);
            }
            self.consume();
            passed += 1;
        }
        Ok(())
    }

    /// Returns the tokens that may follow one of the open rules.
    fn callers_expect(&self) -> TokenSet {
        let follows = self.follows.iter().map(|follow| self.grammar.next(*follow));
        follows.fold(TokenSet::default(), TokenSet::and).without(TokenSet::END_OF_RULE)
    }

    fn report_stop(&mut self, stop: &Stop) {
        if let Stop::NoAlternative(place) = stop {
            return self.report_no_alternative(*place);
        }
        let message = format!("mismatched input {} expecting {}", self.shown(), self.expected().describe());
        self.report(message);
    }

    fn report_no_alternative(&mut self, place: usize) {
        let (first, last) = (self.lexemes[self.at], self.lexemes[place]);
        let input = match first.token {
            Token::End => "<EOF>".to_owned(),
            _ => self.known_text(first.start..last.end),
        };
        let mut characters = input.chars();
        let message = match (characters.next(), characters.as_str()) {
            (Some(_), word @ ("true" | "false" | "null")) => {
                format!("mismatched input '{word}' expecting IDENTIFIER")
            }
            _ => format!("no viable alternative at input {}", quoted(&input)),
        };
        let at = last.start;
        if !self.is_recovering {
            self.is_recovering = true;
            self.errors.push(SyntaxError { at: Some(at), message: format!("Syntax error: {message}") });
        }
    }

    /// Returns a part of the expression, without the texts that are no tokens.
    fn known_text(&self, range: Range<usize>) -> String {
        let mut text = String::new();
        let mut at = range.start;
        for unknown in self.unknown.iter().filter(|unknown| range.contains(&unknown.start)) {
            text.push_str(&self.source[at..unknown.start]);
            at = unknown.end;
        }
        text.push_str(&self.source[at..range.end]);
        text
    }

    fn report_extraneous(&mut self) {
        let message = format!("extraneous input {} expecting {}", self.shown(), self.expected().describe());
        self.report(message);
    }

    /// Reports an error at the current token, unless an error has been reported since the last token that fit.
    fn report(&mut self, message: String) {
        if !self.is_recovering {
            self.is_recovering = true;
            self.add(message);
        }
    }

    fn add(&mut self, message: String) {
        let at = Some(self.lexemes[self.at].start);
        self.errors.push(SyntaxError { at, message: format!("Syntax error: {message}") });
    }

    /// Returns the current token in quotes.
    fn shown(&self) -> String {
        let lexeme = self.lexemes[self.at];
        quoted(if lexeme.token == Token::End { "<EOF>" } else { &self.source[lexeme.start..lexeme.end] })
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}
