/** Answers that were begun, by task: another task may be looked at in between. Gone with the page. */
export const drafts = new Map<string, string>();
