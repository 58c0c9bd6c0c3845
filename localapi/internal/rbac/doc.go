// Package rbac decides by Roles, ClusterRoles and their bindings what a user may do. It knows the rules, but not where
// they are stored.
package rbac
