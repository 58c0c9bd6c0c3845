// Package flyball holds the documentation of the Flyball framework, so that a program can show it. The framework itself
// is in the packages below: informer, workqueue, client, reconcile and manager, in the order of the pipeline. README.md
// says where to begin.
package flyball

import "embed"

// Docs has README.md and the pages of the folder docs, with what they show. The programs of the book are left out.
//
//go:embed README.md docs/*.md docs/api docs/decisions docs/images docs/kind
//go:embed docs/book/*.md docs/book/images docs/book/shell
var Docs embed.FS
