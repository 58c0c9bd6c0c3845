// Package node runs one real Kubernetes node in a docker container: containerd, kubelet and kube-proxy, with etcd,
// kube-apiserver, kube-scheduler and kube-controller-manager beside them. Everything comes from Debian packages and
// from the sources of the version that this module requires, so that no image is pulled. For kind, it builds an image
// from which kind makes such nodes.
//
//	engine.go    whether this machine can do it
//	image.go     the container's file system, and the images of what runs in pods
//	node.go      the container
//	programs.go  the programs in it, and their files
//	deploy.go    flyball manager in the cluster, from its image and manifests
//	kind.go      kind, and an image of a node for it
//	kindnode     the files of that image
//	e2e          the images that Kubernetes' own tests run in pods
//	cmd/init     process 1 of the container
//	cmd/pause    process 1 of every pod
//	cmd/coredns  CoreDNS, for the nodes of kind
//	cmd/web      a web server for tests, whose readiness can be switched
//	cmd/node     make node
package node
