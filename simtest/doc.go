// Package simtest proves controllers in go test: it crashes them after every write, loses answers, lets their caches
// lag, and compares the result with a run without faults. docs/simtest.md shows how to use it.
//
//	func TestWebsite(t *testing.T) {
//		simtest.Check(t, simtest.Scenario{
//			Build:  func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config()) },
//			Script: func(u *simtest.User) { u.Create(site); u.Settle(); u.Delete(site) },
//		})
//	}
//
// # Reading order
//
// First what users see: scenario.go, the program and what a user does to it; others.go, a program beside it; user.go,
// the user's steps; cache.go, caches that are judged; state.go, the objects as judges see them; find.go, [Check] and
// [Find].
//
// Then one run: fault.go, what can go wrong and when; world.go, the parts of a run; phase.go, how far it is;
// process.go, processes of the program; outside.go, what is outside the cluster; gate.go, where every request and event
// waits; schedule.go, which of them happens next; hold.go, what holds them back; answers.go, answers that all runs
// share; observe.go, what has changed; judge.go, the rules; normal.go, how states are compared; record.go, what a run
// leaves behind.
//
// Then the search: check.go, the runs without faults; explore.go, which plans are tried; prune.go, which need not be;
// shrink.go, how a finding is made simpler; corpus.go, findings kept for later; story.go, report.go and page.go, what
// is told about it.
//
// # How a run is repeatable
//
// Each run is a bubble of [testing/synctest]. Requests and events wait in the gate of an embedded API server. The
// scheduler, which is the goroutine that calls simulate, waits until every other goroutine of the bubble is blocked. It
// then looks at what waits, in an order that does not depend on the order of arrival, and lets one thing happen. Time
// passes only when nothing waits.
//
// # Concurrency
//
// Runs are independent and take place at the same time, one on each processor; [Scenario.Serial] forbids that. Within a
// run, at most one request or step is being performed by the server.
package simtest
