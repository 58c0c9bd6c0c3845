// Package multicluster measures a fleet of clusters beside multicluster-runtime.
package multicluster
