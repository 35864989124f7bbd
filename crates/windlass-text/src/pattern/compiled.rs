//! The compiled patterns of the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::{Expression, OutOfSteps};

/// The most patterns that stay compiled. A pattern takes about 8 KiB, and up to some hundred KiB after searches.
const MAX_PATTERNS: usize = 256;
/// The most states of all patterns that stay compiled. A state takes about a hundred bytes.
const MAX_STATES: usize = 128 << 10;
/// The steps of a compilation, and the further steps for each state: a step takes some nanoseconds.
const COMPILATION: usize = 5_000;
const COMPILATION_OF_STATE: usize = 100;

static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);

/// Compiled patterns. The oldest patterns make room for new patterns.
#[derive(Default)]
struct Compiled {
    by_source: HashMap<Arc<str>, Arc<Expression>>,
    /// The sources, the oldest pattern first.
    order: VecDeque<Arc<str>>,
    states: usize,
}

impl Compiled {
    fn insert(&mut self, source: &str, expression: &Arc<Expression>) {
        let source: Arc<str> = source.into();
        self.states += expression.states();
        if let Some(before) = self.by_source.insert(Arc::clone(&source), Arc::clone(expression)) {
            // Another thread compiled the same pattern.
            self.states -= before.states();
        } else {
            self.order.push_back(source);
        }
        // The new pattern stays, whatever the size: the next text of the object may need the pattern.
        while self.order.len() > 1 && (self.order.len() > MAX_PATTERNS || self.states > MAX_STATES) {
            let Some(oldest) = self.order.pop_front() else { return };
            let removed = self.by_source.remove(&oldest);
            self.states -= removed.map_or(0, |removed| removed.states());
        }
    }
}

/// Returns the compiled form of a pattern; `None` for an invalid pattern. A compilation takes steps.
///
/// # Errors
/// The pattern must be compiled, and no steps are left.
pub(super) fn expression(source: &str, steps: &mut usize) -> Result<Option<Arc<Expression>>, OutOfSteps> {
    let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled().by_source.get(source) {
        return Ok(Some(Arc::clone(known)));
    }
    if *steps == 0 {
        return Err(OutOfSteps);
    }
    let expression = Expression::compile(source).ok().map(Arc::new);
    let states = expression.as_ref().map_or(0, |expression| expression.states());
    *steps = steps.saturating_sub(COMPILATION + states.saturating_mul(COMPILATION_OF_STATE));
    if let Some(expression) = &expression {
        compiled().insert(source, expression);
    }
    Ok(expression)
}
