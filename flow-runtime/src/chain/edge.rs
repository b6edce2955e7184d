//! Edges between chains: typed buffers at the ends, erased parcels in between.

use std::{
    any::Any,
    cell::{RefCell, RefMut},
    fmt,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use timely::scheduling::activate::SyncActivator;

use crate::{
    error::BoxError,
    record::{Lend, Plain, Portable, Slot},
    state::{Key, KeyGroup, KeyGroups, hash},
    watermark::Signal,
};

/// How records are dealt out among the subtasks of the next chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partition {
    /// To the subtask with the same index: no exchange.
    Forward,
    /// Anything else: each parcel carries its target.
    Exchange,
}

/// The receiving end of an edge, as a value that carries the record type from one chain's closure to the next one's.
#[derive(Debug)]
pub struct Edge<T> {
    pub(crate) id: usize,
    open: Open<T>,
}

/// Opens a parcel where the records' type is known.
pub(crate) type Open<T> = fn(Parcel) -> Result<Received<T>, BoxError>;

impl<T: Portable> Edge<T> {
    pub(crate) fn new(id: usize) -> Self {
        Edge { id, open: Received::open }
    }
}

/// One edge or several with equal types (a union): what a chain reads.
pub trait Edges {
    /// The records' type.
    type Item;
    #[doc(hidden)]
    fn ids(&self) -> Vec<usize>;
    #[doc(hidden)]
    fn open(&self) -> Open<Self::Item>;
}

impl<T> Edges for Edge<T> {
    type Item = T;
    fn ids(&self) -> Vec<usize> {
        vec![self.id]
    }
    fn open(&self) -> Open<T> {
        self.open
    }
}

impl<T, const N: usize> Edges for [Edge<T>; N] {
    type Item = T;
    fn ids(&self) -> Vec<usize> {
        self.iter().map(|edge| edge.id).collect()
    }
    fn open(&self) -> Open<T> {
        self[0].open
    }
}

/// A stream of items of type `T`: what helper functions under `#[pipeline]` take and return.
///
/// ```ignore
/// #[pipeline]
/// fn words(lines: Stream<String>) -> Stream<(String, u64)> {
///     lines.map(|line| (line, 1))
/// }
/// ```
#[derive(Debug)]
pub struct Stream<T>(Edge<Plain<T>>);

impl<T> Stream<T> {
    pub(crate) fn new(edge: Edge<Plain<T>>) -> Self {
        Stream(edge)
    }
}

impl<T> Edges for Stream<T> {
    type Item = Plain<T>;
    fn ids(&self) -> Vec<usize> {
        self.0.ids()
    }
    fn open(&self) -> Open<Plain<T>> {
        self.0.open
    }
}

/// The sending end of an edge in one subtask.
#[derive(Debug)]
pub struct Output<T>(Rc<RefCell<Outgoing<T>>>);

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Output(Rc::clone(&self.0))
    }
}

impl<T> Output<T> {
    pub(crate) fn new(outgoing: Outgoing<T>) -> Self {
        Output(Rc::new(RefCell::new(outgoing)))
    }

    /// For the time of one batch.
    #[inline]
    #[must_use]
    pub fn borrow_mut(&self) -> RefMut<'_, Outgoing<T>> {
        self.0.borrow_mut()
    }
}

/// The buffers of an [`Output`], one per target subtask.
#[derive(Debug)]
pub struct Outgoing<T> {
    buffers: Vec<Vec<T>>,
    full: Vec<Parcel>,
    spare: Arc<Spare<T>>,
    /// Forgets the records' type.
    erase: fn(Box<Load<T>>) -> Box<dyn Records>,
    sender: usize,
    /// Whether there are as many receivers as senders.
    paired: bool,
    key_groups: KeyGroups,
    /// The owner of each key group: a division less per record.
    owners: Box<[u32]>,
    round_robin: usize,
    /// The targets of `rescale`: a fair share of all.
    share: std::ops::Range<usize>,
    capacity: usize,
}

impl<T> Outgoing<T> {
    pub(crate) fn new(sender: usize, senders: usize, targets: usize, max_parallelism: u32) -> Self
    where
        T: Portable,
    {
        let capacity = (32 * 1024 / size_of::<T>().max(1)).clamp(64, 1024);
        let share = if targets >= senders {
            let first = sender * targets / senders;
            first..((sender + 1) * targets / senders).max(first + 1)
        } else {
            let target = sender * targets / senders;
            target..target + 1
        };
        let key_groups = KeyGroups { max_parallelism, parallelism: targets as u32 };
        Outgoing {
            buffers: (0..targets).map(|_| Vec::new()).collect(),
            full: Vec::new(),
            spare: Spare::of(targets),
            erase: |load| load,
            sender,
            paired: senders == targets,
            key_groups,
            owners: (0..max_parallelism).map(|group| key_groups.owner(KeyGroup(group)) as u32).collect(),
            // Subtasks start at different targets, so that few records do not all meet at the first.
            round_robin: sender,
            share,
            capacity,
        }
    }

    /// To the owner of the key's group.
    #[inline(always)]
    pub fn by_key<K: Key>(&self, key: &K) -> usize {
        self.owners[self.key_groups.group(hash(key)).0 as usize] as usize
    }

    /// To the subtask of the same index.
    #[inline(always)]
    pub fn forward(&self) -> usize {
        self.sender
    }

    /// To the subtask of the same index if both sides have as many, and otherwise to each in turn.
    #[inline(always)]
    pub fn forward_or_rebalance(&mut self) -> usize {
        if self.paired { self.sender } else { self.rebalance() }
    }

    /// To each in turn.
    #[inline(always)]
    pub fn rebalance(&mut self) -> usize {
        self.round_robin += 1;
        if self.round_robin >= self.buffers.len() {
            self.round_robin = 0;
        }
        self.round_robin
    }

    /// To each of this subtask's share in turn.
    #[inline(always)]
    pub fn rescale(&mut self) -> usize {
        self.round_robin += 1;
        if !self.share.contains(&self.round_robin) {
            self.round_robin = self.share.start;
        }
        self.round_robin
    }

    /// To the first.
    #[inline(always)]
    pub fn global(&self) -> usize {
        0
    }

    /// How many subtasks there are to choose from.
    #[inline(always)]
    pub fn targets(&self) -> usize {
        self.buffers.len()
    }

    /// Checks what a custom partitioner chose.
    ///
    /// # Errors
    /// When there is no such subtask.
    #[inline(always)]
    pub fn custom(&self, target: usize) -> Result<usize, BoxError> {
        if target < self.buffers.len() {
            Ok(target)
        } else {
            Err(format!(
                "the partitioner chose subtask {target}, but there are only {}: reduce it modulo the number that it is given",
                self.buffers.len()
            )
            .into())
        }
    }

    /// Puts a record on its way.
    #[inline(always)]
    pub fn send(&mut self, target: usize, record: T) {
        let buffer = &mut self.buffers[target];
        if buffer.capacity() == 0 {
            buffer.reserve_exact(self.capacity);
        }
        buffer.push(record);
        if buffer.len() >= self.capacity {
            self.seal(target);
        }
    }

    /// Puts a copy on its way to every subtask.
    pub fn send_to_all(&mut self, record: T)
    where
        T: Clone,
    {
        for target in 1..self.buffers.len() {
            self.send(target, record.clone());
        }
        self.send(0, record);
    }

    #[inline(never)]
    fn seal(&mut self, target: usize) {
        let records = &mut self.buffers[target];
        if !records.is_empty() {
            let mut load = self.spare.take();
            std::mem::swap(&mut load.records, records);
            self.full.push(Parcel { target, sender: self.sender, body: Body::Typed((self.erase)(load)) });
        }
    }
}

/// What the engine needs of an [`Output`], whatever its type.
pub(crate) trait Drain {
    /// Hands over everything that was sent.
    fn drain(&self, into: &mut Vec<Parcel>);
}

impl<T: Portable> Drain for Output<T> {
    fn drain(&self, into: &mut Vec<Parcel>) {
        let mut outgoing = self.0.borrow_mut();
        for target in 0..outgoing.buffers.len() {
            outgoing.seal(target);
        }
        into.append(&mut outgoing.full);
    }
}

/// What is in a parcel, and where its memory goes when it is used up.
#[derive(Debug)]
struct Load<T> {
    records: Vec<T>,
    home: Weak<Spare<T>>,
}

/// The memory of parcels that were used up, for the next ones of their sender.
#[derive(Debug)]
struct Spare<T> {
    #[allow(clippy::vec_box, reason = "a parcel takes the box, too")]
    loads: Mutex<Vec<Box<Load<T>>>>,
    limit: usize,
    /// What comes back here.
    home: Weak<Spare<T>>,
}

impl<T> Spare<T> {
    fn of(targets: usize) -> Arc<Self> {
        // As many as come back until a sender that has been waiting goes on, and those of a batch.
        let limit = Credit::LIMIT * (targets / 2 + 1);
        let loads = Mutex::new(Vec::with_capacity(limit));
        Arc::new_cyclic(|home| Spare { loads, limit, home: Weak::clone(home) })
    }

    fn take(&self) -> Box<Load<T>> {
        let load = self.loads.lock().unwrap_or_else(PoisonError::into_inner).pop();
        load.unwrap_or_else(|| Box::new(Load { records: Vec::new(), home: Weak::clone(&self.home) }))
    }

    fn put(&self, load: Box<Load<T>>) {
        let mut loads = self.loads.lock().unwrap_or_else(PoisonError::into_inner);
        if loads.len() < self.limit {
            loads.push(load);
        }
    }
}

/// A batch of records of one type on its way between two subtasks.
#[derive(Debug)]
pub struct Parcel {
    pub(crate) target: usize,
    pub(crate) sender: usize,
    body: Body,
}

enum Body {
    /// Within a process the records go as they are.
    Typed(Box<dyn Records>),
    /// Between processes they go encoded; decoding waits for the receiving end, which knows the type.
    Encoded(Vec<u8>),
    /// No records, but how far the sender's event time has come with those before.
    Signal(Signal),
}

impl Parcel {
    pub(crate) fn signal(target: usize, sender: usize, signal: Signal) -> Self {
        Parcel { target, sender, body: Body::Signal(signal) }
    }

    /// What it says of event time, if it carries no records.
    pub(crate) fn as_signal(&self) -> Option<Signal> {
        match self.body {
            Body::Signal(signal) => Some(signal),
            _ => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Body::Typed(_) => "records",
            Body::Encoded(_) => "bytes",
            Body::Signal(_) => "signal",
        })
    }
}

trait Records: Send {
    fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Portable> Records for Load<T> {
    fn encode(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        // Named fields: the record types of users may need a self-describing format.
        rmp_serde::to_vec_named(&self.records)
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Serialize for Parcel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let encoded;
        let content = match &self.body {
            Body::Typed(records) => {
                encoded = records.encode().map_err(serde::ser::Error::custom)?;
                Ok(&encoded)
            }
            Body::Encoded(bytes) => Ok(bytes),
            Body::Signal(signal) => Err(signal),
        };
        (self.target, self.sender, content).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Parcel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (target, sender, content) = Deserialize::deserialize(deserializer)?;
        let content: Result<Vec<u8>, Signal> = content;
        Ok(Parcel { target, sender, body: content.map_or_else(Body::Signal, Body::Encoded) })
    }
}

/// A parcel at the receiving end.
#[derive(Debug)]
pub struct Received<T>(Box<Load<T>>);

impl<T: Portable> Received<T> {
    fn open(parcel: Parcel) -> Result<Self, BoxError> {
        let records = match parcel.body {
            Body::Typed(load) => match load.into_any().downcast::<Load<T>>() {
                Ok(load) => return Ok(Received(load)),
                Err(_) => {
                    return Err("a parcel of another type arrived: the processes run different builds".into());
                }
            },
            Body::Encoded(bytes) => rmp_serde::from_slice(&bytes)?,
            Body::Signal(_) => Vec::new(),
        };
        Ok(Received(Box::new(Load { records, home: Weak::new() })))
    }
}

impl<T> Received<T> {
    /// Lets the sender use the memory again.
    pub(crate) fn give_back(mut self) {
        if let Some(home) = self.0.home.upgrade() {
            self.0.records.clear();
            home.put(self.0);
        }
    }
}

impl<T: Lend> Received<T> {
    /// The records in slots, for a loop that has several of them under way.
    #[inline(always)]
    #[must_use]
    pub fn all_slots(&mut self) -> Slots<'_, T> {
        // In place, where the slot is as large as the record.
        let slots = std::mem::take(&mut self.0.records).into_iter().map(Slot::new).collect();
        Slots { slots, records: &mut self.0.records }
    }

    /// The records, each in a slot from which the chain takes it in its lent form.
    #[inline(always)]
    pub fn slots(&mut self) -> impl Iterator<Item = Slot<T>> {
        self.0.records.drain(..).map(Slot::new)
    }
}

/// The records of a parcel, each in a slot. See [`Received::all_slots`].
pub struct Slots<'r, T: Lend> {
    slots: Vec<Slot<T>>,
    /// Where the memory belongs.
    records: &'r mut Vec<T>,
}

impl<T: Lend> Slots<'_, T> {
    /// From each slot the chain takes the record in its lent form.
    #[inline(always)]
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Slot<T>> {
        self.slots.iter_mut()
    }
}

impl<T: Lend> fmt::Debug for Slots<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").finish_non_exhaustive()
    }
}

impl<T: Lend> Drop for Slots<'_, T> {
    fn drop(&mut self) {
        self.slots.clear();
        // Nothing is left to be converted but the memory.
        *self.records = std::mem::take(&mut self.slots).into_iter().filter_map(|_| None).collect();
    }
}

/// How many parcels a sender may have under way on an edge, so that a slow receiver slows the sender down instead of
/// filling the memory.
///
/// Each sender has its own: otherwise one that is ahead by an epoch, whose parcels the receiver has to stash, could
/// use up what another one needs to finish the epoch.
#[derive(Debug, Default)]
pub(crate) struct Credit {
    under_way: AtomicUsize,
    waiting: AtomicBool,
    waker: std::sync::OnceLock<SyncActivator>,
}

impl Credit {
    /// Parcels under way at which the sender pauses, per receiving subtask.
    const LIMIT: usize = 16;

    pub(crate) fn of(senders: usize) -> Vec<Credit> {
        (0..senders).map(|_| Credit::default()).collect()
    }

    pub(crate) fn wake_with(&self, waker: SyncActivator) {
        let _ = self.waker.set(waker);
    }

    pub(crate) fn taken(&self, parcels: usize) {
        self.under_way.fetch_add(parcels, Ordering::AcqRel);
    }

    /// Whether the sender has to wait. It is woken when that changes.
    pub(crate) fn exhausted(&self, receivers: usize) -> bool {
        let limit = Self::LIMIT * receivers;
        if self.under_way.load(Ordering::Acquire) < limit {
            return false;
        }
        self.waiting.store(true, Ordering::SeqCst);
        // Once more: the receiver may have returned the last credit before it could see that we wait.
        self.under_way.load(Ordering::SeqCst) >= limit
    }

    pub(crate) fn returned(&self, receivers: usize) {
        let left = self.under_way.fetch_sub(1, Ordering::SeqCst) - 1;
        // Half of the limit, so that the sender is not woken for each parcel.
        if left <= Self::LIMIT * receivers / 2
            && self.waiting.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.get()
        {
            // The sender's worker is gone only when the whole attempt ends.
            let _ = waker.activate();
        }
    }
}

/// The credits of an edge by sender, shared by all workers.
pub(crate) type Credits = Arc<Vec<Credit>>;
