// The last samples of the pipeline, and the rates between them.

import {count, duration, many} from './dom.js';

/** Samples holds what the views draw. */
export class Samples {
  latest = null;
  previous = null;
  /** history has the rates of the last minute, by name. */
  history = new Map();

  /** add takes over a sample. One that was seen before is left out. */
  add(sample) {
    if (this.latest && sample.time === this.latest.time) {
      return;
    }
    this.previous = this.latest;
    this.latest = sample;
    for (const r of sample.resources) {
      this.note('resource ' + r.name, this.resourceRate(r, 'events'));
    }
    for (const c of sample.controllers) {
      this.note('controller ' + c.name, this.controllerRate(c, 'reconciles'));
    }
  }

  /** forget drops all: another process answers. */
  forget() {
    this.latest = this.previous = null;
    this.history.clear();
  }

  note(name, rate) {
    const points = this.history.get(name) ?? [];
    if (rate !== null) {
      points.push(rate);
    }
    this.history.set(name, points.slice(-60));
  }

  /** rate returns how much a counter rises in a second; null if that is not known. */
  rate(now, before) {
    if (!this.previous || before === undefined) {
      return null;
    }
    const seconds = (new Date(this.latest.time) - new Date(this.previous.time)) / 1000;
    return seconds > 0 && now >= before ? (now - before) / seconds : null;
  }

  resourceRate(r, field) {
    return this.rate(r[field], this.previous?.resources.find((p) => p.name === r.name)?.[field]);
  }

  handlerRate(r, h) {
    const before = this.previous?.resources.find((p) => p.name === r.name);
    return this.rate(h.delivered, before?.handlers.find((p) => p.name === h.name)?.delivered);
  }

  controllerRate(c, field) {
    return this.rate(c[field], this.previous?.controllers.find((p) => p.name === c.name)?.[field]);
  }

  flowRate(f, field) {
    const before = this.previous?.flows.find((p) => p.resource === f.resource && p.controller === f.controller);
    return this.rate(f[field], this.previous ? before?.[field] ?? 0 : undefined);
  }

  /** writeRate returns the writes of a controller in a second. */
  writeRate(c) {
    const rates = this.latest.flows.filter((f) => f.controller === c.name).map((f) => this.flowRate(f, 'written'));
    return rates.includes(null) || !this.previous ? null : rates.reduce((a, b) => a + b, 0);
  }
}

/** slow and stuck are how long a reconcile lasts before it is pointed at, in nanoseconds. */
export const slow = 10e9;
export const stuck = 60e9;

/** busy returns how long the reconcile that lasts longest has lasted. */
export function busy(c) {
  return Math.max(0, ...(c.processing ?? []).map((k) => k.for ?? 0));
}

/** complaints returns what is unwell, in words: each with the view that shows more. */
export function complaints(p) {
  const all = [];
  if (p.ready) {
    all.push({bad: true, text: 'The process is not ready: ' + p.ready, view: ['pipeline']});
  }
  for (const r of p.resources) {
    for (const problem of r.problems ?? []) {
      all.push({bad: true, text: `${r.name}: ${problem}`, view: ['caches']});
    }
    if (r.unreadable > 0) {
      all.push({bad: true, text: `${r.name}: ${many(r.unreadable, 'object')} cannot be decoded`, view: ['caches']});
    }
  }
  for (const c of p.controllers) {
    if (c.problem) {
      all.push({bad: true, text: `${c.name}: ${c.problem}`, view: ['queues', c.name]});
    }
    for (const k of c.processing ?? []) {
      if (k.for >= slow) {
        all.push({
          bad: k.for >= stuck, view: ['queues', c.name],
          text: `${c.name}: a worker has been busy with ${k.key} for ${duration(k.for)}` +
            (c.inFlight >= c.workers && c.queued > 0 ? `, and ${many(c.queued, 'key')} wait for a worker` : ''),
        });
      }
    }
    if (c.failing > 0) {
      const first = c.failures?.[0];
      all.push({
        bad: false, view: ['queues', c.name],
        text: `${c.name}: ${count(c.failing)} ${c.failing === 1 ? 'key fails' : 'keys fail'}` +
          (first ? `, such as ${first.key}: ${first.why}` : ''),
      });
    }
  }
  return all;
}
