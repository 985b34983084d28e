//! Paths of the API, encoded so that any task id arrives whole.

use taskbell_core::ids::{AgentName, ClientName, TaskRef};
use taskbell_core::search::Screen;
use url::Url;

use super::ClientError;

/// A path under `/api/v1/`, with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
}

impl Endpoint {
    /// A fixed path such as `tasks/resolve`.
    pub fn new(path: &str) -> Self {
        Self { segments: segments(path).collect(), query: Vec::new() }
    }

    /// An agent, or `below` it: `credential`, `send`, … or nothing.
    pub fn agent(name: &AgentName, below: &str) -> Self {
        let mut all = vec!["agents".to_owned(), name.to_string()];
        all.extend(segments(below));
        Self { segments: all, query: Vec::new() }
    }

    /// A task, or `below` it: `reply`, `cancel`, … or nothing.
    pub fn task(task: &TaskRef, below: &str) -> Self {
        let mut all = vec!["tasks".to_owned(), task.agent.to_string(), task.task.to_string()];
        all.extend(segments(below));
        Self { segments: all, query: Vec::new() }
    }

    /// A setting by its key.
    pub fn setting(key: &str) -> Self {
        Self { segments: vec!["settings".to_owned(), key.to_owned()], query: Vec::new() }
    }

    /// A row of the inbox, or `below` it: `replay` or nothing.
    pub fn inbox(id: &str, below: &str) -> Self {
        let mut all = vec!["inbox".to_owned(), id.to_owned()];
        all.extend(segments(below));
        Self { segments: all, query: Vec::new() }
    }

    /// A client of the gateway.
    pub fn client(name: &ClientName) -> Self {
        Self { segments: vec!["clients".to_owned(), name.to_string()], query: Vec::new() }
    }

    /// A saved view of a list.
    pub fn view(screen: Screen, name: &str) -> Self {
        Self {
            segments: vec!["views".to_owned(), screen.word().to_owned(), name.to_owned()],
            query: Vec::new(),
        }
    }

    /// Adds a member to the query.
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    /// Adds a member where there is a value.
    pub fn with_some(self, key: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    pub(super) fn url(&self, base: &Url) -> Result<Url, ClientError> {
        // URLs resolve these two whatever their encoding, and would name something else.
        if let Some(dots) = self.segments.iter().find(|segment| *segment == "." || *segment == "..") {
            return Err(ClientError::new("not_addressable", format!("{dots:?} cannot stand in an address")));
        }
        let mut url = base.clone();
        url.path_segments_mut()
            .map_err(|()| ClientError::new("engine_unreachable", "the engine's address has no path"))?
            .clear()
            .extend(["api", "v1"])
            .extend(&self.segments);
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        Ok(url)
    }
}

impl From<&str> for Endpoint {
    fn from(path: &str) -> Self {
        Self::new(path)
    }
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(endpoint: &Endpoint) -> String {
        endpoint.url(&Url::parse("http://127.0.0.1:7420").unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_task_id_of_any_characters_is_one_segment() {
        let task: TaskRef = "demo/a/b?c#d %2F".parse().unwrap();
        assert_eq!(
            written(&Endpoint::task(&task, "reply")),
            "http://127.0.0.1:7420/api/v1/tasks/demo/a%2Fb%3Fc%23d%20%252F/reply"
        );
    }

    #[test]
    fn queries_are_encoded_and_may_repeat() {
        let endpoint = Endpoint::from("tasks")
            .with("state", "a&b")
            .with("state", "c")
            .with_some("cursor", None::<String>);
        assert_eq!(written(&endpoint), "http://127.0.0.1:7420/api/v1/tasks?state=a%26b&state=c");
    }

    #[test]
    fn an_id_that_a_url_would_resolve_away_is_refused() {
        let task: TaskRef = "demo/..".parse().unwrap();
        let refused = Endpoint::task(&task, "cancel").url(&Url::parse("http://127.0.0.1:1").unwrap());
        assert_eq!(refused.unwrap_err().code, "not_addressable");
    }
}
