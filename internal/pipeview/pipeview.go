// Package pipeview has what the page of package inspect and flyball top show of a running manager: inspect writes it as
// JSON, and flyball top reads it.
package pipeview

import "time"

// Pipeline is what a manager does at one moment.
type Pipeline struct {
	Time time.Time `json:"time"`
	// Ready is why the manager is not ready; empty if it is.
	Ready       string       `json:"ready,omitempty"`
	Resources   []Resource   `json:"resources"`
	Controllers []Controller `json:"controllers"`
	Flows       []Flow       `json:"flows"`
	// Tap reports whether the Inspector has a tap, which holds steps up.
	Tap bool `json:"tap,omitempty"`
	// Book reports whether the chapters of the book are served beside the page.
	Book bool `json:"book,omitempty"`
	// Story is what is being played, for the page; nil if nothing is.
	Story any `json:"story,omitempty"`
	// Steps, Subjects and Forgotten count what the Inspector has recorded.
	Steps     uint64 `json:"steps"`
	Subjects  int    `json:"subjects"`
	Forgotten uint64 `json:"forgotten"`
}

// Resource is one informer: its reflector, its DeltaFIFO, its cache and its handlers. Counters are totals.
type Resource struct {
	// Name is the resource; if several caches hold it, it tells what is special about each.
	Name string `json:"name"`
	// Objects is the size of the cache, and Version its watermark.
	Objects int64  `json:"objects"`
	Version string `json:"version"`
	// Events and Bytes count what was read from the server.
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
	Lists  int64 `json:"lists"`
	// Queued is how many deltas are in the DeltaFIFO.
	Queued     int64     `json:"queued"`
	Unreadable int64     `json:"unreadable"`
	LastEvent  time.Time `json:"lastEvent"`
	Handlers   []Handler `json:"handlers"`
	// Problems says in words what is wrong.
	Problems []string `json:"problems,omitempty"`
}

// Flow is a way between the objects of a resource and a controller. Counters are totals.
type Flow struct {
	Resource   string `json:"resource"`
	Controller string `json:"controller"`
	// Handled counts the events that the controller's handlers were called with, Written the writes of its reconciles.
	Handled uint64 `json:"handled"`
	Written uint64 `json:"written"`
}

// Handler is one handler of an informer.
type Handler struct {
	Name      string `json:"name"`
	Delivered int64  `json:"delivered"`
	Pending   int64  `json:"pending"`
	// Running is for how long the present run of calls has lasted; zero if the handler is idle.
	Running time.Duration `json:"running"`
}

// Controller is one controller: its queue and its workers. Counters are totals.
type Controller struct {
	Name       string `json:"name"`
	Workers    int    `json:"workers"`
	Adds       uint64 `json:"adds"`
	Reconciles uint64 `json:"reconciles"`
	Errors     uint64 `json:"errors"`
	Stale      uint64 `json:"stale"`
	Queued     int    `json:"queued"`
	InFlight   int    `json:"inFlight"`
	Delayed    int    `json:"delayed"`
	Failing    int    `json:"failing"`
	// Ready, Processing, Waiting and Failures list at most as many keys as were asked for.
	Ready      []Key `json:"ready,omitempty"`
	Processing []Key `json:"processing,omitempty"`
	Waiting    []Key `json:"waiting,omitempty"`
	Failures   []Key `json:"failures,omitempty"`
	// Problem says in words what is wrong; empty if nothing is.
	Problem string `json:"problem,omitempty"`
}

// Key is a key of a controller.
type Key struct {
	Key string `json:"key"`
	// For is how long the key has been ready or processed; In is when it will be ready.
	For     time.Duration `json:"for,omitempty"`
	In      time.Duration `json:"in,omitempty"`
	Attempt int           `json:"attempt,omitempty"`
	// Why is why it waits, or its last error.
	Why    string   `json:"why,omitempty"`
	Causes []string `json:"causes,omitempty"`
	// Again is why a key that is processed will be reconciled once more.
	Again []string `json:"again,omitempty"`
}
