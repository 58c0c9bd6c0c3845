// Package gate is the one seam through which every request to the embedded API and every frame of every watch passes.
//
// A [Gate] decides what happens to each. It may pass, be delayed or held (the gate simply blocks), fail with a status,
// get lost before or after it took effect, be repeated, or be cut short. Fault injection, interceptors in tests, and a
// deterministic simulator are built on it. A simulator parks every operation in its gate, waits until everything else
// is idle ([testing/synctest]), and releases one operation at a time.
//
// A unary request passes the gate twice: Before is called when nothing has happened yet, and After when the effect is
// stored and the answer is ready but not sent. For a watch, both are called while it is opened, and then Frame once for
// each frame.
//
// # Concurrency
//
// The goroutine that serves a request calls the gate's methods: concurrently for different requests, in order for the
// frames of one watch. The methods may block; the server holds no lock meanwhile. ctx ends when the client gives up or
// the server closes. A gate that then returns, with any verdict, leaves no goroutine behind. The time limits of a
// listener do not include what a gate takes.
package gate
