//! Records: how they flow borrowed inside a chain, and how they are owned where they must outlive it.
//!
//! Inside a chain an item may borrow from the source's batch. Where it leaves the chain (to another subtask, into
//! state) it becomes [`Record::Owned`], and on the other side it is *lent* again in the form it had before, so that
//! the same closures fit both a fused and a distributed chain.

use std::{
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use compact_str::CompactString;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A value in the form in which it flows in a chain, with a form that owns all of it.
///
/// Implemented for primitives, `&str`, `&[u8]`, `String`, tuples and options of them. Types of your own need it only
/// as keys, by `#[derive(Key)]`; as records they are taken as they are.
pub trait Record: Sized {
    /// The same value without borrows.
    type Owned: Lend;

    /// Copies what is borrowed.
    fn into_owned(self) -> Self::Owned;
}

/// An owned value that can be lent in the form in which it flows in a chain.
pub trait Lend: Sized + 'static {
    /// The form in the chain: `&'a str` for an owned `&str`, the value itself for types that own their data.
    type Lent<'a>;
    /// Where it rests meanwhile.
    type Place;

    /// Lays it down.
    fn place(self) -> Self::Place;

    /// Lends it, or takes it out. Called once per place.
    fn lend(place: &mut Self::Place) -> Self::Lent<'_>;
}

/// A place on the loop's stack that holds an owned record while the chain works on its lent form.
#[derive(Debug)]
pub struct Slot<T: Lend>(T::Place);

impl<T: Lend> Slot<T> {
    /// A slot that holds `value`.
    #[inline(always)]
    pub fn new(value: T) -> Self {
        Slot(value.place())
    }

    /// The lent form. To be called once.
    #[inline(always)]
    pub fn lend(&mut self) -> T::Lent<'_> {
        T::lend(&mut self.0)
    }
}

/// What may go from one subtask to another, or into a checkpoint.
#[diagnostic::on_unimplemented(
    message = "a record or key that cannot cross from one subtask to another",
    label = "this has to be sent to another thread or process",
    note = "own it and make it `Send` (`Arc` instead of `Rc`), and derive `serde::Serialize` and `serde::Deserialize`"
)]
pub trait Portable: Send + Serialize + DeserializeOwned + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + Serialize + DeserializeOwned + 'static> Portable for T {}

/// An owned `&str`: short ones (up to 24 bytes) need no allocation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(CompactString);

impl Text {
    /// The text.
    #[inline(always)]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl std::ops::Deref for Text {
    type Target = str;
    #[inline(always)]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// As `str` does, so that a word is found by its borrowed form.
impl Hash for Text {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl Record for &str {
    type Owned = Text;
    #[inline]
    fn into_owned(self) -> Text {
        Text(CompactString::from(self))
    }
}

impl Lend for Text {
    type Lent<'a> = &'a str;
    type Place = Text;
    #[inline(always)]
    fn place(self) -> Text {
        self
    }
    #[inline(always)]
    fn lend(place: &mut Text) -> &str {
        place.as_str()
    }
}

/// An owned `&[u8]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Octets(Box<[u8]>);

impl Octets {
    /// The bytes.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Record for &[u8] {
    type Owned = Octets;
    #[inline]
    fn into_owned(self) -> Octets {
        Octets(self.into())
    }
}

impl Lend for Octets {
    type Lent<'a> = &'a [u8];
    type Place = Octets;
    #[inline(always)]
    fn place(self) -> Octets {
        self
    }
    #[inline(always)]
    fn lend(place: &mut Octets) -> &[u8] {
        place.as_slice()
    }
}

/// `Copy` types are their own owned and lent form.
macro_rules! copied {
    ($($t:ty),* $(,)?) => { $(
        impl Record for $t {
            type Owned = $t;
            #[inline(always)]
            fn into_owned(self) -> $t { self }
        }
        impl Lend for $t {
            type Lent<'a> = $t;
            type Place = $t;
            #[inline(always)]
            fn place(self) -> $t { self }
            #[inline(always)]
            fn lend(place: &mut $t) -> $t { *place }
        }
    )* };
}

copied! {
    (), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64,
    std::time::Duration, std::time::SystemTime, std::net::IpAddr,
    crate::time::Timestamp, crate::window::Window, crate::window::GlobalWindow,
}

impl Record for String {
    type Owned = String;
    #[inline(always)]
    fn into_owned(self) -> String {
        self
    }
}

impl Lend for String {
    type Lent<'a> = String;
    type Place = String;
    #[inline(always)]
    fn place(self) -> String {
        self
    }
    #[inline(always)]
    fn lend(place: &mut String) -> String {
        std::mem::take(place)
    }
}

impl<T: Record> Record for Option<T> {
    type Owned = Option<T::Owned>;
    #[inline]
    fn into_owned(self) -> Self::Owned {
        self.map(T::into_owned)
    }
}

impl<T: Lend> Lend for Option<T> {
    type Lent<'a> = Option<T::Lent<'a>>;
    type Place = Option<T::Place>;
    #[inline]
    fn place(self) -> Self::Place {
        self.map(T::place)
    }
    #[inline]
    fn lend(place: &mut Self::Place) -> Self::Lent<'_> {
        place.as_mut().map(T::lend)
    }
}

macro_rules! tuples {
    ($( ($($t:ident $i:tt),+) )*) => { $(
        impl<$($t: Record),+> Record for ($($t,)+) {
            type Owned = ($($t::Owned,)+);
            #[inline(always)]
            fn into_owned(self) -> Self::Owned { ($(self.$i.into_owned(),)+) }
        }
        impl<$($t: Lend),+> Lend for ($($t,)+) {
            type Lent<'a> = ($($t::Lent<'a>,)+);
            type Place = ($($t::Place,)+);
            #[inline(always)]
            fn place(self) -> Self::Place { ($(self.$i.place(),)+) }
            #[inline(always)]
            fn lend(place: &mut Self::Place) -> Self::Lent<'_> { ($($t::lend(&mut place.$i),)+) }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

/// A record of a type that [`Record`] does not know, owned as it is.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plain<T>(pub T);

impl<T: 'static> Lend for Plain<T> {
    type Lent<'a> = T;
    type Place = Option<T>;
    #[inline(always)]
    fn place(self) -> Option<T> {
        Some(self.0)
    }
    #[inline(always)]
    fn lend(place: &mut Option<T>) -> T {
        place.take().expect("a slot is lent once")
    }
}

/// Owns a record by the best way its type has: `Owning::new(record).own()` resolves to [`OwnRecord`] where the type
/// is a [`Record`], and to [`OwnPlain`] otherwise. Method lookup tries the former first, since it needs no
/// auto-reference; this is why generated code needs no bound on the user's types.
#[derive(Debug)]
pub struct Owning<T>(Option<T>);

impl<T> Owning<T> {
    /// Wraps the record.
    #[inline(always)]
    pub fn new(record: T) -> Self {
        Owning(Some(record))
    }
}

/// See [`Owning`].
pub trait OwnRecord {
    /// The owned form.
    type Owned;
    /// Owns the record.
    fn own(self) -> Self::Owned;
}

impl<T: Record> OwnRecord for Owning<T> {
    type Owned = T::Owned;
    #[inline(always)]
    fn own(self) -> T::Owned {
        self.0.expect("owned once").into_owned()
    }
}

/// See [`Owning`].
pub trait OwnPlain {
    /// The owned form.
    type Owned;
    /// Owns the record.
    fn own(self) -> Self::Owned;
}

impl<T: 'static> OwnPlain for &mut Owning<T> {
    type Owned = Plain<T>;
    #[inline(always)]
    fn own(self) -> Plain<T> {
        Plain(self.0.take().expect("owned once"))
    }
}

/// As [`Owning`], for what windows hold, which functions of the user's see: `Owning::new(record).bare()` is what
/// [`OwnRecord`] makes of it, or the record itself.
pub trait BareRecord {
    /// The owned form.
    type Owned;
    /// Owns the record.
    fn bare(self) -> Self::Owned;
}

impl<T: Record> BareRecord for Owning<T> {
    type Owned = T::Owned;
    #[inline(always)]
    fn bare(self) -> T::Owned {
        self.own()
    }
}

/// See [`BareRecord`].
pub trait BarePlain {
    /// The owned form.
    type Owned;
    /// Owns the record.
    fn bare(self) -> Self::Owned;
}

impl<T: 'static> BarePlain for &mut Owning<T> {
    type Owned = T;
    #[inline(always)]
    fn bare(self) -> T {
        self.0.take().expect("owned once")
    }
}

/// The way back from [`BareRecord`]: `Lending::new(owned).slot()` lends the record in the form that it had.
#[derive(Debug)]
pub struct Lending<T>(Option<T>);

impl<T> Lending<T> {
    /// Wraps what is owned.
    #[inline(always)]
    pub fn new(owned: T) -> Self {
        Lending(Some(owned))
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.take()
    }

    pub(crate) fn take(&mut self) -> T {
        self.0.take().expect("lent once")
    }
}

/// See [`Lending`].
pub trait LendRecord {
    /// What is lent.
    type Lend: Lend;
    /// Lays it down.
    fn slot(self) -> Slot<Self::Lend>;
}

impl<T: Lend> LendRecord for Lending<T> {
    type Lend = T;
    #[inline(always)]
    fn slot(self) -> Slot<T> {
        Slot::new(self.into_inner())
    }
}

/// See [`Lending`].
pub trait LendPlain {
    /// What is lent.
    type Lend: Lend;
    /// Lays it down.
    fn slot(self) -> Slot<Self::Lend>;
}

impl<T: 'static> LendPlain for &mut Lending<T> {
    type Lend = Plain<T>;
    #[inline(always)]
    fn slot(self) -> Slot<Plain<T>> {
        Slot::new(Plain(self.take()))
    }
}

/// Names the owned form of a record without owning it, by the same choice as [`Owning`].
#[derive(Debug)]
pub struct Witness<'a, T>(PhantomData<&'a T>);

impl<'a, T> Witness<'a, T> {
    /// For the type of this record.
    #[inline(always)]
    pub fn new(_: &'a T) -> Self {
        Witness(PhantomData)
    }
}

/// See [`Witness`].
pub trait WitnessRecord {
    /// The owned form.
    type Owned;
    /// Its type.
    fn owned(self) -> PhantomData<Self::Owned>;
}

impl<T: Record> WitnessRecord for Witness<'_, T> {
    type Owned = T::Owned;
    #[inline(always)]
    fn owned(self) -> PhantomData<T::Owned> {
        PhantomData
    }
}

/// See [`Witness`].
pub trait WitnessPlain {
    /// The owned form.
    type Owned;
    /// Its type.
    fn owned(self) -> PhantomData<Self::Owned>;
}

impl<T: 'static> WitnessPlain for &Witness<'_, T> {
    type Owned = Plain<T>;
    #[inline(always)]
    fn owned(self) -> PhantomData<Plain<T>> {
        PhantomData
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent_length(owned: (Text, u64)) -> usize {
        let mut slot = Slot::new(owned);
        let (word, n): (&str, u64) = slot.lend();
        word.len() + n as usize
    }

    #[test]
    fn a_tuple_that_borrows_is_owned_and_lent_again() {
        let owned = Owning::new(("word", 3u64)).own();
        assert_eq!(lent_length(owned), 7);
    }

    #[test]
    fn a_type_of_the_users_own_is_taken_as_it_is() {
        struct Event(Vec<u8>);
        let mut slot = Slot::new(Owning::new(Event(vec![1, 2])).own());
        let event: Event = slot.lend();
        assert_eq!(event.0, [1, 2]);
    }

    #[test]
    fn strings_are_moved_not_copied() {
        let text = String::from("a text that is longer than what fits in place");
        let at = text.as_ptr();
        let mut slot = Slot::new(Owning::new((text, 1u8)).own());
        let (text, _) = slot.lend();
        assert_eq!(text.as_ptr(), at);
    }
}
