// Package kubeconfig is the provider of clusters that kubeconfig files tell of.
//
//	a file       each of its contexts is a cluster, named after the context
//	a directory  each file in it is a cluster: its current context, named after the file (eu.yaml is "eu")
//
// Files are looked at once a second, by what the file system says of them, and read when that has changed and stayed
// the same for one look: a file that is being written is not read halfway. What they name is followed through
// symbolic links, so a mounted Secret or ConfigMap, whose ..data link is swapped, is read as a whole; entries of a
// directory that begin with a dot are left out. Certificates and tokens in files of their own are not looked at here:
// client-go reads them again by itself.
//
// # What is wrong with a file
//
// A file that cannot be read or understood takes nothing away: the clusters that it gave before stay, a context that
// makes no sense beside others likewise; Health says in words what is wrong, and one line is logged. A file that has
// gone takes its clusters with it where a directory is watched. The one file, and the directory itself, are expected
// to be there: without them everything stays as it was.
//
// Kubeconfigs in files are trusted: they may name commands that this process runs.
package kubeconfig
