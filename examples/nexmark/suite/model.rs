//! What happens at the auctions: people register, auctions open, bids are made.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A text of an event: owned, or a part of what the program holds anyway.
pub(crate) type Text = Cow<'static, str>;

/// One of the three things that happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event {
    Person(Person),
    Auction(Auction),
    Bid(Bid),
}

/// Somebody registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Person {
    pub(crate) id: u64,
    pub(crate) name: Text,
    pub(crate) email_address: Text,
    pub(crate) credit_card: Text,
    pub(crate) city: Text,
    /// The two letters of a state, in lower case.
    pub(crate) state: Text,
    /// Milliseconds since 1970 UTC, as all times here.
    pub(crate) time: i64,
    pub(crate) extra: Text,
}

/// Something is to be sold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Auction {
    pub(crate) id: u64,
    pub(crate) item_name: Text,
    pub(crate) description: Text,
    /// In cents, as all prices.
    pub(crate) initial_bid: u64,
    pub(crate) reserve: u64,
    pub(crate) time: i64,
    /// The last millisecond in which bids count.
    pub(crate) expires: i64,
    pub(crate) seller: u64,
    pub(crate) category: u64,
    pub(crate) extra: Text,
}

/// Somebody offers a price.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Bid {
    pub(crate) auction: u64,
    pub(crate) bidder: u64,
    pub(crate) price: u64,
    pub(crate) channel: Text,
    pub(crate) url: Text,
    pub(crate) time: i64,
    pub(crate) extra: Text,
}

impl Event {
    /// When it happened.
    #[inline(always)]
    pub(crate) fn time(&self) -> i64 {
        match self {
            Event::Person(person) => person.time,
            Event::Auction(auction) => auction.time,
            Event::Bid(bid) => bid.time,
        }
    }

    /// The person, if it is one.
    #[inline(always)]
    pub(crate) fn person(self) -> Option<Person> {
        match self {
            Event::Person(person) => Some(person),
            _ => None,
        }
    }

    /// The auction, if it is one.
    #[inline(always)]
    pub(crate) fn auction(self) -> Option<Auction> {
        match self {
            Event::Auction(auction) => Some(auction),
            _ => None,
        }
    }

    /// The bid, if it is one.
    #[inline(always)]
    pub(crate) fn bid(self) -> Option<Bid> {
        match self {
            Event::Bid(bid) => Some(bid),
            _ => None,
        }
    }
}

impl Auction {
    /// Whether it is open at this time, to the millisecond.
    #[inline]
    pub(crate) fn is_open(&self, time: i64) -> bool {
        (self.time..=self.expires).contains(&time)
    }
}
