// Package namespaces does for namespaces what clients expect of a cluster: every active one has its default service
// account, and one that is deleted is emptied before it goes. An API server alone does neither: a namespace deleted
// there stays Terminating for ever.
//
//	Namespaces, ServiceAccounts ─▶ account loop:  active     ─▶ create what accounts it lacks
//	Namespaces, Pods            ─▶ deletion loop: terminating ─▶ delete all pods, wait for them
//	                                                          ─▶ delete the rest, resource by resource
//	                                                          ─▶ say in the conditions what is left, come back
//	                                                          ─▶ nothing left: take the finalizer "kubernetes" away
//
// They are namespace-controller and serviceaccount-controller of kube-controller-manager, on this module's framework,
// and work on any API server. Each can be switched off.
//
// Files: account.go and deletion.go are the loops; content.go deletes what one resource has in a namespace;
// condition.go is the pure part, the conditions that say how far it is.
package namespaces
