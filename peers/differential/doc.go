// Package differential compares Flyball's controllers with kube-controller-manager's, on the real API server. It
// holds only tests.
//
// A scenario is a story: a user creates, changes and deletes, a kubelet starts and finishes pods, one thing at a
// time. It is played on two control planes, one with the real controllers and one with flyball manager, in lock-step:
// the next thing happens when the last one's consequences are all there. What every step changed is written down,
// without what chance or the clock decides, and the two transcripts have to be the same, line by line.
//
//	scenario ─▶ env (step, step, …) ─writes─▶ API server ◀─▶ controllers
//	                 ▲                            │
//	                 └── settled? ◀── probe ──────┤
//	                                              ▼
//	transcript ◀── names, bodies ◀────────── recorder (watches)
//
// What chance decides is small, and TestNoiseFloor measures it by playing the scenarios on two real ones:
//   - which of several pods that are alike is deleted, and which EndpointSlice, where there are several, holds which
//     endpoint;
//   - how many counts of a status are skipped on the way, and hence when the condition Progressing of a Deployment,
//     which is true before and after, turns from one rollout to the next, and which of the two its message names;
//   - how often a refused write was tried again;
//   - whether a ReplicaSet's controller sees a size that is raised and lowered within one step, and creates pods that
//     it deletes at once: nobody else sees them, but there are events;
//   - what is counted of events beyond the first 25 about one object.
//
// These are left out of the transcripts, each where they are made; nothing else is. What is rarer still (in which of
// two steps a Deployment's sets are resized, say, when the machine is slow) is found by playing a scenario that
// differs once more: it fails when it differs again. EndpointSlices are compared at the end of a scenario only.
//
// Beside it: the manager is killed, left idle, and run in bad weather (watches that lag, an API server that goes
// away), where no two runs are alike, and the rules that hold at every moment are checked on what the API server
// recorded. TestLoad and TestFlap measure.
package differential
