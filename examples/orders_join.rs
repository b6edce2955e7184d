//! Tells which orders were paid in time, and which were not: two files, joined by event time.
//!
//! A payment counts if it comes within the patience after its order: an interval join. That an order was *not* paid is
//! known when event time has passed the end of its patience: a process function waits for that with a timer. Both files
//! may be out of order by a minute.
//!
//! ```sh
//! printf 'order,time,customer,cents\n1,0,ann,500\n2,60000,bob,900\n' > orders.csv
//! printf 'order,time,cents\n1,90000,500\n' > payments.csv
//! cargo run --release --example orders_join -- --orders orders.csv --payments payments.csv --paid paid --unpaid unpaid
//! ```

use std::{process::ExitCode, time::Duration};

use flow::{
    BoxError, KeyedProcessFunction, State, Timer, ValueState, file, pipeline,
    process::{KeyedContext, NoSide},
    time::Timestamp,
    watermark::bounded,
};
use serde::{Deserialize, Serialize};

/// Tells which orders were paid in time.
#[derive(clap::Args, Clone)]
struct Args {
    /// CSV files with a header: order, time in milliseconds since 1970, customer, cents
    #[arg(long)]
    orders: String,
    /// CSV files with a header: order, time in milliseconds since 1970, cents
    #[arg(long)]
    payments: String,
    /// The directory for what was paid in time: order, customer, cents, seconds that it took
    #[arg(long)]
    paid: String,
    /// The directory for what was not: order, customer, cents
    #[arg(long)]
    unpaid: String,
    /// In how many seconds an order is to be paid
    #[arg(long, default_value_t = 3600)]
    patience: u32,
}

/// A line of the orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    order: u64,
    time: i64,
    customer: String,
    cents: u64,
}

/// A line of the payments.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Payment {
    order: u64,
    time: i64,
    cents: u64,
}

/// What happens to an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Step {
    Ordered(Order),
    Paid(Payment),
}

impl Step {
    fn order(&self) -> u64 {
        match self {
            Step::Ordered(order) => order.order,
            Step::Paid(payment) => payment.order,
        }
    }
}

/// Reports orders that nobody has paid when their time is over.
struct Overdue {
    /// In milliseconds.
    patience: i64,
}

/// What is known of an order until then.
#[derive(State)]
struct Known {
    order: ValueState<Order>,
    /// The time of the first payment.
    paid: ValueState<i64>,
}

impl KeyedProcessFunction for Overdue {
    type Key = u64;
    type In = Step;
    type Out = (u64, String, u64);
    type Side = NoSide;
    type State = Known;

    fn process(
        &mut self,
        known: &mut Known,
        step: Step,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let time = match step {
            Step::Ordered(order) => {
                let time = order.time;
                known.order.set(order);
                time
            }
            Step::Paid(payment) => {
                let paid = *known.paid.get_or_insert_with(|| payment.time);
                known.paid.set(paid.min(payment.time));
                payment.time
            }
        };
        // Also for a payment, which may come first: if its order does not come, it is to be forgotten.
        cx.register_event_time_timer(Timestamp::from_millis(time + self.patience));
        Ok(())
    }

    fn on_timer(
        &mut self,
        known: &mut Known,
        timer: Timer,
        cx: &mut KeyedContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let Some(order) = known.order.get() else {
            known.paid.clear();
            return Ok(());
        };
        let end = order.time + self.patience;
        if timer.time < Timestamp::from_millis(end) {
            return Ok(());
        }
        let in_time = known.paid.get().is_some_and(|paid| (order.time..=end).contains(paid));
        if !in_time {
            cx.emit((order.order, order.customer.clone(), order.cents));
        }
        known.order.clear();
        known.paid.clear();
        Ok(())
    }
}

#[pipeline]
fn orders_join(args: &Args) {
    let patience = Duration::from_secs(args.patience.into());
    let orders = source(file::csv::<Order>(&args.orders)).watermarks(bounded("1m"), |order| order.time);
    let payments =
        source(file::csv::<Payment>(&args.payments)).watermarks(bounded("1m"), |payment| payment.time);
    let paid = orders
        .key_by(|order| order.order)
        .interval_join(payments.key_by(|payment| payment.order))
        .between(Duration::ZERO, patience)
        .with(|order, ordered, payment| {
            (order, ordered.customer.clone(), payment.cents, (payment.time - ordered.time) / 1000)
        });
    paid.sink(file::to_tsv(&args.paid));

    let steps = orders.map(Step::Ordered).union(payments.map(Step::Paid));
    let overdue = Overdue { patience: i64::from(args.patience) * 1000 };
    let unpaid = steps.key_by(|step| step.order()).process(overdue);
    unpaid.sink(file::to_tsv(&args.unpaid));
}

fn main() -> ExitCode {
    flow::run(orders_join)
}
