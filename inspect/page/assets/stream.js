// The connection to the process: a stream of server-sent events, which is opened anew when it ends.

import {request} from './server.js';

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
    if (!document.hidden) {
      this.read(this.source = new AbortController());
    }
  }

  /** read reads the stream to its end. */
  async read(source) {
    let refused;
    try {
      const answer = await request('events' + (this.query ? '?' + this.query : ''), {
        signal: source.signal, headers: {Accept: 'text/event-stream'},
      });
      if (!answer.ok) {
        refused = (await answer.text()).trim();
      } else if (this.source === source) {
        this.failures = 0;
        this.on.opened();
        this.on.status('live');
        for await (const {event, data} of messages(answer.body)) {
          if (this.source !== source) {
            return;
          }
          clearTimeout(this.silence);
          this.silence = setTimeout(() => this.again(source), 10000);
          try {
            this.on[event](data);
          } catch (err) {
            reportError(err); // A view has a defect, which is no reason to open another stream.
          }
        }
      }
    } catch {
      // Nobody answers, or the connection broke.
    }
    this.again(source, refused);
  }

  /** again opens the stream after a while: the process may be on its way back, or have all the readers it takes. */
  again(source, refused) {
    if (this.source !== source) {
      return;
    }
    this.close();
    const wait = Math.min(5, 1 + this.failures++);
    this.on.status('lost', wait, refused);
    this.timer = setTimeout(() => this.open(), wait * 1000);
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
    const source = this.source;
    this.source = null;
    source?.abort();
  }
}

/** messages returns the messages of a stream of server-sent events as this process writes them: a name and JSON. */
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      return;
    }
    const complete = (text + value).split('\n\n');
    text = complete.pop();
    for (const message of complete) {
      const [, event, data] = message.match(/^event: (.*)\ndata: (.*)$/);
      yield {event, data: JSON.parse(data)};
    }
  }
}
