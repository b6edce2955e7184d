//! The queries that work on the texts of bids: q14, q21 and q22.

use flow::pipeline;

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::Event,
        source::Nexmark,
    },
    stateless::{EURO, bids},
};

/// q14, calculation: bids from 1,000,000 to 50,000,000 in euros (as in q1), with the kind of hour at which they were made
/// (UTC), and how often the letter `c` is in their extra text.
#[pipeline]
pub(crate) fn q14(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .map(|bid| (bid.price * EURO, bid))
        .filter(|(euros, _)| *euros > 1_000_000_000 && *euros < 50_000_000_000)
        .map(|(euros, bid)| {
            let letters = bid.extra.bytes().filter(|letter| *letter == b'c').count();
            (bid.auction, bid.bidder, euros, hour_kind(bid.time), bid.time, bid.extra, letters)
        })
        .sink(out);
}

fn hour_kind(time: i64) -> &'static str {
    match time.div_euclid(3_600_000).rem_euclid(24) {
        8..=18 => "dayTime",
        0..=6 | 20.. => "nightTime",
        _ => "otherTime",
    }
}

pub(crate) fn q14_oracle(events: &[Event]) -> Totals {
    let chosen = bids(events).filter(|bid| {
        let euros = 0.908 * bid.price as f64;
        1e6 < euros && euros < 5e7
    });
    Totals::of(chosen.map(|bid| {
        let second_of_day = bid.time / 1000 % 86_400;
        let kind = match second_of_day / 3600 {
            7 | 19 => "otherTime",
            hour if (8..19).contains(&hour) => "dayTime",
            _ => "nightTime",
        };
        let letters = bid.extra.split('c').count() - 1;
        (bid.auction, bid.bidder, bid.price * EURO, kind, bid.time, &bid.extra, letters)
    }))
}

/// q21, channel id: the well-known channels have a number, others what their URL says; the rest is left out.
#[pipeline]
pub(crate) fn q21(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .filter_map(|bid| {
            let id = channel_id(&bid.channel, &bid.url)?.to_owned();
            Some((bid.auction, bid.bidder, bid.price, bid.channel, id))
        })
        .sink(out);
}

const KNOWN_CHANNELS: [(&str, &str); 4] =
    [("apple", "0"), ("google", "1"), ("facebook", "2"), ("baidu", "3")];

fn channel_id<'u>(channel: &str, url: &'u str) -> Option<&'u str> {
    let known = KNOWN_CHANNELS.iter().find(|(name, _)| channel.eq_ignore_ascii_case(name));
    known.map(|(_, id)| *id).or_else(|| parameter(url, "channel_id="))
}

/// The value of the parameter that begins the text, or follows an `&`.
fn parameter<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let value = match url.strip_prefix(name) {
        Some(value) => value,
        None => url
            .match_indices(name)
            .find_map(|(at, _)| url[..at].ends_with('&').then(|| &url[at + name.len()..]))?,
    };
    Some(value.split_once('&').map_or(value, |(value, _)| value))
}

pub(crate) fn q21_oracle(events: &[Event]) -> Totals {
    Totals::of(bids(events).filter_map(|bid| {
        let id = match &*bid.channel.to_lowercase() {
            "apple" => "0",
            "google" => "1",
            "facebook" => "2",
            "baidu" => "3",
            _ => bid.url.split('&').find_map(|part| part.strip_prefix("channel_id="))?,
        };
        Some((bid.auction, bid.bidder, bid.price, &bid.channel, id))
    }))
}

/// q22, URL directories: the three parts of the path, counted as SQL's `SPLIT_INDEX(url, '/', 3)` and so on does; one that
/// is not there is empty instead of `NULL`.
#[pipeline]
pub(crate) fn q22(events: Nexmark, out: Checksum) {
    source(events)
        .filter_map(Event::bid)
        .map(|bid| {
            let mut parts = bid.url.split('/').skip(3).map(str::to_owned);
            let mut part = || parts.next().unwrap_or_default();
            let directories = (part(), part(), part());
            (bid.auction, bid.bidder, bid.price, bid.channel, directories)
        })
        .sink(out);
}

pub(crate) fn q22_oracle(events: &[Event]) -> Totals {
    Totals::of(bids(events).map(|bid| {
        let parts: Vec<&str> = bid.url.split('/').collect();
        let part = |i: usize| parts.get(i).copied().unwrap_or("");
        (bid.auction, bid.bidder, bid.price, &bid.channel, (part(3), part(4), part(5)))
    }))
}
