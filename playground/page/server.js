// The process of the playground: a program in a Web Worker. This module takes the place of that of package inspect,
// whose process is on a server.

/** chapters is where the book is. */
export const chapters = '../docs/book/';

const program = 'program.bin'; // The build puts in what identifies the program.

/** process reports "loading" while the program comes, "ready" when it answers, and "failed" with the reason. */
export const process = new EventTarget();

const policy = globalThis.trustedTypes?.createPolicy('playground', {
  createScriptURL(name) {
    if (name !== 'worker.js' && name !== 'offline.js') {
      throw new TypeError('no script of the playground: ' + name);
    }
    return name;
  },
});

/** script returns the address of a script as the browser wants it. */
export function script(name) {
  return policy ? policy.createScriptURL(name) : name;
}

let module; // the compiled program, which all workers share
let worker = null;
let ready = Promise.withResolvers(); // resolved when the worker answers; what is asked before the first start waits
let number = 0; // of the last request
const answers = new Map(); // of the requests of the worker, by their numbers

/** start ends the process, and starts another one that plays a scenario; '' is for none. */
export function start(scenario) {
  worker?.terminate();
  worker = null;
  if (ready.begun) {
    fail('the process has been stopped');
    ready = Promise.withResolvers();
  }
  const run = ready;
  run.begun = true;
  run.promise.catch(() => {}); // Each request has its own.
  module ??= load();
  module.then((compiled) => {
    if (ready !== run) {
      return; // Another scenario was chosen meanwhile.
    }
    tell('loading', 1);
    worker = new Worker(script('worker.js'), {type: 'module'});
    worker.addEventListener('message', ({data}) => hear(data, run));
    worker.addEventListener('error', (event) => hear({failed: event.message || 'the worker cannot be started'}, run));
    worker.postMessage({module: compiled, scenario});
  }, (err) => {
    module = null;
    hear({failed: String(err.message ?? err)}, run);
  });
}

function tell(type, detail) {
  process.dispatchEvent(new CustomEvent(type, {detail}));
}

/** fail ends all requests, and those to come. */
function fail(reason) {
  const err = new TypeError(reason);
  ready.reject(err);
  ready.promise = Promise.reject(err);
  ready.promise.catch(() => {}); // Each request has its own.
  answers.forEach((answer) => answer.fail(err)); // as when a server goes away
  answers.clear();
}

/** hear takes a message of the worker. */
function hear(data, run) {
  if (ready !== run) {
    return;
  }
  if (data.ready) {
    run.resolve();
    tell('ready');
  } else if (data.failed && !run.failed) { // The first reason is the better one.
    run.failed = true;
    fail(data.failed);
    tell('failed', data.failed);
  } else {
    answers.get(data.id)?.take(data);
  }
}

/** load gets the program, from the cache of this page if it is there, and compiles it. */
async function load() {
  const cache = await globalThis.caches?.open('flyball-program');
  let answer = await cache?.match(program);
  if (!answer) {
    answer = await fetch(program);
    if (!answer.ok) {
      throw new Error(`the program cannot be loaded: ${answer.status} ${answer.statusText}`);
    }
    const kept = answer.clone();
    cache?.keys().then((old) => Promise.all(old.map((each) => cache.delete(each)))).then(() => cache.put(program, kept))
      .catch(() => {}); // There is no room: it is loaded again the next time.
  }
  const size = Number(answer.headers.get('Content-Length'));
  let got = 0;
  const counted = new TransformStream({
    transform(part, to) {
      got += part.length;
      tell('loading', size ? got / size : 0);
      to.enqueue(part);
    },
  });
  const bytes = answer.body.pipeThrough(counted).pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compileStreaming(new Response(bytes, {headers: {'Content-Type': 'application/wasm'}}));
}

/** request sends a request to the inspect page's part of the process, as fetch does. */
export function request(path, init) {
  return ask('/inspect/api/' + path, init);
}

/** ask sends a request to the process, as fetch does. */
export async function ask(path, {signal, method = 'GET', headers = {}, body = ''} = {}) {
  const run = ready;
  await run.promise;
  signal?.throwIfAborted();
  const id = ++number;
  const head = Promise.withResolvers();
  let to; // the controller of the body
  const cancel = () => {
    if (answers.delete(id)) {
      worker.postMessage({id, cancel: true});
    }
  };
  const stream = new ReadableStream({start: (controller) => { to = controller; }, cancel});
  const answer = {
    take(data) {
      if (data.chunk) {
        to.enqueue(data.chunk);
      } else if (data.end) {
        answers.delete(id);
        to.close();
      } else {
        head.resolve(new Response(stream, {status: data.status, headers: data.headers}));
      }
    },
    fail(err) {
      head.reject(err);
      to.error(err);
    },
  };
  answers.set(id, answer);
  signal?.addEventListener('abort', () => {
    if (answers.has(id)) {
      cancel();
      answer.fail(signal.reason);
    }
  });
  worker.postMessage({id, method, path, headers, body});
  return head.promise;
}
