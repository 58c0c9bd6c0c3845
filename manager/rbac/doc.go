// Package rbac finds out which permissions a process needs. A [Recorder] in its transport records every API call, and
// derives the smallest role that allows them.
//
//	recorder := rbac.NewRecorder()
//	config.Wrap(recorder.Wrap)
//	… run everything that the process does …
//	role := recorder.ClusterRole("web-operator")
//
// The role lacks calls that the run did not make, so the run must exercise everything. The API server also demands
// three things that no call shows:
//
//   - A process that writes roles or bindings needs the rights that it grants, or the verbs escalate and bind.
//   - A process that approves or signs certificate requests needs the verbs approve and sign on the resource signers,
//     by the name of the signer.
//   - Where the admission plugin OwnerReferencesPermissionEnforcement is on (as on OpenShift), a process that sets
//     blockOwnerDeletion in an owner reference needs the verb update on the subresource finalizers of the owner
//     ("deployments/finalizers").
//
// A process that sends requests on behalf of other users needs the verb impersonate on these users. The recorded roles
// allow it for the users that were seen, by name.
package rbac
