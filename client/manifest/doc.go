// Package manifest reads objects out of YAML and JSON: of files, of standard input, of what a program has embedded.
// And it installs them, as a program does that brings its own definitions.
//
//	//go:embed crds/*.yaml
//	var crds embed.FS
//
//	objects, err := manifest.ReadFS(crds, "crds/*.yaml")
//	…
//	err = manifest.Install(ctx, c, objects)
//
// All readers read alike:
//
//   - A file has any number of documents, with "---" between them. One of nothing but comments is none.
//   - A document is YAML, or JSON, or several JSON values in a row, as jq prints them.
//   - A list (as kubectl get -o yaml prints one) is what it holds.
//   - An object has an apiVersion, a kind and a name. What has not is refused, and so is a key that stands twice: one
//     of the two was meant, and nobody can tell which.
//
// What is wrong is said with the file and the document that it is in.
package manifest
