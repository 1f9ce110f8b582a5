// How much of the last minute each worker was held back by its CPU quota. The workers count from their
// start; what matters is the change.

const WINDOW_S = 60;

export class Throttling {
  #samples = new Map(); // incarnation -> [{at, periods, throttled}], oldest first

  see(view) {
    const alive = new Set();
    for (const worker of view.workers ?? []) {
      alive.add(worker.incarnation);
      const samples = this.#samples.get(worker.incarnation) ?? [];
      samples.push({
        at: view.at,
        periods: worker.cpu_periods ?? 0,
        throttled: worker.throttled_periods ?? 0,
      });
      while (samples.length > 2 && samples[1].at < view.at - WINDOW_S) samples.shift();
      this.#samples.set(worker.incarnation, samples);
    }
    for (const name of this.#samples.keys()) if (!alive.has(name)) this.#samples.delete(name);
  }

  // 0 to 1, of the quota's periods.
  shareOf(worker) {
    const samples = this.#samples.get(worker.incarnation) ?? [];
    const [first, last] = [samples[0], samples.at(-1)];
    const periods = last ? last.periods - first.periods : 0;
    return periods > 0 ? (last.throttled - first.throttled) / periods : 0;
  }
}
