//! What A2A says and what Taskbell decides about it.
//!
//! Everything here is pure: no sockets, no files, no clock, no random numbers. Time and
//! jitter are arguments, so every rule is tested as a sentence.
//!
//! | noun | room |
//! |---|---|
//! | task, status, message, part, artifact | [`task`] |
//! | state words of both dialects | [`state`] |
//! | agent card, interfaces, addresses | [`agent`] |
//! | the two dialects on the wire | [`dialect`] |
//! | JSON with limits, JSON-RPC envelopes | [`json`], [`jsonrpc`] |
//! | event streams | [`sse`], [`stream`] |
//! | what a peer's error means, and why TLS failed | [`fault`], [`tls`] |
//! | what arrives and what it changes | [`merge`], [`oddity`] |
//! | when to read, attach and wait | [`follow`] |
//! | when to try again | [`backoff`], [`retry_after`] |
//! | credentials bound to an origin | [`credential`] |
//! | what is worth a notice, and when it is shown | [`notice`] |
//! | peers' text as a clean line | [`text`] |
//! | texts for people elsewhere, without ids and credentials | [`mask`] |
//! | peers' markdown as a tree without HTML | [`markdown`] |
//! | what is passed on to clients of our own | [`relay`] |
//! | where a client wants to be called back | [`push_config`] |
//! | what a callback claimed, held against the task | [`verdict`] |
//! | which addresses may be called back | [`target`] |
//! | what may be registered, and what a callback that leaves says | [`push_rules`], [`push_body`] |
//! | when a callback is tried, and how many at once | [`delivery`], [`lanes`] |
//! | what agents answer to our own registrations | [`push_answer`] |
//! | the secrets of our registrations | [`callback_secret`] |
//! | when a registration is made, checked and taken back | [`registration_plan`] |
//! | where strangers reach the inbox, and a tunnel's words about it | [`public_url`], [`tunnel`] |
//! | what arrives at the inbox, and whether it proves itself | [`callback`] |
//! | whether an end was missed, and why | [`missed`] |
//! | a task as files and a document that leave | [`export`] |
//! | what people type to find tasks, and where it stands in a text | [`search`] |

pub mod agent;
pub mod backoff;
pub mod callback;
pub mod callback_secret;
pub mod credential;
pub mod delivery;
pub mod dialect;
pub mod export;
pub mod extensions;
pub mod fault;
pub mod follow;
pub mod ids;
pub mod json;
pub mod jsonrpc;
pub mod lanes;
pub mod markdown;
pub mod mask;
pub mod merge;
pub mod missed;
pub mod notice;
pub mod oddity;
pub mod public_url;
pub mod push_answer;
pub mod push_body;
pub mod push_config;
pub mod push_rules;
pub mod registration_plan;
pub mod relay;
pub mod retry_after;
pub mod search;
pub mod sse;
pub mod state;
pub mod stream;
pub mod target;
pub mod task;
pub mod text;
pub mod tls;
pub mod tunnel;
pub mod verdict;
