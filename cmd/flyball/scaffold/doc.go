//go:generate -command controller-gen go tool -modfile=../../../tools/go.mod controller-gen
//go:generate -command role go tool -modfile=../../../tools/go.mod controller-gen rbac:roleName=manager-role
//go:generate role paths=./project/internal/controller output:rbac:dir=project/config/rbac
//go:generate controller-gen crd object paths=./project/... output:crd:dir=project/config/crd/bases
//go:generate controller-gen webhook paths=./project/internal/webhook/... output:webhook:dir=project/config/webhook

// Package scaffold writes the project of an operator: [Init] an empty one, [CreateAPI] a kind with its controller,
// [CreateWebhook] webhooks of a kind. [CreateAPI] also adds a version to a kind, and [CreateWebhook] the conversion
// between versions. [Migrate] moves a project of kubebuilder to this framework.
//
// What it writes is the operator in the folder project, with other names. That operator is a part of this module: it
// is compiled, vetted and tested like everything else, so the templates cannot rot. Kinds that are not the project's
// own have templates of their own, in project/internal/foreign.
//
// template.go turns its files into those of a user, and extends the files that controller-gen writes as controller-gen
// would. merge.go adds to a file of Go that the user may have edited. names.go checks the user's names, foreign.go
// knows the kinds of Kubernetes, and declared.go sees that no two files declare the same. change.go collects changes
// of files and makes all of them or none. project.go is the file PROJECT, which records what was created. init.go,
// api.go and webhook.go, both with version.go, and migrate.go have the commands. deployment.go is what migrate does to
// the Deployment.
package scaffold
