// Command playground is the demo in a browser tab: an API in memory, a fake kubelet, the controllers and the page of
// package inspect, in one WebAssembly program that a Web Worker runs. Nothing of it listens on a socket. The page sends
// its requests to the worker as messages, and an http.Handler answers them.
//
// process.go has the handler, and bridge_js.go the messages. Folder page has what the page has more than that of
// package inspect; folder build puts all together. Packages terminal and script are for what a reader types.
package main
