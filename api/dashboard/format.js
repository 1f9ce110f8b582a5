// How figures are written: one way for each unit, and a dash for what is not known.

const NONE = "–";

export function count(number) {
  return number == null ? NONE : Math.round(number).toLocaleString("en");
}

export function rate(perSecond) {
  if (perSecond == null) return NONE;
  return perSecond.toLocaleString("en", {
    maximumFractionDigits: perSecond < 10 ? 2 : perSecond < 100 ? 1 : 0,
  });
}

export function seconds(duration_s) {
  if (duration_s == null) return NONE;
  if (duration_s < 0.0005) return "0 ms";
  if (duration_s < 1) return `${Number((duration_s * 1000).toPrecision(3))} ms`;
  if (duration_s < 60) return `${duration_s.toFixed(duration_s < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(duration_s / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(duration_s % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// For sentences: nobody plans with tenths.
export function aboutSeconds(duration_s) {
  if (duration_s < 1.5) return "a second";
  if (duration_s < 90) return `${Math.round(duration_s)} seconds`;
  if (duration_s < 5400) return `${Math.round(duration_s / 60)} minutes`;
  return `${Math.round(duration_s / 3600)} hours`;
}

export function megabytes(mb) {
  if (mb == null) return NONE;
  return mb < 1000 ? `${Math.round(mb)} MB` : `${(mb / 1000).toFixed(2)} GB`;
}

export function percent(share) {
  return share == null ? NONE : `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

export function clock(unix_s) {
  return new Date(unix_s * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// [0, 1, 2, 5] -> "0-2, 5"
export function ranges(numbers) {
  const runs = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
}

export function shortId(id) {
  return id.slice(0, 8);
}
