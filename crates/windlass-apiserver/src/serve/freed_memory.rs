//! Returns freed memory to the system.

use std::hint::black_box;
use std::time::Duration;

/// The interval of the blocks: longer than the delay after which the allocator returns memory.
const INTERVAL: Duration = Duration::from_secs(2);
/// A size for which the allocator does not reuse freed memory of smaller objects, in bytes.
const BLOCK: usize = 4 << 20;

/// Frees a block of memory from time to time, until `stopped` completes.
///
/// The allocator of the programs, mimalloc, waits for a second before freed memory goes back to the system, and looks for such memory only when a
/// large block is freed. A server that becomes idle after a burst would keep the memory of the burst. The block itself is never written,
/// and takes no memory of the system.
pub(crate) async fn keep_returning(stopped: impl Future<Output = ()>) {
    let blocks = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
            drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
        }
    };
    tokio::select! {
        biased;
        () = stopped => {}
        () = blocks => {}
    }
}
