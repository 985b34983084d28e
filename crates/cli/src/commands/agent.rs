//! `agent`: who is followed. Secrets come from the environment, from stdin or from a command, never as an
//! argument: arguments are seen by every program of this machine and kept in the shell's history.

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal};
use std::time::Duration;

use clap::{Args, Subcommand};
use taskbell_core::dialect::Dialect;
use taskbell_core::ids::AgentName;
use taskbell_core::text;
use taskbell_engine::api::views::{
    AgentTestView, AgentView, CredentialRequest, LinkView, NewAgentRequest, PinDialectRequest,
    ReportCardView, SecretText,
};

use crate::failure::Failure;
use crate::session::Session;
use crate::span;
use crate::term::marks::{AMBER, BOLD, DIM, GREEN, RED};
use crate::term::out::Out;
use crate::term::table::{Cell, Give, Table};
use crate::words::Clock;

/// Register, look at and test agents
#[derive(Debug, Subcommand)]
pub enum Agent {
    /// Register an agent by the address of its card, or its own
    #[command(
        after_help = "Example:\n  taskbell agent add https://agent.example.com --name builder --token-env BUILDER_TOKEN"
    )]
    Add(Add),
    /// List the agents
    #[command(after_help = "Example:\n  taskbell agent list")]
    List,
    /// Show one agent: what it speaks, what it can, what was odd about it
    #[command(after_help = "Example:\n  taskbell agent show builder")]
    Show(Named),
    /// Find out whether an agent can be reached and what really works; nothing is sent but reads
    #[command(after_help = "Example:\n  taskbell agent test builder")]
    Test(Named),
    /// Say which version an agent speaks, against what was observed
    #[command(after_help = "Example:\n  taskbell agent pin builder 0.3")]
    Pin(Pin),
    /// Forget an agent and its credential; its tasks stay as they are known
    #[command(after_help = "Example:\n  taskbell agent remove builder")]
    Remove(Named),
    /// Give an agent another credential, or none
    #[command(after_help = "Example:\n  taskbell agent set-credential builder --token-stdin < token.txt")]
    SetCredential(SetCredential),
}

#[derive(Debug, Args)]
pub struct Add {
    /// The agent's address, or its card's
    url: String,
    /// What to call it: a-z, 0-9, '-', '_' and '.'
    #[arg(long)]
    name: AgentName,
    #[command(flatten)]
    credential: CredentialArgs,
    /// Use the address in its card even where that is another origin
    #[arg(long)]
    use_card_url: bool,
    /// Allow plain http to another machine; such an agent gets no credential
    #[arg(long)]
    allow_http: bool,
}

#[derive(Debug, Args)]
pub struct Named {
    /// The agent's name
    name: AgentName,
}

#[derive(Debug, Args)]
pub struct Pin {
    /// The agent's name
    name: AgentName,
    /// 0.3 or 1.0; observed: as found out
    #[arg(value_parser = dialect)]
    dialect: Pinned,
}

#[derive(Debug, Clone, Copy)]
struct Pinned(Option<Dialect>);

fn dialect(word: &str) -> Result<Pinned, &'static str> {
    if word == "observed" {
        return Ok(Pinned(None));
    }
    let dialect = serde_json::from_value(serde_json::Value::String(word.to_owned()));
    dialect.map(|dialect| Pinned(Some(dialect))).map_err(|_| "it is 0.3, 1.0 or observed")
}

#[derive(Debug, Args)]
pub struct SetCredential {
    /// The agent's name
    name: AgentName,
    #[command(flatten)]
    credential: CredentialArgs,
    /// It gets none any more
    #[arg(long, conflicts_with = "credential")]
    none: bool,
}

#[derive(Debug, Args)]
#[group(id = "credential", multiple = false)]
struct CredentialArgs {
    /// Its bearer token is in this environment variable
    #[arg(long, value_name = "VAR")]
    token_env: Option<String>,
    /// Its bearer token is the first line of stdin
    #[arg(long)]
    token_stdin: bool,
    /// Its bearer token is what this command prints; run again once when the agent refuses the token
    #[arg(long, value_name = "CMD")]
    token_command: Option<String>,
    /// USER:PASSWORD for basic authentication is in this environment variable
    #[arg(long, value_name = "VAR")]
    basic_env: Option<String>,
    /// The value of header NAME is in environment variable VAR; may be given more than once
    #[arg(long, value_name = "NAME=VAR")]
    header_env: Vec<String>,
}

impl CredentialArgs {
    /// The credential that the arguments name; `None` where they name none.
    fn read(self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<CredentialRequest>, Failure> {
        let value = |name: &str| {
            variable(name).filter(|value| !value.is_empty()).ok_or_else(|| {
                Failure::usage(format!("the environment variable {name:?} is not set, or not text"))
            })
        };
        if let Some(name) = self.token_env {
            return Ok(Some(CredentialRequest::Bearer { token: SecretText::new(value(&name)?) }));
        }
        if self.token_stdin {
            return Ok(Some(CredentialRequest::Bearer { token: token_from_stdin()? }));
        }
        if let Some(command) = self.token_command {
            return Ok(Some(CredentialRequest::TokenCommand { command }));
        }
        if let Some(name) = self.basic_env {
            let pair = value(&name)?;
            let Some((user, password)) = pair.split_once(':') else {
                return Err(Failure::usage(format!(
                    "the environment variable {name:?} is not USER:PASSWORD"
                )));
            };
            let password = SecretText::new(password);
            return Ok(Some(CredentialRequest::Basic { user: user.to_owned(), password }));
        }
        let mut headers = BTreeMap::new();
        for pair in &self.header_env {
            let Some((header, name)) = pair.split_once('=') else {
                // Not quoted: it may be the value itself that was given by mistake.
                return Err(Failure::usage("--header-env is written NAME=VAR, with the name of a variable"));
            };
            headers.insert(header.to_owned(), SecretText::new(value(name)?));
        }
        Ok((!headers.is_empty()).then_some(CredentialRequest::Headers { headers }))
    }
}

fn token_from_stdin() -> Result<SecretText, Failure> {
    let failed =
        |error: io::Error| Failure::new("stdin_failed", format!("failed to read the token: {error}"));
    let mut line = String::new();
    if io::stdin().is_terminal() {
        line = rpassword::prompt_password("Token (not shown): ").map_err(failed)?;
    } else {
        io::stdin().lock().read_line(&mut line).map_err(failed)?;
    }
    match line.trim() {
        "" => Err(Failure::usage("no token came from stdin")),
        token => Ok(SecretText::new(token)),
    }
}

fn from_environment(name: &str) -> Option<String> {
    // A name with '=' or NUL in it would be a fault of the caller's to the standard library.
    (!name.is_empty() && !name.contains(['=', '\0'])).then(|| std::env::var(name).ok())?
}

impl Agent {
    pub async fn run(self, session: &Session) -> Result<u8, Failure> {
        let out = session.out;
        match self {
            Self::Add(add) => {
                let request = NewAgentRequest {
                    credential: add.credential.read(from_environment)?,
                    url: add.url,
                    name: add.name,
                    use_card_url: add.use_card_url,
                    allow_http: add.allow_http,
                };
                let agent = session.engine().await?.add_agent(&request).await?;
                print(&agent, out)?;
                if let Some(other) = agent.declared_url.as_deref().filter(|_| !out.is_json()) {
                    let other = text::plain(other);
                    out.remark(&format!(
                        "its card names another address, {other}, which is not used; to use it, register the agent \
                         again with --use-card-url"
                    ));
                }
            }
            Self::List => {
                let page = session.engine().await?.agents().await?;
                if out.is_json() {
                    out.json(&page)?;
                } else if page.items.is_empty() {
                    out.remark("no agent yet; register one with 'taskbell agent add URL --name NAME'");
                } else {
                    out.table(&table(&page.items))?;
                }
            }
            Self::Show(named) => show(session, &named.name).await?,
            Self::Test(named) => {
                let test = session.engine().await?.test_agent(&named.name).await?;
                print_test(&named.name, &test, out)?;
                return Ok(u8::from(!test.reachable));
            }
            Self::Pin(pin) => {
                let request = PinDialectRequest { dialect: pin.dialect.0 };
                print(&session.engine().await?.pin_dialect(&pin.name, &request).await?, out)?;
            }
            Self::Remove(named) => {
                session.engine().await?.remove_agent(&named.name).await?;
                if out.is_json() {
                    out.json(&serde_json::json!({"removed": named.name}))?;
                } else {
                    out.line(&format!("{} is removed", named.name))?;
                }
            }
            Self::SetCredential(set) => {
                let credential = match set.credential.read(from_environment)? {
                    Some(credential) => credential,
                    None if set.none => CredentialRequest::None,
                    None => return Err(Failure::usage("say where the credential is, or --none")),
                };
                print(&session.engine().await?.set_credential(&set.name, &credential).await?, out)?;
            }
        }
        Ok(0)
    }
}

fn print(agent: &AgentView, out: Out) -> Result<(), Failure> {
    if out.is_json() { out.json(agent) } else { out.lines(page(agent, &Clock::system(), out)) }
}

fn dialect_word(agent: &AgentView) -> String {
    let word = |dialect: &Dialect| dialect.to_string();
    match (&agent.pinned_dialect, &agent.dialect) {
        (Some(pinned), _) => format!("{} (pinned)", word(pinned)),
        (None, Some(observed)) => word(observed),
        (None, None) => "not known yet".to_owned(),
    }
}

fn link(agent: &AgentView) -> Cell {
    match agent.link {
        LinkView::Up => Cell::styled("● up", GREEN),
        LinkView::Down => Cell::styled("✗ down", RED),
        LinkView::Unknown => Cell::styled("? unknown", DIM),
    }
}

fn credential_word(agent: &AgentView) -> String {
    agent
        .credential
        .as_ref()
        .map_or_else(|| "none".to_owned(), |credential| credential.kind.as_str().to_owned())
}

async fn show(session: &Session, name: &AgentName) -> Result<(), Failure> {
    let engine = session.engine().await?;
    let agent = engine.agent(name).await?;
    let card = engine.report_card(name).await?;
    if session.out.is_json() {
        return session.out.json(&WithReport { agent: &agent, report_card: &card });
    }
    let mut lines = page(&agent, &Clock::system(), session.out);
    lines.extend(report(&card).map(|line| format!("{}{line}", session.out.paint(DIM, "callbacks   "))));
    session.out.lines(lines)
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct WithReport<'a> {
    #[serde(flatten)]
    agent: &'a AgentView,
    report_card: &'a ReportCardView,
}

/// What its callbacks are worth; nothing where none was to come.
fn report(card: &ReportCardView) -> impl Iterator<Item = String> {
    let late = match card.late_median_ms {
        Some(median) => format!("{} late (by {})", card.late, span::short(Duration::from_millis(median))),
        None => "0 late".to_owned(),
    };
    let ends = (card.expected > 0).then(|| {
        format!("of {} ends {} were told, {late}, {} missed", card.expected, card.arrived, card.missed)
    });
    let counts = [
        (card.confirmed, "confirmed"),
        (card.duplicate, "repeated"),
        (card.out_of_order, "out of order"),
        (card.unmatched, "not of their task"),
        (card.wrong_proof, "with a wrong proof"),
        (card.refused, "refused otherwise"),
        (card.echoed_secrets, "secrets echoed"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let came = (card.received > 0 || !counts.is_empty())
        .then(|| format!("{} came: {}", card.received, counts.join(", ")).trim_end_matches(": ").to_owned());
    [ends, came].into_iter().flatten()
}

fn table(agents: &[AgentView]) -> Table {
    let mut table = Table::new([
        ("NAME", Give::Keep),
        ("LINK", Give::Keep),
        ("SPEAKS", Give::Keep),
        ("OPEN", Give::Keep),
        ("CREDENTIAL", Give::Keep),
        ("URL", Give::Cut(16)),
    ]);
    for agent in agents {
        table.row([
            agent.name.to_string().into(),
            link(agent),
            dialect_word(agent).into(),
            agent.open_tasks.to_string().into(),
            credential_word(agent).into(),
            Cell::styled(text::plain(&agent.url), DIM),
        ]);
    }
    table
}

fn page(agent: &AgentView, clock: &Clock, out: Out) -> Vec<String> {
    let mut lines = vec![out.paint(BOLD, agent.name.as_str())];
    let mut fact = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{}{value}", out.paint(DIM, &format!("{label:12}"))));
        }
    };
    let plain = |text: &Option<String>| text.as_deref().map(text::plain);
    fact("url", Some(text::plain(&agent.url)));
    fact("card", plain(&agent.card_url));
    fact("calls go to", plain(&agent.interface_url));
    fact(
        "card names",
        plain(&agent.declared_url).map(|url| format!("{url} (not used without your consent)")),
    );
    let binding = plain(&agent.binding).map_or_else(String::new, |binding| format!(" by {binding}"));
    fact("speaks", Some(format!("{}{binding}", dialect_word(agent))));
    let can = |holds: bool| if holds { "yes" } else { "no" };
    let push = can(agent.capabilities.push_notifications);
    fact("card says", Some(format!("streams: {}, callbacks: {push}", can(agent.capabilities.streaming))));
    let changed = agent.credential.as_ref().and_then(|credential| credential.changed_at);
    let changed = changed.map_or_else(String::new, |at| format!(", set {}", clock.ago(at)));
    fact("credential", Some(format!("{}{changed}", credential_word(agent))));
    let reached = match agent.link {
        LinkView::Up => out.paint(GREEN, "● up"),
        LinkView::Down => out.paint(RED, "✗ down"),
        LinkView::Unknown => out.paint(DIM, "? unknown"),
    };
    fact("link", Some(reached));
    fact("open tasks", Some(agent.open_tasks.to_string()));
    for oddity in &agent.oddities {
        let times = if oddity.count == 1 { String::new() } else { format!(" ({} times)", oddity.count) };
        let detail = text::plain(&oddity.detail);
        let said = format!("{}: {detail}{times}, {}", text::plain(&oddity.kind), clock.ago(oddity.last_at));
        fact("odd", Some(out.paint(AMBER, &said)));
    }
    lines
}

fn print_test(name: &AgentName, test: &AgentTestView, out: Out) -> Result<(), Failure> {
    if out.is_json() {
        return out.json(test);
    }
    let reached = if test.reachable {
        out.paint(GREEN, "✓ can be reached")
    } else {
        out.paint(RED, "✗ cannot be reached")
    };
    let speaks = test.dialect.map_or_else(String::new, |dialect| format!(", speaks {dialect}"));
    let streams = match test.streaming {
        Some(true) => ", streams",
        Some(false) => ", does not stream",
        None => "",
    };
    out.line(&format!("{name} {reached}{speaks}{streams}"))?;
    out.lines(test.notes.iter().map(|note| format!("  {}", text::plain(note))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        credential: CredentialArgs,
    }

    fn read(args: &[&str]) -> Result<Option<CredentialRequest>, Failure> {
        let line = Line::try_parse_from(["x"].iter().chain(args)).unwrap();
        line.credential.read(|name| match name {
            "TOKEN" => Some("canary-1".into()),
            "PAIR" => Some("user:can:ary".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn credentials_come_from_the_environment() {
        let json = |args: &[&str]| serde_json::to_value(read(args).unwrap()).unwrap();
        assert_eq!(json(&["--token-env", "TOKEN"])["token"], "canary-1");
        let basic = json(&["--basic-env", "PAIR"]);
        assert_eq!((&basic["user"], &basic["password"]), (&"user".into(), &"can:ary".into()));
        let headers = json(&["--header-env", "X-Key=TOKEN", "--header-env", "X-B=PAIR"]);
        assert_eq!(headers["headers"]["X-Key"], "canary-1");
        assert_eq!(json(&["--token-command", "print-token"])["command"], "print-token");
        assert!(read(&[]).unwrap().is_none());
    }

    #[test]
    fn a_variable_that_is_not_there_is_named_and_no_value_is_ever_quoted() {
        for args in
            [&["--token-env", "MISSING"][..], &["--basic-env", "EMPTY"], &["--header-env", "X=MISSING"]]
        {
            let failure = read(args).unwrap_err();
            assert_eq!(failure.exit(), 2);
            assert!(failure.line().contains("is not set"), "{}", failure.line());
        }
        let failure = read(&["--basic-env", "TOKEN"]).unwrap_err();
        assert!(!failure.line().contains("canary"), "{}", failure.line());
        let failure = read(&["--header-env", "canary-given-by-mistake"]).unwrap_err();
        assert!(!failure.line().contains("canary"), "{}", failure.line());
    }

    #[test]
    fn two_credentials_at_once_are_refused() {
        assert!(Line::try_parse_from(["x", "--token-stdin", "--token-env", "A"]).is_err());
        assert!(Line::try_parse_from(["x", "--header-env", "A=B", "--basic-env", "A"]).is_err());
    }

    #[test]
    fn a_variable_name_that_is_none_is_no_panic() {
        for name in ["", "A=B", "A\0B"] {
            assert_eq!(from_environment(name), None);
        }
    }

    #[test]
    fn a_dialect_is_a_version_or_observed() {
        assert_eq!(dialect("0.3").unwrap().0.unwrap().to_string(), "0.3");
        assert!(dialect("observed").unwrap().0.is_none());
        assert!(dialect("2").is_err());
    }
}
