// Package tap holds a pipeline up and lets one step through at a time, so that people can watch a controller work. It
// needs an API server in the same process, package localapi:
//
//	t := tap.New(tap.Options{})
//	server, err := localapi.New(localapi.Options{Gate: t.Gate()})
//	inspector := inspect.New(inspect.Options{Tap: t})
//	t.Attach(ctx, inspector.Recorder())
//
// Four kinds of steps are held up: a write on its way to the server, an event of a watch on its way to the program, a
// change of a cache on its way to the handlers, and a key on its way to its reconcile. A fault can be set for the next
// write.
//
// Reading order: tap.go, then serve.go.
package tap
