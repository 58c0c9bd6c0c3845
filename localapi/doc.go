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
//
// # Concurrency
//
// A server starts no goroutine of its own. Through the in-memory transport, the client's goroutine computes its answer itself; a
// watch, and every request if there is a gate, runs in one goroutine, as it would in an HTTP server, and [Server.Close] waits for
// all of them. Reads see every write that was answered before they were
// sent. Watches share one log of events per resource: a client that does not read delays nobody, and is told that its
// version has expired when the log has moved on without it.
//
// All time is the time package's. In a [testing/synctest] bubble (create the server inside it), bookmarks, watch timeouts
// and deletion timestamps are those of the bubble, and a watch that waits for events counts as idle.
//
// # Users
//
// Unless told otherwise, everyone is the administrator. [Options.Tokens] and [Server.ServeTLS] know users by bearer
// tokens and client certificates, [Server.RESTConfigFor] makes a client that comes as somebody, and [Options.RBAC] lets
// Roles decide what they may do. A user may act as another by impersonation (kubectl --as), if Roles allow it; without
// [Options.RBAC] everyone may.
//
// Service accounts get tokens by the subresource token ("kubectl create token"): the server signs them with a key that it
// makes at the start, and knows its own again.
//
// # Tests
//
// [NewTest] takes the place of a fake client: seeded objects, a client, rules for what goes wrong, a log of requests.
//
// # Where it differs from a kube-apiserver
//
// There are no admission plugins but what the types' definitions do, and no controllers: those of package cluster empty
// namespaces, create service accounts, collect garbage and play the nodes. A watch without timeoutSeconds lasts until
// somebody ends it. Allocated addresses and ports are the lowest free ones. docs/divergence.md has the list.
package localapi
