//! What does IO: the store, the agents, the API. It does not know the window.
//!
//! Workers write rows and ring doorbells that carry no data; they do not call each other.
//!
//! | noun | room |
//! |---|---|
//! | an agent, called | [`agent_client`] |
//! | the data folder, its lock, `runtime.json` | [`data_dir`] |
//! | secrets | [`keychain`] |
//! | the database | [`store`] |
//! | the control API and its JSON | [`api`] |
//! | calling a running engine | [`api_client`] |

pub mod agent_client;
pub mod api;
pub mod api_client;
pub mod data_dir;
pub mod keychain;
pub mod store;
