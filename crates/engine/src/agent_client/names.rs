//! Host names of agents, looked up by the system, so that its VPN and split DNS hold.
//!
//! A thousand streams that come back at once ask once: the system's resolver blocks a thread for
//! each question. Nothing is kept for longer than a moment; judging addresses is not done here,
//! because an agent is wherever the user says it is.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long an answer, or a failure, serves those who ask for the same name. Shorter than any pause
/// between two attempts of one follower.
const SHARED_FOR: Duration = Duration::from_millis(900);

/// Questions at the system's resolver at one time.
const AT_ONCE: usize = 8;

const LIMIT: Duration = Duration::from_secs(5);

type Answer = Result<Vec<SocketAddr>, io::ErrorKind>;
type SharedAnswer = Shared<BoxFuture<'static, Answer>>;
type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

pub(super) struct Names {
    lookup: Lookup,
    at_once: Arc<Semaphore>,
    asked: Mutex<HashMap<String, (Instant, SharedAnswer)>>,
}

impl Names {
    pub fn system() -> Self {
        Self::with(|name| async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) }.boxed())
    }

    fn with(lookup: Lookup) -> Self {
        Self { lookup, at_once: Arc::new(Semaphore::new(AT_ONCE)), asked: Mutex::default() }
    }

    fn ask(&self, name: &str) -> SharedAnswer {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, (at, _)| at.elapsed() < SHARED_FOR);
        if let Some((_, answer)) = asked.get(name) {
            return answer.clone();
        }
        let lookup = (self.lookup)(name.to_owned());
        let at_once = self.at_once.clone();
        let answer = async move {
            let limited = tokio::time::timeout(LIMIT, async {
                let _turn = at_once.acquire().await;
                lookup.await
            });
            match limited.await {
                Ok(Ok(addresses)) => Ok(addresses),
                Ok(Err(error)) => Err(error.kind()),
                Err(_) => Err(io::ErrorKind::TimedOut),
            }
        };
        let answer = answer.boxed().shared();
        asked.insert(name.to_owned(), (Instant::now(), answer.clone()));
        answer
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.ask(name.as_str());
        Box::pin(async move {
            let addresses = answer.await.map_err(io::Error::from)?;
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_share_one_question_and_the_next_is_asked_anew() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let names = Names::with(|_| {
            async {
                ASKED.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(vec![SocketAddr::from(([127, 0, 0, 1], 0))])
            }
            .boxed()
        });
        let answers = futures::future::join_all((0..1000).map(|_| names.ask("agent.example"))).await;
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|found| found.len() == 1)));
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        tokio::time::advance(SHARED_FOR).await;
        names.ask("agent.example").await.unwrap();
        assert_eq!(ASKED.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_never_answers_is_given_up() {
        let names = Names::with(|_| std::future::pending().boxed());
        assert_eq!(names.ask("agent.example").await, Err(io::ErrorKind::TimedOut));
    }
}
