//! The text that objects are stored as differences from.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::Dictionary;

/// The JSON of an earlier object of the kind. The base is freed with the last object that is stored as a
/// difference from the base.
pub(super) struct Base {
    text: Box<[u8]>,
    /// A hash table of places in the text at which a difference can end: offsets plus one, or zero.
    anchors: Box<[u16]>,
    /// The dictionary of the compressed objects with this base.
    dictionary: OnceLock<Arc<Dictionary>>,
}

/// The bytes of all bases of the process.
static MEMORY: AtomicUsize = AtomicUsize::new(0);

/// The most bytes of memory that the bases of a process take.
pub(super) const MAX_MEMORY: usize = 64 << 20;
/// The longest text of a base.
pub(super) const MAX_LENGTH: usize = 48 << 10;
/// The length of the text at an anchor.
const ANCHOR: usize = 12;
/// The most slots of the hash table that are tried.
const PROBES: usize = 8;

impl Base {
    /// Creates a base, unless the bases of the process take too much memory or the text is too long.
    pub(super) fn new(text: &[u8]) -> Option<Self> {
        let is_full = MEMORY.load(Ordering::Relaxed) > MAX_MEMORY;
        if is_full || text.len() > MAX_LENGTH {
            return None;
        }
        let places: Vec<_> = anchors(text).collect();
        let mut table = vec![0_u16; (places.len() * 2).next_power_of_two()].into_boxed_slice();
        for (place, anchor) in places {
            let free = slots(anchor, table.len()).find(|&slot| table[slot] == 0);
            free.into_iter().for_each(|slot| table[slot] = place as u16 + 1);
        }
        Some(Self::with(text.into(), table, OnceLock::new()))
    }

    /// Creates a base without text, for compressed objects that share no text.
    pub(super) fn of_dictionary(dictionary: Arc<Dictionary>) -> Self {
        Self::with(Box::default(), Box::default(), dictionary.into())
    }

    fn with(text: Box<[u8]>, anchors: Box<[u16]>, dictionary: OnceLock<Arc<Dictionary>>) -> Self {
        let base = Self { text, anchors, dictionary };
        MEMORY.fetch_add(base.memory(), Ordering::Relaxed);
        base
    }

    /// Returns the dictionary of the compressed objects with this base. The first call sets the dictionary.
    pub(super) fn dictionary_or(&self, dictionary: &Arc<Dictionary>) -> &Dictionary {
        self.dictionary.get_or_init(|| dictionary.clone())
    }

    /// Decompresses the body of an object with this base. `length` is the number of bytes before the compression.
    pub(super) fn decompress(&self, compressed: &[u8], length: usize) -> Vec<u8> {
        self.dictionary.get().map_or_else(Vec::new, |dictionary| dictionary.decompress(compressed, length))
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the bytes of memory of the base.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.text.len() + size_of_val(&*self.anchors)
    }

    /// Returns the text at a quote, if the quote begins a member or an element and the text does not reach beyond `end`.
    pub(super) fn anchor(json: &[u8], quote: usize, end: usize) -> Option<&[u8; ANCHOR]> {
        let before = json.get(quote.checked_sub(1)?)?;
        matches!(before, b'{' | b',' | b'[').then(|| json[..end].get(quote..)?.first_chunk()).flatten()
    }

    /// Returns the place of an anchor: the first place after `from`, or else the last place.
    pub(super) fn find(&self, anchor: &[u8; ANCHOR], from: usize) -> Option<usize> {
        let mut before = None;
        // The places of equal anchors ascend.
        for slot in slots(anchor, self.anchors.len()) {
            let Some(place) = usize::from(self.anchors[slot]).checked_sub(1) else { break };
            if self.text[place..].first_chunk() == Some(anchor) {
                if place >= from {
                    return Some(place);
                }
                before = Some(place);
            }
        }
        before
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        MEMORY.fetch_sub(self.memory(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Base").field("length", &self.text.len()).finish_non_exhaustive()
    }
}

/// Returns the anchors of a text, with the places.
fn anchors(text: &[u8]) -> impl Iterator<Item = (usize, &[u8; ANCHOR])> {
    memchr::memchr_iter(b'"', text)
        .filter_map(|quote| Base::anchor(text, quote, text.len()).map(|anchor| (quote, anchor)))
}

/// Returns a number for an anchor. Equal anchors have equal numbers.
fn hash(anchor: &[u8; ANCHOR]) -> u64 {
    let word = |at: usize| anchor[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let mixed = (word(0) ^ word(4).rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

fn slots(anchor: &[u8; ANCHOR], length: usize) -> impl Iterator<Item = usize> {
    let first = hash(anchor) as usize;
    (0..PROBES).map(move |probe| first.wrapping_add(probe) & (length - 1))
}
