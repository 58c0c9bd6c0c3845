// The connection to the process: a stream of events, which is opened anew when it ends.

/**
 * Stream calls on[event](data) with each message, and on.status(words, detail) when the connection changes: "live",
 * "connecting", "lost" or "paused".
 */
export class Stream {
  constructor(on) {
    this.on = on;
    this.query = '';
    this.failures = 0;
    document.addEventListener('visibilitychange', () => this.visibility());
    // A page that the browser keeps for its back button must not hold a stream.
    addEventListener('pagehide', () => this.close());
    addEventListener('pageshow', (event) => event.persisted && this.open());
  }

  /** watch opens the stream of an object; '' is for none. */
  watch(query) {
    if (this.query !== query || !this.source) {
      this.query = query;
      this.failures = 0;
      this.open();
    }
  }

  open() {
    this.close();
    if (document.hidden) {
      return;
    }
    const source = new EventSource('api/events' + (this.query ? '?' + this.query : ''));
    this.source = source;
    const hear = (name) => source.addEventListener(name, (event) => {
      if (this.source !== source) {
        return;
      }
      clearTimeout(this.silence);
      this.silence = setTimeout(() => this.again(source), 10000);
      this.on[name](JSON.parse(event.data));
    });
    source.addEventListener('open', () => {
      if (this.source === source) {
        this.failures = 0;
        this.on.opened();
        this.on.status('live');
      }
    });
    source.addEventListener('error', () => this.again(source));
    ['pipeline', 'steps', 'why'].forEach(hear);
  }

  /** again opens the stream after a while: the process may be on its way back, or have all the readers it takes. */
  again(source) {
    if (this.source !== source) {
      return;
    }
    this.close();
    const wait = Math.min(5, 1 + this.failures++);
    this.on.status('lost', wait);
    this.timer = setTimeout(() => this.open(), wait * 1000);
    this.diagnose();
  }

  /** diagnose finds out why the stream did not open, which the browser does not say. */
  async diagnose() {
    try {
      const answer = await fetch('api/events' + (this.query ? '?' + this.query : ''), {
        signal: AbortSignal.timeout(2000), headers: {Accept: 'text/event-stream'},
      });
      if (!answer.ok) {
        this.on.status('lost', null, (await answer.text()).trim());
      }
      await answer.body?.cancel();
    } catch {
      // No answer: the process is not there.
    }
  }

  visibility() {
    if (document.hidden) {
      this.close();
      this.on.status('paused');
    } else {
      this.open();
    }
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
  }
}
