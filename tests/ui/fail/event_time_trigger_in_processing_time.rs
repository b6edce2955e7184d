use flow::{collection::range, file, pipeline, window::{trigger, tumbling}};

#[pipeline(guarantee = at_least_once, time = processing)]
fn p() {
    let minutes = source(range(0..9)).window_all(tumbling("1m"))
        .trigger(trigger::purging(trigger::continuous_event_time("1s"))).count();
    minutes.sink(file::to_tsv("out"));
}

fn main() {
    flow::run(p);
}
