// The Web Worker that runs the program. Its first message has the compiled program and the scenario; all others are
// requests, which the program takes itself.

import './wasm_exec.js';

addEventListener('message', async ({data: {module, scenario}}) => {
  const go = new Go();
  go.argv = ['playground', scenario];
  try {
    await go.run(await WebAssembly.instantiate(module, go.importObject));
    postMessage({failed: 'it has ended, perhaps for want of memory; the console of the browser has its last words'});
  } catch (err) {
    postMessage({failed: String(err)});
  }
}, {once: true});
