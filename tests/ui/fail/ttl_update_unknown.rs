use flow::{State, ValueState};

#[derive(State)]
struct Account {
    #[state(ttl = "1h", update = on_read)]
    balance: ValueState<i64>,
}

fn main() {}
