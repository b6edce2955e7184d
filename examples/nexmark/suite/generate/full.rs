//! The events of the crate `nexmark`.

use nexmark::{
    EventGenerator,
    config::NexmarkConfig,
    event::{Auction as TheirAuction, Bid as TheirBid, Event as TheirEvent, Person as TheirPerson},
};

use super::{
    super::model::{Auction, Bid, Event, Person},
    BASE_TIME, RATE,
};

/// Every `step`-th event from number `first` on.
pub(crate) fn full(first: u64, step: u64) -> impl Iterator<Item = Event> + Send {
    let config = NexmarkConfig {
        base_time: BASE_TIME as u64,
        first_rate: RATE as usize,
        next_rate: RATE as usize,
        ..NexmarkConfig::default()
    };
    EventGenerator::new(config).with_offset(first).with_step(step).map(Event::from)
}

impl From<TheirEvent> for Event {
    fn from(event: TheirEvent) -> Self {
        match event {
            TheirEvent::Person(person) => Event::Person(person.into()),
            TheirEvent::Auction(auction) => Event::Auction(auction.into()),
            TheirEvent::Bid(bid) => Event::Bid(bid.into()),
        }
    }
}

impl From<TheirPerson> for Person {
    fn from(person: TheirPerson) -> Self {
        Person {
            id: person.id as u64,
            name: person.name.into(),
            email_address: person.email_address.into(),
            credit_card: person.credit_card.into(),
            city: person.city.into(),
            state: person.state.into(),
            time: person.date_time as i64,
            extra: person.extra.into(),
        }
    }
}

impl From<TheirAuction> for Auction {
    fn from(auction: TheirAuction) -> Self {
        Auction {
            id: auction.id as u64,
            item_name: auction.item_name.into(),
            description: auction.description.into(),
            initial_bid: auction.initial_bid as u64,
            reserve: auction.reserve as u64,
            time: auction.date_time as i64,
            expires: auction.expires as i64,
            seller: auction.seller as u64,
            category: auction.category as u64,
            extra: auction.extra.into(),
        }
    }
}

impl From<TheirBid> for Bid {
    fn from(bid: TheirBid) -> Self {
        Bid {
            auction: bid.auction as u64,
            bidder: bid.bidder as u64,
            price: bid.price as u64,
            channel: bid.channel.into(),
            url: bid.url.into(),
            time: bid.date_time as i64,
            extra: bid.extra.into(),
        }
    }
}
