//! The automaton of a pattern: how long a search may take, and a search that gives up.

use std::sync::Mutex;

use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{BuildError, NFA, WhichCaptures};

use super::LARGEST;

/// The memory of a search, in bytes.
const MEMORY: usize = 256 << 10;
/// How often the memory may fill up before a search gives up.
const MAX_CLEARS: usize = 3;
/// A search gives up if a state takes this many bytes, or more, of the memory for few bytes of text.
const BYTES_PER_STATE: usize = 10;
/// The bytes of memory that a search fills in a step.
const MEMORY_PER_STEP: usize = 8;
/// The bytes of text that a search reads in a step.
const TEXT_PER_STEP: usize = 8;

/// Makes the automaton of a pattern in the dialect of the `regex` crate.
///
/// # Errors
/// The pattern is invalid, or the automaton has more than [`LARGEST`] bytes.
pub(super) fn automaton(translated: &str) -> Result<NFA, Box<BuildError>> {
    let config = NFA::config().nfa_size_limit(Some(LARGEST)).which_captures(WhichCaptures::None);
    NFA::compiler().configure(config).build(translated).map_err(Box::new)
}

/// The automaton of a pattern, with the memory of the searches.
pub(super) struct Machine {
    /// The number of states: a search visits every state at most once for each byte of the text.
    states: usize,
    dfa: Option<DFA>,
    /// The memory of earlier searches makes later searches faster.
    cache: Mutex<Option<Cache>>,
}

impl Machine {
    pub(super) fn new(automaton: NFA) -> Self {
        let states = automaton.states().len();
        let config = DFA::config()
            .unicode_word_boundary(true)
            .cache_capacity(MEMORY)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(MAX_CLEARS))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE));
        let dfa = DFA::builder().configure(config).build_from_nfa(automaton).ok();
        Self { states, dfa, cache: Mutex::default() }
    }

    /// Returns a machine that always gives up, for a pattern whose automaton is too large.
    pub(super) fn missing() -> Self {
        Self { states: LARGEST, dfa: None, cache: Mutex::default() }
    }

    /// Returns the number of states.
    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// Returns the largest number of steps of a search without this machine.
    pub(super) fn most_steps(&self, text: &str) -> usize {
        self.states.saturating_mul(text.len() + 1)
    }

    /// Searches in about as many steps as the text has bytes, and subtracts the steps; `None` if that is not possible.
    pub(super) fn is_match(&self, text: &str, steps: &mut usize) -> Option<bool> {
        let dfa = self.dfa.as_ref()?;
        // Of searches at the same time, the first has the memory of earlier searches.
        let mut kept = self.cache.try_lock().ok();
        let mut cache = kept.as_mut().and_then(|kept| kept.take()).unwrap_or_else(|| dfa.create_cache());
        let (memory, clears) = (cache.memory_usage(), cache.clear_count());
        let found = dfa.try_search_fwd(&mut cache, &Input::new(text).earliest(true));
        let filled = (cache.clear_count() - clears) * MEMORY + cache.memory_usage();
        let used = filled.saturating_sub(memory) / MEMORY_PER_STEP + text.len() / TEXT_PER_STEP;
        *steps = steps.saturating_sub(used + 1);
        let found = found.ok()?;
        if let Some(kept) = &mut kept {
            **kept = Some(cache);
        }
        Some(found.is_some())
    }
}
