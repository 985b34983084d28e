//! A name server that fails, says nothing, or says something else each time.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use taskbell_tests::wait_until;

use crate::network::Trap;
use crate::stage::{PATIENCE, Stage, failed_by, is};
use crate::world::{Network, RECEIVER, state_of};

const HOOKS: &str = "hooks.example.com";

#[derive(Clone, Copy)]
enum Says {
    Nothing,
    /// SERVFAIL.
    Failure,
    Address(Ipv4Addr),
}

/// Answers every question for addresses in the same way.
struct NameServer(Arc<Mutex<Says>>);

impl NameServer {
    /// In the network of this thread.
    fn start(says: Says) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 53)).expect("a port of one's own network");
        let says = Arc::new(Mutex::new(says));
        let mode = Arc::clone(&says);
        // Ends with the process: a thread that waits for a question costs nothing.
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, asker)) = socket.recv_from(&mut question) {
                let says = *mode.lock().expect("no panic");
                if let Some(answer) = question.get(..length).and_then(|question| answer(question, says)) {
                    socket.send_to(&answer, asker).expect("sent on loopback");
                }
            }
        });
        Self(says)
    }

    fn says(&self, says: Says) {
        *self.0.lock().expect("no panic") = says;
    }
}

/// RFC 1035, section 4: the header, the question as it was asked, one address for a question of type A.
fn answer(question: &[u8], says: Says) -> Option<Vec<u8>> {
    let (failure, address) = match says {
        Says::Nothing => return None,
        Says::Failure => (2, None),
        Says::Address(address) => (0, Some(address)),
    };
    let mut end = 12;
    while *question.get(end)? != 0 {
        end += usize::from(*question.get(end)?) + 1;
    }
    let kind = question.get(end + 1..end + 3)?;
    let address = address.filter(|_| kind == [0, 1]);
    let mut answer = question.get(..2)?.to_vec();
    answer.extend([0x81, 0x80 | failure, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    answer.extend(question.get(12..end + 5)?);
    if let Some(address) = address {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

/// Sends it again, as a person would; while it is on its way that is refused.
async fn press(stage: &Stage, id: &str) {
    let press = async || (stage.taskbell.cli(&["delivery", "retry", id]).await.code == Some(0)).then_some(());
    wait_until(PATIENCE, "it is sent again", press).await;
}

#[tokio::test]
async fn names_that_fail_or_flip_have_their_own_records_and_a_person_sends_again_what_waits() {
    let Some(network) = Network::enter("a failing name server") else { return };
    // Longer than an attempt waits for a name, so that silence is silence.
    std::fs::write(network.path("resolv.conf"), "nameserver 127.0.0.1\noptions attempts:1 timeout:20\n")
        .expect("written");
    let receiver_at = RECEIVER.parse().expect("an address");
    let server = NameServer::start(Says::Address(receiver_at));
    let trap = Trap::set(443);
    let mut receiver = network.receiver(&[network.listener(443, &[HOOKS], |_| {})]).await;
    let stage = Stage::start(network.setup()).await;
    let task = stage.task("steps=300 interval=0.1", &[format!("https://{HOOKS}/ok")]).await;
    // After one more try it is left to its user.
    stage.taskbell.cli(&["settings", "set", "delivery.retry", "once"]).await.exits(0);
    server.says(Says::Failure);
    stage.cancel(&task).await;
    let failed = stage.delivery(&task, "p-0", "the server fails", is("exhausted")).await;
    assert_eq!(failed["lastError"], json!("dns_failed"));
    let id = failed["id"].to_string();
    for (says, code) in [
        (Says::Nothing, "dns_timeout"),
        (Says::Address(Ipv4Addr::LOCALHOST), "dns_forbidden_answer"),
        (Says::Failure, "dns_failed"),
    ] {
        server.says(says);
        press(&stage, &id).await;
        let record = stage.delivery(&task, "p-0", code, failed_by(code)).await;
        let last = record["attempts"].as_array().and_then(|all| all.last()).expect("an attempt");
        assert_eq!((&last["status"], &last["counted"]), (&Value::Null, &json!(true)), "{code}: {record}");
        trap.saw_nothing();
    }
    // Five failures in a row: nobody calls the receiver for minutes but who is asked to.
    assert!(receiver.seen().await.iter().all(|seen| state_of(seen) != "TASK_STATE_CANCELED"));
    server.says(Says::Address(receiver_at));
    press(&stage, &id).await;
    let delivered = stage.delivery(&task, "p-0", "it is delivered", is("delivered")).await;
    assert_eq!(delivered["webhookId"], failed["webhookId"], "sent again under the same id");
    trap.saw_nothing();
    let ends = receiver.seen().await.iter().filter(|seen| state_of(seen) == "TASK_STATE_CANCELED").count();
    assert_eq!(ends, 1);
    // What was received is not sent again.
    stage.taskbell.cli(&["delivery", "retry", &id]).await.exits(1);
}
