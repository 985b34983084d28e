//! Everything tried once, with a line for each part.

use std::time::{Duration, Instant};

use crate::api::proof::{random_text, same};
use crate::api::views::SelfTestItem;
use crate::engine::Engine;
use crate::inbox::Standing;
use crate::keychain::KeychainHealth;
use crate::reachability::ProbeState;

/// Of our own listener.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Tries the parts one after the other. Nothing that it made stays, but the notice it showed.
pub(crate) async fn run(engine: &Engine, own_http: &reqwest::Client) -> Vec<SelfTestItem> {
    let mut items = Vec::new();
    let mut note = |component: &str, began: Instant, found: Result<String, String>| {
        let (ok, detail) = match found {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        items.push(SelfTestItem { component: component.to_owned(), ok, detail, took_ms });
    };

    let began = Instant::now();
    note(
        "keyring",
        began,
        match engine.probe_keyring().await {
            KeychainHealth::Kept => Ok("a value was written, read back and deleted".to_owned()),
            KeychainHealth::SessionOnly => {
                Ok("a value was written, read back and deleted, in memory only as chosen".to_owned())
            }
            KeychainHealth::Unknown => Err("it did not answer".to_owned()),
            KeychainHealth::Failing(error) => Err(error.to_string()),
        },
    );

    let began = Instant::now();
    note(
        "store",
        began,
        match engine.store().write(try_write).await {
            Ok(()) => Ok("a row was written and is on the disk".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    );

    let began = Instant::now();
    if let Some(found) = gateway(engine, own_http).await {
        note("gateway", began, found);
    }

    if !matches!(engine.inbox().standing(), Standing::Nowhere) {
        let began = Instant::now();
        match engine.claims().self_test().await {
            Err(error) => note("inbox", began, Err(error.message)),
            Ok(tests) => {
                for test in tests {
                    let found = match test.ok {
                        true => Ok("a callback of our own was stored and answered".to_owned()),
                        false => {
                            Err(test.error.unwrap_or_else(|| "it was not taken as it should".to_owned()))
                        }
                    };
                    note(&format!("inbox {}", test.dialect), began, found);
                }
            }
        }
    }

    if engine.parts().reach().state().public.is_some() {
        let began = Instant::now();
        note(
            "public address",
            began,
            match engine.test_reachability().await {
                Err(error) => Err(error.message),
                Ok(_) => match engine.parts().reach().state().probe {
                    ProbeState::Reached { .. } => Ok("a callback of our own arrived through it".to_owned()),
                    ProbeState::Failing { detail, .. } => Err(detail),
                    ProbeState::Never => Err("it became another one meanwhile".to_owned()),
                },
            },
        );
    }

    let began = Instant::now();
    note(
        "notices",
        began,
        match engine.test_notice().await {
            Err(error) => Err(error.message),
            Ok(notice) => {
                let outcome = notice.outcome.as_deref().unwrap_or("pending");
                let why = notice.detail.map(|detail| format!(": {detail}")).unwrap_or_default();
                match outcome {
                    "shown" => Ok("one was shown".to_owned()),
                    "no-desktop" => Ok("one was recorded; no window is attached to show it".to_owned()),
                    other => Err(format!("the test notice is {other}{why}")),
                }
            }
        },
    );
    items
}

/// A row that leaves nothing behind.
fn try_write(context: &mut crate::store::WriteContext<'_>) -> Result<(), crate::store::StoreError> {
    let sql = "INSERT INTO meta (key, value) VALUES ('self_test', ?1)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    context.tx.prepare_cached(sql)?.execute([context.now_ms.to_string()])?;
    context.tx.prepare_cached("DELETE FROM meta WHERE key = 'self_test'")?.execute([])?;
    Ok(())
}

/// Asks our own listener for its proof, as the command line does. None: nothing listens here.
async fn gateway(engine: &Engine, own_http: &reqwest::Client) -> Option<Result<String, String>> {
    let access = engine.access()?;
    if let Some(taken) = access.port_taken() {
        return Some(Err(taken.told));
    }
    let address = access.address()?;
    let Ok(challenge) = random_text() else {
        return Some(Err("the system gives no random numbers".to_owned()));
    };
    let asked = own_http.get(format!("{address}/api/v1/hello?c={challenge}")).timeout(ANSWERS_WITHIN).send();
    let failed = |error: reqwest::Error| format!("{address} does not answer: {}", error.without_url());
    let answer = match asked.await {
        Ok(answer) => answer.json::<crate::api::views::HelloView>().await.map_err(failed),
        Err(error) => Err(failed(error)),
    };
    Some(answer.and_then(|hello| match same(&access.prove(&challenge), &hello.hello) {
        true => Ok(format!("answers at {address}, and is this engine")),
        false => Err(format!("another program answers at {address}")),
    }))
}
