//! A network between the sink and the broker that fails when it is told to.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    time::{Duration, sleep},
};

use crate::topic::brokers;

/// Requests by their number in the protocol.
pub(crate) const PRODUCE: i32 = 0;
pub(crate) const ADD_PARTITIONS: i32 = 24;
pub(crate) const ADD_OFFSETS: i32 = 25;
pub(crate) const END_TRANSACTION: i32 = 26;
pub(crate) const TRANSACTION_OFFSETS: i32 = 28;

const NONE: i32 = -1;

/// Listens on a port of its own; clients never learn of another.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    down: AtomicBool,
    /// Ends all connections.
    cut: Notify,
    /// The request whose answer gets lost, and all connections with it.
    swallow: AtomicI32,
    /// The request that arrives late, and how many milliseconds.
    stall: AtomicI32,
    stalled_for: AtomicU64,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            down: AtomicBool::new(false),
            cut: Notify::new(),
            swallow: AtomicI32::new(NONE),
            stall: AtomicI32::new(NONE),
            stalled_for: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !accepting.down.load(Ordering::SeqCst) {
                    tokio::spawn(connection(client, port, Arc::clone(&accepting)));
                }
            }
        });
        Proxy { port, state }
    }

    pub(crate) fn brokers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn down(&self) {
        self.state.down.store(true, Ordering::SeqCst);
        self.state.cut.notify_waiters();
    }

    pub(crate) fn up(&self) {
        self.state.down.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_down(&self) -> bool {
        self.state.down.load(Ordering::SeqCst)
    }

    /// The next request of this kind reaches the broker; its answer does not come back, and the network is down.
    pub(crate) fn swallow(&self, request: i32) {
        self.state.swallow.store(request, Ordering::SeqCst);
    }

    /// The next request of this kind reaches the broker late.
    pub(crate) fn stall(&self, request: i32, by: Duration) {
        self.state.stalled_for.store(by.as_millis() as u64, Ordering::SeqCst);
        self.state.stall.store(request, Ordering::SeqCst);
    }
}

async fn connection(client: TcpStream, port: u16, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(brokers()).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let swallowed = Arc::new(AtomicBool::new(false));
    tokio::select! {
        _ = requests(from_client, to_server, &state, &swallowed) => {}
        _ = answers(from_server, to_client, port, &state, &swallowed) => {}
        () = state.cut.notified() => {}
    }
}

async fn frame(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let length = from.read_u32().await.ok()?;
    let mut frame = vec![0; length as usize];
    from.read_exact(&mut frame).await.ok()?;
    Some(frame)
}

async fn forward(to: &mut OwnedWriteHalf, frame: &[u8]) -> Option<()> {
    to.write_u32(frame.len() as u32).await.ok()?;
    to.write_all(frame).await.ok()
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &State,
    swallowed: &AtomicBool,
) -> Option<()> {
    loop {
        let frame = frame(&mut from).await?;
        let request = i32::from(i16::from_be_bytes([frame[0], frame[1]]));
        if is_next(&state.stall, request) {
            sleep(Duration::from_millis(state.stalled_for.load(Ordering::SeqCst))).await;
        }
        if is_next(&state.swallow, request) {
            swallowed.store(true, Ordering::SeqCst);
        }
        forward(&mut to, &frame).await?;
    }
}

fn is_next(wanted: &AtomicI32, request: i32) -> bool {
    wanted.compare_exchange(request, NONE, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    port: u16,
    state: &State,
    swallowed: &AtomicBool,
) -> Option<()> {
    let brokers = brokers();
    let (host, own) = brokers.split_once(':').unwrap();
    let address = |port: u16| [host.as_bytes(), &u32::from(port).to_be_bytes()].concat();
    let (broker, proxy) = (address(own.parse().unwrap()), address(port));
    loop {
        let mut frame = frame(&mut from).await?;
        if swallowed.load(Ordering::SeqCst) {
            state.down.store(true, Ordering::SeqCst);
            state.cut.notify_waiters();
            return None;
        }
        // Where answers name the broker they name the proxy.
        for start in 0..(frame.len() + 1).saturating_sub(broker.len()) {
            if frame[start..].starts_with(&broker) {
                frame[start..start + proxy.len()].copy_from_slice(&proxy);
            }
        }
        forward(&mut to, &frame).await?;
    }
}
