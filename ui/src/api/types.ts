/** The API's types under the names that the page uses. All of them come from the OpenAPI document (`npm run types`). */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type TaskSummary = Schemas["TaskSummary"];
export type TaskDetail = Schemas["TaskDetail"];
export type TaskState = Schemas["ShownState"];
export type FollowingMode = Schemas["FollowingMode"];
export type Artifact = Schemas["ArtifactView"];
export type Agent = Schemas["AgentView"];
export type AgentTest = Schemas["AgentTestView"];
export type NewAgent = Schemas["NewAgentRequest"];
export type Credential = Schemas["CredentialRequest"];
export type Notice = Schemas["NoticeView"];
export type Health = Schemas["HealthView"];
export type HealthItem = Schemas["HealthItem"];
export type ReconcileItem = Schemas["ReconcileItem"];
export type Callback = Schemas["CallbackView"];
export type CallbackDetail = Schemas["CallbackDetail"];
export type Verdict = Schemas["CallbackVerdict"];
export type Difference = Schemas["DifferenceView"];
export type Replay = Schemas["ReplayView"];
export type InboxTest = Schemas["InboxTestView"];
export type ReportCard = Schemas["ReportCardView"];
export type Client = Schemas["ClientView"];
export type NewClient = Schemas["NewClientView"];
export type Traffic = Schemas["TrafficView"];
export type Target = Schemas["TargetView"];
export type Delivery = Schemas["DeliveryView"];
export type Attempt = Schemas["AttemptView"];
export type SendOutcome = Schemas["SendOutcome"];
export type Change = Schemas["ChangeView"] & Readonly<Record<string, unknown>>;

export type Setting = Schemas["SettingView"];
export interface Quiet {
  quiet: boolean;
  until: string | null;
  urgent: string[];
}
export type Export = Schemas["ExportView"];
export type ExportedFile = Schemas["ExportedFileView"];
export type ExportFormat = Schemas["ExportFormat"];
export type HealthChange = Schemas["HealthChange"];
export type HealthAction = Schemas["HealthAction"];
export type SelfTestItem = Schemas["SelfTestItem"];
export type SettingsFile = Schemas["SettingsFile"];
export type SettingChange = Schemas["SettingChange"];
export type SearchHit = NonNullable<TaskSummary["hit"]>;
export type SavedView = Schemas["SavedView"];

/** Agent text as the engine parsed it: the page builds nodes from this, never markup. */
export type Rendered = Schemas["RenderedView"];
export type Block = Schemas["BlockView"];
export type Inline = Schemas["InlineView"];
export type Caution = Schemas["CautionView"];

export interface Page<T> {
  items: T[];
  next: string | null;
}
