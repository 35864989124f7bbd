//! The grammar of the language as a graph: the states between the tokens, for the messages about syntax errors.
//!
//! The parser itself does not need the graph. kube-apiserver describes a syntax error by the tokens that the grammar allows at the place of
//! the error, and the graph answers this question.

use std::sync::LazyLock;

use super::lexer::Token;

/// The rules, in the notation of EBNF. `<~<=` is a token of several, and `lparen` and `rparen` are the tokens `(` and `)`, because parentheses
/// group. A rule that recurs on its left side is a loop: `{2}` precedes an operator that binds with this strength, and `calc:3` reads an
/// operand whose operators bind at least with this strength.
const RULES: [(&str, &str); 17] = [
    ("start", "expr <EOF>"),
    ("expr", "or ( ? or : expr )?"),
    ("or", "and ( || and )*"),
    ("and", "relation ( && relation )*"),
    ("relation", "calc ( {1} <~<=~>=~>~==~!=~in relation:2 )*"),
    ("calc", "unary ( {2} *~/~% calc:3 | {1} +~- calc:2 )*"),
    ("unary", "member | ( ! )+ member | ( - )+ member"),
    (
        "member",
        "primary ( {3} . ( ? )? field | {2} . IDENTIFIER lparen ( expressions )? rparen | {1} [ ( ? )? expr ] )*",
    ),
    (
        "primary",
        "( . )? IDENTIFIER | ( . )? IDENTIFIER lparen ( expressions )? rparen | lparen expr rparen \
         | [ ( elements )? ( , )? ] | { ( entries )? ( , )? } \
         | ( . )? IDENTIFIER ( . IDENTIFIER )* { ( values )? ( , )? } | literal",
    ),
    ("expressions", "expr ( , expr )*"),
    ("elements", "element ( , element )*"),
    ("values", "value : expr ( , value : expr )*"),
    ("value", "( ? )? field"),
    ("entries", "element : expr ( , element : expr )*"),
    ("field", "IDENTIFIER | ESC_IDENTIFIER"),
    ("element", "( ? )? expr"),
    ("literal", "( - )? NUM_INT | NUM_UINT | ( - )? NUM_FLOAT | STRING | BYTES | true | false | null"),
];

/// The tokens in the order of the messages.
const TOKENS: [&str; 36] = [
    "<EOF>",
    "==",
    "!=",
    "in",
    "<",
    "<=",
    ">=",
    ">",
    "&&",
    "||",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    "-",
    "!",
    "?",
    ":",
    "+",
    "*",
    "/",
    "%",
    "true",
    "false",
    "null",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// A set of tokens. The end of a rule is a member, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

impl TokenSet {
    pub(super) const END_OF_RULE: Self = Self(1 << 63);

    pub(super) fn of(token: Token) -> Self {
        let name = match token {
            Token::End => "<EOF>",
            Token::Symbol(symbol) => symbol,
            Token::In => "in",
            Token::True => "true",
            Token::False => "false",
            Token::Null => "null",
            Token::Identifier => "IDENTIFIER",
            Token::Escaped => "ESC_IDENTIFIER",
            Token::Int => "NUM_INT",
            Token::Uint => "NUM_UINT",
            Token::Double => "NUM_FLOAT",
            Token::String => "STRING",
            Token::Bytes => "BYTES",
        };
        Self::named(name)
    }

    fn named(name: &str) -> Self {
        TOKENS.iter().position(|token| *token == name).map_or(Self(0), |number| Self(1 << number))
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the set in the words of kube-apiserver: a single token without braces.
    pub(super) fn describe(self) -> String {
        let has = |number: usize| self.0 & 1 << number != 0;
        let name = |token: &str| {
            let is_literal = !token.starts_with(|c: char| c.is_ascii_uppercase()) && token != "<EOF>";
            if is_literal { format!("'{token}'") } else { token.to_owned() }
        };
        let names: Vec<String> = TOKENS
            .iter()
            .enumerate()
            .filter(|(number, _)| has(*number))
            .map(|(_, token)| name(token))
            .collect();
        if let [single] = &names[..] { single.clone() } else { format!("{{{}}}", names.join(", ")) }
    }
}

/// The number of a state.
pub(super) type State = usize;

/// The number of a rule.
pub(super) type RuleNumber = usize;

#[derive(Clone, Copy, Debug)]
pub(super) enum Edge {
    Empty(State),
    Tokens(TokenSet, State),
    /// A rule, which begins at the state with the number of the rule.
    Rule {
        rule: RuleNumber,
        follow: State,
    },
}

/// A part of a rule, with the states at which the part begins.
#[derive(Debug)]
pub(super) enum Part {
    Token {
        state: State,
        tokens: TokenSet,
        next: State,
    },
    /// `precedence` is the strength with which an operator binds at least.
    Rule {
        state: State,
        rule: RuleNumber,
        precedence: usize,
        follow: State,
    },
    /// Alternatives, of which at most one is read if the block is `optional`.
    Block {
        state: State,
        alternatives: Vec<Alternative>,
        optional: Option<State>,
    },
    /// Alternatives that are read again and again, at least `once` or not at all.
    Loop {
        entry: State,
        back: State,
        exit: State,
        alternatives: Vec<Alternative>,
        once: bool,
    },
}

#[derive(Debug)]
pub(super) struct Alternative {
    pub(super) start: State,
    pub(super) parts: Vec<Part>,
    /// The strength of the operator that begins the alternative.
    pub(super) precedence: Option<usize>,
}

/// The graph of the grammar.
#[derive(Debug)]
pub(super) struct Grammar {
    pub(super) edges: Vec<Vec<Edge>>,
    pub(super) rules: Vec<Alternative>,
    /// The rules that end at a state.
    pub(super) ends: Vec<Option<RuleNumber>>,
    /// For each rule the states at which the callers go on.
    pub(super) follows: Vec<Vec<State>>,
    /// For each state the tokens that may come next.
    next: Vec<TokenSet>,
    /// For each state the tokens that may come next, with the tokens that may follow the rule anywhere.
    next_anywhere: Vec<TokenSet>,
}

/// Returns the graph.
pub(super) fn grammar() -> &'static Grammar {
    static GRAMMAR: LazyLock<Grammar> = LazyLock::new(Grammar::build);
    &GRAMMAR
}

impl Grammar {
    fn build() -> Self {
        let mut grammar = Self {
            edges: Vec::new(),
            rules: Vec::new(),
            ends: Vec::new(),
            follows: vec![Vec::new(); RULES.len()],
            next: Vec::new(),
            next_anywhere: Vec::new(),
        };
        // The first states are the starts of the rules.
        for _ in RULES {
            grammar.state();
        }
        for (number, (_, text)) in RULES.iter().enumerate() {
            let words: Vec<&str> = text.split_whitespace().collect();
            let end = grammar.state();
            let mut words = words.as_slice();
            let alternatives = grammar.alternatives(&mut words, end);
            let rule = match <[Alternative; 1]>::try_from(alternatives) {
                Ok([single]) => single,
                Err(alternatives) => {
                    let state = grammar.block_start(&alternatives);
                    let parts = vec![Part::Block { state, alternatives, optional: None }];
                    Alternative { start: state, parts, precedence: None }
                }
            };
            grammar.edges[number].push(Edge::Empty(rule.start));
            grammar.ends[end] = Some(number);
            grammar.rules.push(rule);
        }
        grammar.find_next();
        grammar
    }

    fn state(&mut self) -> State {
        self.edges.push(Vec::new());
        self.ends.push(None);
        self.edges.len() - 1
    }

    fn block_start(&mut self, alternatives: &[Alternative]) -> State {
        let state = self.state();
        self.edges[state] = alternatives.iter().map(|alternative| Edge::Empty(alternative.start)).collect();
        state
    }

    /// Reads alternatives, up to a closing parenthesis or the end of the words. All lead to the state `end`.
    fn alternatives(&mut self, words: &mut &[&str], end: State) -> Vec<Alternative> {
        let mut alternatives = vec![self.alternative(words, end)];
        while words.first() == Some(&"|") {
            *words = &words[1..];
            alternatives.push(self.alternative(words, end));
        }
        alternatives
    }

    fn alternative(&mut self, words: &mut &[&str], end: State) -> Alternative {
        let start = self.state();
        let (mut parts, mut precedence, mut at) = (Vec::new(), None, start);
        while let Some((word, rest)) = words.split_first() {
            if matches!(*word, "|" | ")" | ")?" | ")*" | ")+") {
                break;
            }
            *words = rest;
            if let Some(strength) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
                precedence = strength.parse().ok();
                continue;
            }
            let next = self.state();
            parts.push(if *word == "(" { self.group(words, at, next) } else { self.word(word, at, next) });
            at = next;
        }
        self.edges[at].push(Edge::Empty(end));
        Alternative { start, parts, precedence }
    }

    /// Adds a token, tokens or a rule between two states.
    fn word(&mut self, word: &str, state: State, next: State) -> Part {
        let (name, strength) =
            word.split_once(':').filter(|(name, _)| !name.is_empty()).unwrap_or((word, "0"));
        if let Some(rule) = RULES.iter().position(|(rule, _)| *rule == name) {
            self.edges[state].push(Edge::Rule { rule, follow: next });
            self.follows[rule].push(next);
            return Part::Rule {
                state,
                rule,
                precedence: strength.parse().unwrap_or_default(),
                follow: next,
            };
        }
        let tokens = word.split('~').map(|name| match name {
            "lparen" => TokenSet::named("("),
            "rparen" => TokenSet::named(")"),
            name => TokenSet::named(name),
        });
        let tokens = tokens.fold(TokenSet::default(), TokenSet::and);
        self.edges[state].push(Edge::Tokens(tokens, next));
        Part::Token { state, tokens, next }
    }

    /// Adds a group in parentheses between two states.
    fn group(&mut self, words: &mut &[&str], state: State, next: State) -> Part {
        let end = self.state();
        let alternatives = self.alternatives(words, end);
        let close = words.first().copied().unwrap_or_default();
        *words = words.get(1..).unwrap_or_default();
        let block = self.block_start(&alternatives);
        self.edges[state].push(Edge::Empty(block));
        if close == ")?" {
            self.edges[block].push(Edge::Empty(next));
            self.edges[end].push(Edge::Empty(next));
            return Part::Block { state: block, alternatives, optional: Some(next) };
        }
        let once = close == ")+";
        if !once {
            self.edges[block].push(Edge::Empty(next));
        }
        self.edges[end].extend([Edge::Empty(block), Edge::Empty(next)]);
        Part::Loop { entry: block, back: end, exit: next, alternatives, once }
    }

    /// Finds the next tokens of all states.
    fn find_next(&mut self) {
        let end = |rule: &Option<_>| rule.map_or(TokenSet::default(), |_| TokenSet::END_OF_RULE);
        let ends: Vec<TokenSet> = self.ends.iter().map(end).collect();
        self.next = settle(ends, |next, state| self.next_by_edges(next, state));
        let nothing = vec![TokenSet::default(); self.edges.len()];
        self.next_anywhere = settle(nothing, |next, state| {
            let follows = self.ends[state].iter().flat_map(|rule| &self.follows[*rule]);
            let after = follows.map(|follow| next[*follow]).fold(TokenSet::default(), TokenSet::and);
            self.next_by_edges(next, state).and(after)
        });
    }

    fn next_by_edges(&self, next: &[TokenSet], state: State) -> TokenSet {
        let edges = self.edges[state].iter().map(|edge| match *edge {
            Edge::Empty(to) => next[to],
            Edge::Tokens(tokens, _) => tokens,
            Edge::Rule { rule, follow } => {
                through(self.next.get(rule).copied().unwrap_or(next[rule]), next[follow])
            }
        });
        edges.fold(next[state], TokenSet::and)
    }

    /// Returns the tokens that may come at a state, and [`TokenSet::END_OF_RULE`] if the rule may end there.
    pub(super) fn next(&self, state: State) -> TokenSet {
        self.next[state]
    }

    /// Returns the tokens that may come at a state. Behind the end of the rule, all tokens count that may follow the rule anywhere.
    pub(super) fn next_anywhere(&self, state: State) -> TokenSet {
        self.next_anywhere[state]
    }

    /// Returns the tokens that may come at a state. `follows` are the states at which the callers go on; the last caller comes last.
    pub(super) fn expected(&self, state: State, follows: &[State]) -> TokenSet {
        let within = follows.iter().rev();
        let all = within.fold(self.next(state), |tokens, follow| through(tokens, self.next(*follow)));
        through(all, TokenSet::of(Token::End))
    }
}

/// Returns tokens of which the end of the rule is replaced by the tokens that follow the rule.
fn through(tokens: TokenSet, follow: TokenSet) -> TokenSet {
    if tokens.contains(TokenSet::END_OF_RULE) {
        tokens.without(TokenSet::END_OF_RULE).and(follow)
    } else {
        tokens
    }
}

/// Computes the sets of all states from the sets of the other states, until no set grows.
fn settle(mut sets: Vec<TokenSet>, of: impl Fn(&[TokenSet], State) -> TokenSet) -> Vec<TokenSet> {
    loop {
        let grown: Vec<TokenSet> = (0..sets.len()).map(|state| of(&sets, state)).collect();
        if grown == sets {
            return sets;
        }
        sets = grown;
    }
}
