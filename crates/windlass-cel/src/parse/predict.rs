//! Chooses among alternatives of the grammar by any number of tokens, as the parser of kube-apiserver does.

use std::collections::{BTreeSet, HashMap};

use super::grammar::{Edge, Grammar, State, TokenSet};

/// The outcome of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The number of the alternative.
    Alternative(usize),
    /// No alternative fits the token at this place, counted from the first token of the choice.
    None(usize),
    /// The choice takes too much work.
    TooMuchWork,
}

/// The states that the alternatives may have reached.
struct Prediction<'a> {
    grammar: &'a Grammar,
    stacks: Stacks,
    work: &'a mut usize,
}

/// A state that an alternative has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reached {
    state: State,
    stack: usize,
    alternative: usize,
    /// The alternative has left the rule of the choice.
    is_outside: bool,
}

/// The stacks of states at which callers go on. Equal stacks have the same number, and the empty stack is 0.
#[derive(Default)]
struct Stacks {
    frames: Vec<(State, usize)>,
    numbers: HashMap<(State, usize), usize>,
}

impl Stacks {
    fn push(&mut self, follow: State, below: usize) -> usize {
        let frames = &mut self.frames;
        *self.numbers.entry((follow, below)).or_insert_with(|| {
            frames.push((follow, below));
            frames.len()
        })
    }

    fn pop(&self, stack: usize) -> Option<(State, usize)> {
        self.frames.get(stack.checked_sub(1)?).copied()
    }
}

/// Chooses among the alternatives that begin at `starts`. `tokens` begin with the current token. Each step takes from `work`.
pub(super) fn choose(grammar: &Grammar, starts: &[State], tokens: &[TokenSet], work: &mut usize) -> Choice {
    Prediction { grammar, stacks: Stacks::default(), work }.run(starts, tokens)
}

impl Prediction<'_> {
    fn run(&mut self, starts: &[State], tokens: &[TokenSet]) -> Choice {
        let mut reached = BTreeSet::new();
        for (alternative, &state) in starts.iter().enumerate() {
            self.close(Reached { state, stack: 0, alternative, is_outside: false }, &mut reached);
        }
        for (place, token) in tokens.iter().enumerate() {
            let mut next = BTreeSet::new();
            for from in &reached {
                self.step(*from, *token, &mut next);
            }
            if *self.work == 0 {
                return Choice::TooMuchWork;
            }
            if next.is_empty() {
                let outside = reached.iter().filter(|reached| reached.is_outside);
                let first = outside.map(|reached| reached.alternative).min();
                return first.map_or(Choice::None(place), Choice::Alternative);
            }
            let first = next.iter().map(|reached| reached.alternative).min().unwrap_or_default();
            if place + 1 == tokens.len() || self.is_decided(&next, first) {
                return Choice::Alternative(first);
            }
            reached = next;
        }
        Choice::TooMuchWork
    }

    /// Returns whether further tokens cannot change the choice: all states belong to the first alternative, or the alternatives are in
    /// the same states.
    fn is_decided(&self, reached: &BTreeSet<Reached>, first: usize) -> bool {
        let mut by_place: HashMap<(State, usize), BTreeSet<usize>> = HashMap::new();
        let mut by_state: HashMap<State, BTreeSet<usize>> = HashMap::new();
        for reached in reached.iter().filter(|reached| self.waits(**reached)) {
            by_place.entry((reached.state, reached.stack)).or_default().insert(reached.alternative);
            by_state.entry(reached.state).or_default().insert(reached.alternative);
        }
        let is_ambiguous =
            by_place.values().any(|set| set.len() > 1) && by_state.values().all(|set| set.len() > 1);
        is_ambiguous || reached.iter().all(|reached| reached.alternative == first)
    }

    /// Returns whether the state is between two tokens, or the end of all.
    fn waits(&self, reached: Reached) -> bool {
        let mut edges = self.grammar.edges[reached.state].iter();
        edges.any(|edge| matches!(edge, Edge::Tokens(..)))
            || self.grammar.ends[reached.state].is_some() && self.stacks.pop(reached.stack).is_none()
    }

    /// Adds the states after a token.
    fn step(&mut self, from: Reached, token: TokenSet, next: &mut BTreeSet<Reached>) {
        let grammar = self.grammar;
        for edge in &grammar.edges[from.state] {
            if let Edge::Tokens(tokens, state) = *edge
                && tokens.contains(token)
            {
                self.close(Reached { state, ..from }, next);
            }
        }
    }

    /// Adds the states that are reached without a token.
    fn close(&mut self, start: Reached, reached: &mut BTreeSet<Reached>) {
        let grammar = self.grammar;
        let mut waiting = vec![start];
        while let Some(from) = waiting.pop() {
            *self.work = self.work.saturating_sub(1);
            if *self.work == 0 || !reached.insert(from) {
                continue;
            }
            for edge in &grammar.edges[from.state] {
                match *edge {
                    Edge::Empty(state) => waiting.push(Reached { state, ..from }),
                    Edge::Rule { rule, follow } => {
                        let stack = self.stacks.push(follow, from.stack);
                        waiting.push(Reached { state: rule, stack, ..from });
                    }
                    Edge::Tokens(..) => {}
                }
            }
            let Some(rule) = grammar.ends[from.state] else { continue };
            if let Some((state, stack)) = self.stacks.pop(from.stack) {
                waiting.push(Reached { state, stack, ..from });
            } else {
                let follows = grammar.follows[rule].iter();
                waiting.extend(follows.map(|&state| Reached { state, is_outside: true, ..from }));
            }
        }
    }
}
