//! Counts the cost of an evaluation, and limits its memory and time.

use std::cell::Cell;

use crate::error::Error;

/// The bytes that an evaluation may allocate for texts and lists. A text or list that grows may take three times its
/// length for a moment.
const MAX_MEMORY: usize = 5 << 20;

/// The bytes that functions may look at in an evaluation.
const MAX_WORK: u64 = 13_000_000;

/// The work of looking at an element, compared with looking at a byte.
const ELEMENT: u64 = 8;

/// The number of iterations between two calls of the interrupt.
const CHECK_FREQUENCY: u32 = 100;

/// The limits of an evaluation.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// The cost that the evaluation may have.
    pub cost: u64,
    /// A function that is called from time to time, and ends the evaluation when it returns true.
    pub interrupt: Option<&'a dyn Fn() -> bool>,
    /// The memory and work of earlier evaluations. The limits hold for all these evaluations together.
    pub shared: Option<&'a Consumption>,
}

impl Limits<'_> {
    /// Limits the cost, and nothing else.
    pub fn of_cost(cost: u64) -> Self {
        Self { cost, interrupt: None, shared: None }
    }
}

/// The memory and work of several evaluations that share the limits of a single evaluation.
#[derive(Debug, Default)]
pub struct Consumption {
    memory: Cell<usize>,
    work: Cell<u64>,
}

impl Consumption {
    pub(crate) fn memory(&self) -> usize {
        self.memory.get()
    }

    /// Forgets the work, and all memory but `memory`.
    pub(crate) fn restart(&self, memory: usize) {
        self.memory.set(memory);
        self.work.set(0);
    }
}

/// The consumption of an evaluation.
pub(crate) struct Meter {
    pub(crate) cost: u64,
    limit: u64,
    memory: usize,
    work: u64,
    iterations: u32,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { cost: 0, limit, memory: 0, work: 0, iterations: 0 }
    }

    /// Returns the meter of an evaluation that continues the consumption of earlier evaluations.
    pub(crate) fn within(limits: &Limits<'_>) -> Self {
        let mut meter = Self::new(limits.cost);
        meter.refresh(limits);
        meter
    }

    /// Writes the consumption down for the evaluations that share the limits.
    pub(crate) fn share(&self, limits: &Limits<'_>) {
        if let Some(shared) = limits.shared {
            shared.memory.set(self.memory);
            shared.work.set(self.work);
        }
    }

    /// Reads the consumption of the evaluations that share the limits.
    pub(crate) fn refresh(&mut self, limits: &Limits<'_>) {
        if let Some(shared) = limits.shared {
            self.memory = shared.memory.get();
            self.work = shared.work.get();
        }
    }

    /// Adds to the cost.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Error::cost_limit()) } else { Ok(()) }
    }

    /// Counts bytes that are allocated.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), Error> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > MAX_MEMORY { Err(Error::resource_limit()) } else { Ok(()) }
    }

    /// Counts bytes that a function looks at.
    pub(crate) fn work(&mut self, bytes: usize) -> Result<(), Error> {
        self.work = self.work.saturating_add(bytes as u64);
        if self.work > MAX_WORK { Err(Error::resource_limit()) } else { Ok(()) }
    }

    /// Counts elements that a function looks at.
    pub(crate) fn elements(&mut self, count: usize) -> Result<(), Error> {
        self.work = self.work.saturating_add((count as u64).saturating_mul(ELEMENT));
        if self.work > MAX_WORK { Err(Error::resource_limit()) } else { Ok(()) }
    }

    /// Counts an iteration, and calls the interrupt after some iterations.
    pub(crate) fn iterate(&mut self, limits: &Limits<'_>) -> Result<(), Error> {
        self.elements(2)?;
        self.iterations += 1;
        if self.iterations.is_multiple_of(CHECK_FREQUENCY)
            && limits.interrupt.is_some_and(|interrupt| interrupt())
        {
            return Err(Error::interrupted());
        }
        Ok(())
    }
}
