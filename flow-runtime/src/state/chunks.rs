//! The way of the state at a barrier from the worker, which copies it, to the thread that encodes it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

/// Entries are sent when so many bytes are together.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// The worker copies no more while so many chunks are unread: who copies faster than can be encoded would need the memory
/// for all of the state a second time.
const UNREAD: usize = 64;

/// Of the state at a barrier, some.
pub(super) enum Chunk<K, V> {
    /// Keys that were removed in the epoch, whether they were put again or not. Come before all entries.
    Removed(Vec<K>),
    Changed(Vec<(K, V)>),
    /// Nothing is missing.
    End,
}

/// A way for chunks. Sending never waits, for what is about to change has to be copied at once; whoever collects the rest
/// looks at [`ChunkSender::is_full`] before.
pub(super) fn chunks<K, V>() -> (ChunkSender<K, V>, Chunks<K, V>) {
    let (sender, receiver) = mpsc::channel();
    let unread = Arc::new(AtomicUsize::new(0));
    (ChunkSender { sender, unread: Arc::clone(&unread) }, Chunks { receiver, unread })
}

/// The worker's end.
pub(super) struct ChunkSender<K, V> {
    sender: mpsc::Sender<Chunk<K, V>>,
    unread: Arc<AtomicUsize>,
}

impl<K, V> ChunkSender<K, V> {
    pub(super) fn send(&self, chunk: Chunk<K, V>) {
        self.unread.fetch_add(1, Ordering::Relaxed);
        // Nobody listens when the attempt is over.
        let _ = self.sender.send(chunk);
    }

    /// Whether somebody still reads, and has enough to read.
    pub(super) fn is_full(&self) -> bool {
        self.unread.load(Ordering::Relaxed) >= UNREAD && Arc::strong_count(&self.unread) > 1
    }
}

/// The end of the thread that encodes.
pub(super) struct Chunks<K, V> {
    receiver: mpsc::Receiver<Chunk<K, V>>,
    unread: Arc<AtomicUsize>,
}

impl<K, V> Chunks<K, V> {
    /// The next chunk, waiting for it; none, if the worker is gone.
    pub(super) fn recv(&self) -> Option<Chunk<K, V>> {
        let chunk = self.receiver.recv().ok()?;
        self.unread.fetch_sub(1, Ordering::Relaxed);
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_until_somebody_has_read_or_nobody_does() {
        let (sender, chunks) = chunks::<u64, u64>();
        for _ in 0..UNREAD {
            assert!(!sender.is_full());
            sender.send(Chunk::Changed(Vec::new()));
        }
        assert!(sender.is_full());
        assert!(chunks.recv().is_some());
        assert!(!sender.is_full());
        sender.send(Chunk::End);
        assert!(sender.is_full());
        drop(chunks);
        assert!(!sender.is_full());
    }
}
