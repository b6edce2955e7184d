use flow::{State, ValueState};

#[derive(State)]
struct Account {
    balance: ValueState<i64>,
    payments: u64,
}

fn main() {}
