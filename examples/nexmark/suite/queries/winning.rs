//! The queries about winning bids: q4, q6 and q9.
//!
//! An auction is won by its highest bid while it was open, of equal ones by the earliest. Nexmark's SQL gives each bid that
//! is the highest so far, and takes the former one back; a stream of records that only grows says who has won when the
//! auction has closed. Averages follow in the order in which auctions close.

use std::{cmp::Reverse, collections::BTreeMap};

use flow::{
    BoxError, KeyedCoProcessFunction, KeyedProcessFunction, ListState, MapState, Split3, State, Timer,
    ValueState, pipeline,
    process::{KeyedCoContext, KeyedContext, NoSide},
    time::Timestamp,
    watermark::monotonous,
};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::{Auction, Bid, Event},
        source::Nexmark,
    },
    stateless::bids,
};

/// Gives each auction that had a bid, with the one that wins, when it closes.
struct Winning;

/// What is known of an auction until then.
#[derive(State)]
struct Open {
    auction: ValueState<Auction>,
    highest: ValueState<Bid>,
    /// Bids that came before the auction did, as may be when they are of different splits.
    early: ListState<Bid>,
}

impl Open {
    fn offer(&mut self, auction: &Auction, bid: Bid) {
        if auction.is_open(bid.time) && self.highest.get().is_none_or(|highest| beats(&bid, highest)) {
            self.highest.set(bid);
        }
    }
}

/// The bid itself comes last, so that it is certain who wins, in whatever order bids come.
fn beats(bid: &Bid, other: &Bid) -> bool {
    (bid.price, Reverse(bid.time), bid) > (other.price, Reverse(other.time), other)
}

impl KeyedCoProcessFunction for Winning {
    type Key = u64;
    type Left = Auction;
    type Right = Bid;
    type Out = (Auction, Bid);
    type Side = NoSide;
    type State = Open;

    fn process_left(
        &mut self,
        open: &mut Open,
        auction: Auction,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        cx.register_event_time_timer(Timestamp::from_millis(auction.expires));
        for bid in open.early.take() {
            open.offer(&auction, bid);
        }
        open.auction.set(auction);
        Ok(())
    }

    fn process_right(
        &mut self,
        open: &mut Open,
        bid: Bid,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match open.auction.take() {
            Some(auction) => {
                open.offer(&auction, bid);
                open.auction.set(auction);
            }
            // An auction that is not there by then opened later, or is closed.
            None => {
                cx.register_event_time_timer(Timestamp::from_millis(bid.time));
                open.early.push(bid);
            }
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        open: &mut Open,
        timer: Timer,
        cx: &mut KeyedCoContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let now = timer.time.as_millis();
        open.early.retain(|bid| bid.time > now);
        if open.auction.get().is_some_and(|auction| auction.expires <= now)
            && let Some(auction) = open.auction.take()
            && let Some(bid) = open.highest.take()
        {
            cx.emit((auction, bid));
        }
        Ok(())
    }
}

/// A sale: of which category or seller, which auction, and the price.
type Sale = (u64, u64, u64);

/// Puts the sales of a key in order of time, and of the auction's number where that is the same.
struct InOrder;

#[derive(State)]
struct Waiting {
    sales: MapState<(i64, u64), Sale>,
}

impl KeyedProcessFunction for InOrder {
    type Key = u64;
    type In = Sale;
    type Out = Sale;
    type Side = NoSide;
    type State = Waiting;

    fn process(
        &mut self,
        waiting: &mut Waiting,
        sale: Sale,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let at = cx.timestamp().ok_or("sales have times")?;
        waiting.sales.insert((at.as_millis(), sale.1), sale);
        cx.register_event_time_timer(at);
        Ok(())
    }

    fn on_timer(
        &mut self,
        waiting: &mut Waiting,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let due = (timer.time.as_millis(), u64::MAX);
        let sales = waiting.sales.iter().take_while(|(at, _)| **at <= due).map(|(_, sale)| *sale);
        let sales: Vec<Sale> = sales.collect();
        sales.into_iter().for_each(|sale| cx.emit(sale));
        waiting.sales.retain(|at, _| *at > due);
        Ok(())
    }
}

/// q4, average price for a category: of all auctions closed so far, whenever one closes. Rounded down, as SQL's `BIGINT`.
#[pipeline]
pub(crate) fn q4(events: Nexmark, out: Checksum) {
    let (_, auctions, bids) =
        source(events).watermarks(monotonous(), |event| event.time()).split(|event| match event {
            Event::Person(person) => Split3::First(person),
            Event::Auction(auction) => Split3::Second(auction),
            Event::Bid(bid) => Split3::Third(bid),
        });
    auctions
        .key_by(|auction| auction.id)
        .connect(bids.key_by(|bid| bid.auction))
        .process(Winning)
        .map(|(auction, bid)| (auction.category, auction.id, bid.price))
        .key_by(|(category, _, _)| *category)
        .process(InOrder)
        .key_by(|(category, _, _)| *category)
        .fold((0u64, 0u64), |(sum, sales), (_, _, price)| {
            *sum += price;
            *sales += 1;
        })
        .map(|(category, (sum, sales))| (category, sum / sales))
        .sink(out);
}

pub(crate) fn q4_oracle(events: &[Event]) -> Totals {
    let mut prices: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    Totals::of(sales(events).into_iter().map(|(auction, bid)| {
        let of_category = prices.entry(auction.category).or_default();
        of_category.push(bid.price);
        (auction.category, of_category.iter().sum::<u64>() / of_category.len() as u64)
    }))
}

/// q6, average selling price by seller: of the last 10 auctions of the seller, whenever one closes. The SQL text takes 10
/// before the present one and goes by the time of the bid, which is known late; this is what its comment says.
#[pipeline]
pub(crate) fn q6(events: Nexmark, out: Checksum) {
    let (_, auctions, bids) =
        source(events).watermarks(monotonous(), |event| event.time()).split(|event| match event {
            Event::Person(person) => Split3::First(person),
            Event::Auction(auction) => Split3::Second(auction),
            Event::Bid(bid) => Split3::Third(bid),
        });
    auctions
        .key_by(|auction| auction.id)
        .connect(bids.key_by(|bid| bid.auction))
        .process(Winning)
        .map(|(auction, bid)| (auction.seller, auction.id, bid.price))
        .key_by(|(seller, _, _)| *seller)
        .process(InOrder)
        .key_by(|(seller, _, _)| *seller)
        .fold(Vec::new(), |last: &mut Vec<u64>, (_, _, price)| {
            if last.len() == 10 {
                last.remove(0);
            }
            last.push(*price);
        })
        .map(|(seller, last)| (seller, last.iter().sum::<u64>() / last.len() as u64))
        .sink(out);
}

pub(crate) fn q6_oracle(events: &[Event]) -> Totals {
    let mut prices: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    Totals::of(sales(events).into_iter().map(|(auction, bid)| {
        let of_seller = prices.entry(auction.seller).or_default();
        of_seller.push(bid.price);
        let last: Vec<u64> = of_seller.iter().rev().take(10).copied().collect();
        (auction.seller, last.iter().sum::<u64>() / last.len() as u64)
    }))
}

/// q9, winning bids: each auction with all that is known of it and of the bid that wins.
#[pipeline]
pub(crate) fn q9(events: Nexmark, out: Checksum) {
    let (_, auctions, bids) =
        source(events).watermarks(monotonous(), |event| event.time()).split(|event| match event {
            Event::Person(person) => Split3::First(person),
            Event::Auction(auction) => Split3::Second(auction),
            Event::Bid(bid) => Split3::Third(bid),
        });
    auctions
        .key_by(|auction| auction.id)
        .connect(bids.key_by(|bid| bid.auction))
        .process(Winning)
        .map(|(auction, bid)| (auction, bid.auction, bid.bidder, bid.price, bid.time, bid.extra))
        .sink(out);
}

pub(crate) fn q9_oracle(events: &[Event]) -> Totals {
    Totals::of(
        sales(events)
            .into_iter()
            .map(|(auction, bid)| (auction, bid.auction, bid.bidder, bid.price, bid.time, &bid.extra)),
    )
}

/// All auctions that are sold, with the bid that wins, in the order in which they close.
fn sales(events: &[Event]) -> Vec<(&Auction, &Bid)> {
    let mut of_auction: BTreeMap<u64, Vec<&Bid>> = BTreeMap::new();
    for bid in bids(events) {
        of_auction.entry(bid.auction).or_default().push(bid);
    }
    let mut sales: Vec<(&Auction, &Bid)> = Vec::new();
    for auction in auctions(events) {
        let mut valid: Vec<&Bid> = of_auction.get(&auction.id).into_iter().flatten().copied().collect();
        valid.retain(|bid| auction.time <= bid.time && bid.time <= auction.expires);
        // Stepwise: the highest, of these the earliest, of these the largest.
        let highest = valid.iter().map(|bid| bid.price).max();
        valid.retain(|bid| Some(bid.price) == highest);
        let earliest = valid.iter().map(|bid| bid.time).min();
        valid.retain(|bid| Some(bid.time) == earliest);
        sales.extend(valid.into_iter().max().map(|bid| (auction, bid)));
    }
    sales.sort_by_key(|(auction, _)| (auction.expires, auction.id));
    sales
}

/// All auctions among some events.
pub(super) fn auctions(events: &[Event]) -> impl Iterator<Item = &Auction> {
    events.iter().filter_map(|event| match event {
        Event::Auction(auction) => Some(auction),
        _ => None,
    })
}
