// Package gate is the one seam through which every request to the embedded API and every frame of every watch passes.
//
// A [Gate] decides what becomes of each: pass, be delayed or held (the gate simply takes its time), fail with a status,
// get lost before or after it took effect, be repeated, be cut short. It is what fault injection, interceptors in tests,
// and a deterministic simulator are made of. A simulator parks every operation in its gate, waits until everything else
// is idle ([testing/synctest]), and releases one at a time.
//
// A unary request passes twice: Before, when nothing has happened yet, and After, when its effect is stored and its
// answer is ready but not sent. A watch passes both as it is opened, and then Frame once for each frame.
//
// # Concurrency
//
// A gate's methods are called by the goroutine that serves the request, concurrently for different requests, in order for
// the frames of one watch. They may block; the server holds no lock meanwhile. ctx ends when the client gives up or the
// server closes: a gate that returns then, with any verdict, leaves no goroutine behind.
package gate
