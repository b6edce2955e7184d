//! The plan, for people and programs.

use std::{ffi::OsString, fmt::Write, time::Duration};

use clap::{
    Arg, ArgAction, ArgMatches, Command, ValueEnum,
    builder::{EnumValueParser, PossibleValue},
    value_parser,
};
use serde_json::{Value, json};

use crate::{
    checkpoint::Compression,
    plan::{Guarantee, Mode, OperatorPlan, Plan, Ship},
    worker::Retention,
};

/// The name of the command.
pub(super) const NAME: &str = "plan";

/// The command, for the command line of a job.
pub(super) fn command() -> Command {
    let format = Arg::new("format")
        .long("format")
        .value_parser(EnumValueParser::<PlanFormat>::new())
        .default_value("text")
        .help("How to print it");
    let warnings = Arg::new("warnings")
        .long("warnings")
        .action(ArgAction::SetTrue)
        .help("Also what the start of the job would warn of, with the job's arguments after `--`");
    let job = Arg::new("job")
        .value_name("ARGUMENTS")
        .value_parser(value_parser!(OsString))
        .num_args(0..)
        .last(true)
        .help("The job's arguments, as when it runs: its sinks are made from them. Implies `--warnings`");
    Command::new(NAME)
        .about("Shows the job's operators and chains, and runs nothing")
        .args([format, warnings, job])
}

/// The job's arguments, if the job is to be made.
pub(super) fn job_arguments(matches: &ArgMatches) -> Option<Vec<OsString>> {
    let given = matches.get_many::<OsString>("job");
    (given.is_some() || matches.get_flag("warnings")).then(|| given.into_iter().flatten().cloned().collect())
}

/// What the command prints.
pub(super) fn show(plan: &Plan, warnings: &[String], matches: &ArgMatches) -> String {
    let format = matches.get_one::<PlanFormat>("format").copied().unwrap_or(PlanFormat::Text);
    match format {
        PlanFormat::Text => {
            let warnings = warnings.iter().map(|warning| format!("warning: {warning}\n"));
            render(plan, format) + &warnings.collect::<String>()
        }
        PlanFormat::Mermaid => {
            let warnings = warnings.iter().map(|warning| format!("  %% warning: {warning}\n"));
            render(plan, format) + &warnings.collect::<String>()
        }
        PlanFormat::Json => {
            let mut plan = to_json(plan);
            if job_arguments(matches).is_some() {
                plan["warnings"] = json!(warnings);
            }
            format!("{plan:#}\n")
        }
    }
}

/// How to print a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanFormat {
    /// Lines, one per chain.
    Text,
    /// A flowchart for Mermaid.
    Mermaid,
    /// For programs.
    Json,
}

impl ValueEnum for PlanFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[PlanFormat::Text, PlanFormat::Mermaid, PlanFormat::Json]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            PlanFormat::Text => "text",
            PlanFormat::Mermaid => "mermaid",
            PlanFormat::Json => "json",
        }))
    }
}

/// Prints a plan.
#[must_use]
pub fn render(plan: &Plan, format: PlanFormat) -> String {
    match format {
        PlanFormat::Text => {
            let mut out = format!("{}: {}\n", plan.name, header(plan));
            text(plan, 1, &mut out);
            out
        }
        PlanFormat::Mermaid => {
            let mut out = String::from("flowchart LR\n");
            mermaid(plan, "n", &mut out);
            out
        }
        PlanFormat::Json => format!("{:#}\n", to_json(plan)),
    }
}

fn header(plan: &Plan) -> String {
    let mut words = vec![guarantee(plan.guarantee).replace('_', " ")];
    words.push(if plan.mode == Mode::Batch { "batch".to_owned() } else { "streaming".to_owned() });
    words.extend(checkpoint(plan));
    if let Some(parallelism) = plan.parallelism {
        words.push(format!("parallelism {parallelism}"));
    }
    if let Some(max) = plan.max_parallelism {
        words.push(format!("max parallelism {max}"));
    }
    if let Some(restart) = plan.restart {
        words.push(format!("restart {}", super::restart::show(&restart)));
    }
    words.join(", ")
}

/// What the pipeline says of its checkpoints.
fn checkpoint(plan: &Plan) -> Vec<String> {
    let said = &plan.checkpoint;
    let time = humantime::format_duration;
    let mut words = Vec::new();
    words.extend(said.interval.map(|interval| format!("checkpoint every {}", time(interval))));
    words.extend(said.timeout.map(|timeout| format!("checkpoint timeout {}", time(timeout))));
    words.extend(said.min_pause.map(|pause| format!("{} between checkpoints", time(pause))));
    words.extend(said.max_concurrent.map(|max| format!("up to {max} checkpoints at a time")));
    words.extend(said.tolerable_failures.map(|n| format!("{n} failed checkpoints in a row tolerable")));
    words.extend(said.retain.map(|n| format!("{n} checkpoints kept")));
    words.extend(said.compression.map(|compression| format!("compression {}", compressed(compression))));
    words.extend(said.on_cancel.map(|what| format!("checkpoints {} on cancel", kept(what))));
    words.extend(said.on_success.map(|what| format!("checkpoints {} on success", kept(what))));
    words
}

fn compressed(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Zstd => "zstd",
    }
}

fn kept(retention: Retention) -> &'static str {
    match retention {
        Retention::Retain => "retained",
        Retention::Delete => "deleted",
    }
}

fn guarantee(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::ExactlyOnce => "exactly_once",
        Guarantee::AtLeastOnce => "at_least_once",
        Guarantee::AtMostOnce => "at_most_once",
    }
}

fn ship(ship: Ship) -> &'static str {
    match ship {
        Ship::Forward => "forward",
        Ship::KeyGroup => "key group",
        Ship::Rebalance => "rebalance",
        Ship::Rescale => "rescale",
        Ship::Broadcast => "broadcast",
        Ship::Global => "global",
        Ship::Custom => "custom",
    }
}

/// The chains in order, each with its operators.
fn chains(plan: &Plan) -> Vec<(usize, Vec<usize>)> {
    let mut chains: Vec<(usize, Vec<usize>)> = Vec::new();
    for (id, operator) in plan.operators.iter().enumerate() {
        match chains.iter_mut().find(|(chain, _)| *chain == operator.chain) {
            Some((_, operators)) => operators.push(id),
            None => chains.push((operator.chain, vec![id])),
        }
    }
    chains.sort_by_key(|(chain, _)| *chain);
    chains
}

fn label(operator: &OperatorPlan) -> String {
    let mut label = operator.uid.to_owned();
    if operator.name != operator.uid {
        let _ = write!(label, " \"{}\"", operator.name);
    }
    if let Some(parallelism) = operator.parallelism {
        let _ = write!(label, " x{parallelism}");
    }
    if operator.stateful {
        label.push_str(" (state)");
    }
    label
}

fn text(plan: &Plan, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (_, operators) in chains(plan) {
        let labels: Vec<_> = operators.iter().map(|id| label(&plan.operators[*id])).collect();
        let mut inputs: Vec<_> = plan
            .edges
            .iter()
            .filter(|edge| operators.contains(&edge.to) && !operators.contains(&edge.from))
            .map(|edge| format!("{} by {}", plan.operators[edge.from].uid, ship(edge.ship)))
            .collect();
        inputs.dedup();
        if inputs.is_empty() {
            let _ = writeln!(out, "{indent}{}", labels.join(" -> "));
        } else {
            let _ = writeln!(out, "{indent}{}  <= {}", labels.join(" -> "), inputs.join(", "));
        }
        for part in operators.iter().filter_map(|id| plan.operators[*id].part) {
            text(part, depth + 1, out);
        }
    }
}

fn mermaid(plan: &Plan, prefix: &str, out: &mut String) {
    for (chain, operators) in chains(plan) {
        let _ = writeln!(out, "  subgraph {prefix}c{chain}[\" \"]");
        for id in operators {
            let operator = &plan.operators[id];
            let _ = writeln!(out, "    {prefix}{id}[\"{}\"]", label(operator).replace('"', "#quot;"));
        }
        let _ = writeln!(out, "  end");
    }
    for edge in plan.edges {
        let same = plan.operators[edge.from].chain == plan.operators[edge.to].chain;
        let (from, to) = (edge.from, edge.to);
        let _ = match (same, edge.ship) {
            (true, _) | (false, Ship::Forward) => writeln!(out, "  {prefix}{from} --> {prefix}{to}"),
            (false, by) => writeln!(out, "  {prefix}{from} -- {} --> {prefix}{to}", ship(by)),
        };
    }
    for (id, operator) in plan.operators.iter().enumerate() {
        if let Some(part) = operator.part {
            mermaid(part, &format!("{prefix}{id}_"), out);
        }
    }
}

fn milliseconds(time: Option<Duration>) -> Option<u64> {
    time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn to_json(plan: &Plan) -> Value {
    let operators: Vec<_> = plan
        .operators
        .iter()
        .map(|operator| {
            json!({
                "uid": operator.uid,
                "name": operator.name,
                "kind": operator.kind,
                "parallelism": operator.parallelism,
                "stateful": operator.stateful,
                "chain": operator.chain,
                "part": operator.part.map(to_json),
            })
        })
        .collect();
    let edges: Vec<_> = plan
        .edges
        .iter()
        .map(|edge| json!({ "from": edge.from, "to": edge.to, "ship": ship(edge.ship).replace(' ', "_") }))
        .collect();
    json!({
        "name": plan.name,
        "guarantee": guarantee(plan.guarantee),
        "mode": if plan.mode == Mode::Batch { "batch" } else { "streaming" },
        "checkpoint_ms": milliseconds(plan.checkpoint.interval),
        "checkpoint": {
            "timeout_ms": milliseconds(plan.checkpoint.timeout),
            "min_pause_ms": milliseconds(plan.checkpoint.min_pause),
            "max_concurrent": plan.checkpoint.max_concurrent,
            "tolerable_failures": plan.checkpoint.tolerable_failures,
            "retain": plan.checkpoint.retain,
            "compression": plan.checkpoint.compression.map(compressed),
            "on_cancel": plan.checkpoint.on_cancel.map(kept),
            "on_success": plan.checkpoint.on_success.map(kept),
        },
        "restart": plan.restart.as_ref().map(super::restart::show),
        "parallelism": plan.parallelism,
        "max_parallelism": plan.max_parallelism,
        "operators": operators,
        "edges": edges,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::CheckpointPlan, worker::Restart};

    static PLAN: Plan = Plan {
        name: "p",
        guarantee: Guarantee::ExactlyOnce,
        mode: Mode::Streaming,
        checkpoint: CheckpointPlan::new()
            .interval(Duration::from_secs(90))
            .max_concurrent(2)
            .compression(Compression::Zstd)
            .on_cancel(Retention::Delete),
        restart: Some(Restart::FixedDelay { attempts: 3, delay: Duration::from_secs(1) }),
        parallelism: None,
        max_parallelism: None,
        operators: &[],
        edges: &[],
    };

    #[test]
    fn what_is_said_of_checkpoints_and_restarts_is_shown() {
        assert_eq!(
            render(&PLAN, PlanFormat::Text),
            "p: exactly once, streaming, checkpoint every 1m 30s, up to 2 checkpoints at a time, compression zstd, checkpoints deleted on cancel, restart fixed-delay:attempts=3,delay=1s\n"
        );
        let json: Value = serde_json::from_str(&render(&PLAN, PlanFormat::Json)).unwrap();
        assert_eq!(json["checkpoint_ms"], 90_000);
        assert_eq!(json["checkpoint"]["max_concurrent"], 2);
        assert_eq!(json["checkpoint"]["timeout_ms"], Value::Null);
        assert_eq!(json["restart"], "fixed-delay:attempts=3,delay=1s");
    }
}
