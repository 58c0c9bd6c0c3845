// Package kubeconfig is the provider of the clusters in kubeconfig files.
//
//	a file       each of its contexts is a cluster, named after the context
//	a directory  each file in it is a cluster: its current context, named after the file (eu.yaml is "eu")
//
// The provider checks the files once a second. It reads a file when its metadata has changed and then stayed the same
// for one check, so it does not read a file that is half written. It follows symbolic links, so a mounted Secret or
// ConfigMap, whose ..data link is replaced, is read as a whole. It ignores entries of a directory that begin with a
// dot. It does not check certificates and tokens in files of their own: client-go reads them again by itself.
//
// # What is wrong with a file
//
// If a file cannot be read or parsed, the clusters that it defined before stay. The same holds for a single invalid
// context. Health reports the error, and it is logged once. If a file disappears from a watched directory, its clusters
// leave. If a single watched file, or the directory itself, disappears, everything stays as it was.
//
// Kubeconfigs in files are trusted: they may name commands that this process runs.
package kubeconfig
