//! Time and randomness. With a clock and a seed of the caller, two runs produce the same objects.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

/// The alphabet of generated name suffixes, without vowels and look-alikes, as everywhere in Kubernetes.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The time source of a server.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The clock and random generator of a server.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Clock>,
    random: Arc<Mutex<SplitMix>>,
}

impl Env {
    /// Creates an environment on `clock`. Without a seed, uids and suffixes differ from run to run.
    pub fn new(clock: Arc<dyn Clock>, seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        Self { clock, random: Arc::new(Mutex::new(SplitMix(seed))) }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the current time in the form of metadata: RFC 3339 in whole seconds.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// Returns a random number.
    pub fn random_u64(&self) -> u64 {
        self.random.lock().next()
    }

    /// Generates the uid of an object, a version 4 UUID.
    pub fn uid(&self) -> String {
        let mut random = self.random.lock();
        let (high, low) = (random.next(), random.next());
        drop(random);
        let bytes = ((u128::from(high) << 64) | u128::from(low)).to_be_bytes();
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Generates the five characters that `generateName` appends.
    pub fn suffix(&self) -> String {
        let mut random = self.random.lock();
        (0..5)
            .map(|_| {
                let index = usize::try_from(random.next() >> 33).unwrap_or(0) % SUFFIX_ALPHABET.len();
                char::from(SUFFIX_ALPHABET[index])
            })
            .collect()
    }
}

/// Formats a time in the form of metadata: RFC 3339 in whole seconds.
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Steele, Lea and Flood's SplitMix64: small, seedable, and good enough for names.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
