use flow::{
    BoxError, ProcessFunction,
    process::{NoSide, ProcessContext},
    time::Timestamp,
};

struct Alarm;

impl ProcessFunction for Alarm {
    type In = u64;
    type Out = u64;
    type Side = NoSide;
    type State = ();

    fn process(&mut self, _: &mut (), n: u64, cx: &mut ProcessContext<'_, Self>) -> Result<(), BoxError> {
        cx.register_event_time_timer(Timestamp::from_millis(n as i64));
        Ok(())
    }
}

fn main() {}
