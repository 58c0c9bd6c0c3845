// Package namespaces does for namespaces what clients expect of a cluster: every active namespace has its default
// service account and the root certificates of the server, and a deleted one is emptied before it goes. An API server
// alone does none of this: there, a deleted namespace stays Terminating for ever.
//
//	Namespaces, ServiceAccounts ─▶ account loop:  active     ─▶ create the account if it is missing
//	Namespaces, ConfigMaps      ─▶ root loop:     active     ─▶ create the ConfigMap, or restore it
//	Namespaces, Pods            ─▶ deletion loop: terminating ─▶ delete all pods, wait for them
//	                                                          ─▶ delete the rest, resource by resource
//	                                                          ─▶ report in the conditions what is left, come back
//	                                                          ─▶ nothing left: remove the finalizer "kubernetes"
//
// The loops do the work of kube-controller-manager's namespace-controller, serviceaccount-controller and
// root-ca-certificate-publisher-controller, on this module's framework, and work on any API server.
//
// Files: account.go, root.go and deletion.go are the loops. content.go deletes the objects of one resource in a
// namespace. condition.go is the pure part, the conditions that report progress.
package namespaces
