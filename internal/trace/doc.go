// Package trace records what happens to objects and keys on their way through the pipeline. Informers, controllers and
// clients report to the [Recorder] of their context, if it has one. Package inspect shows what was recorded.
//
// Reading order: step.go, recorder.go, report.go, logs.go.
package trace
