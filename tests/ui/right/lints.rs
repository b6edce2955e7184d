//! Generated code is clean under lints that a crate may deny.
#![deny(warnings, missing_docs, unused, nonstandard_style, rust_2018_idioms, keyword_idents)]
#![deny(
    unreachable_pub,
    unused_qualifications,
    unused_lifetimes,
    unused_results,
    trivial_casts,
    trivial_numeric_casts
)]
#![deny(
    missing_debug_implementations,
    missing_copy_implementations,
    single_use_lifetimes,
    let_underscore_drop
)]
#![deny(
    variant_size_differences,
    unit_bindings,
    redundant_lifetimes,
    elided_lifetimes_in_paths,
    macro_use_extern_crate
)]
#![forbid(unsafe_code)]

/// Jobs.
pub mod jobs {
    use flow::{Stream, collection::range, file, pipeline};

    /// Arguments.
    #[derive(Clone, Debug)]
    pub struct Args {
        /// Where to.
        pub output: String,
    }

    /// A documented pipeline.
    ///
    /// With a second paragraph.
    #[pipeline(parallelism = 2)]
    pub fn counts(args: &Args) {
        let numbers = source(range(0..9)).map(|n| n + 1);
        let keyed = numbers.key_by(|n| n % 3);
        keyed.count().sink(file::to_tsv(&args.output));
        keyed.reduce(|a, b| a + b).sink(file::to_lines("b"));
        keyed.min_by(|n| *n).sink(file::to_lines("c"));
        keyed.fold(0, |sum, n| *sum += n).sink(file::to_tsv("d"));
        doubled(numbers).rebalance().filter_map(Some).sink(file::to_lines("e"));
    }

    /// A documented helper.
    #[pipeline]
    pub fn doubled(numbers: Stream<u64>) -> Stream<u64> {
        numbers.flat_map(|n| [n, n])
    }

    /// Without arguments.
    #[pipeline(mode = batch)]
    pub(crate) fn nothing() {
        let numbers = source(range(0..9)).map(|n| Ok(n.to_string().parse::<u64>()?)).on_error(skip);
        numbers.key_by(|n| n % 3).max(|n| *n).sink(file::to_tsv("a"));
        numbers.inspect(|_| ()).sink(file::to_lines("b"));
    }
}

#[test]
fn compiles() {
    let args = jobs::Args { output: String::new() };
    drop((jobs::counts(&args), jobs::nothing()));
}
