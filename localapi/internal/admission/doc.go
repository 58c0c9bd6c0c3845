// Package admission lets plugins change and check the writes that an API server is about to make.
//
//	decode → default → Chain.Mutate → prepare, validate → Chain.Validate → store
//
// The registry asks a [Review], which stands for the admission of one request. It calls Mutate when it has computed the
// next state of an object, before any rule of the type has seen it, and Validate when the state is valid and about to
// be stored. A write that has lost a race is computed again, so both run again. Deletes and connections have both steps
// at once ([Review.Delete], [Review.Connect]). No lock is held meanwhile: a plugin may call programs that read and
// write this server.
//
// A [Chain] runs its plugins in order. The order of a kube-apiserver is: what it does to pods and claims itself,
// mutating admission policies, mutating webhooks, validating admission policies, validating webhooks, quotas. Plugins
// that only mutate or only validate do nothing in the other step. If a plugin asks for it ([Rounds.Changed]), all of
// them get to mutate a second time, and decide themselves what of their work to repeat. A [Settler] is called once more
// when the request is over.
//
// If all plugins are idle for a resource, there is no Review, and a write costs what it costs without admission.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission, pkg/endpoints/handlers, pkg/registry/rest.
package admission
