// What the playground has more than the inspect page: the scenarios, the terminal, and the editors.

import './app.js';
import {el, say, show} from './dom.js';
import {ask, process, script, start} from './server.js';

const scenarios = [
  ['create', 'Create'], ['rollout', 'Roll out'], ['stuck', 'Stuck rollout'],
  ['rollback', 'Roll back'], ['scale', 'Scale'], ['delete', 'Delete'], ['lost', 'Lost answer'], ['away', 'Bad hour'],
  ['lease', 'Lost lease'], ['', 'Your own'],
];

const manifest = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: hello
spec:
  replicas: 3
  selector:
    matchLabels: {app: hello}
  template:
    metadata:
      labels: {app: hello}
    spec:
      containers:
      - name: hello
        image: nginx:1.28
`;

/** Scenarios is the bar of scenarios, with the state of the process. */
class Scenarios {
  constructor(root) {
    this.state = el('p', {class: 'words', role: 'status'});
    this.buttons = scenarios.map(([name, text]) => el('button', {type: 'button', click: () => this.play(name)}, text));
    this.again = el('button', {type: 'button', hidden: true, click: () => this.play(this.name)}, 'Start again');
    root.replaceChildren(el('div', {class: 'modes', role: 'group', 'aria-label': 'Scenarios'}, this.buttons),
      this.state, this.again);
    process.addEventListener('loading', ({detail}) => this.say(detail < 1 ?
      `Loading the program: ${Math.round(detail * 100)} %.` : 'The program starts.'));
    process.addEventListener('ready', () => this.say(''));
    process.addEventListener('failed', ({detail}) => this.say('The program has stopped: ' + detail, true));
    const asked = new URLSearchParams(location.search).get('scenario');
    this.play(asked ?? 'create', true);
  }

  /** play starts the process anew. */
  play(name, first) {
    this.name = name;
    this.buttons.forEach((b, n) => b.setAttribute('aria-pressed', String(scenarios[n][0] === name)));
    if (!first) {
      history.replaceState(null, '', '?scenario=' + encodeURIComponent(name) + location.hash);
    }
    this.say('The program starts.');
    start(name);
  }

  say(text, failed = false) {
    say(this.state, text);
    this.state.classList.toggle('problem', failed);
    show(this.again, failed);
  }
}

const mostOutput = 200000; // characters that the terminal keeps

/** Terminal runs commands in the process. */
class Terminal {
  constructor() {
    this.history = [];
    this.at = 0;
    this.pending = ''; // what is not shown yet
    this.length = 0; // of what is shown
    this.out = el('pre', {class: 'out', role: 'log', 'aria-label': 'Output of the commands', tabindex: '0'});
    this.input = el('input', {
      type: 'text', id: 'command', 'aria-label': 'Command of kubectl', autocomplete: 'off', autocapitalize: 'off',
      spellcheck: 'false', placeholder: 'get pods (help lists the commands)', keydown: (event) => this.key(event),
    });
    this.stop = el('button', {type: 'button', hidden: true, click: () => this.running?.abort()}, 'Stop');
    this.root = el('form', {
      class: 'terminal', submit: (event) => {
        event.preventDefault();
        this.run(this.input.value);
        this.input.value = '';
      },
    }, el('h2', {}, 'Terminal'), this.out,
    el('p', {class: 'prompt'}, el('label', {for: 'command'}, '$ kubectl'), this.input, this.stop));
    process.addEventListener('failed', () => this.running?.abort());
  }

  key(event) {
    const step = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (step) {
      event.preventDefault();
      this.at = Math.max(0, Math.min(this.history.length, this.at + step));
      this.input.value = this.history[this.at] ?? '';
    } else if (event.key === 'c' && event.ctrlKey && this.running && !getSelection().toString()) {
      event.preventDefault();
      this.running.abort();
    }
  }

  /** run runs a command; the one before is ended. */
  async run(line, input = editor.text.value) {
    line = line.trim().replace(/^kubectl\s+/, '');
    if (!line) {
      return;
    }
    this.history.push(line);
    this.at = this.history.length;
    this.running?.abort();
    const running = this.running = new AbortController();
    this.print(`$ kubectl ${line}\n`);
    show(this.stop, true);
    try {
      const answer = await ask('/command?line=' + encodeURIComponent(line), {
        method: 'POST', body: input, signal: running.signal,
      });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        this.print(part.value);
      }
    } catch (err) {
      this.print(err.name === 'AbortError' ? '^C\n' : `error: ${err.message}\n`);
    }
    if (this.running === running) {
      this.running = null;
      show(this.stop, false);
    }
  }

  /** print shows a text soon: not each line by itself, because each time the browser lays the page out. */
  print(text) {
    this.pending += text;
    this.timer ??= setTimeout(() => this.flush(), 50);
  }

  flush() {
    this.timer = null;
    const end = this.running ? this.pending.lastIndexOf('\n') + 1 : this.pending.length;
    if (end === 0) {
      return;
    }
    const atEnd = this.out.scrollTop + this.out.clientHeight > this.out.scrollHeight - 30;
    this.out.append(el('div', {}, this.pending.slice(0, end)));
    this.pending = this.pending.slice(end);
    for (this.length += end; this.length > mostOutput && this.out.children.length > 1;) {
      this.length -= this.out.firstChild.textContent.length;
      this.out.firstChild.remove();
    }
    if (atEnd) {
      this.out.scrollTop = this.out.scrollHeight;
    }
  }
}

/** Editor is a text with buttons. */
class Editor {
  constructor(title, id, text, note, ...buttons) {
    this.text = el('textarea', {id, 'aria-label': title, spellcheck: 'false', rows: '16', wrap: 'off'});
    this.text.value = text;
    this.problem = el('p', {class: 'problem', role: 'alert', hidden: true});
    this.root = el('section', {class: 'editor'}, el('h2', {}, title), el('p', {class: 'note'}, note), this.text,
      el('p', {class: 'line'}, buttons), this.problem);
  }

  fail(text) {
    say(this.problem, text);
    show(this.problem, Boolean(text));
  }
}

const terminal = new Terminal();
const editor = new Editor('Manifest', 'manifest', manifest, 'YAML or JSON, any number of objects.',
  el('button', {type: 'button', click: () => terminal.run('apply -f -')}, 'Apply'),
  el('button', {type: 'button', click: () => terminal.run('delete -f -')}, 'Delete'));
const controller = new Editor('A controller of your own', 'script', '',
  'Starlark, a small dialect of Python. It runs on the same loop as the others. "logs -f yours" shows what it prints ' +
    'and its errors.',
  el('button', {type: 'button', click: () => use(controller.text.value)}, 'Run'),
  el('button', {type: 'button', click: () => use('')}, 'Remove'));

/** use makes a script the reader's controller. */
async function use(text) {
  try {
    const answer = await ask('/controller', {method: 'POST', body: text});
    controller.fail(answer.ok ? '' : (await answer.text()).trim());
  } catch (err) {
    controller.fail(err.message);
  }
}

document.getElementById('console').replaceChildren(terminal.root,
  el('details', {}, el('summary', {}, 'Manifest'), editor.root),
  el('details', {}, el('summary', {}, 'A controller of your own'), controller.root));
new Scenarios(document.getElementById('try'));
fetch('example.star').then((answer) => answer.text()).then((text) => {
  controller.text.value ||= text;
}, () => {}); // Without a network, the editor is empty.
navigator.serviceWorker?.register(script('offline.js')).catch(() => {}); // It then needs a network.
