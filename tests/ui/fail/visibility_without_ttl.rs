use flow::{State, ValueState};

#[derive(State)]
struct Account {
    #[state(visibility = never_return_expired)]
    balance: ValueState<i64>,
}

fn main() {}
