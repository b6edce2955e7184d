//! The queries that join without windows: q3 and q20.
//!
//! What one of the streams brings is kept for ever, as Nexmark's SQL has it: an auction may be bid on, and a person may sell,
//! at any time.

use std::collections::BTreeMap;

use flow::{
    BoxError, KeyedCoProcessFunction, ListState, Split3, State, ValueState, pipeline,
    process::{KeyedCoContext, NoSide},
};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::{Auction, Bid, Event, Text},
        source::Nexmark,
    },
    stateless::bids,
    winning::auctions,
};

/// A person's name, city and state.
type Home = (Text, Text, Text);

/// Each auction with its seller, in whichever order they come.
struct Sellers;

#[derive(State)]
struct Seller {
    home: ValueState<Home>,
    waiting: ListState<u64>,
}

impl KeyedCoProcessFunction for Sellers {
    type Key = u64;
    type Left = (u64, Home);
    type Right = (u64, u64);
    type Out = (Text, Text, Text, u64);
    type Side = NoSide;
    type State = Seller;

    fn process_left(
        &mut self,
        seller: &mut Seller,
        (_, home): (u64, Home),
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        for auction in seller.waiting.take() {
            cx.emit((home.0.clone(), home.1.clone(), home.2.clone(), auction));
        }
        seller.home.set(home);
        Ok(())
    }

    fn process_right(
        &mut self,
        seller: &mut Seller,
        (_, auction): (u64, u64),
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match seller.home.get() {
            Some((name, city, state)) => cx.emit((name.clone(), city.clone(), state.clone(), auction)),
            None => seller.waiting.push(auction),
        }
        Ok(())
    }
}

/// q3, local item suggestion: who sells in Oregon, Idaho or California in category 10, and which auctions.
#[pipeline]
pub(crate) fn q3(events: Nexmark, out: Checksum) {
    let (persons, auctions, _) = source(events).split(|event| match event {
        Event::Person(person) => Split3::First(person),
        Event::Auction(auction) => Split3::Second(auction),
        Event::Bid(bid) => Split3::Third(bid),
    });
    let sellers = persons
        .filter(|person| matches!(&*person.state, "or" | "id" | "ca"))
        .map(|person| (person.id, (person.name, person.city, person.state)));
    let items = auctions.filter(|auction| auction.category == 10).map(|auction| (auction.seller, auction.id));
    sellers.key_by(|(id, _)| *id).connect(items.key_by(|(seller, _)| *seller)).process(Sellers).sink(out);
}

pub(crate) fn q3_oracle(events: &[Event]) -> Totals {
    let mut homes = BTreeMap::new();
    for event in events {
        if let Event::Person(person) = event {
            homes.insert(person.id, (&person.name, &person.city, &person.state));
        }
    }
    Totals::of(auctions(events).filter(|auction| auction.category == 10).filter_map(|auction| {
        let (name, city, state) = homes.get(&auction.seller)?;
        ["or", "id", "ca"].contains(&&***state).then_some((*name, *city, *state, auction.id))
    }))
}

/// Each bid with its auction, if that is of category 10.
///
/// Of all other auctions it is only remembered that they are there, so that their bids need not be.
struct Expand;

#[derive(State)]
struct Offered {
    /// `None` inside: of another category.
    auction: ValueState<Option<Auction>>,
    early: ListState<Bid>,
}

impl KeyedCoProcessFunction for Expand {
    type Key = u64;
    type Left = Auction;
    type Right = Bid;
    type Out = (Bid, Auction);
    type Side = NoSide;
    type State = Offered;

    fn process_left(
        &mut self,
        offered: &mut Offered,
        auction: Auction,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let auction = Some(auction).filter(|auction| auction.category == 10);
        for bid in offered.early.take() {
            if let Some(auction) = &auction {
                cx.emit((bid, auction.clone()));
            }
        }
        offered.auction.set(auction);
        Ok(())
    }

    fn process_right(
        &mut self,
        offered: &mut Offered,
        bid: Bid,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match offered.auction.get() {
            Some(Some(auction)) => cx.emit((bid, auction.clone())),
            Some(None) => {}
            None => offered.early.push(bid),
        }
        Ok(())
    }
}

/// q20, expand bid with auction: the bids on auctions of category 10, with all that is known of these.
#[pipeline]
pub(crate) fn q20(events: Nexmark, out: Checksum) {
    let (_, auctions, bids) = source(events).split(|event| match event {
        Event::Person(person) => Split3::First(person),
        Event::Auction(auction) => Split3::Second(auction),
        Event::Bid(bid) => Split3::Third(bid),
    });
    auctions.key_by(|auction| auction.id).connect(bids.key_by(|bid| bid.auction)).process(Expand).sink(out);
}

pub(crate) fn q20_oracle(events: &[Event]) -> Totals {
    let of_category: BTreeMap<u64, &Auction> = auctions(events)
        .filter(|auction| auction.category == 10)
        .map(|auction| (auction.id, auction))
        .collect();
    Totals::of(bids(events).filter_map(|bid| Some((bid, *of_category.get(&bid.auction)?))))
}
