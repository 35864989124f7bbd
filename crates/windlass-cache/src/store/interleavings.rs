//! Explores all interleavings of readers and the writer with loom.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p windlass-cache --release --lib interleavings
//! ```

use loom::{sync::Arc, thread};

use super::copies::{Copies, OperationLog, Replica};

/// Two counters that each operation increments together.
#[derive(Clone, Debug, Default)]
struct Pair(u8, u8);

impl Replica for Pair {
    type Operation = u8;

    fn apply(&mut self, operation: u8) {
        self.0 += operation;
        self.1 += operation;
    }
}

/// Explores all interleavings with at most three preemptions of each thread.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn raise(copies: &Copies<Pair>, log: &mut OperationLog<u8>) {
    copies.write(log, |pair, log| {
        pair.apply(1);
        log.push(1);
    });
}

/// Increments twice without logging, and publishes the result.
fn load(copies: &Copies<Pair>, log: &mut OperationLog<u8>) {
    copies.write(log, |pair, _| pair.apply(1));
    copies.write(log, |pair, log| {
        pair.apply(1);
        log.push_everything();
    });
}

fn read(copies: &Copies<Pair>) -> u8 {
    copies.read(|pair| {
        assert_eq!(pair.0, pair.1, "a reader sees whole changes");
        pair.0
    })
}

/// Starts a thread that reads twice; returns the first reading.
fn reader(copies: &Arc<Copies<Pair>>) -> thread::JoinHandle<u8> {
    let copies = copies.clone();
    thread::spawn(move || {
        let first = read(&copies);
        assert!(read(&copies) >= first, "what was read is not undone");
        first
    })
}

#[test]
fn readers_see_whole_changes_in_order() {
    explore(|| {
        let copies = Arc::new(Copies::new([Pair::default(), Pair::default()]));
        let reader = reader(&copies);
        let mut log = OperationLog::new();
        raise(&copies, &mut log);
        assert_eq!(read(&copies), 1, "the writer sees what it wrote");
        raise(&copies, &mut log);
        assert_eq!(read(&copies), 2);
        reader.join().expect("no panic");
    });
}

#[test]
fn two_readers_never_hold_up_the_writer_for_good() {
    explore(|| {
        let copies = Arc::new(Copies::new([Pair::default(), Pair::default()]));
        let readers = [(), ()].map(|()| {
            let copies = copies.clone();
            thread::spawn(move || read(&copies))
        });
        let mut log = OperationLog::new();
        raise(&copies, &mut log);
        raise(&copies, &mut log);
        for reader in readers {
            assert!(reader.join().expect("no panic") <= 2);
        }
        assert_eq!(read(&copies), 2);
    });
}

#[test]
fn what_was_not_logged_is_read_whole() {
    explore(|| {
        let copies = Arc::new(Copies::new([Pair::default(), Pair::default()]));
        let reader = reader(&copies);
        let mut log = OperationLog::new();
        load(&copies, &mut log);
        assert_eq!(read(&copies), 2);
        raise(&copies, &mut log);
        assert_eq!(read(&copies), 3);
        assert_ne!(reader.join().expect("no panic"), 1, "half a load is not published");
    });
}
