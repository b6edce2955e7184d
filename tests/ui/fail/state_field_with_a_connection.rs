use flow::{State, ValueState};

#[derive(State)]
struct Session {
    user: ValueState<u64>,
    connection: ValueState<std::net::TcpStream>,
}

fn main() {}
