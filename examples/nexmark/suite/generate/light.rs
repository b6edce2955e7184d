//! Events that cost little: a handful of multiplications each, and no allocation.
//!
//! Who bids on what, who sells, for how long and at which prices is distributed as Nexmark says; names, channels, URLs and
//! the rest of an event are parts of texts that are made once. What comes is a function of the event's number, so any
//! part of the events can be made again.

use std::sync::LazyLock;

use super::{
    super::model::{Auction, Bid, Event, Person, Text},
    BASE_TIME, RATE,
};

/// Of 50 events one is a person, three are auctions, and the others bids.
const ROUND: u64 = 50;
const PERSONS: u64 = 1;
const AUCTIONS: u64 = 3;
/// One of so many recent persons, or auctions, is the hot one.
const HOT_EVERY: u64 = 100;
/// How many persons are active, and how many auctions are open at a time.
const ACTIVE_PERSONS: u64 = 1000;
const OPEN_AUCTIONS: u64 = 100;
/// How far ahead of what exists an id may be.
const LEAD: u64 = 10;
/// The first ids.
const FIRST: u64 = 1000;
const FIRST_CATEGORY: u64 = 10;
const CATEGORIES: u64 = 5;

/// How many channels there are besides the hot ones.
const CHANNELS: u64 = 10_000;
/// Steps of the distribution of prices.
const PRICE_STEPS: usize = 1 << 10;
/// How much text there is to cut from. A power of two.
const TEXT_BYTES: usize = 1 << 16;

const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
const STATES: [&str; 6] = ["az", "ca", "id", "or", "wa", "wy"];
const CITIES: [&str; 10] = [
    "phoenix",
    "los angeles",
    "san francisco",
    "boise",
    "portland",
    "bend",
    "redmond",
    "seattle",
    "kent",
    "cheyenne",
];
const FIRST_NAMES: [&str; 11] =
    ["peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter"];
const LAST_NAMES: [&str; 9] =
    ["shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris"];

/// What all events are made of. It is made once and never freed, so that events need not count who uses its texts.
#[derive(Clone, Copy)]
pub(crate) struct Light {
    text: &'static str,
    names: &'static [String],
    /// Channels and their URLs, the hot ones first.
    channels: &'static [(String, String)],
    /// The prices at equal steps of the random number.
    prices: &'static [u64],
}

impl Light {
    pub(crate) fn shared() -> Self {
        static LIGHT: LazyLock<Light> = LazyLock::new(Light::new);
        *LIGHT
    }

    fn new() -> Self {
        let mut random = Random::of(u64::MAX);
        let names =
            FIRST_NAMES.iter().flat_map(|first| LAST_NAMES.iter().map(move |last| format!("{first} {last}")));
        let prices = (0..=PRICE_STEPS).map(|i| {
            // From one to a million dollars, each order of magnitude as likely as the others.
            (10f64.powf(i as f64 * 6.0 / PRICE_STEPS as f64) * 100.0).round() as u64
        });
        Light {
            text: String::leak((0..TEXT_BYTES).map(|_| random.letter()).collect()),
            names: Vec::leak(names.collect()),
            channels: Vec::leak(channels(&mut random)),
            prices: Vec::leak(prices.collect()),
        }
    }

    /// Event number `n`.
    #[inline(always)]
    pub(crate) fn event(&self, n: u64) -> Event {
        let (round, place) = (n / ROUND, n % ROUND);
        let random = Random::of(n);
        if place >= PERSONS + AUCTIONS {
            Event::Bid(self.bid(n, round, random))
        } else if place >= PERSONS {
            Event::Auction(self.auction(n, round, place - PERSONS, random))
        } else {
            Event::Person(self.person(n, round, random))
        }
    }

    #[inline(always)]
    fn bid(&self, n: u64, round: u64, mut random: Random) -> Bid {
        let last_auction = round * AUCTIONS + AUCTIONS - 1;
        let auction = match random.below(2) {
            0 => next_auction(last_auction, &mut random),
            _ => last_auction / HOT_EVERY * HOT_EVERY,
        };
        let bidder = match random.below(4) {
            0 => next_person(round, &mut random),
            // Not the hot seller.
            _ => round / HOT_EVERY * HOT_EVERY + 1,
        };
        let price = self.price(&mut random);
        let channel = match random.below(2) {
            0 => HOT_CHANNELS.len() as u64 + random.below(CHANNELS),
            _ => random.below(HOT_CHANNELS.len() as u64),
        };
        let (channel, url) = &self.channels[channel as usize];
        Bid {
            auction: FIRST + auction,
            bidder: FIRST + bidder,
            price,
            channel: Text::Borrowed(channel),
            url: Text::Borrowed(url),
            time: time(n),
            extra: self.cut(&mut random, 54, 28),
        }
    }

    #[inline(never)]
    fn auction(&self, n: u64, round: u64, place: u64, mut random: Random) -> Auction {
        let (time, initial_bid) = (time(n), self.price(&mut random));
        let reserve = initial_bid + self.price(&mut random);
        // Until about as many auctions have begun as are open at a time.
        let horizon = OPEN_AUCTIONS * ROUND / AUCTIONS * 1000 / RATE;
        let seller = match random.below(4) {
            0 => next_person(round, &mut random),
            _ => round / HOT_EVERY * HOT_EVERY,
        };
        Auction {
            id: FIRST + round * AUCTIONS + place,
            item_name: self.cut(&mut random, 20, 1),
            description: self.cut(&mut random, 100, 1),
            initial_bid,
            reserve,
            time,
            expires: time + 1 + random.below(horizon * 2) as i64,
            seller: FIRST + seller,
            category: FIRST_CATEGORY + random.below(CATEGORIES),
            extra: self.cut(&mut random, 268, 136),
        }
    }

    #[inline(never)]
    fn person(&self, n: u64, round: u64, mut random: Random) -> Person {
        Person {
            id: FIRST + round,
            name: Text::Borrowed(&self.names[random.below(self.names.len() as u64) as usize]),
            email_address: self.cut(&mut random, 17, 1),
            credit_card: self.cut(&mut random, 19, 1),
            city: Text::Borrowed(CITIES[random.below(CITIES.len() as u64) as usize]),
            state: Text::Borrowed(STATES[random.below(STATES.len() as u64) as usize]),
            time: time(n),
            extra: self.cut(&mut random, 104, 52),
        }
    }

    /// Between the steps a straight line will do.
    #[inline(always)]
    fn price(&self, random: &mut Random) -> u64 {
        let at = random.below((PRICE_STEPS as u64) << 16);
        let (step, between) = ((at >> 16) as usize, at & 0xffff);
        let (low, high) = (self.prices[step], self.prices[step + 1]);
        low + (((high - low) * between) >> 16)
    }

    /// From `least` letters on, fewer than `least + range`.
    #[inline(always)]
    fn cut(&self, random: &mut Random, least: usize, range: u64) -> Text {
        let length = least + random.below(range) as usize;
        let from = random.below((TEXT_BYTES - 512) as u64) as usize;
        Text::Borrowed(&self.text[from..from + length])
    }
}

/// As Nexmark's: those that are not hot have an id of their own in the URL, nine of ten times.
fn channels(random: &mut Random) -> Vec<(String, String)> {
    let mut url = || {
        let mut directory = || (0..3 + random.below(2)).map(|_| random.letter()).collect::<String>();
        let (one, two, three) = (directory(), directory(), directory());
        format!("https://www.nexmark.com/{one}/{two}/{three}/item.htm?query=1")
    };
    let hot: Vec<_> = HOT_CHANNELS.iter().map(|name| ((*name).to_owned(), url())).collect();
    let others = (0..CHANNELS).map(|i| {
        let url = url();
        let id = (i as u32).reverse_bits();
        (format!("channel-{i}"), if i % 10 == 0 { url } else { format!("{url}&channel_id={id}") })
    });
    hot.into_iter().chain(others).collect()
}

#[inline(always)]
fn time(n: u64) -> i64 {
    BASE_TIME + (n * 1000 / RATE) as i64
}

/// One of the active persons, or one who will register soon.
#[inline(always)]
fn next_person(last: u64, random: &mut Random) -> u64 {
    let people = last + 1;
    let active = people.min(ACTIVE_PERSONS);
    people - active + random.below(active + LEAD)
}

/// One of the open auctions, or one that will open soon.
#[inline(always)]
fn next_auction(last: u64, random: &mut Random) -> u64 {
    let least = last.saturating_sub(OPEN_AUCTIONS);
    least + random.below(last - least + 1 + LEAD)
}

/// Steele's and Vigna's splitmix64, begun anew for each event.
struct Random(u64);

impl Random {
    #[inline(always)]
    fn of(n: u64) -> Self {
        Random(n.wrapping_mul(0xd134_2543_de82_ef95))
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which fits into 32 bits.
    #[inline(always)]
    fn below(&mut self, end: u64) -> u64 {
        ((self.next() >> 32) * end) >> 32
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + self.below(26) as u8)
    }
}
