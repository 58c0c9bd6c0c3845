// Package rbac finds out which permissions a process needs: a [Recorder] in its transport notes every API call, and makes the
// smallest role of them.
//
//	recorder := rbac.NewRecorder()
//	config.Wrap(recorder.Wrap)
//	… run everything that the process does …
//	role := recorder.ClusterRole("web-operator")
//
// A call that the run did not make is not in the role: the run must be one that does everything.
package rbac
