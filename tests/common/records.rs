//! Records for oracles, and ways to push them.

use flow::testing::Input;

/// Numbers below a bound, the same ones for the same seed: xorshift64 (Marsaglia 2003).
pub(crate) fn random(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

/// Deals records out to the splits of an input, each of which keeps their order, 50 at a time.
pub(crate) fn deal<T: Clone + Send + Sync + 'static>(input: &Input<T>, splits: usize, records: &[T]) {
    let own = |split| records.iter().skip(split).step_by(splits).cloned().collect::<Vec<_>>();
    let own: Vec<_> = (0..splits).map(own).collect();
    // The splits in turn, so that none is far behind.
    for batch in 0..own.iter().map(|own| own.len().div_ceil(50)).max().unwrap_or(0) {
        for (split, own) in own.iter().enumerate() {
            if let Some(batch) = own.chunks(50).nth(batch) {
                input.push_to(split, batch.to_vec());
            }
        }
    }
}

/// The first half of the records, and the second.
pub(crate) fn halves<T>(records: &[T]) -> (&[T], &[T]) {
    records.split_at(records.len() / 2)
}
