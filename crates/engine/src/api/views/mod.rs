//! The JSON of the control API: one set of types for the server, its client and the generated TypeScript.
//!
//! Members are camelCase, times are RFC 3339 in UTC with milliseconds, state words are the lowercase ones
//! of A2A 0.3 and our own three. A member that may be absent is written as null. What agents send travels as
//! A2A 1.0 JSON and is never interpreted here. No view holds a secret; the one type that carries secrets
//! inwards is [`CredentialRequest`].

mod agent;
mod change;
mod client;
mod delivery;
mod export;
mod health;
mod inbox;
mod notice;
mod page;
mod registration;
mod rich;
mod send;
mod session;
mod setting;
mod task;
mod time;
mod view;

pub use agent::{
    AgentTestView, AgentView, CapabilitiesView, CredentialRequest, CredentialView, ImportOutcome, LinkView,
    NewAgentRequest, OddityView, PinDialectRequest, ReportCardView, SecretText,
};
pub use change::ChangeView;
pub use client::{ClientView, NewClientRequest, NewClientView, TrafficView};
pub use delivery::{AllowTargetRequest, AttemptView, DeliveryView, TargetView};
pub use export::{ExportFormat, ExportView, ExportedFileView};
pub use health::{
    DiagnosticsPart, HealthAction, HealthChange, HealthItem, HealthState, HealthView, SelfTestItem,
};
pub use inbox::{
    CallbackDetail, CallbackVerdict, CallbackView, ConfirmationView, DifferenceView, InboxTestView,
    ProofsView, ReplayView,
};
pub use notice::{FocusRequest, LinkRequest, NoticeView, QuietRequest, QuietView, SnoozeRequest};
pub use page::{ErrorBody, ErrorView, Page};
pub use registration::{ReachView, ReasonView, RegisterRequest, RegistrationView, RegistrationsView};
pub use rich::{
    AlignmentView, BlockView, CautionView, InertReasonView, InlineView, RenderedArtifact, RenderedMessage,
    RenderedView, RoleView,
};
pub(crate) use rich::{blocks as rich_blocks, octets};
pub use send::{
    FilePart, ReplyRequest, SendOutcome, SendRequestView, SentTask, UnknownOutcome, WatchRequest,
};
pub use session::{HelloView, PageLoginView, SessionRequest};
pub use setting::{SettingChange, SettingKind, SettingRequest, SettingView, SettingsFile};
pub use task::{
    ArchiveRequest, ArtifactView, ConfirmedView, FollowRequest, FollowWish, FollowingMode, FollowingView,
    HitPart, MuteRequest, NoteRequest, PinRequest, ReconcileItem, ReconcileRequest, ReconcileVerdict,
    ResolvedView, SearchHit, ShownState, TaskDetail, TaskFilter, TaskSummary,
};
pub use time::UtcTime;
pub use view::{SaveViewRequest, SavedView};

#[cfg(test)]
mod tests;
