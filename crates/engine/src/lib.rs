//! What does IO: the store, the agents, the API. It does not know the window.
//!
//! Workers write rows and ring doorbells that carry no data; they do not call each other.
//!
//! | noun | room |
//! |---|---|
//! | a program's engine: folder, listener, workers | [`running`] |
//! | the built-in agent | [`demo`] |
//! | the workers put together, and what can be asked of them | [`engine`] |
//! | an agent, called | [`agent_client`] |
//! | the agents at hand, and whether they can be reached | [`agents`], [`link`] |
//! | what a user does with tasks | [`tasks`] |
//! | a task as files that leave, and several files as one | [`export`], [`archive`] |
//! | sending callbacks, and calling strangers' addresses | [`dispatcher`], [`outbound`], `tls` |
//! | keeping tasks attached | [`follower`] |
//! | what came to the inbox, looked at, held against its task again, tried | [`claims`] |
//! | reading tasks that callbacks made due; ends that were missed | [`due`], [`missed`] |
//! | reading tasks again, by hand, by time and after sleep | [`reconciler`], [`reads`], [`wake`] |
//! | agents as endpoints for local programs | [`gateway`] |
//! | telling the user on the desktop | [`notifier`] |
//! | the data folder, its lock, `runtime.json` | [`data_dir`] |
//! | the database | [`store`] |
//! | secrets at rest | [`keychain`] |
//! | where agents reach the inbox | [`reachability`] |
//! | our registrations at the agents | [`registrations`] |
//! | the words that tasks are found by | [`search_index`] |
//! | settings | [`settings`] |
//! | how everything is, and what is done now and then | [`health`], [`upkeep`] |
//! | the log in the data folder, and what is told of all that to others | [`logs`], [`diagnostics`] |
//! | the control API and its JSON | [`api`], [`present`], [`rendered`] |
//! | calling a running engine | [`api_client`] |
//! | the loopback listener, and where clients find it | [`listen`], `entrance` |
//! | where agents call back | [`inbox`] |
//! | the API as a window reaches it, here or in another process | [`api_door`] |

pub mod agent_client;
pub mod agents;
pub mod api;
pub mod api_client;
pub mod api_door;
pub mod archive;
pub mod claims;
pub mod data_dir;
pub mod demo;
pub mod diagnostics;
pub mod dispatcher;
pub mod due;
pub mod engine;
mod entrance;
pub mod error;
pub mod export;
pub mod follower;
pub mod gateway;
pub mod guarded;
pub mod health;
pub mod inbox;
pub mod keychain;
pub mod link;
pub mod listen;
pub mod logs;
pub mod missed;
pub mod notifier;
pub mod outbound;
pub mod parts;
pub mod present;
mod rate;
pub mod reachability;
pub mod reads;
pub mod reconciler;
pub mod registrations;
mod rehearsal;
pub mod rendered;
pub mod running;
pub mod search_index;
pub mod settings;
mod shell;
pub mod store;
pub mod tasks;
mod tls;
pub mod upkeep;
pub mod wake;
