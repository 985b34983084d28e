//! The finished program against real agents, each on an SDK that nobody here wrote.
//!
//! Every story runs once for each SDK. What an SDK does differently is said
//! where the story has to know it.

mod completion;
mod cuts;
mod dialects;
mod ends;
mod forgetting;
mod stage;
mod turns;

/// Runs each scenario against each agent, as a test of its own.
macro_rules! with_every_peer {
    ($($scenario:ident),* $(,)?) => {
        with_every_peer!(@ py03 Py03 $($scenario)*);
        with_every_peer!(@ py1 Py1 $($scenario)*);
        with_every_peer!(@ js03 Js03 $($scenario)*);
        with_every_peer!(@ js1 Js1 $($scenario)*);
        with_every_peer!(@long rs Rs $($scenario)*);
    };
    // The reference server takes minutes to build.
    (@long $module:ident $kind:ident $($scenario:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    if taskbell_tests::long_run(stringify!($scenario)) {
                        super::$scenario(taskbell_tests::PeerKind::$kind).await;
                    }
                }
            )*
        }
    };
    (@ $module:ident $kind:ident $($scenario:ident)*) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $scenario() {
                    super::$scenario(taskbell_tests::PeerKind::$kind).await;
                }
            )*
        }
    };
}
pub(crate) use with_every_peer;
