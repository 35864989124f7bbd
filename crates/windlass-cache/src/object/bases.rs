//! The bases of a watch: which objects become bases, and with which base an object is stored.

use std::sync::Arc;

use hashbrown::HashMap;
use memchr::{memchr_iter, memmem};
use smallvec::SmallVec;
use triomphe::ThinArc;

use super::{
    Base, RawObject,
    assembler::NewObject,
    base::MAX_LENGTH,
    difference::{Difference, Limit},
    layout::Layout,
};

/// The bases of the objects of a watch.
///
/// An object that resembles no base becomes a base, as long as the bases have saved more memory than the
/// bases take. Bases that no object uses are forgotten. A Secret never becomes a base, because a base
/// outlives the object that the base was learned from.
#[derive(Debug)]
pub(super) struct Bases {
    all: Vec<Arc<Base>>,
    /// The bases that have a feature, by their numbers.
    by_feature: HashMap<u64, Numbers, foldhash::fast::RandomState>,
    /// The base of the last object.
    last: Option<Arc<Base>>,
    /// The bytes of all bases.
    memory: usize,
    /// The bytes that bases may take besides.
    credit: usize,
    /// The objects until unused bases are forgotten.
    until_forgetting: usize,
    /// The number of bases at which unused bases are forgotten.
    forget_at: usize,
    difference: Difference,
    best: Best,
}

type Numbers = SmallVec<[u16; 4]>;

/// The smallest form of an object so far.
#[derive(Debug, Default)]
struct Best {
    bytes: Vec<u8>,
    base: Option<Arc<Base>>,
}

impl Best {
    fn length(&self) -> Option<usize> {
        self.base.as_ref().map(|_| self.bytes.len())
    }
}

/// The bytes that bases may take before any base has saved memory.
const FIRST_CREDIT: usize = 256 << 10;
const MAX_CREDIT: usize = 16 << 20;
/// An object that is stored as JSON adds this part of its length to the credit: a kind that becomes regular
/// is learned again.
const CREDIT_OF_JSON: usize = 32;
/// Smaller objects have no base: the index would be as large as the object.
const SHORTEST: usize = 128;
/// The bytes of the index and of the metadata that objects do not share. A base does not save these bytes.
const INDEX: usize = 256;
/// A feature of more bases does not distinguish bases.
const COMMON: usize = 16;
/// The similar bases that are tried, until the difference from a base is small. A base that is not learned
/// saves the time of the attempts, and the memory of a base that few objects use.
const TRIED: usize = 3;
/// The objects after which unused bases are forgotten.
const FORGET_EVERY: usize = 16 << 10;
/// Unused bases are forgotten early after this many new bases and an eighth of all bases.
const FORGET_AT: usize = 8;
/// Among this many changes of objects with a poor base, one change looks for a better base.
const RETRY: usize = 8;

impl Default for Bases {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            by_feature: HashMap::default(),
            last: None,
            memory: 0,
            credit: FIRST_CREDIT,
            until_forgetting: FORGET_EVERY,
            forget_at: FORGET_AT,
            difference: Difference::default(),
            best: Best::default(),
        }
    }
}

impl Bases {
    /// Returns the bytes of memory of the bases.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Stores an object as the difference from a base. `old` is the object that the new object replaces. Returns `None` if the object
    /// resembles no base.
    pub(super) fn store(&mut self, object: &NewObject, old: Option<&RawObject>) -> Option<RawObject> {
        let length = object.json().len();
        if !(SHORTEST..=MAX_LENGTH).contains(&length) {
            return None;
        }
        self.until_forgetting -= 1;
        if self.until_forgetting == 0 {
            self.forget();
        }
        let poor = length / 4 * 3;
        let good = (length / 4 + INDEX).min(poor);
        let search = self.until_forgetting.is_multiple_of(RETRY);
        // Compressed operations are not repeated.
        let old = old.filter(|old| old.has_base());
        let state = old.map(RawObject::layout).filter(|old| !old.is_compressed());
        self.best.base = None;
        let old = old.and_then(RawObject::base);
        let is_new = old.is_none();
        let search = is_new || search;
        if let Some(base) = old.or(self.last.as_ref()).cloned() {
            let limit = if search { Limit::growing(good, length) } else { Limit::new(poor) };
            self.attempt(object, &base, limit, state);
        }
        if search && self.best.base.is_none() {
            for base in self.similar(object.json()) {
                let limit = match self.best.length() {
                    Some(_) => Limit::growing(good, length),
                    None => Limit::new(poor),
                };
                self.attempt(object, &base, limit, None);
                if self.best.length().is_some_and(|length| length <= good) {
                    break;
                }
            }
            if self.best.length().is_none_or(|length| length > good) {
                self.learn(object);
            }
        }
        let Some(base) = self.best.base.take() else {
            self.earn(length / CREDIT_OF_JSON);
            return None;
        };
        self.earn(length.saturating_sub(self.best.bytes.len()));
        let raw = ThinArc::from_header_and_slice(Some(base.clone()), &self.best.bytes);
        self.last = Some(base);
        Some(RawObject(raw))
    }

    fn earn(&mut self, bytes: usize) {
        self.credit = (self.credit + bytes).min(MAX_CREDIT);
    }

    /// Stores an object as the difference from a base. `old` is an earlier state of the object, stored as the difference from this base.
    fn attempt(&mut self, object: &NewObject, base: &Arc<Base>, limit: Limit, old: Option<Layout<'_>>) {
        let Some(bytes) = self.difference.encode(object, base, limit, old) else { return };
        if self.best.length().is_none_or(|length| bytes.len() < length) {
            self.best.bytes.clear();
            self.best.bytes.extend_from_slice(bytes);
            self.best.base = Some(base.clone());
        }
    }

    /// Returns the bases with the most features of a text.
    fn similar(&self, text: &[u8]) -> SmallVec<[Arc<Base>; TRIED]> {
        let mut votes: SmallVec<[(u16, u16); 32]> = SmallVec::new();
        for feature in features(text) {
            let Some(numbers) = self.by_feature.get(&feature).filter(|numbers| numbers.len() < COMMON) else {
                continue;
            };
            for &number in numbers {
                match votes.iter_mut().find(|(other, _)| *other == number) {
                    Some((_, count)) => *count += 1,
                    None => votes.push((number, 1)),
                }
            }
        }
        votes.sort_unstable_by_key(|&(number, count)| (u16::MAX - count, number));
        votes.iter().take(TRIED).map(|&(number, _)| self.all[usize::from(number)].clone()).collect()
    }

    /// Makes the object a base, if there is credit.
    fn learn(&mut self, object: &NewObject) {
        let text = object.json();
        if self.credit < 2 * text.len()
            || self.all.len() >= usize::from(u16::MAX)
            || memmem::find(text, b"\"Secret").is_some()
        {
            return;
        }
        if self.all.len() >= self.forget_at {
            self.forget();
        }
        let Some(base) = Base::new(text).map(Arc::new) else { return };
        self.credit = self.credit.saturating_sub(base.memory());
        self.add(base.clone());
        self.attempt(object, &base, Limit::new(text.len()), None);
    }

    fn add(&mut self, base: Arc<Base>) {
        self.memory += base.memory();
        let number = self.all.len() as u16;
        for feature in features(base.text()) {
            let numbers = self.by_feature.entry(feature).or_default();
            if numbers.len() < COMMON && numbers.last() != Some(&number) {
                numbers.push(number);
            }
        }
        self.all.push(base);
    }

    /// Forgets the bases that no object uses.
    fn forget(&mut self) {
        self.until_forgetting = FORGET_EVERY;
        self.last = None;
        let is_unused = |base: &Arc<Base>| Arc::strong_count(base) == 1;
        if self.all.iter().any(is_unused) {
            self.by_feature.clear();
            self.memory = 0;
            let used = std::mem::take(&mut self.all).into_iter().filter(|base| !is_unused(base));
            used.for_each(|base| self.add(base));
        }
        self.forget_at = self.all.len() + self.all.len() / 8 + FORGET_AT;
    }
}

/// Returns numbers for the texts at which objects begin. Half of the texts are left out.
fn features(text: &[u8]) -> impl Iterator<Item = u64> {
    let starts = memchr_iter(b'{', text).filter_map(|place| text[place..].first_chunk::<32>());
    let numbers = starts.map(|start| {
        start.as_chunks::<8>().0.iter().fold(0_u64, |number, &word| {
            (number ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)
        })
    });
    numbers.filter(|number| number.is_multiple_of(2))
}
