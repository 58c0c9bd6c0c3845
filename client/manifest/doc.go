// Package manifest reads objects from YAML and JSON: from files, standard input and embedded files. It also installs
// them, for programs that bring their own custom resource definitions.
//
//	//go:embed crds/*.yaml
//	var crds embed.FS
//
//	objects, err := manifest.ReadFS(crds, "crds/*.yaml")
//	…
//	err = manifest.Install(ctx, c, objects)
//
// All functions read the same format:
//
//   - A file has any number of documents, separated by "---". Documents of nothing but comments are skipped.
//   - A document is YAML, JSON, or a sequence of JSON values, as jq prints them.
//   - A list, as kubectl get -o yaml prints it, stands for its items.
//   - An object must have an apiVersion, a kind and a name. A key may not occur twice.
//
// Errors name the file and the document.
package manifest
