//! The query in processing time: q12.

use std::{collections::BTreeMap, time::Duration};

use flow::{
    pipeline,
    source::{Batch, Rewindable},
    testing::Harness,
    time::Timestamp,
    window::tumbling,
};

use super::{
    super::{
        checksum::{Checksum, Totals},
        model::Event,
    },
    stateless::bids,
};

/// q12, processing time windows: how many bids somebody makes in 10 seconds by the clock of the machine. What is open at the
/// end of the input has not happened yet and does not come out: a run of a few seconds may well give nothing.
#[pipeline]
pub(crate) fn q12<S>(events: S, out: Checksum)
where
    S: Rewindable + Clone,
    S::Batch: for<'a> Batch<Item<'a> = Event>,
{
    source(events)
        .filter_map(|event| event.bid().map(|bid| bid.bidder))
        .key_by(|bidder| *bidder)
        .window(tumbling("10s").processing_time())
        .count()
        .with(|bidder, window, bids| (bidder, bids, window.start.as_millis(), window.end.as_millis()))
        .sink(out);
}

/// Runs q12 by a clock that moves between parts of the events, and tells what came out and what should have.
pub(crate) fn q12_by_hand(events: &[Event], parallelism: usize) -> Result<[Totals; 2], flow::Error> {
    let mut test = Harness::new();
    let out = Checksum::default();
    let input = test.parallelism(parallelism).starting_at(Timestamp::from_millis(0)).input_of(parallelism);
    test.start(q12(input.clone(), out.clone()))?;
    let mut expected = BTreeMap::new();
    for (i, part) in events.chunks(events.len().div_ceil(25)).enumerate() {
        // 3 seconds per part: most windows see parts of several.
        let start = i as u64 * 3 / 10 * 10_000;
        for bid in bids(part) {
            *expected.entry((start, bid.bidder)).or_insert(0u64) += 1;
        }
        input.push_all(part.iter().cloned());
        test.settle()?;
        test.advance(Duration::from_secs(3))?;
    }
    test.advance(Duration::from_secs(10))?;
    test.finish()?;
    let rows = expected.into_iter().map(|((start, bidder), bids)| (bidder, bids, start, start + 10_000));
    Ok([out.totals(), Totals::of(rows)])
}
