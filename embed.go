// Package flyball holds the documentation of the Flyball framework, so that a program can show it. The framework itself
// is in the packages below: informer, workqueue, client, reconcile and manager, in the order of the pipeline. README.md
// says where to begin.
package flyball

import "embed"

// Docs has README.md and the folder docs, as Markdown.
//
//go:embed README.md docs
var Docs embed.FS
