//! Every row of the corpus of callback targets: judged by text, then by each answer to a lookup, then by who
//! answered the connection. That the client asks at these stages is proved where it connects, in the engine.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use taskbell_core::target::answers::{is_vetted, judge_answers, judge_literal};
use taskbell_core::target::{AnswerFault, CallbackTarget, Surroundings, TargetHost};

#[derive(Deserialize)]
struct Row {
    id: String,
    url: String,
    expect: String,
    stage: Option<String>,
    reason: Option<String>,
    canonical: Option<String>,
    #[serde(default)]
    dns: Vec<Vec<IpAddr>>,
    connected_peer: Option<IpAddr>,
    #[serde(default)]
    local_prefixes: Vec<String>,
    response_status: Option<u16>,
}

/// Stage and reason of a refusal.
type Refused = (&'static str, String);

impl Row {
    fn surroundings(&self) -> Surroundings {
        let prefix = |text: &String| {
            let (base, length) = text.split_once('/').expect("a prefix holds a slash");
            (base.parse().expect("an address"), length.parse().expect("a length"))
        };
        Surroundings { own_addresses: Vec::new(), on_link: self.local_prefixes.iter().map(prefix).collect() }
    }

    fn judge(&self) -> Result<String, Refused> {
        let at = |stage: &'static str| move |fault: AnswerFault| (stage, fault.code().to_owned());
        let target =
            CallbackTarget::parse(&self.url).map_err(|refusal| ("register", refusal.code().to_owned()))?;
        let mut rounds = self.dns.iter();
        if let Some(answers) = rounds.next().filter(|answers| !answers.is_empty()) {
            judge_answers(answers, &self.surroundings()).map_err(at("register"))?;
        }
        let mut vetted = match target.host() {
            TargetHost::Address(address) => {
                judge_literal(*address, &self.surroundings()).map_err(at("deliver"))?
            }
            TargetHost::Name(_) => Vec::new(),
        };
        for answers in rounds {
            vetted = judge_answers(answers, &self.surroundings()).map_err(at("deliver"))?;
        }
        if self.connected_peer.is_some_and(|peer| !is_vetted(peer, &vetted)) {
            return Err(("deliver", "peer_mismatch".to_owned()));
        }
        if self.response_status.is_some_and(|status| (300..400).contains(&status)) {
            return Err(("deliver", "redirect_not_followed".to_owned()));
        }
        Ok(target.as_str().to_owned())
    }
}

#[test]
fn every_row_is_decided_as_expected_at_its_stage() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/webhook_targets.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Row> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 170, "none is left out");
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let decided = row.judge();
            let right = match &decided {
                Ok(canonical) => row.expect == "allow" && row.canonical.as_ref() == Some(canonical),
                Err((stage, reason)) => {
                    row.expect == "refuse"
                        && row.stage.as_deref() == Some(stage)
                        && row.reason.as_ref() == Some(reason)
                }
            };
            (!right).then(|| format!("{} {:?}: {decided:?}", row.id, row.url))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
