// Package rbac finds out which permissions a process needs: a [Recorder] in its transport notes every API call, and makes the
// smallest role of them.
//
//	recorder := rbac.NewRecorder()
//	config.Wrap(recorder.Wrap)
//	… run everything that the process does …
//	role := recorder.ClusterRole("web-operator")
//
// A call that the run did not make is not in the role: the run must be one that does everything. Three things the API
// server demands that no call shows. A process that writes roles or bindings needs the rights that it gives away, or
// the verbs escalate and bind. One that approves requests for certificates, or issues them, needs the verbs approve and
// sign on the resource signers, by the name of the signer. Where the admission plugin OwnerReferencesPermissionEnforcement is on (OpenShift), a
// process that sets blockOwnerDeletion in an owner reference needs update on the subresource finalizers of the owner
// ("deployments/finalizers").
package rbac
