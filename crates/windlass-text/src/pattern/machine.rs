//! The automaton of a pattern: how long a search may take, and a search that gives up.

use std::sync::{Arc, OnceLock};

use regex_automata::Input;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::NFA;

use super::LARGEST;

/// How often the memory of a search may fill up before the search gives up.
const MAX_CACHE_CLEARS: usize = 3;
/// A search gives up if a state takes this many bytes, or more, of the memory for few bytes of text.
const BYTES_PER_STATE: usize = 10;

/// The automaton of a pattern.
#[derive(Clone)]
pub(super) struct Machine {
    translated: Box<str>,
    /// The number of states: a search visits every state at most once for each byte of the text.
    states: usize,
    /// Built when a search of a long text asks for the automaton.
    lazy: OnceLock<Option<Arc<DFA>>>,
}

impl Machine {
    /// Makes the automaton of a pattern in the dialect of the `regex` crate.
    pub(super) fn new(translated: &str) -> Self {
        let config = NFA::config().nfa_size_limit(Some(LARGEST));
        let nfa = NFA::compiler().configure(config).build(translated);
        let states = nfa.map_or(LARGEST, |nfa| nfa.states().len());
        Self { translated: translated.into(), states, lazy: OnceLock::new() }
    }

    /// Returns the largest number of steps of a search.
    pub(super) fn most_steps(&self, text: &str) -> usize {
        self.states.saturating_mul(text.len() + 1)
    }

    /// Searches in about as many steps as the text has bytes; `None` if that is not possible.
    pub(super) fn is_match(&self, text: &str) -> Option<bool> {
        let lazy = self.lazy.get_or_init(|| {
            let config = DFA::config()
                .unicode_word_boundary(true)
                .skip_cache_capacity_check(true)
                .minimum_cache_clear_count(Some(MAX_CACHE_CLEARS))
                .minimum_bytes_per_state(Some(BYTES_PER_STATE));
            DFA::builder().configure(config).build(&self.translated).ok().map(Arc::new)
        });
        let lazy = lazy.as_ref()?;
        let mut cache = lazy.create_cache();
        let found = lazy.try_search_fwd(&mut cache, &Input::new(text).earliest(true));
        found.ok().map(|found| found.is_some())
    }
}
