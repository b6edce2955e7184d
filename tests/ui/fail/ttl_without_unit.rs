use flow::{State, ValueState};

#[derive(State)]
struct Account {
    #[state(ttl = "60")]
    balance: ValueState<i64>,
}

fn main() {}
