//! Reading a thousand tasks again, 32 at a time: the engine stores what it reads, its peers only parse.

use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use super::{Client, Fed, Kind, number};
use crate::program::Program;
use crate::roles::{bare, engine};
use crate::table::{Figure, Table};
use crate::{Failure, Scale};

const AT_ONCE: usize = 32;
/// Three updates, then a question that nobody answers: a short history, and a task that stays open.
const WAITING: &str = "steps=3 interval=0.01 ask=3";

pub async fn run(scale: Scale, table: &mut Table) -> Result<(), Failure> {
    let tasks = scale.pick(1_000, 50);
    let fed = Fed::start(tasks, WAITING).await?;
    let mut client = Client::start(Kind::Ours).await?;
    client.meet(&fed).await?;
    client.follow(&fed).await?;
    let mut fed = fed;
    fed.attached(tasks).await?;
    let ours = sweeps(&mut client.program, &engine::Question::Reconcile, tasks, scale).await?;
    client.program.kill().await?;

    let mut client = Client::start(Kind::Bare).await?;
    let get = bare::Question::Get { url: fed.url.clone(), tasks: fed.tasks.clone(), at_once: AT_ONCE };
    let bare = sweeps(&mut client.program, &get, tasks, scale).await?;
    client.program.kill().await?;

    let what = format!("sweep of {tasks} tasks, {AT_ONCE} at a time, stored");
    match python(&fed, scale).await {
        Ok(python) => table.add_beside(
            what.clone(),
            ours.clone(),
            ("Python SDK 1.x, not stored", python),
            "≤ 0.125 × Python SDK",
        ),
        Err(error) => eprintln!("the Python SDK was not measured: {error}"),
    }
    table.add_beside(what, ours, ("bare reqwest, not stored", bare), "–");
    fed.agent.kill().await
}

async fn sweeps(
    program: &mut Program,
    question: &impl serde::Serialize,
    tasks: usize,
    scale: Scale,
) -> Result<Figure, Failure> {
    let mut ms = Vec::new();
    for _ in 0..scale.runs() {
        let answer = program.ask(question).await?;
        if number(&answer, "read")? as usize != tasks {
            return Err(format!("not all of {tasks} tasks were read: {answer}").into());
        }
        ms.push(number(&answer, "ms")?);
    }
    Ok(Figure::new(ms, "ms"))
}

async fn python(fed: &Fed, scale: Scale) -> Result<Figure, Failure> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(super::python_peer("py1").await?);
    command.arg(here.join("peers/sweep_py1.py")).arg(&fed.url).arg(AT_ONCE.to_string());
    let mut program = Program::start("sweep_py1.py", command)?;
    program.answer().await?;
    let sweeps = sweeps(&mut program, &json!(fed.tasks), fed.tasks.len(), scale).await;
    program.end().await?;
    sweeps
}
