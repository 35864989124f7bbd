//! Wall clock and randomness are parameters: two runs with the same seed produce the same trace.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::{Error, Result};

/// The source of wall-clock time and randomness for the runtime.
///
/// Durations are measured with tokio's clock, which tests can pause; the wall clock is only written into
/// objects. Clones share a sequence of random numbers.
///
/// Random numbers, fractions and UUIDs spread load and tell names apart. The generator is fast, and the next
/// numbers can be computed from earlier numbers. [`secret`](Self::secret) makes passwords and tokens.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    random: Arc<Mutex<fastrand::Rng>>,
    /// True if secrets, too, follow from the seed.
    repeatable: bool,
}

/// The characters of a secret: characters that need no quotes in a shell, in YAML or in a URL.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Env {
    /// Uses the system clock, a seed from the operating system's entropy, and that entropy for every secret.
    pub fn system() -> Self {
        let mut seed = [0; 8];
        // Without entropy, the generator still needs a seed: secrets do not come from the generator.
        let random = match SystemRandom::new().fill(&mut seed) {
            Ok(()) => fastrand::Rng::with_seed(u64::from_le_bytes(seed)),
            Err(_) => fastrand::Rng::new(),
        };
        Self { clock: Arc::new(Timestamp::now), random: Arc::new(Mutex::new(random)), repeatable: false }
    }

    /// Uses `clock` and a fixed seed, for tests: a reader of the seed can compute every secret.
    pub fn new(seed: u64, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        Self { clock: Arc::new(clock), random, repeatable: true }
    }

    /// Returns the current wall-clock time.
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the next random number.
    pub fn random(&self) -> u64 {
        self.random.lock().u64(..)
    }

    /// Returns a random number in `0.0..1.0`.
    pub fn fraction(&self) -> f64 {
        self.random.lock().f64()
    }

    /// Returns a new password or token: `length` characters out of `A-Z`, `a-z` and `0-9`, each with 5.95 bits of entropy. A secret of
    /// 22 characters has more than 128 bits.
    ///
    /// Every call reads the entropy of the operating system. In a test with a fixed [seed](Self::new), equal
    /// seeds make equal secrets.
    ///
    /// ```
    /// # fn example(env: &windlass_runtime::env::Env) -> windlass_runtime::Result<()> {
    /// let password = env.secret(32)?;
    /// assert_eq!(password.len(), 32);
    /// # Ok(()) }
    /// # example(&windlass_runtime::env::Env::system()).unwrap();
    /// ```
    ///
    /// # Errors
    /// The operating system has no entropy.
    pub fn secret(&self, length: usize) -> Result<String> {
        let mut secret = String::with_capacity(length);
        let mut bytes = [0; 64];
        // Bytes beyond the last multiple of the alphabet's size would favour some characters.
        let fair = u8::MAX - u8::MAX % ALPHABET.len() as u8;
        while secret.len() < length {
            self.fill(&mut bytes)?;
            let characters = bytes.iter().filter(|byte| **byte < fair);
            let characters = characters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
            secret.extend(characters.take(length - secret.len()));
        }
        Ok(secret)
    }

    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        if self.repeatable {
            self.random.lock().fill(bytes);
            return Ok(());
        }
        let filled = SystemRandom::new().fill(bytes);
        filled.map_err(|_| Error::setup("cannot make a secret: the operating system returned no entropy"))
    }

    /// Returns a random version 4 UUID, for identities and reconcile IDs. Do not use a UUID as a [secret](Self::secret).
    pub fn uuid(&self) -> String {
        let bits = self.random.lock().u128(..);
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

impl Default for Env {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").finish_non_exhaustive()
    }
}

/// Returns the name of this host: in a pod, the pod's name.
///
/// The name comes from `HOSTNAME`, else from `/etc/hostname`, else from the operating system: an image may have neither of the first
/// two.
pub(crate) fn host_name() -> String {
    let variable = || std::env::var("HOSTNAME").ok();
    let file = || std::fs::read_to_string("/etc/hostname").ok();
    first_name(&[&variable, &file, &system_name])
}

/// Returns the first name that is not blank, without the line end.
fn first_name(sources: &[&dyn Fn() -> Option<String>]) -> String {
    let names = sources.iter().filter_map(|source| source()).map(|name| name.trim().to_owned());
    let mut names = names.filter(|name| !name.is_empty());
    names.next().unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(unix)]
fn system_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn system_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_file_and_a_variable_has_the_name_of_its_system() {
        let blank = || Some("\n".to_owned());
        let file = || Some("web-0\n".to_owned());
        assert_eq!(first_name(&[&|| None, &file, &system_name]), "web-0");
        assert_eq!(first_name(&[&blank, &|| None]), "localhost");
        assert_eq!(Some(first_name(&[&|| None, &blank, &system_name])), system_name());
    }

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let draw = |seed| {
            let env = Env::new(seed, || Timestamp::UNIX_EPOCH);
            (env.random(), env.fraction().to_bits(), env.uuid())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let uuid = draw(1).2;
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    #[test]
    fn secrets_repeat_under_a_fixed_seed_only() {
        let seeded = |seed| Env::new(seed, || Timestamp::UNIX_EPOCH).secret(40).expect("a secret");
        assert_eq!(seeded(1), seeded(1));
        assert_ne!(seeded(1), seeded(2));
        let env = Env::system();
        let secrets: std::collections::BTreeSet<_> =
            (0..100).map(|_| env.secret(22).expect("a secret")).collect();
        assert_eq!(secrets.len(), 100);
    }

    /// An attacker who has guessed the state of the fast generator learns no secret.
    #[test]
    fn secrets_do_not_come_from_the_fast_generator() {
        let guessed = || Env { repeatable: false, ..Env::new(1, Timestamp::now) };
        assert_eq!(guessed().uuid(), guessed().uuid());
        assert_ne!(guessed().secret(22).expect("a secret"), guessed().secret(22).expect("a secret"));
    }

    #[test]
    fn a_secret_has_the_length_and_all_characters_of_the_alphabet() {
        for length in [0, 1, 63, 64, 65] {
            assert_eq!(Env::system().secret(length).expect("a secret").len(), length);
        }
        let mut counts = std::collections::BTreeMap::<char, u32>::new();
        let secret = Env::new(7, Timestamp::now).secret(62_000).expect("a secret");
        secret.chars().for_each(|character| *counts.entry(character).or_default() += 1);
        assert_eq!(counts.len(), 62);
        assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
