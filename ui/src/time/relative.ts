/** Times as people say them. Pure: the present is an argument. All numbers are milliseconds. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long that is, in one unit: `4 s`, `12 min`, `3 h`, `5 d`. A clock that went backwards is no time. */
export function span(ms: number): string {
  const length = Math.max(0, ms);
  if (length < MINUTE) return `${String(Math.floor(length / SECOND))} s`;
  if (length < HOUR) return `${String(Math.floor(length / MINUTE))} min`;
  if (length < DAY) return `${String(Math.floor(length / HOUR))} h`;
  return `${String(Math.floor(length / DAY))} d`;
}

/** `40 s ago`; under two seconds `just now`. */
export function ago(at: string, now: number): string {
  const ms = now - Date.parse(at);
  return ms < 2 * SECOND ? "just now" : `${span(ms)} ago`;
}

const clockFormat = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const secondsFormat = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const dayFormat = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const exactFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

/** The exact time, for a tooltip. */
export function exact(at: string): string {
  return exactFormat.format(new Date(at));
}

/** `09:36` today, `3 Nov 09:36` on another day. */
export function clock(at: string, now: number): string {
  const date = new Date(at);
  const time = clockFormat.format(date);
  return sameDay(date, new Date(now)) ? time : `${dayFormat.format(date)} ${time}`;
}

/** `09:36:12`, for a timeline. */
export function seconds(at: string): string {
  return secondsFormat.format(new Date(at));
}

export function sameDay(one: Date, other: Date): boolean {
  return (
    one.getFullYear() === other.getFullYear() &&
    one.getMonth() === other.getMonth() &&
    one.getDate() === other.getDate()
  );
}
