use flow::{State, ValueState};

#[derive(State)]
enum Account {
    Open { balance: ValueState<i64> },
    Closed,
}

fn main() {}
