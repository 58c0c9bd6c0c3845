// Package localapi is a Kubernetes API server inside the process.
//
//	server, err := localapi.New(localapi.Options{})
//	if err != nil { … }
//	defer server.Close()
//	client, err := kubernetes.NewForConfig(server.RESTConfig())
//
// It speaks the API as a kube-apiserver does, not a dialect of it: client-go, kubectl and other controllers' frameworks work
// against it unchanged. [Server.RESTConfig] reaches it without a socket, [Server.Handler] puts it into any HTTP server,
// [Server.Serve] listens itself.
//
// A request's way through the packages below:
//
//	transport (memory or HTTP) → gate → handlers → registry → storage
//	                              │        │           │          │
//	                              │        │           │          └ bytes by key and revision, history   [storage]
//	                              │        │           └ the API's rules, for every [resource.Definition]
//	                              │        └ verbs, encodings, patches, tables, watch streams
//	                              └ may delay, drop, fail, repeat or hold anything that passes           [gate]
//
// Three parts are seams for others: the storage interface (memory here, on disk elsewhere), the gate (fault injection,
// simulation), and the audit log (what did the clients do).
package localapi
