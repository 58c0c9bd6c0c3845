// Package localapi is a Kubernetes API server inside the process.
//
//	server, err := localapi.New(localapi.Options{})
//	if err != nil { … }
//	defer server.Close()
//	client, err := kubernetes.NewForConfig(server.RESTConfig())
//
// It speaks the API as a kube-apiserver does, not a dialect of it: client-go, kubectl and other controller frameworks
// work against it unchanged. [Server.RESTConfig] reaches it without a socket, [Server.Handler] is an [http.Handler] for
// any HTTP server, and [Server.Serve] listens on a port.
//
// A request takes this way through the packages below:
//
//	transport (memory or HTTP) → gate → handlers → registry → storage
//	                              │        │           │          │
//	                              │        │           │          └ bytes by key and revision, history   [storage]
//	                              │        │           └ the API's rules, for every [resource.Definition]
//	                              │        └ verbs, encodings, patches, tables, watch streams
//	                              └ may delay, drop, fail, repeat or hold anything that passes           [gate]
//
// Callers can plug into three parts: the storage interface (in memory or on disk), the gate (fault injection,
// simulation), and the audit log (what did the clients do?).
//
// # Concurrency
//
// A server starts no goroutine of its own. Through the in-memory transport, the client's goroutine computes its own
// answer. A watch runs in a goroutine of its own, as it would in an HTTP server, and so does every request if there is
// a gate; [Server.Close] waits for all of them. A read sees every write that was answered before the read was sent.
// Watches share one log of events per resource. A client that does not read delays nobody: when the log has moved on
// without it, its watch ends with the error that its version has expired.
//
// All time is the time package's. In a [testing/synctest] bubble (create the server inside it), bookmarks, watch
// timeouts and deletion timestamps follow the bubble's clock, and a watch that waits for events counts as idle.
//
// # Users
//
// By default every client is the administrator. [Options.Tokens] and [Server.ServeTLS] identify users by bearer tokens
// and client certificates, [Server.RESTConfigFor] makes a client that acts as a given user, and [Options.RBAC] lets
// Roles decide what users may do. A user may act as another by impersonation (kubectl --as) if Roles allow it; without
// [Options.RBAC] every user may.
//
// Service accounts get tokens through the subresource token ("kubectl create token"). The server signs them with a key
// that it generates at start-up, and accepts only tokens signed with that key.
//
// # Tests
//
// [NewTest] takes the place of a fake client: seeded objects, a client, rules that inject failures, a log of requests.
//
// # Where it differs from a kube-apiserver
//
// Webhooks are called, for admission and for the conversion of custom resources ([Server.HandleWebhook]). There are no
// other admission plugins beyond what the types' definitions do, and no controllers. Package cluster has
// controllers that empty deleted namespaces, create service accounts, collect garbage and play the nodes. A watch
// without timeoutSeconds lasts until the client or the server ends it. Allocated addresses and ports are the lowest
// free ones. Rules and policies in CEL need [Options.CEL]. docs/divergence.md has the full list.
package localapi
