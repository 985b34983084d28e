/** For how long a question may be put off. Pure: the present is an argument. */

export interface SnoozeChoice {
  label: string;
  until: Date;
}

const MINUTE = 60_000;

/** Some lengths from now, then times of the day as the user's clock has them. */
export function snoozeChoices(now: Date): SnoozeChoice[] {
  const later = (minutes: number): Date => new Date(now.getTime() + minutes * MINUTE);
  const day = (days: number, hour: number): Date =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() + days, hour);
  const monday = (8 - now.getDay()) % 7 || 7;
  return [
    { label: "15 minutes", until: later(15) },
    { label: "1 hour", until: later(60) },
    { label: "3 hours", until: later(180) },
    // Too near, it would be one of the above.
    ...(now.getHours() < 15 ? [{ label: "This evening", until: day(0, 18) }] : []),
    { label: "Tomorrow morning", until: day(1, 9) },
    ...(monday > 1 ? [{ label: "Monday morning", until: day(monday, 9) }] : []),
  ];
}
