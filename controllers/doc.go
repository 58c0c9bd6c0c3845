// Package controllers is the registry of the reference controllers: it lists their names, selects those that are
// enabled, and builds each on a manager. The controllers themselves are the packages below it.
//
// Names, aliases and the rules of selection are those of kube-controller-manager, so that a command line can be
// carried over.
package controllers
