//! The commands, a file a noun. Each asks the engine and prints; none decides about tasks.

mod agent;
mod cancel;
mod client;
mod completions;
mod delivery;
mod demo_agent;
mod diagnostics;
mod doctor;
mod export;
mod follow;
mod import;
mod inbox;
mod man;
mod notice;
mod open;
mod push;
mod reconcile;
mod reply;
mod send;
mod serve;
mod settings;
mod show;
mod target;
mod task;
mod tasks;
mod view;
mod wait;
mod watch;

use clap::Subcommand;

use crate::failure::Failure;
use crate::session::Session;

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    #[command(subcommand)]
    Agent(agent::Agent),
    Send(send::Send),
    Watch(watch::Watch),
    Import(import::Import),
    Tasks(tasks::Tasks),
    Show(show::Show),
    Export(export::Export),
    #[command(subcommand)]
    Task(task::Task),
    Follow(follow::Follow),
    Wait(wait::Wait),
    Reply(reply::Reply),
    Cancel(cancel::Cancel),
    Reconcile(reconcile::Reconcile),
    #[command(subcommand)]
    Inbox(inbox::Inbox),
    #[command(subcommand)]
    Client(client::Client),
    #[command(subcommand)]
    Target(target::Target),
    #[command(subcommand)]
    Delivery(delivery::Delivery),
    #[command(subcommand)]
    View(view::View),
    #[command(subcommand)]
    Settings(settings::Settings),
    #[command(subcommand)]
    Notice(notice::Notice),
    #[command(subcommand)]
    Push(push::Push),
    Doctor(doctor::Doctor),
    Diagnostics(diagnostics::Diagnostics),
    Open(open::Open),
    Completions(completions::Completions),
    #[command(hide = true)]
    Man(man::Man),
    DemoAgent(demo_agent::DemoAgent),
}

impl Command {
    /// Does it and gives the exit code.
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        match self {
            Self::Serve(serve) => serve.run(session).await,
            Self::Agent(agent) => agent.run(session).await,
            Self::Send(send) => send.run(session).await,
            Self::Watch(watch) => watch.run(session).await,
            Self::Import(import) => import.run(session).await,
            Self::Tasks(tasks) => tasks.run(session).await,
            Self::Show(show) => show.run(session).await,
            Self::Export(export) => export.run(session).await,
            Self::Task(task) => task.run(session).await,
            Self::Follow(follow) => follow.run(session).await,
            Self::Wait(wait) => wait.run(session).await,
            Self::Reply(reply) => reply.run(session).await,
            Self::Cancel(cancel) => cancel.run(session).await,
            Self::Reconcile(reconcile) => reconcile.run(session).await,
            Self::Inbox(inbox) => inbox.run(session).await,
            Self::Client(client) => client.run(session).await,
            Self::Target(target) => target.run(session).await,
            Self::Delivery(delivery) => delivery.run(session).await,
            Self::View(view) => view.run(session).await,
            Self::Settings(settings) => settings.run(session).await,
            Self::Notice(notice) => notice.run(session).await,
            Self::Push(push) => push.run(session).await,
            Self::Doctor(doctor) => doctor.run(session).await,
            Self::Diagnostics(diagnostics) => diagnostics.run(session).await,
            Self::Open(open) => open.run(session).await,
            Self::Completions(completions) => completions.run(session),
            Self::Man(man) => man.run(session),
            Self::DemoAgent(demo_agent) => demo_agent.run(session).await,
        }
    }
}
